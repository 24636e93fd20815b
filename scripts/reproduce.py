#!/usr/bin/env python3
"""Runs again what the three studies measured that restorm is held against.

    restore     20 collections of 10.24 million documents, with and without waiting for the journal,
                and with mongorestore where it is on the PATH
    sink        documents of 71 bytes for ten minutes, with live metrics, latencies, a survey
                before and after, and a check that nothing was lost
    reads       100 000 points written in unordered batches of 10 000, then random reads by `_id`,
                flat out and paced, over more and more connections

Each runs on servers of its own on this machine, prints its commands as a user would type them, and
keeps reports and raw data in docs/benchmarks/<date>-<name>. `--full` takes the size of the study
itself; without it, the run fits a small machine.

Linux only; Python 3.8 or newer, standard library only.
"""

import argparse
import contextlib
import datetime
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import bench

SCRAPE_SECONDS = 5
# What the study's sink wrote in a second, on average.
SINK_RATE = "163000docs"
METRICS = "127.0.0.1:9417"


class Reproduction:
    """One of them: where its results go, and the commands that were run."""

    def __init__(self, name, options):
        self.options = options
        date = datetime.date.today().isoformat()
        self.out = options.out or bench.CLONE / "docs" / "benchmarks" / f"{date}-{name}"
        self.out.mkdir(parents=True, exist_ok=True)
        self.work = Path(tempfile.mkdtemp(prefix="restorm-reproduce-", dir=options.work))
        self.commands = []

    def shown(self, words):
        """A command as a user would type it."""
        line = shlex.join(str(word) for word in words)
        for path, name in [(self.work, "WORK"), (self.out, "."), (bench.CLONE, "")]:
            line = line.replace(f"{path}/", f"{name}/" if name else "").replace(str(path), name)
        return line

    def run(self, words, why, background=None, statuses=(0,)):
        """Runs a command to its end, with its output here; it must end with one of these."""
        self.commands += [f"# {why}", self.shown(words)]
        print(f"\n# {why}\n$ {self.shown(words)}", flush=True)
        process = subprocess.Popen([str(word) for word in words])
        if background:
            background(process)
        if process.wait() not in statuses:
            sys.exit(f"ended with status {process.returncode}")

    def reports(self, name):
        """The options that keep both forms of a report."""
        return [word for form in ["json", "html"] for word in
                ["--report", self.out / f"{name}.{form}"]]

    def keep(self, server):
        """Writes down what was run where."""
        facts = {
            "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            "cpu": bench.field("/proc/cpuinfo", "model name"),
            "memory": bench.field("/proc/meminfo", "MemTotal"),
            "restorm": bench.first_line([bench.RESTORM, "--version"]),
            "git": bench.first_line(["git", "describe", "--always", "--dirty"]),
            "mongod": bench.first_line([server, "--version"]),
        }
        lines = [f"# {name}: {value}" for name, value in facts.items()]
        (self.out / "commands.txt").write_text("\n".join([*lines, "", *self.commands]) + "\n")
        # Where the dump lay on this machine says nothing.
        for path in self.out.iterdir():
            text = path.read_text()
            if str(self.work) in text:
                path.write_text(text.replace(str(self.work), "WORK"))
        print(f"\nKept in {self.out}")


def mongod_path():
    """The mongod that tests and benchmarks use."""
    words = [sys.executable, str(bench.CLONE / "scripts" / "mongod.py"), "path"]
    return subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout.decode().strip()


def restore(task):
    """20 collections into fresh servers, with and without the journal."""
    scale = 1.0 if task.options.full else task.options.scale or 0.02
    dump, mongod = task.work / "dump", mongod_path()
    words = [bench.RESTORM, "seed", "--out", dump, "--collections", 20]
    task.run([*words, "--documents", 10_240_000, "--scale", scale], "make the dump")
    words = [bench.RESTORM, "bench", dump, "--mongod", mongod, "--fresh"]
    words += ["--vary", "journal=on,off", "--rounds", task.options.rounds]
    if shutil.which("mongorestore"):
        # Journal acknowledgement comes with a majority, its default, and goes with this.
        words += ["--tool", "mongorestore"]
        words += ["--tool", "mongorestore:--writeConcern={w:1,j:false}"]
    for form in ["json", "csv", "html"]:
        words += [f"--{form}", task.out / f"bench.{form}"]
    words += ["--samples", task.out / "samples.jsonl"]
    task.run(words, "restore it again and again, each time into a new server")
    task.keep(mongod)


