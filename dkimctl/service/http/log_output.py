"""The service's log on stderr: one line a record, as text or JSON.

A record's `fields`, if it has any, follow its message.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from typing import Any

from dkimctl.text.escaping import printable

Fields = Mapping[str, Any]

_PLAIN = re.compile(r"[^\s\"=\\]+")
_MAX_MESSAGE = 500  # characters; with its fields a line fits into 4 KiB, which pipes keep whole


class LogFormat(StrEnum):
    """How a line is written."""

    TEXT = "text"
    JSON = "json"


def log_to_stderr(log_format: LogFormat) -> None:
    """Write warnings and errors of the service to stderr."""
    logger = logging.getLogger("dkimctl.service")
    logger.handlers = [_LineHandler(log_format)]
    logger.propagate = False  # the HTTP server may have a log of its own


def write_line(log_format: LogFormat, level: str, message: str, fields: Fields) -> None:
    """Write a line to stderr, at once; `message` and `fields` must be printable.

    It is one write, so lines of several threads and processes do not mix. One that cannot be
    written is dropped.
    """
    moment = _time(time.time())
    if log_format is LogFormat.JSON:
        record = {"time": moment, "level": level, "message": message, **fields}
        line = json.dumps(record, ensure_ascii=False)
    else:
        shown = "".join([f" {name}={_shown(value)}" for name, value in fields.items()])
        line = f"{moment} {level} {message}{shown}"
    if sys.stderr is not None:  # closed; another file may have its number now
        with suppress(OSError):  # such as a full disk, or nobody reads
            os.write(sys.stderr.fileno(), f"{line}\n".encode())


class _LineHandler(logging.Handler):
    def __init__(self, log_format: LogFormat) -> None:
        super().__init__()
        self._log_format = log_format

    def emit(self, record: logging.LogRecord) -> None:
        message = printable(record.getMessage()[:_MAX_MESSAGE])
        fields = getattr(record, "fields", {})
        write_line(self._log_format, record.levelname, message, fields)


def _time(seconds: float) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    whole = int(seconds)
    return f"{_date_time(whole)}.{int(1000 * (seconds - whole)):03}Z"


@lru_cache(maxsize=2)
def _date_time(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def _shown(value: object) -> str:
    """A value of a text line: in quotes if it could be taken for something else."""
    if not isinstance(value, str) and isinstance(value, Mapping):  # a slow check
        return ",".join(f"{name}:{count}" for name, count in value.items())
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
