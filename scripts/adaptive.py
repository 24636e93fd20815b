#!/usr/bin/env python3
"""Measures whether restorm finds the best number of batches in flight by itself.

Each shape of data is restored with several fixed numbers of workers and with the number left to
restorm, in turn, each time into a fresh mongod. What comes of it is kept as bench.py keeps it:
docs/benchmarks/<date>-adaptive/raw.jsonl and summary.md.

Shapes:
    many    2000 collections x 50 documents of 180 bytes
    giant   one collection of 1 000 000 documents of 175 bytes
    large   200 documents of a megabyte
    slow    one collection of 1 000 000 documents, over a way of 30 ms in each direction

Linux only; Python 3.8 or newer, standard library only.
"""

import argparse
import contextlib
import json
import os
import shlex
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import bench

SHAPES = ["many", "giant", "large", "slow"]
WORKERS = ["1", "2", "4", "8", "16", "32", None]
WAY_MILLISECONDS = 30
LARGE_BYTES = 1_000_000


def label(workers):
    return "adaptive" if workers is None else f"--workers {workers}"


class Adaptive(bench.Bench):
    """The runs of one call."""

    def large(self):
        """A dump of large documents: an _id and a string that does not compress to nothing."""
        folder = self.work / "large"
        (folder / "big").mkdir(parents=True)
        with open(folder / "big" / "files.bson", "wb") as data:
            for number in range(200):
                text = (f"{number:08d}" * (LARGE_BYTES // 8)).encode()
                fields = b"\x10_id\x00" + struct.pack("<i", number)
                fields += b"\x02text\x00" + struct.pack("<i", len(text) + 1) + text + b"\x00"
                data.write(struct.pack("<i", len(fields) + 5) + fields + b"\x00")
        return bench.Dump(folder, 200, (folder / "big" / "files.bson").stat().st_size)

    def shape(self, name):
        if name == "many":
            return self.dump("many", 2000, 50)
        if name == "large":
            return self.large()
        return self.dump("giant", 1, 1_000_000)

    def measure(self, shape):
        dump = self.shape(shape)
        for number in range(self.options.rounds):
            for workers in WORKERS if number % 2 == 0 else reversed(WORKERS):
                report = self.work / "report.json"
                words = [bench.RESTORM, "restore", dump.folder, "--report", report]
                words += ["--ledger", "none", "--uri", bench.URI]
                words += ["--workers", workers] if workers else []
                sample = {"case": shape, "run": label(workers), "round": number + 1}
                sample.update(documents=dump.documents, bytes=dump.bytes)
                sample["load_before"] = round(os.getloadavg()[0], 1)
                sample.update(timed([str(word) for word in words], shape == "slow"))
                found = json.loads(report.read_text())["workers"]
                sample["workers"] = {key: found[key] for key in ("fewest", "most", "last")}
                sample["decisions"] = found["decisions"]
                self.keep(sample)


def timed(words, is_far):
    """One run against a server of its own, near or far."""
    with bench.server() as facts, contextlib.ExitStack() as stack:
        uri = facts["uri"]
        if is_far:
            port = stack.enter_context(wire(uri))
            uri = f"mongodb://127.0.0.1:{port}/?directConnection=true"
        figures = bench.timed([uri if word == bench.URI else word for word in words], facts["pid"])
    return {**figures, "command": shlex.join(words)}


@contextlib.contextmanager
def wire(uri):
    """A long way to a server."""
    address = uri.split("//", 1)[1].split("/", 1)[0]
    script = str(Path(__file__).with_name("slow_wire.py"))
    command = [sys.executable, script, address, str(WAY_MILLISECONDS)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield int(holder.stdout.readline())
    finally:
        holder.stdin.close()
        holder.wait()


def summarise(facts, samples, shapes, options):
    """The page that stands beside the raw samples."""
    lines = [f"# The number of batches in flight, {facts['date'][:10]}", ""]
    lines += [f"- {facts['cpu']}, {facts['cores']} cores, {facts['memory']}; Linux "
              f"{facts['kernel']}; client and server on this one machine"]
    lines += [f"- {name}: {version}" for name, version in facts["versions"].items()]
    lines += [f"- `python3 scripts/adaptive.py {shlex.join(facts['arguments'])}`"]
    lines += [f"- Medians of n = {options.rounds}; a fresh mongod for each run; CPU is user and "
              "system time together"]
    loads = [sample["load_before"] for sample in samples]
    lines += [f"- Load average before the runs, of this benchmark and of whatever else ran: "
              f"{min(loads)} to {max(loads)}, median {statistics.median(loads)}"]
    for shape in shapes:
        lines += ["", f"## {shape}", ""]
        lines += ["| run | wall s | least wall s | to the best fixed one | client CPU s |"
                  " peak MB | workers |"]
        lines += ["| --- | --- | --- | --- | --- | --- | --- |"]
        groups = {}
        for sample in samples:
            if sample["case"] == shape:
                groups.setdefault(sample["run"], []).append(sample)
        walls = {run: [one["wall_s"] for one in group] for run, group in groups.items()}
        best = min(statistics.median(wall) for run, wall in walls.items() if run != "adaptive")
        for workers in WORKERS:
            group, wall = groups[label(workers)], walls[label(workers)]
            found = [f"{one['workers']['fewest']}–{one['workers']['most']}, last "
                     f"{one['workers']['last']}" for one in group]
            cpu = statistics.median(one["user_s"] + one["sys_s"] for one in group)
            peak = statistics.median(one["peak_kib"] for one in group) / 1024
            lines += [f"| {label(workers)} | {statistics.median(wall):.2f} | {min(wall):.2f} | "
                      f"{statistics.median(wall) / best:.2f} | {cpu:.2f} | {peak:.0f} | "
                      f"{'; '.join(found) if workers is None else workers} |"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=["all", *SHAPES], default="all")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each kind (default 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the documents to use")
    parser.add_argument("--name", default="adaptive", help="of the results' folder")
    parser.add_argument("--out", type=Path, help="the results' folder itself")
    parser.add_argument("--work", type=Path, help="folder for the dumps (default: temporary)")
    options = parser.parse_args()
    subprocess.run(["cargo", "build", "--release", "--locked"], cwd=bench.CLONE, check=True)
    runs = Adaptive(options)
    runs.mongorestore = None
    try:
        facts = runs.facts()
        runs.raw.write_text(json.dumps(facts) + "\n")
        shapes = SHAPES if options.shape == "all" else [options.shape]
        for shape in shapes:
            print(f"\n{shape}", flush=True)
            runs.measure(shape)
        summary = summarise(facts["facts"], runs.samples, shapes, options)
        (runs.out / "summary.md").write_text(summary)
        print(f"\n{summary}\nKept in {runs.out}")
    finally:
        shutil.rmtree(runs.work, ignore_errors=True)


if __name__ == "__main__":
    main()
