"""Credentials in a file that only its owner can read, for machines without a keyring."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from dkimctl.credentials.account import Account
from dkimctl.credentials.store import CredentialStore, Kind, entry_name
from dkimctl.errors import CredentialsError
from dkimctl.models.secret import Secret
from dkimctl.system.directories import prepare_directory
from dkimctl.system.locking import lock_file_of, locked
from dkimctl.system.ownership import fault_of, read_safe, refuse
from dkimctl.system.writing import delete_leftovers, write_private

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
            prepare_directory(self._path.parent)
            refuse(fault_of(lock_file_of(self._path)), CredentialsError)
            with locked(self._path):
                entries = self._load()
                delete_leftovers(self._path)
                changed = change(entries)
                if changed != entries:
                    write_private(self._path, _encode(changed))
        except OSError as error:
            raise self._unusable("cannot write", error) from None

    def _load(self) -> _Entries:
        try:
            entries = _decode(read_safe(self._path, _MAX_SIZE, CredentialsError, private=True))
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
