"""Who is told of problems: `notify` in the config file."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.errors import UsageError
from dkimctl.settings.reading import on_text, read_fields, read_list, scalar_readers
from dkimctl.settings.values import service_url, short_duration
from dkimctl.text.secret_references import HINT, parse_reference

if TYPE_CHECKING:
    from dkimctl.strict_yaml.document import Document
    from dkimctl.strict_yaml.nodes import Node

_QUERY = r"[!-~]*"
_EXAMPLE = "write the program and its arguments, such as [/usr/local/bin/page, --json]"


class NoticeSettings(NamedTuple):
    """A command (program and arguments) and a webhook (URL), or neither.

    The webhook may be a SecretReference as text, since such URLs often contain a secret. A problem
    is looked at again after `recheck`, before an alarm.
    """

    command: tuple[str, ...] = ()
    webhook: str = ""
    recheck: timedelta = timedelta(minutes=1)


def read_notices(document: Document, node: Node) -> NoticeSettings:
    """Read `notify`, and report its problems."""
    readers: dict[str, Callable[[Node], object]] = {
        "command": lambda value: _read_command(document, value),
        **scalar_readers(document, {"webhook": _webhook, "recheck": _recheck}),
    }
    values, _ = read_fields(document, node, "notify", readers, secret_hint=HINT)
    return NoticeSettings(**values)


def webhook_url(text: str) -> str:
    """A URL like that of the service, but perhaps with a query.

    As it is written, but for the case of the scheme: some receivers tell paths apart that are
    equivalent. Raises UsageError, which does not quote the text.
    """
    url, _, query = text.partition("?")
    service_url(url)
    if not re.fullmatch(_QUERY, query) or "#" in query:
        hint = "remove the fragment; write %20 for a space"
        raise UsageError("the URL has an invalid query", hint=hint)
    scheme, separator, rest = text.partition("://")
    return scheme.lower() + separator + rest


def _webhook(text: str) -> str:
    return text if parse_reference(text) else webhook_url(text)


def _read_command(document: Document, node: Node) -> tuple[str, ...]:
    if document.is_list(node):
        command = read_list(document, node, "command", on_text(_word), if_empty=_EXAMPLE)
    else:
        command = document.value(node, "command", on_text(_words)) or ()
    if command and not command[0]:
        document.problem(node, "command names no program", _EXAMPLE)
    return command


def _words(text: str) -> tuple[str, ...]:
    """The words of a command line, split as a shell does. Raises UsageError."""
    import shlex

    try:
        words = tuple(shlex.split(_word(text)))
    except ValueError:
        raise UsageError("a quotation mark is not closed", hint=_EXAMPLE) from None
    if not words:
        raise UsageError("names no program", hint=_EXAMPLE)
    return words


def _word(text: str) -> str:
    if re.search("[\0\ud800-\udfff]", text):
        raise UsageError("contains a character that no argument can have", hint="remove it")
    return text


def _recheck(text: str) -> timedelta:
    return timedelta(seconds=short_duration(text))
