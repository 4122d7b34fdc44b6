"""What the readers of the config file's sections have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from dkimctl.text.escaping import quoted

if TYPE_CHECKING:
    from dkimctl.settings.values import Check
    from dkimctl.strict_yaml.document import Document
    from dkimctl.strict_yaml.nodes import Converter, Node, Scalar

_T = TypeVar("_T")

_SECRET_KEY = "secret|passw|token|api_?key|private_?key"  # noqa: S105 - a pattern
LOGIN_HINT = "remove it and run `dkimctl login`, or set DKIMCTL_CLIENT_SECRET"


def read_fields(
    document: Document,
    node: Node,
    what: str,
    readers: Mapping[str, Callable[[Node], object]],
    *,
    secret_hint: str,
) -> tuple[dict[str, Any], dict[str, Scalar]]:
    """The values of a mapping that are not None, and its keys, both by the keys' names.

    `secret_hint` is for an unknown key that seems to hold a secret.
    """
    values: dict[str, Any] = {}
    keys: dict[str, Scalar] = {}
    for key, value in document.pairs(node, what):
        keys[key.value] = key
        if read := readers.get(key.value):
            values[key.value] = read(value)
        else:
            report_unknown(document, key, what, tuple(readers), secret_hint)
    return {name: value for name, value in values.items() if value is not None}, keys


def read_list(
    document: Document, node: Node, what: str, convert: Converter[_T], *, if_empty: str
) -> tuple[_T, ...]:
    """The values of a list; an empty one is a problem with the hint `if_empty`."""
    is_empty = True
    values = []
    for item in document.items(node, what):
        is_empty = False
        value = document.value(item, what, convert)
        if value is not None:
            values.append(value)
    if is_empty and document.is_list(node):
        document.problem(node, f"{what} is empty", if_empty)
    return tuple(values)


def report_unknown(
    document: Document, key: Scalar, what: str, known: tuple[str, ...], secret_hint: str
) -> None:
    """Report a key that `what` does not have, and that may be a secret's."""
    if re.search(_SECRET_KEY, key.value, re.IGNORECASE):
        message = f"{quoted(key.value)}: secrets are not allowed in this file"
        document.problem(key, message, secret_hint)
    else:
        document.unknown_key(key, what, known)


def scalar_readers(
    document: Document, checks: Mapping[str, Check]
) -> dict[str, Callable[[Node], object]]:
    """For `read_fields`: readers of single values by their keys' names."""

    def reader(name: str, check: Check) -> Callable[[Node], object]:
        return lambda node: document.value(node, name, on_text(check))

    return {name: reader(name, check) for name, check in checks.items()}


def on_text(check: Callable[[str], _T]) -> Converter[_T]:
    """The check of a value that may be plain or quoted."""
    return lambda text, _is_plain: check(text)
