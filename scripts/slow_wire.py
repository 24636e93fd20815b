#!/usr/bin/env python3
"""A port that leads to another one over a long way.

    slow_wire.py HOST:PORT MILLISECONDS

Everything that comes arrives at the other end so many milliseconds later, in both directions, as
over a long line; how much is on its way is not limited. Prints its own port and carries until its
standard input ends. Linux or macOS; Python 3.8 or newer, standard library only.
"""

import queue
import socket
import sys
import threading
import time

CHUNK_BYTES = 1 << 18


def receive(source, way, seconds):
    """Puts what comes on the way, with the moment at which it is to arrive."""
    try:
        while True:
            chunk = source.recv(CHUNK_BYTES)
            way.put((time.monotonic() + seconds, chunk))
            if not chunk:
                return
    except OSError:
        way.put((0.0, b""))


def deliver(target, way):
    """Takes from the way what has arrived."""
    while True:
        arrives, chunk = way.get()
        wait = arrives - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        try:
            if not chunk:
                target.shutdown(socket.SHUT_WR)
                return
            target.sendall(chunk)
        except OSError:
            return


def carry(client, address, seconds):
    """Joins a connection with one to the other end."""
    try:
        server = socket.create_connection(address)
    except OSError:
        client.close()
        return
    for end in (client, server):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for source, target in ((client, server), (server, client)):
        way = queue.SimpleQueue()
        for work in ((receive, (source, way, seconds)), (deliver, (target, way))):
            threading.Thread(target=work[0], args=work[1], daemon=True).start()


def accept(listener, address, seconds):
    while True:
        client, _ = listener.accept()
        carry(client, address, seconds)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    host, port = sys.argv[1].rsplit(":", 1)
    seconds = float(sys.argv[2]) / 1000
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    work = (listener, (host, int(port)), seconds)
    threading.Thread(target=accept, args=work, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
