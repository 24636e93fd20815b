#!/usr/bin/env python3
"""Measures restores and keeps the raw samples: `make bench`.

Every run gets a fresh mongod; runs of one case alternate, so that a slow moment of the machine
hits all of them. Each sample is written to docs/benchmarks/<date>-<name>/raw.jsonl as soon as it
is there, summary.md beside it at the end. Where mongorestore and mongoimport are on the PATH they
run too.

Cases:
    plain      20 collections x 100 000 wide documents, into nothing and into a mongod
    giant      one collection of 2 000 000 documents beside plain: the ratio of wall times
    ten-times  a dump ten times as large beside plain: the ratio of peak memory
    gzip       plain compressed by gzip -6 beside plain: the ratio of rates, and the CPU of
               `gzip -dc` over the same files
    settings   the plain restore with one setting changed at a time; not part of all
    tiny       1000 collections x 20 documents beside 1000 empty collections, whose restore is
               creation alone
    seed       documents that are made up on the way, of each shape and by a spec, into nothing and
               into a mongod
    import     2 000 000 rows of about 190 bytes (as BSON) from JSON lines, CSV and, where pyarrow
               is installed, Parquet, into nothing and into a mongod

How it is measured: wall time from start to exit; client CPU from wait4; peak memory from VmHWM in
/proc/PID/status, read every 10 ms, because the maximum of wait4 counts this script's own memory
before exec; server CPU from /proc/PID/stat before and after. Dumps are warm in the page cache.
Linux only; Python 3.8 or newer, standard library only.
"""

import argparse
import collections
import contextlib
import csv
import datetime
import json
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

CLONE = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", CLONE / "target"))
RESTORM = TARGET / "release" / "restorm"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Stands in a command for the address of the run's own server.
URI = "URI"
CASES = ["plain", "giant", "ten-times", "gzip", "tiny", "seed", "import"]


Run = collections.namedtuple("Run", ["label", "dump", "words"])

# What the case "seed" makes up, in millions of documents.
MADE = {"wide": 10, "sink": 10, "points": 10, "orders": 2, "spec": 1}

# What the case "settings" varies.
SETTINGS = {
    "--batch-documents": ["100", "500", "1000", "2000", "5000", "20000"],
    "--workers": ["1", "2", "4", "8", "16"],
    "--write-concern": ["majority", "1 --journal off", "1 --journal on"],
    "--parallel-collections": ["1", "2", "4", "8"],
}


# Rows of the case "import".
IMPORTED = 2_000_000


def row_of(number):
    """A row, the same for the same number."""
    city = ["Berlin", "Paris", "London", "New York", "Singapore"][number * 7 % 5]
    return {
        "_id": number,
        "name": f"user{number:07}",
        "email": f"user{number:07}@example.org",
        "city": city,
        "age": 18 + number * 31 % 75,
        "score": number * 7919 % 1_000_000 / 1000,
        "active": number % 3 > 0,
        "created": f"2024-05-{1 + number % 28:02}T10:00:00Z",
        "comment": "x" * (30 + number * 13 % 9),
    }


class Dump:
    """A made-up dump on disk."""

    def __init__(self, folder, documents, size=0):
        self.folder = folder
        self.documents = documents
        self.bytes = size

    def data_files(self):
        return sorted(str(path) for path in self.folder.rglob("*.bson*"))