def sink(task):
    """Documents of 71 bytes for ten minutes."""
    duration = task.options.duration or "10m"
    with bench.server() as facts:
        uri = facts["uri"]
        survey = [bench.RESTORM, "survey", "--uri", uri, "--report"]
        words = [bench.RESTORM, "seed", "--uri", uri, "--shape", "sink", "--duration", duration]
        words += ["--database", "sink", "--metrics-listen", METRICS, "--progress", "lines"]
        words += ["--rate-limit", SINK_RATE] if task.options.rate == "study" else []
        for form in ["json", "html"]:
            words += ["--report", task.out / f"seed.{form}"]
        task.run([*survey, task.out / "before.json", "sink"], "look at the target")
        with open(task.out / "metrics.jsonl", "w") as kept:
            task.run(words, "write for as long as the study did", lambda one: scrape(one, kept))
        task.run([*survey, task.out / "after.json", "sink"], "look at it again")
        task.keep(mongod_path())
    report = json.loads((task.out / "seed.json").read_text())
    balance = report["balance"]
    print(json.dumps(balance))
    if balance["read"] != balance["inserted"]:
        sys.exit("documents were lost")


def reads(task):
    """Random reads by `_id` over more and more connections."""
    duration = task.options.duration or ("10m" if task.options.full else "2m")
    with bench.server() as facts:
        words = [bench.RESTORM, "probe", "--uri", facts["uri"], "--seed-documents", 100_000]
        flat = [*words, "--duration", task.options.duration or "1m"]
        task.run([*flat, "--connections", 150, *task.reports("flat")], "flat out")
        ramp = [*words, "--ramp", "1..300", "--duration", duration]
        task.run([*ramp, *task.reports("flat-ramp")], "flat out, over more and more connections")
        paced = [*words, "--ramp", f"150..{task.options.connections}", "--rate-per-connection", 10]
        paced += ["--duration", duration]
        # A server that takes no more connections is a finding.
        why = "ten reads a second from each connection"
        task.run([*paced, *task.reports("paced")], why, statuses=(0, 3))
        task.keep(mongod_path())


def scrape(process, kept):
    """Asks for the metrics every few seconds until the process ends."""
    def ask():
        began = time.monotonic()
        while process.poll() is None:
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(f"http://{METRICS}/metrics", timeout=5) as answer:
                    text = answer.read().decode()
                lines = [line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#"]
                # Buckets add up to the latencies of the report, and zeros are not worth the room.
                values = {name: float(value) for name, value in lines
                          if "_bucket" not in name and float(value) != 0}
                at = round(time.monotonic() - began, 1)
                kept.write(json.dumps({"at_seconds": at, **values}) + "\n")
            time.sleep(SCRAPE_SECONDS)

    threading.Thread(target=ask, daemon=True).start()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["restore", "sink", "reads"])
    parser.add_argument("--full", action="store_true", help="the size of the study itself")
    parser.add_argument("--scale", type=float, help="share of the study's documents (restore)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each kind (default 5)")
    parser.add_argument("--connections", type=int, default=10_000,
                        help="the most connections of the paced ramp (default 10000)")
    parser.add_argument("--duration", help="how long to write or read, such as 10m")
    parser.add_argument("--rate", choices=["study", "flat-out"], default="study",
                        help="how fast the sink writes (default: as the study did)")
    parser.add_argument("--out", type=Path, help="the results' folder")
    parser.add_argument("--work", type=Path, help="folder for dumps (default: temporary)")
    options = parser.parse_args()
    subprocess.run(["cargo", "build", "--release", "--locked"], cwd=bench.CLONE, check=True)
    task = Reproduction(options.what, options)
    try:
        {"restore": restore, "sink": sink, "reads": reads}[options.what](task)
    finally:
        shutil.rmtree(task.work, ignore_errors=True)


if __name__ == "__main__":
    main()
