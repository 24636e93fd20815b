#!/usr/bin/env python3
"""Finds Prometheus and its promtool, for the tests of the metrics.

    scripts/prometheus.py path
        Prints the path of a prometheus that works and has its promtool beside it: $PROMETHEUS, the
        PATH, the cache folder of this clone (.cache/prometheus), or Debian's package, which is
        downloaded with apt and unpacked there. Nothing is installed, and no right is needed that
        others do not have.

Python 3.8 or newer, standard library only.
"""

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "prometheus"
PACKAGE = "prometheus"

WAYS_OUT = """Either of these helps:
  - install prometheus and promtool, so that they are on the PATH
  - export PROMETHEUS=/path/to/prometheus, with promtool beside it"""


class Unavailable(Exception):
    """No Prometheus can be had; the message says why."""


def run(command, **options):
    """What a command wrote; raises Unavailable where it fails."""
    try:
        answer = subprocess.run(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
            **options,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]} cannot be run: {error}")
    said = answer.stdout.decode(errors="replace").strip()
    if answer.returncode != 0:
        raise Unavailable(f"{' '.join(map(str, command))} failed:\n{said}")
    return said


def check(binary):
    """The same path, where a Prometheus and its promtool are there; raises Unavailable elsewhere."""
    promtool = binary.with_name("promtool")
    for program in (binary, promtool):
        said = run([program, "--version"])
        if not said.startswith(f"{program.name}, version "):
            raise Unavailable(f"{program} does not say that it is {program.name}")
    return binary


def find():
    """The path of a prometheus that works."""
    chosen = os.environ.get("PROMETHEUS")
    if chosen:
        return check(Path(chosen).resolve())
    installed = shutil.which("prometheus")
    if installed:
        try:
            return check(Path(installed))
        except Unavailable as error:
            print(f"passed over: {error}", file=sys.stderr)
    binary = CACHE / "usr" / "bin" / "prometheus"
    if not binary.exists():
        fetch()
    return check(binary)


def fetch():
    """Unpacks Debian's package into the cache, once even when many ask."""
    for tool in ("apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            raise Unavailable(f"there is no {tool}, with which Debian's package could be had")
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    with open(CACHE.parent / "prometheus.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if CACHE.exists():
            return
        print("Fetching Debian's prometheus with apt, once for this clone", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="incoming-", dir=CACHE.parent) as incoming:
            package = download(Path(incoming))
            ready = Path(incoming) / "ready"
            run(["dpkg-deb", "--extract", package, ready])
            ready.rename(CACHE)


def download(folder):
    """Downloads the package into a folder, with fresh lists of packages where those of the system
    do not know it or know one that is gone; they are kept in the folder, too."""
    try:
        run(["apt-get", "download", PACKAGE], cwd=folder)
    except Unavailable as first:
        print(f"Asking for fresh lists of packages: {first}", file=sys.stderr)
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True)
        own = ["-o", f"Dir::State::Lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache"]
        run(["apt-get", *own, "update"], cwd=folder)
        run(["apt-get", *own, "download", PACKAGE], cwd=folder)
    packages = list(folder.glob(f"{PACKAGE}_*.deb"))
    if len(packages) != 1:
        raise Unavailable(f"apt-get left {len(packages)} packages of {PACKAGE}")
    return packages[0]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="path")
    verbs.add_parser("path")
    parser.parse_args()
    try:
        print(find())
    except Unavailable as error:
        print(f"No Prometheus: {error}\n{WAYS_OUT}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
