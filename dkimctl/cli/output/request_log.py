"""The log of --verbose: a line on stderr for each request, and for each DNS query."""

from __future__ import annotations

import logging

from dkimctl.cli.output.streams import log

_LOGGERS = ("dkimctl.http", "dkimctl.dns")


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        log(record.getMessage())


def log_requests() -> None:
    """Log requests to the service, and DNS queries, from now on."""
    handler = _Handler()
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
