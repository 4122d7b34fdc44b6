"""The log of --verbose: a line on stderr for each request."""

from __future__ import annotations

import logging

from dkimctl.cli.output.streams import log

_LOGGERS = ("dkimctl.http",)


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        log(record.getMessage())


def log_requests() -> None:
    """Write the requests that are logged from now on to stderr."""
    handler = _Handler()
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
