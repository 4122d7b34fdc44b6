"""Reads `settings` of an octoDNS provider: any values, but no secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dkimctl.errors import UsageError
from dkimctl.text.escaping import quoted
from dkimctl.text.secret_references import HINT, parse_reference

if TYPE_CHECKING:
    from dkimctl.strict_yaml.document import Document
    from dkimctl.strict_yaml.nodes import Node

# Such as api_key, key_secret and token; but not key_name, token_url or private_key_file.
_SECRET = r"(?i)secret|passw|passphrase|token|apikey|credential|(?:\A|[_-])(?:key|pass)\Z"  # noqa: S105
_NO_SECRET = r"(?i)[_-](?:file|path|url|endpoint|name|type|algorithm|ttl|timeout)\Z"  # noqa: S105
_LONG = 100  # characters, more than any key has
_PASSWORD_IN_URL = r"://[^/?#]*@"  # noqa: S105 - a pattern
_PRIVATE_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY"  # RFC 7468
_INTEGER = r"-?(?:0|[1-9][0-9]{0,17})"
_FRACTION = rf"{_INTEGER}\.[0-9]{{1,18}}"
_BOOLEANS = {"true": True, "false": False}


def read_provider_settings(document: Document, node: Node) -> Mapping[str, object]:
    """Read `settings`, and report their problems, such as a secret that is written out.

    Plain numbers, `true` and `false` are such; everything else is text.
    """
    return _read_mapping(document, node, "settings", is_secret=False)


def _read_mapping(
    document: Document, node: Node, what: str, *, is_secret: bool
) -> dict[str, object]:
    return {
        key.value: _read(
            document, value, quoted(key.value), is_secret=is_secret or _names_secret(key.value)
        )
        for key, value in document.pairs(node, what)
    }


def _read(document: Document, node: Node, what: str, *, is_secret: bool) -> object:
    """A value of any kind. `is_secret`: its key, or one above, is that of a secret."""
    if document.is_mapping(node):
        return _read_mapping(document, node, what, is_secret=is_secret)
    if document.is_list(node):
        items = document.items(node, what)
        return [_read(document, item, what, is_secret=is_secret) for item in items]
    return document.value(node, what, _secret_reference if is_secret else _setting)


def _names_secret(key: str) -> bool:
    key = key[-_LONG:]
    return bool(re.search(_SECRET, key)) and not re.search(_NO_SECRET, key)


def _secret_reference(text: str, _is_plain: bool) -> str:
    if not parse_reference(text):
        raise UsageError("secrets are not allowed in this file", hint=HINT)
    return text


def _setting(text: str, is_plain: bool) -> object:
    if re.search(_PRIVATE_KEY, text):
        raise UsageError("a private key is not allowed in this file", hint=HINT)
    if re.search(_PASSWORD_IN_URL, text):
        raise UsageError("a URL with a password is not allowed in this file", hint=HINT)
    if parse_reference(text) or not is_plain:
        return text
    if re.fullmatch(_INTEGER, text):
        return int(text)
    return float(text) if re.fullmatch(_FRACTION, text) else _BOOLEANS.get(text, text)
