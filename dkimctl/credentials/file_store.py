"""Credentials in a file that only its owner can read, for machines without a keyring."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from dkimctl.credentials.account import Account
from dkimctl.credentials.store import CredentialStore, Kind, entry_name
from dkimctl.errors import CredentialsError
from dkimctl.files.locking import locked
from dkimctl.files.ownership import is_own, is_private, lets_others_replace
from dkimctl.files.reading import read_regular
from dkimctl.files.writing import leftovers_of, write_private
from dkimctl.models.secret import Secret

_MAX_SIZE = 16 * 1024 * 1024  # bytes; a login has some 2,000

_Entries: TypeAlias = dict[str, Secret]


class FileStore(CredentialStore):
    """Stores credentials in one JSON file.

    The file is always replaced as a whole, and symbolic links are not followed. A file that other
    users can read or replace is refused.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return f"file {self._path}"

    def _read(self, account: Account, kind: Kind) -> Secret | None:
        return self._load().get(entry_name(account, kind))

    def _write(self, account: Account, kind: Kind, text: Secret) -> None:
        self._update(lambda entries: entries | {entry_name(account, kind): text})

    def _remove(self, account: Account, kind: Kind) -> None:
        removed = entry_name(account, kind)
        self._update(lambda entries: {k: v for k, v in entries.items() if k != removed})

    def _update(self, change: Callable[[_Entries], _Entries]) -> None:
        try:
            with locked(self._path):
                entries = self._load()
                self._delete_leftovers()
                changed = change(entries)
                if changed != entries:
                    write_private(self._path, _encode(changed))
        except OSError as error:
            raise self._unusable("cannot write", error) from None

    def _delete_leftovers(self) -> None:
        """Delete the partial files of killed processes; the lock keeps out running ones."""
        for leftover in leftovers_of(self._path):
            with suppress(OSError):
                leftover.unlink()

    def _load(self) -> _Entries:
        try:
            entries = _decode(_read_private(self._path))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unusable("cannot read", error) from None
        if entries is None:
            raise CredentialsError(
                f"{self._path} is not a credential file of dkimctl",
                hint="delete it, then run `dkimctl login` again",
            )
        return entries

    def _unusable(self, action: str, error: OSError) -> CredentialsError:
        return CredentialsError(
            f"{action} {self._path}: {error.strerror or error}",
            hint=f"check that it is a file and that you can write to {self._path.parent}",
        )


def _encode(entries: _Entries) -> str:
    return json.dumps({name: text.reveal() for name, text in entries.items()}, indent=1)


def _decode(data: bytes) -> _Entries | None:
    """None for anything else; json's error, which contains the text, is dropped here."""
    try:
        entries = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entries, dict) or not all(isinstance(text, str) for text in entries.values()):
        return None
    return {name: Secret(text) for name, text in entries.items()}


def _read_private(path: Path) -> bytes:
    """The content of a file that no one but its owner, the user, can use or replace.

    Raises CredentialsError for any other file and for a symbolic link, OSError if it cannot be
    read or is not a regular file.
    """
    _check_location(path)
    return read_regular(
        path, _MAX_SIZE, follow=False, check=lambda status: _check_access(path, status)
    )


def _check_location(path: Path) -> None:
    if path.is_symlink():
        raise CredentialsError(
            f"{path} is a symbolic link", hint="replace it with the file itself, or delete it"
        )
    directory = path.parent
    status = directory.stat()
    if lets_others_replace(status):
        chmod = f"run `chmod go-w {shlex.quote(str(directory))}`" if is_own(status) else ""
        raise CredentialsError(
            f"other users can change files in {directory}, where the credentials are",
            hint=chmod
            or "name a directory of your own in DKIMCTL_STATE_DIR, such as one inside it",
        )


def _check_access(path: Path, status: os.stat_result) -> None:
    if not is_own(status):
        raise CredentialsError(
            f"{path} belongs to another user",
            hint="run this as that user, or name another directory in DKIMCTL_STATE_DIR",
        )
    if not is_private(status):
        raise CredentialsError(
            f"other users can read or change {path}",
            hint=f"run `chmod 600 {shlex.quote(str(path))}`",
        )
