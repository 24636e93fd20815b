#!/usr/bin/env python3
"""Finds Prometheus and its promtool, and runs one that never outlives whoever started it.

    scripts/prometheus.py path
        Prints the path of a prometheus that works and has its promtool beside it: $PROMETHEUS, the
        PATH, the cache folder of this clone (.cache/prometheus), or Debian's package, which is
        downloaded with apt and unpacked there. Nothing is installed, and no right is needed that
        others do not have.

    scripts/prometheus.py serve --scrape HOST:PORT [--interval SECONDS]
        Starts a Prometheus with fresh data on a free port of 127.0.0.1 that scrapes this target,
        as the job restorm, waits until it answers, prints one line of JSON {"url", "promtool"} and
        keeps it until standard input ends; then kills it and removes its data.

Python 3.8 or newer, standard library only.
"""

import argparse
import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "prometheus"
PACKAGE = "prometheus"
START_SECONDS_MAX = 60

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


def die_with_parent():
    """Has the kernel kill the new process when this one dies, however it dies (Linux only)."""
    pr_set_pdeathsig = 1
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def free_port():
    """A port nobody listens on now; another process may still take it first."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def configuration(target, interval):
    """A configuration with this one target."""
    milliseconds = round(interval * 1000)
    job = {"job_name": "restorm", "static_configs": [{"targets": [target]}]}
    times = {"scrape_interval": f"{milliseconds}ms", "scrape_timeout": f"{milliseconds}ms"}
    # JSON is YAML.
    return json.dumps({"global": times, "scrape_configs": [job]})


def start(binary, folder, options):
    """Starts a Prometheus with its data in a folder and waits until it answers."""
    (folder / "prometheus.yml").write_text(configuration(options.scrape, options.interval))
    url = f"http://127.0.0.1:{free_port()}"
    command = [binary, f"--config.file={folder}/prometheus.yml"]
    command += [f"--storage.tsdb.path={folder}/data", f"--web.listen-address={url[len('http://'):]}"]
    log = folder / "prometheus.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=2):
                return process, url
        except (OSError, urllib.error.URLError):
            time.sleep(0.05)
    process.kill()
    process.wait()
    raise Unavailable("prometheus did not start:\n" + log.read_text(errors="replace")[-4000:])


def serve(options):
    """Runs a Prometheus until standard input ends."""
    binary = find()
    folder = Path(tempfile.mkdtemp(prefix="restorm-prometheus-"))
    process = None
    try:
        process, url = start(binary, folder, options)
        print(json.dumps({"url": url, "promtool": str(binary.with_name("promtool"))}), flush=True)
        sys.stdin.read()
    finally:
        if process:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="path|serve")
    verbs.add_parser("path")
    verb = verbs.add_parser("serve")
    verb.add_argument("--scrape", required=True, metavar="HOST:PORT")
    verb.add_argument("--interval", type=float, default=1, metavar="SECONDS")
    options = parser.parse_args()
    try:
        if options.verb == "path":
            print(find())
        else:
            serve(options)
    except Unavailable as error:
        print(f"No Prometheus: {error}\n{WAYS_OUT}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
