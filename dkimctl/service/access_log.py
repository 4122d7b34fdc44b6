"""The service's log on stderr: requests, warnings and errors, without secrets and bodies."""

from __future__ import annotations

import ipaddress
import json
import logging
import multiprocessing.util
import os
import queue
import re
import secrets
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any
from urllib.parse import quote
from wsgiref.types import WSGIEnvironment

import falcon

from dkimctl.errors import DkimctlError, UsageError
from dkimctl.text import printable, quoted
from dkimctl.threads import start_daemon

UNIX = "unix"
"""The address of peers at a UNIX socket, which have none."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MAX_METHOD, _MAX_PATH, _MAX_CLIENT_ID = 20, 200, 128  # octets
_MAX_HOPS = 20
_PLAIN = re.compile(r"[^\s\"=\\]+")
_MAX_MESSAGE = 500  # characters; with its fields a line fits into 4 KiB, which pipes keep whole
_MAX_WAITING = 10_000  # lines
_PIPE = 4096  # octets that a pipe keeps together
_LAST_LINES = 1.0  # seconds that a process waits for its last lines to be read


class AccessLog:
    """Falcon middleware: gives each request an ID, unless a proxy has, and logs the answer."""

    def __init__(self, proxies: TrustedProxies) -> None:
        self._proxies = proxies

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:
        request.context.started = time.perf_counter()
        given = request.env.get("HTTP_X_REQUEST_ID", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        request.context.request_id = request_id
        response.set_header("X-Request-ID", request_id)

    def process_response(
        self, request: falcon.Request, response: falcon.Response, *_: object
    ) -> None:
        context: Any = request.context
        body = b"" if request.method == "HEAD" else response.render_body() or b""
        fields = {
            "method": _escaped(request.method[:_MAX_METHOD]),
            "path": _escaped(request.env.get("PATH_INFO", "")[:_MAX_PATH]),
            "status": response.status_code,
            "seconds": round(time.perf_counter() - context.started, 6),
            "bytes": len(body),
            "address": self._proxies.client_address(request.env),
        }
        # Of a failed login, what was typed. It is known after authentication otherwise.
        if client_id := getattr(context, "client_id", None):
            fields["client_id"] = printable(client_id[:_MAX_CLIENT_ID])[:_MAX_CLIENT_ID]
        if items := getattr(context, "registered", None):
            fields["entries"] = len(items)
            results = Counter(item["result"]["code"] for item in items)
            fields["results"] = ",".join(f"{code}:{n}" for code, n in sorted(results.items()))
        # Not by way of the module logging, which takes three times as long.
        write_line("INFO", "request", fields | {"request_id": context.request_id})


def _escaped(text: str) -> str:
    """A WSGI string, percent-encoded (RFC 3986, section 2.1)."""
    return quote(text.encode("latin-1", "replace"))


class TrustedProxies:
    """The proxies whose X-Forwarded-For is believed; others cannot lie about their address."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """Those at these IP addresses, networks, or at `unix`. Raises UsageError."""
        addresses = [text.strip() for text in texts]
        self._unix = UNIX in addresses
        self._networks = []
        for text in addresses:
            try:
                self._networks += [ipaddress.ip_network(text)] if text != UNIX else []
            except ValueError:
                raise UsageError(
                    f"invalid address or network {quoted(text)}",
                    hint="write an IP address or a network, such as 10.0.0.5 or 10.0.0.0/24",
                ) from None

    def client_address(self, environ: WSGIEnvironment) -> str:
        """The last address on the way to us that is not a trusted proxy's, or UNIX.

        It is the peer's if the header has anything but IP addresses there.
        """
        peer = hop = _address(environ.get("REMOTE_ADDR") or "")
        hops = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")[-_MAX_HOPS:]
        while hops and (any(hop in each for each in self._networks) if hop else self._unix):
            hop = _address(hops.pop())
            if hop is None:
                return str(peer or UNIX)
        return str(hop or UNIX)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An IP address without its zone, as IPv4 if IPv6 sockets map it; None for anything else."""
    try:
        address = ipaddress.ip_address(text.strip().partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def write_line(level: str, message: str, fields: Mapping[str, Any]) -> None:
    """Write a line to stderr; `message` and the values of `fields` must be printable.

    A thread writes it. While nobody reads stderr, such as a full pipe, some lines wait, further
    ones are dropped, and no request waits.
    """
    shown = ""
    for name, value in fields.items():
        text = str(value)  # in quotes if it could be taken for something else
        plain = _PLAIN.fullmatch(text)
        shown += f" {name}={text if plain else json.dumps(text, ensure_ascii=False)}"
    global _writer  # noqa: PLW0603 - one in each process; a forked one has no thread of its parent
    if _writer is None or _writer.pid != os.getpid():
        _writer = _Writer()
    _writer.put(f"{level} {message}{shown}")


class LogHandler(logging.Handler):
    """Writes warnings and errors as lines of the log. A record's `fields` follow its message."""

    def emit(self, record: logging.LogRecord) -> None:
        message = printable(record.getMessage()[:_MAX_MESSAGE])
        write_line(record.levelname, message, getattr(record, "fields", {}))


class _Writer:
    """Writes lines to stderr, in a thread."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._dropped = 0
        self._thread = start_daemon(self._run, "log") if sys.stderr is not None else None
        multiprocessing.util.Finalize(None, self._finish, exitpriority=0)

    def put(self, line: str) -> None:
        if self._thread is None or self._lines.qsize() > _MAX_WAITING:
            self._dropped += 1
            return
        moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._lines.put(f"{moment} {line}\n".encode())

    def _run(self) -> None:
        """Write lines together, as under load this thread gets its turn seldom."""
        batch = b""
        while True:
            try:
                line = self._lines.get(block=not batch)
            except queue.Empty:
                line = b""
            if not line or len(batch) + len(line) > _PIPE:
                with suppress(OSError):  # such as a full disk, or nobody reads
                    os.write(sys.stderr.fileno(), batch)
                batch = b""
                if self._dropped and self._lines.qsize() < _MAX_WAITING // 2:
                    dropped, self._dropped = self._dropped, 0
                    self.put(f"WARNING log lines were dropped number={dropped}")
            if line is None:
                return
            batch += line

    def _finish(self) -> None:
        """At the end of the process: write the last lines, if somebody reads them."""
        if self._thread is not None:
            self._lines.put(None)
            self._thread.join(_LAST_LINES)


_writer: _Writer | None = None


def describe_failure(failure: BaseException) -> str:
    """What failed, or at least where, in one line without secrets.

    The messages of our own errors are safe. Others may quote what they failed on, such as a key
    or the parameters of a statement, and a traceback may show values.
    """
    if isinstance(failure, DkimctlError):
        return printable(failure.message)
    frames = traceback.extract_tb(failure.__traceback__)
    location = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(failure).__name__}{location}"