class Bench:
    """The runs of one call, their samples and the place where these are kept."""

    def __init__(self, options):
        self.options = options
        self.work = Path(tempfile.mkdtemp(prefix="restorm-bench-", dir=options.work))
        self.dumps = {}
        self.samples = []
        date = datetime.date.today().isoformat()
        self.out = options.out or CLONE / "docs" / "benchmarks" / f"{date}-{options.name}"
        self.out.mkdir(parents=True, exist_ok=True)
        self.raw = self.out / "raw.jsonl"
        if self.raw.exists():
            sys.exit(f"{self.raw} exists already; choose another --name")
        # By name, since where a peer is installed says nothing about it.
        self.mongorestore, self.mongoimport = (
            peer if shutil.which(peer) else None for peer in ["mongorestore", "mongoimport"]
        )

    # Dumps.

    def dump(self, name, count, documents):
        """The dump of so many collections with so many documents each, made on first use."""
        if name not in self.dumps:
            documents = max(1, int(documents * self.options.scale)) if documents else 0
            dump = Dump(self.work / name, count * documents)
            command = [RESTORM, "seed", "--out", dump.folder, "--collections", count]
            command += ["--documents", documents, "--shape", "wide"]
            checked(command)
            dump.bytes = sum(Path(path).stat().st_size for path in dump.data_files())
            self.dumps[name] = dump
        return self.dumps[name]

    def plain(self):
        return self.dump("plain", 20, 100_000)

    def gzipped(self):
        """The plain dump with every file compressed, as mongodump --gzip lays it out."""
        if "gzip" not in self.dumps:
            plain = self.plain()
            dump = Dump(self.work / "gzip", plain.documents, plain.bytes)
            shutil.copytree(plain.folder, dump.folder)
            for path in sorted(dump.folder.rglob("*")):
                if path.is_file():
                    checked(["gzip", "-6", path])
            self.dumps["gzip"] = dump
        return self.dumps["gzip"]

    # Runs.

    def restores(self, label, dump, flags=(), null=False):
        """The ways to restore a dump that are compared with each other."""
        restore = [RESTORM, "restore", dump.folder, *self.options.restorm_arg]
        if null:
            yield Run(f"{label}: restorm, null target", dump, [*restore, "--null"])
        yield Run(f"{label}: restorm", dump, [*restore, "--uri", URI])
        if self.mongorestore:
            words = [self.mongorestore, "--quiet", *flags, "--uri", URI, "--dir", dump.folder]
            yield Run(f"{label}: mongorestore", dump, words)

    def runs(self, case):
        """The runs of a case, in the order in which they alternate."""
        if case == "seed":
            return [run for shape in MADE for run in self.seeds(shape)]
        if case == "import":
            return [run for file in self.texts() for run in self.imports(file)]
        plain = self.plain() if case != "tiny" else None
        if case == "plain":
            return [*self.restores("plain", plain, null=True)]
        if case == "giant":
            giant = self.dump("giant", 1, 2_000_000)
            return [*self.restores("20 collections", plain), *self.restores("1 giant", giant)]
        if case == "ten-times":
            ten = self.dump("ten-times", 20, 1_000_000)
            return [
                *self.restores("1 time", plain, null=True),
                *self.restores("10 times", ten, null=True),
            ]
        if case == "settings":
            return [*self.variations(plain)]
        if case == "gzip":
            packed = self.gzipped()
            return [
                *self.restores("plain", plain, null=True),
                *self.restores("gzip", packed, ["--gzip"], null=True),
                Run("gzip -dc", packed, ["gzip", "-dc", *packed.data_files()]),
            ]
        tiny, empty = self.dump("tiny", 1000, 20), self.dump("empty", 1000, 0)
        return [*self.restores("tiny", tiny), *self.restores("creation alone", empty)]

    def seeds(self, shape):
        """Made-up documents, into nothing and into a server."""
        scale = self.options.scale
        if shape == "spec":
            spec = CLONE / "testdata" / "specs" / "shop.toml"
            words = [RESTORM, "seed", "--spec", spec, "--scale", 50 * scale]
        else:
            documents = int(MADE[shape] * 1_000_000 * scale)
            words = [RESTORM, "seed", "--shape", shape, "--documents", documents]
        words += ["--ledger", "none"]
        dump = self.read_by(words)
        yield Run(f"{shape}: null target", dump, [*words, "--null"])
        yield Run(f"{shape}: server", dump, [*words, "--uri", URI])

    def read_by(self, words):
        """What a command has to write, as its report says when it writes into nothing."""
        report = self.work / "report.json"
        checked([*words, "--null", "--quiet", "--report", report])
        found = json.loads(report.read_text())
        return Dump(None, found["balance"]["read"], found["totals"]["bytes_read"])

    def texts(self):
        """Files with the same rows in every form there is a writer for."""
        rows = max(1, int(IMPORTED * self.options.scale))
        folder = self.work / "texts"
        folder.mkdir()
        lines, table = folder / "rows.json", folder / "rows.csv"
        with open(lines, "w") as as_json, open(table, "w", newline="") as as_csv:
            writer = csv.DictWriter(as_csv, row_of(0))
            writer.writeheader()
            for number in range(rows):
                row = row_of(number)
                json.dump({**row, "created": {"$date": row["created"]}}, as_json)
                as_json.write("\n")
                writer.writerow({**row, "active": str(row["active"]).lower()})
        yield lines
        yield table
        with contextlib.suppress(ImportError):
            import pyarrow.csv
            import pyarrow.parquet
            pyarrow.parquet.write_table(pyarrow.csv.read_csv(table), folder / "rows.parquet")
            yield folder / "rows.parquet"

    def imports(self, file):
        """A file of rows, into nothing and into a server."""
        kind = file.suffix[1:]
        words = ["-d", "shop", "-c", "rows", f"--file={file}"]
        words += ["--type=csv", "--headerline"] if kind == "csv" else []
        restorm = [RESTORM, "import", *words]
        dump = self.read_by(restorm)
        yield Run(f"{kind}: restorm, null target", dump, [*restorm, "--null"])
        yield Run(f"{kind}: restorm", dump, [*restorm, "--uri", URI])
        if self.mongoimport and kind != "parquet":
            yield Run(f"{kind}: mongoimport", dump, [self.mongoimport, "--uri", URI, *words])

    def variations(self, dump):
        """The plain restore with one setting changed at a time."""
        for flag, values in SETTINGS.items():
            for value in values:
                words = [RESTORM, "restore", dump.folder, *self.options.restorm_arg]
                words += ["--uri", URI, flag, *value.split(" ")]
                yield Run(f"{flag} {value}", dump, words)

    def measure(self, case):
        """Runs a case the wanted number of times, forwards and backwards in turn."""
        runs = self.runs(case)
        for number in range(self.options.rounds):
            for run in runs if number % 2 == 0 else reversed(runs):
                sample = {"case": case, "run": run.label, "round": number + 1}
                sample.update(documents=run.dump.documents, bytes=run.dump.bytes)
                sample.update(measured([str(word) for word in run.words]))
                self.keep(sample)

    def keep(self, sample):
        """Writes a sample down before the next run begins."""
        command = sample["command"].replace(str(self.work), "WORK")
        sample["command"] = command.replace(f"{CLONE}/", "")
        self.samples.append(sample)
        with open(self.raw, "a") as raw:
            raw.write(json.dumps(sample) + "\n")
        print(
            f"{sample['round']}  {sample['run']:32} {sample['wall_s']:8.2f} s"
            f" {per_second(sample) / 1000:9.0f} k documents/s", flush=True
        )

    # Results.

    def facts(self):
        """The machine and the versions, for whoever reads the figures later."""
        with server() as facts:
            binary = os.readlink(f"/proc/{facts['pid']}/exe")
        versions = [[RESTORM, "--version"], [binary, "--version"], ["git", "describe", "--always",
                    "--dirty"], ["rustc", "--version"]]
        for peer in filter(None, [self.mongorestore, self.mongoimport]):
            versions.append([peer, "--version"])
        return {
            "facts": {
                "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
                "cpu": field("/proc/cpuinfo", "model name"),
                "cores": len(os.sched_getaffinity(0)),
                "memory": field("/proc/meminfo", "MemTotal"),
                "kernel": platform.release(),
                "python": platform.python_version(),
                "versions": {Path(str(v[0])).name: first_line(v) for v in versions},
                "arguments": sys.argv[1:],
            }
        }

    def run(self):
        facts = self.facts()
        self.raw.write_text(json.dumps(facts) + "\n")
        cases = self.options.case
        for case in cases:
            print(f"\n{case}", flush=True)
            self.measure(case)
            if case == "ten-times":
                # Several gigabytes that no other case needs.
                shutil.rmtree(self.dumps.pop("ten-times").folder)
        summary = summarise(facts["facts"], self.samples, cases, self.options)
        (self.out / "summary.md").write_text(summary)
        print(f"\n{summary}\nKept in {self.out}")


