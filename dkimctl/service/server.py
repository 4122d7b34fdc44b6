"""The service over HTTP, on waitress."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NoReturn

from waitress.channel import ClientDisconnected
from waitress.server import create_server

from dkimctl.errors import UsageError

# Bytes that waitress takes in before the app sees a request; the app's own limit is lower.
MAX_BODY = 16 * 1024 * 1024


def hang_up() -> NoReturn:
    """For an application to call in place of an answer: the connection ends without a byte."""
    raise ClientDisconnected


class Server:
    """A listening server. `url` is its address; `run` serves until SystemExit or Ctrl-C."""

    def __init__(self, app: Callable[..., Any], host: str, port: int, threads: int) -> None:
        try:
            self._server = create_server(
                app,
                host=host,
                port=port,
                threads=threads,
                ident=None,
                clear_untrusted_proxy_headers=True,
                max_request_body_size=MAX_BODY,
            )
        except (OSError, ValueError) as error:
            raise UsageError(
                f"cannot listen on {host} port {port}: {error}",
                hint="free the port or give another one with --port",
            ) from error
        logging.getLogger("waitress").setLevel(logging.ERROR)  # a long queue is no news
        name = f"[{host}]" if ":" in host else host
        self.url = f"http://{name}:{self._port(port)}"

    def run(self) -> None:
        self._server.run()

    def close(self) -> None:
        self._server.close()

    def _port(self, port: int) -> int:
        return int(getattr(self._server, "effective_port", port))
