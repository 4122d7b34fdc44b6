"""Hand over the credentials of a client of the embedded service.

A new client exists, or a new secret is valid, if, and only if, the secret has arrived.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dkimctl.cli.output.streams import Reporter, write
from dkimctl.errors import OutputError, UsageError
from dkimctl.system.ownership import directory_fault, refuse
from dkimctl.system.writing import create_private
from dkimctl.text.durations import format_duration

if TYPE_CHECKING:
    from dkimctl.service.clients import ClientCredentials
    from dkimctl.service.database.store import Store

_NOT_CREATED = "no client was created"
_NOT_ROTATED = "the client's secret is as before"


def create_and_print(store: Store, client_id: str | None) -> str:
    """Print ID and secret as JSON, and return the ID. Raises UsageError and OutputError."""
    from dkimctl.service.clients import create_client, withdraw_client

    credentials = create_client(store, client_id)
    try:
        _print(credentials, undone=_NOT_CREATED)
    except BaseException:
        withdraw_client(store, credentials.client_id)
        raise
    return credentials.client_id


def create_and_save(store: Store, client_id: str | None, output: Path) -> str:
    """Write the secret to a new file, print the ID, and return it.

    Raises UsageError and OutputError.
    """
    from dkimctl.service.clients import create_client, new_secret

    secret = new_secret()
    with _new_secret_file(output, secret, undone=_NOT_CREATED):
        client_id = create_client(store, client_id, secret).client_id
    write([client_id + "\n"], hint=f"the client was created; its secret is in {output}")
    return client_id


def rotate_and_print(store: Store, client_id: str, overlap: float) -> None:
    """Print ID and new secret as JSON. `overlap` is in seconds.

    Raises NegativeAnswer, UsageError and OutputError.
    """
    from dkimctl.service.clients import rotate_secret, undo_rotation

    rotation = rotate_secret(store, client_id, overlap)
    try:
        _print(rotation.credentials, undone=_NOT_ROTATED)
    except BaseException:
        undo_rotation(store, rotation)
        raise


def rotate_and_save(store: Store, client_id: str, overlap: float, output: Path) -> None:
    """Write the new secret to a new file, and print the ID. `overlap` is in seconds.

    Raises NegativeAnswer, UsageError and OutputError.
    """
    from dkimctl.service.clients import new_secret, rotate_secret

    secret = new_secret()
    with _new_secret_file(output, secret, undone=_NOT_ROTATED):
        rotate_secret(store, client_id, overlap, secret)
    write([client_id + "\n"], hint=f"the new secret is valid; it is in {output}")


def announce_rotation(
    reporter: Reporter, client_id: str, overlap: float, secret_file: Path | None
) -> None:
    """Say until when the client can log in with its old secret, and how with the new one."""
    if overlap:
        reporter.note(f"dkimctl: the previous secret is valid for {format_duration(overlap)} more")
    else:
        reporter.note("dkimctl: the previous secret is no longer valid")
    announce_login(reporter, client_id, secret_file)


def announce_login(reporter: Reporter, client_id: str, secret_file: Path | None) -> None:
    """Say how the client logs in."""
    words = ["dkimctl", "login", "--auth-url", "URL", "--base-url", "URL", "--client-id", client_id]
    command = shlex.join(words)
    if secret_file:
        command += f" --secret-stdin < {shlex.quote(str(secret_file))}"
        reporter.note(f"dkimctl: the secret is in {secret_file}; delete it after the login")
    reporter.note(f"dkimctl: next, with the URL that `dkimctl serve` prints: {command}")


def _print(credentials: ClientCredentials, *, undone: str) -> None:
    document = {"client_id": credentials.client_id, "client_secret": credentials.secret}
    write([json.dumps(document) + "\n"], must_arrive=True, hint=undone)


@contextmanager
def _new_secret_file(path: Path, secret: str, *, undone: str) -> Iterator[None]:
    """Write `secret`, as one line, into a new file; delete it if the block fails.

    `undone` says what then was not done.

    Raises UsageError for a file that exists, also as a link, or a directory in which other users
    could replace it; OutputError if it cannot be written.
    """
    try:
        fault = directory_fault(path.parent, in_own_group=True)
        refuse(fault, UsageError, hint="name a file in a directory of your own")
        create_private(path, f"{secret}\n")
    except FileExistsError:
        raise UsageError(
            f"{path} exists, and is not overwritten: it may hold another secret",
            hint="name a new file with --output, or move this one away",
        ) from None
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror or error}",
            hint=f"check that its directory exists and has space; {undone}",
        ) from None
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise
