"""Slows down who guesses client secrets: counts failed logins by client ID and address.

The counts are in the database, so all processes and machines count together. Unknown client IDs
are treated like known ones, so that nothing shows which exist.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import math
import secrets
from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from dkimctl.service.clients import ClientCredentials, authenticate
from dkimctl.service.database import Store
from dkimctl.service.http.errors import LoginBlocked
from dkimctl.service.schema import failed_logins
from dkimctl.text.escaping import printable

_logger = logging.getLogger(__name__)

WINDOW = 15 * 60.0
"""Seconds after which failures are forgotten."""

FREE_FAILURES = 9
"""Failures without a block; each further one blocks twice as long as the one before."""

LONGEST_BLOCK = 60.0
"""Seconds."""

MAX_ROWS = 100_000
"""Rows of the table, or slightly more until the next purge; the oldest are forgotten first."""

_PURGE_SHARE = 16  # one of so many new rows purges, since counting a full table takes long
_SHOWN = 128  # characters; a client ID has no more

# Built once: every token request needs it.
_IS_CURRENT = (failed_logins.c.key == bindparam("of")) & (
    failed_logins.c.last_at > bindparam("since")
)
_FAILURES = select(failed_logins.c.failures, failed_logins.c.last_at).where(_IS_CURRENT)


class Failures(NamedTuple):
    """The failed logins of one client ID from one address, the last at `last_at`.

    In seconds since the epoch.
    """

    total: int = 0
    last_at: float = 0.0

    def blocked_for(self, now: float) -> float:
        """How many seconds the next login has to wait.

        A `last_at` far in the future, of a clock that was wrong, blocks nobody.
        """
        if self.total <= FREE_FAILURES:
            return 0.0
        block = min(2.0 ** min(self.total - FREE_FAILURES - 1, 10), LONGEST_BLOCK)
        elapsed = abs(now - self.last_at)
        return block - elapsed if elapsed < block else 0.0


class LoginGuard:
    """Checks the credentials of logins, and logs those that fail."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def admits(self, credentials: ClientCredentials | None, address: str) -> bool:
        """Whether the credentials are right; None are those that could not be read.

        Raises LoginBlocked, and does not look at the secret, if there were too many failures.
        """
        if credentials is None:  # guesses nothing
            _log_failure(address)
            return False
        key, now = _key(credentials.client_id, address), self._clock()
        failures = _find(self._store, key, now)
        if seconds := math.ceil(failures.blocked_for(now)):
            shown = _shown(credentials.client_id)
            fields = {"client_id": shown, "address": address, "retry_after": seconds}
            _logger.warning("login blocked", extra={"fields": fields})
            raise LoginBlocked(seconds)
        if authenticate(self._store, credentials.client_id, credentials.secret, clock=self._clock):
            if failures.total:
                with self._store.writing(durable=False) as connection:
                    _delete(connection, key)
            return True
        total = _increment(self._store, key, now)
        _log_failure(address, client_id=_shown(credentials.client_id), failures=total)
        return False


def _shown(client_id: str) -> str:
    return printable(client_id[:_SHOWN])[:_SHOWN]


def _log_failure(address: str, **details: object) -> None:
    _logger.warning("failed login", extra={"fields": {**details, "address": address}})


def purge(connection: Connection, now: float, max_rows: int = MAX_ROWS) -> None:
    """Forget failures before the window, and the oldest of more than `max_rows`."""
    last_at = failed_logins.c.last_at
    connection.execute(delete(failed_logins).where(last_at <= now - WINDOW))
    oldest_kept = select(last_at).order_by(last_at.desc()).offset(max_rows).limit(1)
    connection.execute(delete(failed_logins).where(last_at <= oldest_kept.scalar_subquery()))


def _key(client_id: str, address: str) -> bytes:
    """Of one size whatever the client ID is. A network of IPv6 counts as one address."""
    if ":" in address:  # a customer of a provider gets at least this network
        address = str(ipaddress.ip_network(f"{address}/64", strict=False))
    return hashlib.sha256(f"{address} {client_id}".encode()).digest()


def _find(store: Store, key: bytes, now: float) -> Failures:
    with store.reading() as connection:
        row = connection.execute(_FAILURES, {"of": key, "since": now - WINDOW}).first()
    return Failures(*row) if row else Failures()


def _increment(store: Store, key: bytes, now: float) -> int:
    """Count one more failure; returns how many there are."""
    try:
        return _count_one(store, key, now)
    except IntegrityError:  # another process has added the row at the same time
        return _count_one(store, key, now)


def _count_one(store: Store, key: bytes, now: float) -> int:
    row = {"of": key, "since": now - WINDOW}
    one_more = {"failures": failed_logins.c.failures + 1, "last_at": now}
    increment = update(failed_logins).where(_IS_CURRENT).values(one_more)
    with store.writing(durable=False) as connection:
        if connection.execute(increment, row).rowcount:
            return int(connection.execute(_FAILURES, row).scalar_one())
        # From before the window; what another process has counted since stays.
        is_old = (failed_logins.c.key == key) & (failed_logins.c.last_at <= now - WINDOW)
        connection.execute(delete(failed_logins).where(is_old))
        if secrets.randbelow(_PURGE_SHARE) == 0:
            purge(connection, now)
        connection.execute(insert(failed_logins).values(key=key, failures=1, last_at=now))
    return 1


def _delete(connection: Connection, key: bytes) -> None:
    connection.execute(delete(failed_logins).where(failed_logins.c.key == key))