# Measuring.


@contextlib.contextmanager
def server():
    """A fresh mongod for one run."""
    command = [sys.executable, str(CLONE / "scripts" / "mongod.py"), "serve"]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        line = holder.stdout.readline()
        if not line:
            sys.exit(holder.wait())
        yield json.loads(line)
    finally:
        holder.stdin.close()
        holder.wait()


def measured(words):
    """One run; a command that takes no server address gets no server."""
    if URI not in words:
        return {**timed(words, None), "command": shlex.join(words)}
    with server() as facts:
        figures = timed([facts["uri"] if word == URI else word for word in words], facts["pid"])
    # The address differs from run to run and says nothing.
    return {**figures, "command": shlex.join(words)}


def timed(words, server_pid):
    """Runs a command to its end; what it wrote is shown only if it failed."""
    with tempfile.TemporaryFile() as output:
        # Decompressed documents would fill the disk; a restore says little.
        stdout = subprocess.DEVNULL if words[0] == "gzip" else output
        server_before = cpu_seconds(server_pid)
        start = time.monotonic()
        process = subprocess.Popen(words, stdout=stdout, stderr=output)
        peak = [0]
        watcher = threading.Thread(target=watch_memory, args=(process.pid, peak))
        watcher.start()
        try:
            _pid, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        wall = time.monotonic() - start
        process.returncode = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -status
        server_after = cpu_seconds(server_pid)
        watcher.join()
        if process.returncode != 0:
            output.seek(0)
            sys.stderr.write(output.read().decode(errors="replace"))
            sys.exit(f"{shlex.join(words)} ended with status {process.returncode}")
    return {
        "wall_s": round(wall, 4),
        "user_s": round(usage.ru_utime, 4),
        "sys_s": round(usage.ru_stime, 4),
        "peak_kib": peak[0],
        "server_cpu_s": None if server_pid is None else round(server_after - server_before, 2),
    }


