"""The service's HTTP server in a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from wsgiref.types import WSGIApplication

from dkimctl.service.server.listening import Listening
from dkimctl.service.server.server import Server


@contextmanager
def running(app: WSGIApplication, threads: int) -> Iterator[int]:
    """Serve `app` on loopback; the port."""
    with closing(Listening("127.0.0.1", 0)) as listening:
        server = Server(app, listening.sockets, threads)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield listening.addresses[0][1]
        finally:
            server.stop()
            thread.join()
