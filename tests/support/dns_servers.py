"""Name servers on loopback, each with one zone from a zone file, and keys to update it."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import httpx

from name_servers import SECRET, server_command
from ports import free_port
from processes import daemon

WRONG_SECRET = base64.b64encode(b"another key, which is not theirs").decode()

PDNS = """
local-address={host}
local-port={port}
socket-dir={directory}
daemon=no
guardian=no
"""
_PDNS_FILES = "launch=bind\nbind-config={directory}/pdns-zones.conf\n"
_PDNS_ZONES = 'zone "example.com" {{ type master; file "{file}"; }};\n'
SERVERS = ("named", "knotd", "nsd", "pdns_server")


class Server(NamedTuple):
    """A server that answers for example.com at a loopback address and `port`."""

    port: int
    host: str = "127.0.0.1"
    pid: int = 0

    def reload(self) -> None:
        """Make it read its zone file again, whose serial number must have grown."""
        os.kill(self.pid, signal.SIGHUP)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def ask(self, name: str, kind: str = "TXT") -> list[object]:
        """The data of a name, over TCP; for TXT the joined values. Raises on failure."""
        query = dns.message.make_query(name, kind)
        answer = dns.query.tcp(query, self.host, port=self.port, timeout=5)
        assert answer.rcode() in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN), answer.rcode()
        sets = [rrset for rrset in answer.answer if rrset.rdtype == dns.rdatatype.from_text(kind)]
        rdatas = [rdata for rrset in sets for rdata in rrset]
        return [b"".join(rdata.strings) if kind == "TXT" else rdata for rdata in rdatas]


_PDNS_DATABASE = "launch=gsqlite3\ngsqlite3-database={directory}/pdns.sqlite3\n"
_PDNS_API = """
api=yes
api-key={secret}
webserver=yes
webserver-address=127.0.0.1
webserver-port={api_port}
webserver-allow-from=127.0.0.1
"""


def powerdns_schema(need: Callable[[str], str]) -> Path:
    """The tables of PowerDNS in SQLite, where distributions have them."""
    need("pdns_server")
    for place in ("pdns-backend-sqlite3/schema", "doc/pdns-backend-sqlite3"):
        path = Path("/usr/share") / place / "schema.sqlite3.sql"
        if path.exists():
            return path
    return Path(need("pdns-backend-sqlite3"))


def make_database(schema: Path, directory: Path, more: str = "") -> None:
    """Create an empty database of PowerDNS, and the configuration that names it."""
    with contextlib.closing(sqlite3.connect(directory / "pdns.sqlite3")) as connection:
        connection.executescript(schema.read_text())
    (directory / "pdns.conf").write_text(_PDNS_DATABASE.format(directory=directory) + more)


@contextlib.contextmanager
def serving_api(
    schema: Path, directory: Path, need: Callable[[str], str]
) -> Iterator[tuple[Server, httpx.Client]]:
    """PowerDNS with an empty database, and a client of its HTTP API."""
    port, api_port = free_port(), free_port()
    config = PDNS.format(directory=directory, host="127.0.0.1", port=port)
    config += _PDNS_API.format(api_port=api_port, secret=SECRET)
    make_database(schema, directory, config)
    client = httpx.Client(
        base_url=f"http://127.0.0.1:{api_port}/api/v1/servers/localhost",
        headers={"X-API-Key": SECRET},
        trust_env=False,
    )
    words = [need("pdns_server"), f"--config-dir={directory}"]
    with daemon(words, directory / "pdns.log", lambda: client.get("/zones").raise_for_status()):
        yield Server(port), client


@contextlib.contextmanager
def serving(
    program: str,
    zone: Path,
    directory: Path,
    need: Callable[[str], str],
    host: str = "127.0.0.1",
    more: str = "",
    options: str = "",
    updates: str = 'allow-update { key "dkim"; }',
) -> Iterator[Server]:
    """Run a server with the zone file at `zone`, until the block ends.

    `more` is added to its configuration, `options` to that of the
    server itself (named, nsd). `updates` is what named allows.
    """
    port = free_port(host)
    if program == "pdns_server":
        values = {"directory": directory, "host": host, "port": port, "file": zone}
        (directory / "pdns.conf").write_text((_PDNS_FILES + PDNS).format(**values) + more)
        (directory / "pdns-zones.conf").write_text(_PDNS_ZONES.format(**values))
        words = [need(program), f"--config-dir={directory}"]
    else:
        words = server_command(
            program, {"example.com": zone}, directory, need, addresses=[host], port=port,
            options=options, kind=f"type primary; {updates}", more=more,
        )  # fmt: skip
    with running(words, directory / f"{program}.log", port, host) as server:
        yield server


@contextlib.contextmanager
def running(words: list[str], log: Path, port: int, host: str = "127.0.0.1") -> Iterator[Server]:
    """Run a command that serves example.com there, until the block ends."""
    server = Server(port, host)
    is_ready = lambda: server.ask("example.com", "SOA")  # noqa: E731
    with daemon(words, log, is_ready, cwd=log.parent.parent) as process:
        yield server._replace(pid=process.pid)


def key_file(path: Path, secret: str = SECRET) -> Path:
    """Write a key file for `nsupdate -k`."""
    path.write_text(f'key "dkim" {{ algorithm hmac-sha256; secret "{secret}"; }};\n')
    path.chmod(0o600)
    return path