def watch_memory(pid, peak):
    """Keeps the highest resident size of a process until it ends."""
    with contextlib.suppress(OSError, ValueError):
        while True:
            size = field(f"/proc/{pid}/status", "VmHWM")
            if not size:
                return
            peak[0] = int(size.split()[0])
            time.sleep(0.01)


def cpu_seconds(pid):
    """The CPU time a process has used so far."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def field(path, name):
    """The value of a `name: value` line in a file of /proc."""
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def first_line(command):
    """The first line a command prints."""
    answer = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, cwd=CLONE)
    return (answer.stdout.decode(errors="replace").splitlines() or ["unknown"])[0]


def checked(command):
    """Runs a command that must succeed and is not measured."""
    answer = subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL)
    if answer.returncode != 0:
        sys.exit(f"{shlex.join(str(word) for word in command)} failed")


# Summing up.


def per_second(sample):
    return sample["documents"] / sample["wall_s"]


def median(samples, value):
    """The median of a figure over samples."""
    return statistics.median(value(sample) for sample in samples)


def client_us(sample):
    return 1e6 * (sample["user_s"] + sample["sys_s"]) / max(1, sample["documents"])


def server_us(sample):
    return 1e6 * sample["server_cpu_s"] / max(1, sample["documents"])


def summarise(facts, samples, cases, options):
    """The page that stands beside the raw samples."""
    lines = [f"# Benchmark of {facts['date'][:10]}", ""]
    lines += [f"- {facts['cpu']}, {facts['cores']} cores, {facts['memory']}; Linux "
              f"{facts['kernel']}; client and server on this one machine"]
    lines += [f"- {name}: {version}" for name, version in facts["versions"].items()]
    lines += [f"- `make bench ARGS=\"{shlex.join(facts['arguments'])}\"`"]
    lines += [f"- Medians of n = {options.rounds}; a fresh mongod for each run; the dumps in the "
              "page cache; CPU is user and system time together; MB are of uncompressed BSON"]
    for case in cases:
        lines += ["", f"## {case}", ""]
        lines += ["| run | documents/s | MB/s | wall s | client µs/document |"
                  " server µs/document | client peak MB |"]
        lines += ["| --- | --- | --- | --- | --- | --- | --- |"]
        groups = {}
        for sample in samples:
            if sample["case"] == case:
                groups.setdefault(sample["run"], []).append(sample)
        lines += [row(label, group) for label, group in sorted(groups.items())]
        found = list(ratios(case, groups))
        lines += ["", *found] if found else []
    return "\n".join(lines) + "\n"


def row(label, group):
    """One line of a table; figures per document only where there are documents."""
    some = group[0]["documents"] > 0
    served = some and group[0]["server_cpu_s"] is not None
    cells = [
        label,
        f"{median(group, per_second):,.0f}" if some else "–",
        f"{median(group, lambda s: s['bytes'] / 1e6 / s['wall_s']):,.0f}" if some else "–",
        f"{median(group, lambda s: s['wall_s']):.2f}",
        f"{median(group, client_us):.2f}" if some else "–",
        f"{median(group, server_us):.2f}" if served else "–",
        f"{median(group, lambda s: s['peak_kib'] / 1024):.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def ratios(case, groups):
    """The figures for whose sake a case compares two dumps, for each tool."""
    pairs = {
        "giant": ("1 giant", "20 collections", "wall time", lambda s: s["wall_s"]),
        "ten-times": ("10 times", "1 time", "peak memory", lambda s: s["peak_kib"]),
        "gzip": ("gzip", "plain", "documents/s", per_second),
        "tiny": ("tiny", "creation alone", "wall time", lambda s: s["wall_s"]),
    }
    if case in ("settings", "seed"):
        return
    if case == "import":
        for kind in ("json", "csv"):
            pair = (f"{kind}: mongoimport", f"{kind}: restorm")
            yield from ratio(groups, *pair, "client CPU", client_us)
        return
    if case == "plain":
        pair = ("plain: restorm", "plain: mongorestore")
        if pair[1] in groups:
            yield from ratio(groups, *pair, "documents/s", per_second)
            yield from ratio(groups, *reversed(pair), "client CPU", client_us)
        return
    one, other, what, value = pairs[case]
    for tool in ("restorm, null target", "restorm", "mongorestore"):
        yield from ratio(groups, f"{one}: {tool}", f"{other}: {tool}", what, value)
    if case == "gzip":
        alone = median(groups["gzip -dc"], client_us)
        for tool in ("restorm, null target", "restorm", "mongorestore"):
            if f"gzip: {tool}" in groups:
                packed = median(groups[f"gzip: {tool}"], client_us)
                plain = median(groups[f"plain: {tool}"], client_us)
                yield (f"- client CPU, gzip: {tool}: {packed:.2f} µs/document; `gzip -dc` alone "
                       f"{alone:.2f} + plain {plain:.2f} = {alone + plain:.2f}, "
                       f"ratio {packed / (alone + plain):.2f}")


def ratio(groups, one, other, what, value):
    """A line that compares the medians of two runs, where both were made."""
    if one in groups and other in groups:
        result = median(groups[one], value) / median(groups[other], value)
        yield f"- {what}, {one} to {other}: {result:.2f}"


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", choices=["all", "settings", *CASES], default=["plain"], nargs="+",
                        help="what to measure; several are measured one after the other")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each kind (default 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the documents to use")
    parser.add_argument("--name", default=None, help="of the results' folder (default: the case)")
    parser.add_argument("--out", type=Path, help="the results' folder itself")
    parser.add_argument("--work", type=Path, help="folder for the dumps (default: temporary)")
    parser.add_argument("--restorm-arg", action="append", default=[], metavar="ARG",
                        help="a further argument of restorm restore, as --restorm-arg=ARG")
    options = parser.parse_args()
    options.name = options.name or "-".join(options.case)
    options.case = CASES if options.case == ["all"] else options.case
    return options


def main():
    options = parse()
    if "gzip" in options.case and not shutil.which("gzip"):
        sys.exit("the case gzip wants the gzip program")
    # Always the optimised binary, never one that happens to lie about.
    subprocess.run(["cargo", "build", "--release", "--locked"], cwd=CLONE, check=True)
    bench = Bench(options)
    try:
        bench.run()
    finally:
        shutil.rmtree(bench.work, ignore_errors=True)


if __name__ == "__main__":
    main()
