"""Several processes that serve the same sockets, under gunicorn. Not on Windows."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any
from wsgiref.types import WSGIApplication

import gunicorn.app.base
import gunicorn.glogging
import gunicorn.workers.base

from dkimctl.service.failures import describe_failure
from dkimctl.service.server.listening import Listening
from dkimctl.service.server.server import STOP_LIMIT, Server

_STOP_MARGIN = 5  # seconds that gunicorn waits longer than its workers
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a worker's empty file, by which it shows that it lives
_RETRY = 1.0  # seconds until a worker that could not start is replaced

_logger = logging.getLogger(__name__)


class Worker(gunicorn.workers.base.Worker):
    """A gunicorn worker (`--worker-class`) that runs our server, with its limits."""

    _server: Server | None = None
    _is_stopped_early = False

    def run(self) -> None:
        sockets = [listening.sock for listening in self.sockets]
        server = Server(self.wsgi, sockets, self.cfg.threads)
        self._server = server  # from now on, signals stop it
        if self._is_stopped_early:
            server.stop()
        server.run(self._beat)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop after the requests that were received; at once if asked again."""
        super().handle_exit(sig, frame)
        if self._server is None:
            self._is_stopped_early = True
        else:
            self._server.stop()

    handle_quit = handle_exit  # for Ctrl-C as well

    def _beat(self) -> None:
        self.notify()
        if self.alive and os.getppid() != self.ppid:  # the parent was killed
            self.handle_exit(0, None)


def serve_with_workers(
    listening: Listening,
    workers: int,
    threads: int,
    load: Callable[[], WSGIApplication],
    ready: Callable[[], None],
) -> None:
    """Serve with so many worker processes until a signal; ends with SystemExit.

    Each calls `load` after it was forked, so that it opens a database of its own; those that end
    are replaced. `ready` is called in this process before the first is started.
    """
    _Application(
        load,
        {
            "bind": [f"fd://{one.detach()}" for one in listening.sockets],
            "workers": workers,
            "threads": threads,
            "worker_class": Worker,
            "graceful_timeout": int(STOP_LIMIT) + _STOP_MARGIN,
            "worker_tmp_dir": _SHARED_MEMORY if Path(_SHARED_MEMORY).is_dir() else None,
            "loglevel": "warning",
            "logger_class": _Log,
            "when_ready": lambda _arbiter: ready(),
            "control_socket_disable": True,  # since gunicorn 25
        },
    ).run()


class _Log(gunicorn.glogging.Logger):
    """Writes gunicorn's messages to the service's log, in its format."""

    def setup(self, cfg: Any) -> None:
        """Called again on SIGHUP: gunicorn adds its handlers to its own logger, never to ours."""
        self.error_log = logging.getLogger("gunicorn.error")
        super().setup(cfg)
        self.error_log = _logger


class _Application(gunicorn.app.base.BaseApplication):
    def __init__(self, load: Callable[[], WSGIApplication], options: dict[str, Any]) -> None:
        self._load = load
        self._options = options
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._options.items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self) -> WSGIApplication:
        """Called in a worker. What fails now worked at the start, and may work again later."""
        try:
            return self._load()
        except Exception as error:  # noqa: BLE001 - gunicorn would print a traceback
            _logger.error("a worker could not start: %s", describe_failure(error))
            time.sleep(_RETRY)
            sys.exit(1)
