"""Ports for servers that cannot listen on port 0."""

from __future__ import annotations

import itertools
import os
import re
import socket
from contextlib import suppress

# Below the range from which systems pick for port 0, so that no other process gets one meanwhile.
# Each worker of pytest-xdist has its own.
_WORKER = int(re.sub(r"\D", "", os.environ.get("PYTEST_XDIST_WORKER", "0")))
_FIRST = 11_000 + _WORKER % 16 * 1_000
_ports = (_FIRST + number % 1_000 for number in itertools.count(os.getpid()))


def free_port(host: str = "127.0.0.1") -> int:
    """A port at `host` on which nothing listens, over TCP or UDP; a new one each time."""
    for port in itertools.islice(_ports, 1_000):
        with suppress(OSError), socket.create_server((host, port)):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
                datagrams.bind((host, port))
            return port
    raise AssertionError("no port is free")
