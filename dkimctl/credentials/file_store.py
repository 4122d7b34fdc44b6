"""Credentials in a file of the user's own, for machines without a keyring."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from dkimctl.credentials.account import Account
from dkimctl.credentials.private_file import read_private
from dkimctl.credentials.store import CredentialStore, Kind, entry_name
from dkimctl.errors import CredentialsError
from dkimctl.files import leftovers_of, locked, replace_text
from dkimctl.models.secret import Secret

_Entries: TypeAlias = dict[str, Secret]


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

    def _read(self, account: Account, kind: Kind) -> Secret | None:
        return self._load().get(entry_name(account, kind))

    def _write(self, account: Account, kind: Kind, text: Secret) -> None:
        self._change(lambda entries: entries | {entry_name(account, kind): text})

    def _remove(self, account: Account, kind: Kind) -> None:
        gone = entry_name(account, kind)
        self._change(lambda entries: {k: v for k, v in entries.items() if k != gone})

    def _change(self, change: Callable[[_Entries], _Entries]) -> None:
        try:
            with locked(self._path):
                entries = self._load()
                self._clean_up()
                changed = change(entries)
                if changed != entries:
                    replace_text(self._path, _encode(changed))
        except OSError as error:
            raise self._unusable("cannot be written", error) from None

    def _clean_up(self) -> None:
        """Remove what a killed process left half written; nobody else writes now."""
        for leftover in leftovers_of(self._path):
            with suppress(OSError):
                leftover.unlink()

    def _load(self) -> _Entries:
        try:
            entries = _decode(read_private(self._path))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unusable("cannot be read", error) from None
        if entries is None:
            raise CredentialsError(
                f"{self._path} is not a credential file of dkimctl",
                hint="delete it, then run `dkimctl login` again",
            )
        return entries

    def _unusable(self, what: str, error: OSError) -> CredentialsError:
        return CredentialsError(
            f"{self._path} {what}: {error.strerror or error}",
            hint=f"see that it is a file, and that you can write to {self._path.parent}",
        )


def _encode(entries: _Entries) -> str:
    return json.dumps({name: text.reveal() for name, text in entries.items()}, indent=1)


def _decode(data: bytes) -> _Entries | None:
    """None for what is no credential file; the error itself, which holds the text, ends here."""
    try:
        entries = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entries, dict) or not all(isinstance(text, str) for text in entries.values()):
        return None
    return {name: Secret(text) for name, text in entries.items()}
