"""Credentials in a file of the user's own, for machines without a keyring."""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Callable
from pathlib import Path

from dkimctl.credentials.account import Account
from dkimctl.credentials.store import CredentialStore, Kind, entry_name
from dkimctl.errors import CredentialsError
from dkimctl.files import is_private, lets_others_replace, locked, replace_text

_MAX_SIZE = 16 * 1024 * 1024  # bytes; a login has some 2,000


class FileStore(CredentialStore):
    """Keeps credentials in one JSON file that its owner alone can read.

    The file is replaced whole, never written in place, and symbolic links are not followed. One
    that others can read, or could replace, is not used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return f"file {self._path}"

    def _read(self, account: Account, kind: Kind) -> str | None:
        return self._load().get(entry_name(account, kind))

    def _write(self, account: Account, kind: Kind, text: str) -> None:
        self._change(lambda entries: entries | {entry_name(account, kind): text})

    def _remove(self, account: Account, kind: Kind) -> None:
        gone = entry_name(account, kind)
        self._change(lambda entries: {k: v for k, v in entries.items() if k != gone})

    def _change(self, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        try:
            with locked(self._path):
                entries = self._load()
                changed = change(entries)
                if changed != entries:
                    replace_text(self._path, json.dumps(changed, indent=1))
        except OSError as error:
            raise self._unusable("cannot be written", error) from error

    def _load(self) -> dict[str, str]:
        try:
            data = _read_private(self._path)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unusable("cannot be read", error) from error
        entries = _decode(data)
        if entries is None:
            raise CredentialsError(
                f"{self._path} is not a credential file of dkimctl",
                hint="delete it, then run `dkimctl login` again",
            )
        return entries

    def _unusable(self, what: str, error: OSError) -> CredentialsError:
        return CredentialsError(
            f"{self._path} {what}: {error.strerror or error}",
            hint=f"see that {self._path.parent} is a directory that you can write to",
        )


def _read_private(path: Path) -> bytes:
    _require_private_place(path)
    with open(path, "rb", opener=_open_unfollowed) as file:
        _require_private(path, os.fstat(file.fileno()).st_mode)
        return file.read(_MAX_SIZE)


def _open_unfollowed(path: str, flags: int) -> int:
    """Open without following a link put there since, and without waiting for a FIFO's writer."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _require_private_place(path: Path) -> None:
    if path.is_symlink():
        raise CredentialsError(
            f"{path} is a symbolic link", hint="put the file itself there, or delete the link"
        )
    if lets_others_replace(path.parent.stat().st_mode):
        raise CredentialsError(
            f"other users can change what is in {path.parent}, the place of the credentials",
            hint=f"run `chmod go-w {shlex.quote(str(path.parent))}`",
        )


def _require_private(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise CredentialsError(f"{path} is not a file", hint="move it out of the way")
    if not is_private(mode):
        raise CredentialsError(
            f"{path} can be read or changed by other users",
            hint=f"run `chmod 600 {shlex.quote(str(path))}`",
        )


def _decode(data: bytes) -> dict[str, str] | None:
    """None for what is no credential file; the error itself, which holds the text, ends here."""
    try:
        entries = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entries, dict):
        return None
    return entries if all(isinstance(text, str) for text in entries.values()) else None
