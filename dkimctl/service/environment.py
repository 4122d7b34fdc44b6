"""The service's settings from environment variables, and its data opened with the passphrase."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from dkimctl.errors import UsageError
from dkimctl.service.database.location import Location, default_location
from dkimctl.service.database.opening import open_store
from dkimctl.service.database.store import Store
from dkimctl.service.keys.encryption import MAX_PASSPHRASE, PrivateKeyEncryptor
from dkimctl.service.keys.passphrase import require_no_passphrase

_PASSPHRASE = "DKIMCTL_SERVICE_PASSPHRASE"  # noqa: S105 - the variable's name


class ServiceSettings(NamedTuple):
    """What a WSGI server runs the service with. `key_threads` None: one for each processor."""

    location: Location
    max_domains: int
    key_pool: int
    key_threads: int | None


def read_settings(environ: Mapping[str, str] = os.environ) -> ServiceSettings:
    """Raises UsageError."""

    def number(name: str, highest: int) -> int | None:
        text = environ.get(name)
        if not text:
            return None
        if not re.fullmatch("[0-9]{1,9}", text) or not int(text) <= highest:
            raise UsageError(
                f"in {name}: the value is not a number, or out of range",
                hint=f"write a whole number up to {highest}",
            )
        return int(text)

    return ServiceSettings(
        default_location(environ),
        max_domains=number("DKIMCTL_SERVICE_MAX_DOMAINS", 10_000) or 50,
        key_pool=number("DKIMCTL_SERVICE_KEY_POOL", 100_000) or 0,
        key_threads=number("DKIMCTL_SERVICE_KEY_THREADS", 1024) or None,
    )


def open_key_store(location: Location) -> Store:
    """Open the data to make keys: with the passphrase, if it has one. Raises UsageError."""
    store = open_store(location, _encryptor())
    if store.encryptor is None:
        try:
            with store.reading() as connection:
                require_no_passphrase(store, connection)
        except BaseException:
            store.close()
            raise
    return store


def _encryptor() -> PrivateKeyEncryptor | None:
    # Not in a local variable, which an error report might show.
    if not os.environ.get(_PASSPHRASE):
        return None
    if len(os.fsencode(os.environ[_PASSPHRASE])) > MAX_PASSPHRASE:
        raise UsageError(
            f"{_PASSPHRASE} has more than {MAX_PASSPHRASE} octets",
            hint="use a shorter passphrase: OpenSSL could not decrypt the keys with this one",
        )
    return PrivateKeyEncryptor(os.fsencode(os.environ[_PASSPHRASE]))
