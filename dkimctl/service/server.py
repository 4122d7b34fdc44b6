"""The service over HTTP, on granian, with its processes and their limits."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer

from dkimctl.errors import DkimctlError, ThreadLimitError, UsageError
from dkimctl.service.access_log import describe_failure
from dkimctl.service.database import StoreUnavailable

if sys.platform != "win32":
    import resource

MAX_HEAD = 16 * 1024  # octets; a bearer token has about 1,000
TIME_LIMIT = 30.0  # seconds to receive the head of a request, also between two requests
STOP_LIMIT = 30  # seconds in which requests are still answered when the server is to stop
_BACKLOG = 1024  # connections that the system keeps until they are accepted
_CONNECTIONS = 10_000  # of each process; then no more are accepted
_FILES = _CONNECTIONS + 1000
_RETRY = 1.0  # seconds
_LOGGING = {
    "handlers": {"lines": {"()": "dkimctl.service.access_log.LogHandler"}},
    "loggers": {
        name: {"handlers": ["lines"], "level": "WARNING", "propagate": False}
        for name in ("dkimctl.service", "_granian")
    },
}

_logger = logging.getLogger(__name__)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on a name or an address; `*`: on all. Raises UsageError."""
    try:
        if host == "*" and socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
            )
        name = "0.0.0.0" if host == "*" else host.strip("[]")  # noqa: S104 - as asked for
        infos = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        family, *_, address = min(infos)  # IPv4 before IPv6
        return socket.create_server(address, family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:  # getaddrinfo() encodes the name as IDNA
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"cannot listen on {host} port {port}: {reason}",
            hint="choose an address of this machine with --host, such as 127.0.0.1, or another "
            "port with --port; 0 picks a free one, and those below 1024 are for administrators",
        ) from error


class HttpServer(MPServer):
    """Serves `listening` with worker processes; one that dies is replaced."""

    def __init__(
        self,
        listening: socket.socket,
        # Makes the application of a process, also of one that is started afresh: it is pickled.
        load: Callable[[], WSGIApplication],
        *,
        workers: int,
        threads: int,
        ready: Callable[[], None],  # called when all processes are
    ) -> None:
        super().__init__(
            "dkimctl",
            interface=Interfaces.WSGI,
            workers=workers,
            blocking_threads=threads,
            backpressure=_CONNECTIONS,
            http=HTTPModes.http1,
            websockets=False,
            http1_settings=HTTP1Settings(
                header_read_timeout=int(TIME_LIMIT * 1000), max_buffer_size=MAX_HEAD
            ),
            log_level=LogLevels.error,
            log_dictconfig=_LOGGING,
            respawn_failed_workers=True,
            workers_kill_timeout=STOP_LIMIT,
        )
        self._listening = listening
        self._load = load
        self._ready = ready
        self._told, self._loaded = multiprocessing.Pipe(duplex=False)  # an octet by each worker

    def run(self) -> None:
        """Serve until SIGTERM or Ctrl-C; then what was asked is answered. Raises UsageError."""
        if sys.platform != "win32":  # have room for connections, each of which takes a file
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            if 0 <= soft < _FILES:  # below 0: without a limit
                wanted = _FILES if hard < 0 else min(_FILES, hard)
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        try:
            self.serve(target_loader=partial(_load, self._load, self._loaded), wrap_loader=False)
        except BlockingIOError:  # of fork()
            raise ThreadLimitError from None
        except SystemExit:  # its log says why
            raise UsageError(
                "a worker process cannot start", hint="look at the lines above, and at `ulimit -u`"
            ) from None

    def startup(self, spawn_target: Any, target_loader: Any) -> None:
        """Start the workers, and wait for them."""
        is_hangup_ignored = (  # as by nohup
            sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        )
        super().startup(spawn_target, target_loader)  # type: ignore[no-untyped-call]
        if sys.platform != "win32":
            at_hangup = signal.SIG_IGN if is_hangup_ignored else self.signal_handler_interrupt
            signal.signal(signal.SIGHUP, at_hangup)
        for _ in range(self.workers):
            while not self._told.poll(0.2):
                if self.main_loop_interrupt.is_set():
                    self.interrupt_signal = True  # also if a worker has ended already
                    return
            self._told.recv_bytes()
        self._ready()

    def _respawn_workers(
        self, workers: Any, spawn_target: Any, target_loader: Any, delay: float = 0
    ) -> None:
        """Replace workers, however often; granian itself would give up at once."""
        if any(time.monotonic() < self.wrks[number].birth + _RETRY for number in workers):
            time.sleep(_RETRY)
        while self._told.poll():
            self._told.recv_bytes()
        super()._respawn_workers(workers, spawn_target, target_loader, delay)
        self.respawned_wrks.clear()

    def _init_shared_socket(self) -> None:
        """Use our socket instead of one for each process.

        So its port is known before they start, nothing else can listen there, and what waits in
        its queue outlives a process.
        """
        this: Any = self  # whose declarations of these attributes fit only None
        new_holder: Any = SocketHolder  # whose declaration lacks the parameters
        number = self._listening.fileno()
        on_windows = sys.platform == "win32"  # where each process makes it
        this._ssp, this._sfd, this._sso = None, number, self._listening
        this._shd = None if on_windows else new_holder(number, False, _BACKLOG)


def _load(load: Callable[[], WSGIApplication], loaded: Any) -> WSGIApplication:
    """In a worker: its application. What fails now worked at the start, and may work again."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)  # not those of the process that forked this one

    def end_with_parent() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()
    while True:
        try:
            app = partial(_guarded, load())
        except DkimctlError as error:
            _logger.error("a worker cannot start: %s", describe_failure(error))
            if not isinstance(error, StoreUnavailable):
                raise SystemExit(1) from None
            time.sleep(_RETRY)
        else:
            loaded.send_bytes(b".")
            return app


def _guarded(
    app: WSGIApplication, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Have `app` answer; granian would log a failure with a traceback, which may quote a secret."""
    try:
        return app(environ, start_response)
    except Exception as error:  # noqa: BLE001 - the server goes on
        _logger.error("a request failed: %s", describe_failure(error))
        start_response("500 Internal Server Error", [("Content-Length", "0")])
        return [b""]
