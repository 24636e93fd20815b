#!/usr/bin/env python3
"""Shows a restore from beginning to end: `make demo`.

Builds the release binary, starts a mongod with fresh data on a free port (or takes the server
$MONGODB_URI names), writes a sample dump, restores it, and removes the dump and its own server again.
Exits with the status of the restore.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

CLONE = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
RESTORM = TARGET / "release" / "restorm"


class Ended(BaseException):
    """A signal that ends the demo has come."""


def announce(command, why):
    """Says what comes next as a user would type it."""
    print(f"\n# {why}\n$ {shlex.join(str(word) for word in command)}", flush=True)


def run(command, why):
    """Runs a command in the foreground and returns its exit status.

    Ctrl-C reaches the command by itself, which then decides how to end: the demo waits for it.
    """
    announce(command, why)
    before = signal.signal(signal.SIGINT, lambda *_: None)
    process = subprocess.Popen([str(word) for word in command])
    try:
        status = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    return 128 - status if status < 0 else status


@contextmanager
def server():
    """The connection string of a server; one of our own ends with the context."""
    uri = os.environ.get("MONGODB_URI")
    if uri:
        print("\n# The server is the one $MONGODB_URI names; what is restored stays there.")
        yield uri
        return
    command = [sys.executable, str(CLONE / "scripts" / "mongod.py"), "serve"]
    announce(["scripts/mongod.py", "serve"], "A mongod with fresh data on a free port")
    # A session of its own, so that Ctrl-C does not take the server from under the restore.
    holder = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        line = holder.stdout.readline()
        if not line:
            sys.exit(holder.wait())
        facts = json.loads(line)
        print(f"mongod {facts['pid']} at {facts['uri']}")
        yield facts["uri"]
    finally:
        holder.stdin.close()
        holder.wait()


def demo(options):
    """Runs the steps until one fails; returns the status of the last."""
    size = ["--collections", options.collections, "--documents", options.documents]
    status = run(["cargo", "build", "--release", "--locked"], "Build the binary")
    if status:
        return status
    # Beside the binary, so that the commands shown stay short.
    folder = Path(tempfile.mkdtemp(prefix="demo-", dir=TARGET))
    dump = folder / "dump"
    try:
        with server() as uri:
            steps = [
                (["seed", "--out", dump, *size, "--indexes", 2], "Write a sample dump"),
                (["inspect", dump], "See what the dump holds"),
                (["restore", dump, "--uri", uri], "Restore it"),
            ]
            for words, why in steps:
                status = run([RESTORM, *words], why)
                if status:
                    break
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n# Done" if status == 0 else f"\n# The last command ended with status {status}")
    return status


def on_signal(number, _frame):
    """Ends the demo on its first signal; cleaning up is not disturbed by further ones."""
    for other in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(other, signal.SIG_IGN)
    raise Ended(number)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collections", type=int, default=8)
    parser.add_argument("--documents", type=int, default=150_000, help="in each collection")
    options = parser.parse_args()
    os.chdir(CLONE)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, on_signal)
    try:
        return demo(options)
    except Ended as ended:
        return 128 + ended.args[0]


if __name__ == "__main__":
    sys.exit(main())
