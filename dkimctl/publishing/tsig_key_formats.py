"""The formats of a TSIG key: that of BIND, that of Knot DNS, and one line with colons.

No error quotes the text: any part of it may be the secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from dkimctl.dkim import is_name
from dkimctl.errors import InputError, UsageError
from dkimctl.models.secret import Secret
from dkimctl.publishing.tsig_key import TsigKey

if TYPE_CHECKING:
    from dkimctl.strict_yaml import Document, Node

# Not hmac-md5, which must not be used (RFC 8945 section 6).
_ALGORITHMS = (
    "hmac-sha256", "hmac-sha384", "hmac-sha512", "hmac-sha224", "hmac-sha1", "hmac-sha256-128",
    "hmac-sha384-192", "hmac-sha512-256",
)  # fmt: skip
_DEFAULT_ALGORITHM = "hmac-sha256"  # of nsupdate and knsupdate
_MAX_SECRET = 1024  # characters; those of an hmac-sha512 have 88

_WRITE_ONE = "write one key, as `tsig-keygen NAME` (BIND) or `keymgr -t NAME` (Knot DNS) does"
_ONE_LINE = r"(?:([^:\s]*):)?([^:\s]+):([^:\s]*)"
_KNOT = r"(?m)^key:"
_TOKENS = r"""(?xs)
    \s+ | \#[^\n]* | //[^\n]* | /\*.*?\*/       # white space and comments
    | "(?P<text>[^"\n]*)" | (?P<word>[^\s"{};]+) | (?P<mark>[{};]) | (?P<broken>.)
"""


def parse_tsig_key(data: bytes) -> TsigKey:
    """The key that a file holds. Raises UsageError."""
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        raise UsageError("it is binary, or contains no TSIG key", hint=_WRITE_ONE) from None
    if not text.strip():
        raise UsageError("it is empty", hint=_WRITE_ONE)
    if line := re.fullmatch(_ONE_LINE, text.strip()):
        algorithm, name, secret = line.groups()
        return _key(name, algorithm or _DEFAULT_ALGORITHM, secret)
    return _knot_key(data) if re.search(_KNOT, text) else _bind_key(text)


def _key(name: str, algorithm: str, secret: str) -> TsigKey:
    name, algorithm = name.lower().removesuffix("."), algorithm.lower().removesuffix(".")
    if not is_name(name):
        raise UsageError("the key has no valid name", hint=_WRITE_ONE)
    if algorithm.startswith("hmac-md5"):
        hint = "create another key, such as with `tsig-keygen -a hmac-sha256 NAME`"
        raise UsageError("hmac-md5 is not secure", hint=hint)
    if algorithm not in _ALGORITHMS:
        raise UsageError("the key has an unknown algorithm", hint=f"use {', '.join(_ALGORITHMS)}")
    if not _is_base64(secret):
        raise UsageError("the secret is missing, or not valid base64", hint=_WRITE_ONE)
    return TsigKey(name, algorithm, Secret(secret))


def _is_base64(text: str) -> bool:
    import base64

    try:
        return len(text) <= _MAX_SECRET and bool(base64.b64decode(text, validate=True))
    except ValueError:
        return False


def _knot_key(data: bytes) -> TsigKey:
    from dkimctl.strict_yaml import Document

    keys: list[Mapping[str, str]] = []
    try:
        with Document(data, "") as document:
            root = document.root()
            for section, node in document.pairs(root, "") if root else ():
                if section.value != "key":
                    document.stop(section, "it is not a key", "")
                keys += (_fields(document, item) for item in document.items(node, ""))
    except InputError as error:  # its message may quote the secret
        line = error.problems[0].line
        raise _invalid(line, "it is not as Knot DNS writes a key") from None
    if len(keys) != 1:
        raise _not_one()
    return _made(keys[0], name="id")


def _fields(document: Document, node: Node) -> dict[str, str]:
    """Those of a key of Knot DNS that have a value."""
    pairs = document.pairs(node, "")
    fields = {key.value: document.value(value, "", lambda text, _: text) for key, value in pairs}
    return {name: text for name, text in fields.items() if text is not None}


def _bind_key(text: str) -> TsigKey:
    tokens = _tokens(text)
    fields: dict[str, str] = {}
    _expect(tokens, "key")
    fields["name"] = _value(tokens)
    _expect(tokens, "{")
    while (token := next(tokens)).text != "}":
        if token.text in fields:
            raise _invalid(token.line, "it repeats the line of a value")
        fields[token.text] = _value(tokens)
        _expect(tokens, ";")
    _expect(tokens, ";")
    if next(tokens).text:
        raise _not_one()
    return _made(fields, name="name")


def _made(fields: Mapping[str, str], *, name: str) -> TsigKey:
    """The key with these fields, of which `name` has its name."""
    if set(fields) != {name, "algorithm", "secret"}:
        hint = _WRITE_ONE
        raise UsageError("a key has a name, an algorithm and a secret, and nothing else", hint=hint)
    return _key(fields[name], fields["algorithm"], fields["secret"])


class _Token(NamedTuple):
    """A word, a quoted text or a mark of named.conf; an empty one is the end of the file."""

    line: int
    text: str = ""
    is_value: bool = False


def _tokens(text: str) -> Iterator[_Token]:
    """The tokens; the end of the file is repeated."""
    line = 1
    for match in re.finditer(_TOKENS, text):
        if match["broken"]:
            raise _invalid(line, "a quotation mark is not closed")
        if match["mark"]:
            yield _Token(line, match["mark"])
        elif match.lastgroup:
            yield _Token(line, match[match.lastgroup], is_value=True)
        line += match[0].count("\n")
    while True:
        yield _Token(line)


def _value(tokens: Iterator[_Token]) -> str:
    token = next(tokens)
    if not token.is_value:
        raise _invalid(token.line, "a value is missing")
    return token.text


def _expect(tokens: Iterator[_Token], text: str) -> None:
    token = next(tokens)
    if token.text != text:
        raise _invalid(token.line, f'"{text}" is missing')


def _invalid(line: int, reason: str) -> UsageError:
    return UsageError(f"line {line}: {reason}", hint=_WRITE_ONE)


def _not_one() -> UsageError:
    return UsageError("it does not contain exactly one key", hint=_WRITE_ONE)
