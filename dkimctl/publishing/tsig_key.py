"""The key that signs messages to a DNS server (TSIG, RFC 8945), and the files it is in.

No error quotes the content of a file: any part of it may be the secret.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any, NamedTuple

from dkimctl.errors import UsageError
from dkimctl.files import fault_of, path_fault, read_regular, refuse, status_fault
from dkimctl.models import Secret
from dkimctl.names import is_name
from dkimctl.text import printable

_MAX_SIZE = 16 * 1024  # bytes; a key file has about 100
_OWN_DIRECTORY = "keep the key in a directory that only you can write to"
# Not hmac-md5, which must not be used (RFC 8945 section 6).
_ALGORITHMS = (
    "hmac-sha256", "hmac-sha384", "hmac-sha512", "hmac-sha224", "hmac-sha1", "hmac-sha256-128",
    "hmac-sha384-192", "hmac-sha512-256",
)  # fmt: skip
_MAX_SECRET = 1024  # characters; those of an hmac-sha512 have 88

_WRITE_ONE = "write one key, as `tsig-keygen NAME` (BIND) or `keymgr -t NAME` (Knot DNS) does"
_TOKENS = r"""(?xs)
    \s+ | \#[^\n]* | //[^\n]* | /\*.*?\*/       # white space and comments
    | "(?P<text>[^"\n]*)" | (?P<word>[^\s"{};]+) | (?P<mark>[{};]) | (?P<broken>.)
"""


class TsigKey(NamedTuple):
    """A TSIG key. `algorithm` is such as hmac-sha256; the secret is in base64, as in key files."""

    name: str
    algorithm: str
    secret: Secret


def read_tsig_key(file: str) -> TsigKey:
    """The key in a file of `tsig-keygen` or `keymgr -t`, or in one line `ALGORITHM:NAME:SECRET`.

    Raises UsageError if it is invalid, or if other users can change it or, as ssh does, read it.
    """
    try:
        return _read(Path(file), printable(file))
    except UsageError as error:
        # The frames of the traceback hold the content.
        raise error.with_traceback(None) from None


def _read(path: Path, name: str) -> TsigKey:
    def check(status: os.stat_result) -> None:
        # A group may read a file of root, such as the group of a service.
        is_lent = sys.platform != "win32" and status.st_uid == 0 != os.geteuid()
        is_private = not is_lent or bool(status.st_mode & (stat.S_IROTH | stat.S_IWOTH))
        refuse(status_fault(path, status, private=is_private), UsageError, hint=_OWN_DIRECTORY)

    try:
        target = path.resolve(strict=True)  # the secrets of containers are links
        if not target.is_file():
            raise OSError(errno.EINVAL, "not a regular file")
        check(target.stat())
        refuse(path_fault(path), UsageError, hint=_OWN_DIRECTORY)
        refuse(fault_of(target, in_own_group=True), UsageError, hint=_OWN_DIRECTORY)
        data = read_regular(target, _MAX_SIZE, check=check)
    except FileNotFoundError:
        ways = "`tsig-keygen NAME`, or `keymgr -t NAME`"
        hint = f"correct key_file in the config file, or write the key there: {ways}"
        raise UsageError(f"no such TSIG key file: {name}", hint=hint) from None
    # ValueError: a path that no file can have. RuntimeError: links in a circle, before Python 3.13.
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "the path is invalid"
        hint = "check key_file in the config file, and the permissions"
        raise UsageError(f"cannot read the TSIG key file {name}: {reason}", hint=hint) from None
    try:
        return parse_tsig_key(data)
    except UsageError as error:
        raise UsageError(f"TSIG key file {name}: {error.message}", hint=error.hint) from None


def parse_tsig_key(data: bytes) -> TsigKey:
    """The key that a file holds. Raises UsageError."""
    text = data.decode("ascii", "replace").strip()
    if line := re.fullmatch(r"(?:([^:\s]*):)?([^:\s]+):([^:\s]*)", text):
        algorithm, name, secret = line.groups()
        return _key(name, algorithm or "hmac-sha256", secret)  # as nsupdate and knsupdate
    if re.search(r"(?m)^key:", text):  # of Knot DNS
        import yaml

        content: Any = None
        # An error may quote the secret. ValueError, OverflowError: an escape of no character.
        with contextlib.suppress(yaml.YAMLError, RecursionError, ValueError, OverflowError):
            content = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - makes nothing but text
        match content:
            case {"key": [{"id": str(name), "algorithm": str(algorithm), "secret": str(secret)}]}:
                return _key(name, algorithm, secret)
    tokens = [match[match.lastgroup] for match in re.finditer(_TOKENS, text) if match.lastgroup]
    match tokens:
        case ["key", name, "{", first, one, ";", second, other, ";", "}", ";"]:
            fields = {first: one, second: other}
            if set(fields) == {"algorithm", "secret"}:
                return _key(name, fields["algorithm"], fields["secret"])
    raise UsageError("it is not one key as BIND or Knot DNS writes it", hint=_WRITE_ONE)


def _key(name: str, algorithm: str, secret: str) -> TsigKey:
    name, algorithm = name.lower().removesuffix("."), algorithm.lower().removesuffix(".")
    if not is_name(name):
        raise UsageError("the key has no valid name", hint=_WRITE_ONE)
    if algorithm.startswith("hmac-md5"):
        hint = "create another key, such as with `tsig-keygen -a hmac-sha256 NAME`"
        raise UsageError("hmac-md5 is not secure", hint=hint)
    if algorithm not in _ALGORITHMS:
        raise UsageError("the key has an unknown algorithm", hint=f"use {', '.join(_ALGORITHMS)}")
    is_secret = False
    with contextlib.suppress(ValueError):
        is_secret = len(secret) <= _MAX_SECRET and base64.b64decode(secret, validate=True) != b""
    if not is_secret:
        raise UsageError("the secret is missing, or not valid base64", hint=_WRITE_ONE)
    return TsigKey(name, algorithm, Secret(secret))
