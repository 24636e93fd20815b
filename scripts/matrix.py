#!/usr/bin/env python3
"""Runs the tests against a server on each version of mongod that can be had, and prints a table.

    scripts/matrix.py [--versions V,V...] [-- CARGO_TEST_ARGUMENT...]

What stands after `--` goes to the test binary, such as the names of tests. The exit status is 1
where a test failed on any version.

Python 3.8 or newer, standard library only.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
FAILED = re.compile(r"^test (\S+) \.\.\. FAILED$")


def versions():
    """The versions that scripts/mongod.py knows."""
    script = ROOT / "scripts" / "mongod.py"
    answer = subprocess.run([sys.executable, script, "versions"], stdout=subprocess.PIPE)
    return answer.stdout.decode().split()


def run(version, arguments):
    """Runs the tests on one version; returns its row and whether all passed."""
    environment = {**os.environ, "RESTORM_MONGOD_VERSION": version}
    environment.pop("MONGODB_URI", None)
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "test", "--locked", "--test", "server", "--", *arguments]
    began = time.monotonic()
    print(f"== mongod {version}", flush=True)
    child = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, errors="replace"
    )
    passed, failed, names = 0, 0, []
    for line in child.stdout:
        if not line.rstrip().endswith("... ok"):
            print(line, end="", flush=True)
        result, name = RESULT.match(line), FAILED.match(line)
        if result:
            passed, failed = int(result.group(1)), int(result.group(2))
        if name:
            names.append(name.group(1))
    ended = child.wait()
    seconds = time.monotonic() - began
    return (version, passed, failed, f"{seconds:.0f} s", ", ".join(names)), ended == 0


def table(rows):
    """The rows under their headings, as Markdown."""
    rows = [("mongod", "passed", "failed", "time", "failures"), *rows]
    widths = [max(len(str(row[cell])) for row in rows) for cell in range(len(rows[0]))]
    lines = []
    for number, row in enumerate(rows):
        cells = [str(cell).ljust(width) for cell, width in zip(row, widths)]
        lines.append("| " + " | ".join(cells) + " |")
        if number == 0:
            lines.append("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def main():
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--versions", type=lambda text: text.split(","), default=versions())
    options = parser.parse_args(sys.argv[1:split])
    outcomes = [run(version, sys.argv[split + 1 :]) for version in options.versions]
    print(table([row for row, _ in outcomes]))
    return 0 if all(passed for _, passed in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
