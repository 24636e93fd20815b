#!/usr/bin/env python3
"""Makes the files of this folder with pyarrow: `make.py FOLDER`. They are committed."""

import datetime
import decimal
import sys
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

FOLDER = Path(sys.argv[1])
UTC = datetime.timezone.utc
WHEN = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456, UTC)


class ObjectId(pa.ExtensionType):
    """As pymongoarrow stores an ObjectId."""

    def __init__(self):
        super().__init__(pa.binary(12), "pymongoarrow.objectid")

    def __arrow_ext_serialize__(self):
        return b""


def kinds():
    oid = pa.array([bytes(range(12)), bytes(range(1, 13)), bytes(12)], pa.binary(12))
    item = pa.struct([("sku", pa.string()), ("count", pa.int16())])
    dec = decimal.Decimal
    return pa.table({
        "_id": pa.ExtensionArray.from_storage(ObjectId(), oid),
        "null": pa.array([None, None, None], pa.null()),
        "bool": pa.array([True, False, None]),
        "int8": pa.array([-128, 127, None], pa.int8()),
        "uint16": pa.array([0, 65535, None], pa.uint16()),
        "int32": pa.array([-2**31, 2**31 - 1, None], pa.int32()),
        "uint32": pa.array([0, 2**32 - 1, None], pa.uint32()),
        "int64": pa.array([-2**63, 2**63 - 1, None], pa.int64()),
        "uint64": pa.array([1, 2**64 - 1, None], pa.uint64()),
        "float": pa.array([1.5, float("nan"), None], pa.float32()),
        "double": pa.array([0.1, float("-inf"), None], pa.float64()),
        "decimal": pa.array([dec("-12.340"), dec("0.001"), None], pa.decimal128(10, 3)),
        "long": pa.array([dec("1.5"), dec(10) ** 38, None], pa.decimal256(45, 1)),
        "text": pa.array(["Zürich", "", None]),
        "word": pa.array(["red", "red", None]).dictionary_encode(),
        "bytes": pa.array([b"\x00\xff", b"", None], pa.binary()),
        "uuid": pa.array([uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes, None], pa.uuid()),
        "date": pa.array([datetime.date(1969, 12, 31), datetime.date(2024, 2, 29), None]),
        "time": pa.array([datetime.time(1, 2, 3), datetime.time(23, 59, 59, 500000), None]),
        "milli": pa.array([WHEN, WHEN, None], pa.timestamp("ms", "UTC")),
        "micro": pa.array([WHEN, WHEN, None], pa.timestamp("us")),
        "list": pa.array([[1, None, 3], [], None], pa.list_(pa.int64())),
        "pair": pa.array([[1.0, 2.0], [3.0, 4.0], None], pa.list_(pa.float64(), 2)),
        "items": pa.array([[{"sku": "a", "count": 1}, {"sku": "b", "count": None}], [], None],
                          pa.list_(item)),
        "address": pa.array([{"sku": "x", "count": 9}, {"sku": None, "count": 0}, None], item),
        "labels": pa.array([[("a", "1"), ("b", None)], [], None],
                           pa.map_(pa.string(), pa.string())),
        "numbered": pa.array([[(1, "one")], [], None], pa.map_(pa.int32(), pa.string())),
    })


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    table = kinds()
    pq.write_table(table, FOLDER / "kinds.parquet", compression="zstd")
    pa.feather.write_feather(table, FOLDER / "kinds.arrow", compression="uncompressed")
    many = pa.table({"_id": pa.array(range(1000), pa.int32()),
                     "text": pa.array([f"row {n}" for n in range(1000)])})
    pq.write_table(many, FOLDER / "groups.parquet", compression="snappy", row_group_size=300)
    pa.feather.write_feather(many, FOLDER / "groups.arrow", chunksize=300, compression="lz4")


main()
