"""The ledger of one account."""

from __future__ import annotations

import contextlib
import functools
import itertools
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Self

from dkimctl.ledger.accounts import count_domains
from dkimctl.ledger.alarms import replace_alarms, select_alarms
from dkimctl.ledger.closed_keys import (
    delete_closed_keys,
    insert_closed_keys,
    select_closed_keys,
)
from dkimctl.ledger.damage import (
    find_quarantined,
    quarantining,
    require_in_place,
    require_sound,
)
from dkimctl.ledger.disk_space import require_disk_space
from dkimctl.ledger.errors import translate_errors
from dkimctl.ledger.histories import (
    delete_histories,
    note_answers,
    note_looks,
    note_replacements,
    select_begun_successors,
    select_histories,
    select_rotated_domains,
)
from dkimctl.ledger.intents import (
    Intent,
    OpenRequests,
    closed_by,
    insert_requests,
    intents_of,
    select_open_requests,
    update_requests,
    utc_text,
)
from dkimctl.ledger.opening import open_for_writing, open_read_only
from dkimctl.ledger.registrations import (
    IS_OURS,
    delete_registrations,
    record_registrations,
    select_keys,
    select_registrations,
    select_signing_domains,
)
from dkimctl.models.alarm import Alarm
from dkimctl.models.closed_key import ClosedKey
from dkimctl.models.history import KeyHistory
from dkimctl.models.registration import DomainSpec, Registration, RegistrationKey
from dkimctl.system.file_identity import file_identity


class Ledger:
    """The registrations, open intents, histories, closed keys and alarms of one account.

    Every failure is a LedgerError. A registration that belongs to another account (409 without
    data, interface 7.3) has no record. Use a ledger only in the thread that opened it. It caches
    what it has read, so open it for writing only under the account's lock, unless you note
    looks or replace alarms alone.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        account_id: int,
        path: Path,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._connection = connection
        self._account_id = account_id
        self._path = path
        self._identity = file_identity(path)
        self._clock = clock
        self._cached_domains: set[str] | None = None
        self._cached_requests: OpenRequests | None = None

    @classmethod
    def open(
        cls, path: Path, *, base_url: str, client_id: str, clock: Callable[[], float] = time.time
    ) -> Self:
        """Open the ledger of one account, creating the file if there is none.

        Raises LedgerError, also for a damaged file, which is quarantined, and if other users can
        change the file. `clock` returns seconds since the epoch.
        """
        path = path.absolute()
        with translate_errors(path), quarantining(path, clock):
            return cls(*open_for_writing(path, base_url, client_id), path, clock)

    @classmethod
    def open_existing(cls, path: Path, *, base_url: str, client_id: str) -> Self:
        """Open the ledger read-only. Without a file it is empty, and no file is created."""
        path = path.absolute()
        with translate_errors(path):
            return cls(*open_read_only(path, base_url, client_id), path)

    @functools.cached_property
    def quarantined(self) -> Path | None:
        """The newest damaged ledger that was quarantined: this one may know less than it."""
        with translate_errors(self._path):
            return find_quarantined(self._path)

    def of_domain(self, sign_domain: str) -> list[Registration]:
        """The registrations of one signing domain, oldest first."""
        # A query for each of 100,000 new domains would take longer than reading their file.
        if sign_domain.lower() not in self._signing_domains():
            return []
        return list(self._select("AND sign_domain = ? ORDER BY id", sign_domain))

    def all(self) -> Iterator[Registration]:
        """All registrations of the account, sorted by signing domain and selector."""
        return self._select("ORDER BY sign_domain, selector")

    def ours(self) -> Iterator[Registration]:
        """The same without those of other accounts (409 without data, interface 7.3)."""
        return self._select(f"AND {IS_OURS} ORDER BY sign_domain, selector")

    def known_keys(self) -> Set[tuple[str, str]]:
        """The keys of all registrations; of ours, also those with "" for the selector."""
        with translate_errors(self._path):
            return select_keys(self._connection, self._account_id)

    def count_domains(self, base_url: str, client_id: str) -> int:
        """The number of signing domains of any account in the file."""
        with translate_errors(self._path):
            return count_domains(self._connection, base_url, client_id)

    def intents_of(self, sign_domain: str) -> list[Intent]:
        """The open intents of one signing domain, oldest first."""
        return self._open_requests().of_domain(sign_domain)

    def intents(self) -> list[Intent]:
        """All open intents of the account, oldest first."""
        with translate_errors(self._path):
            requests = select_open_requests(self._connection, self._account_id)
            return [intent for request in requests for intent in intents_of(request)]

    def histories(self) -> dict[RegistrationKey, KeyHistory]:
        """The history of each registration."""
        with translate_errors(self._path):
            return select_histories(self._connection, self._account_id)

    def rotated_domains(self) -> set[str]:
        """The signing domains, in lower case, with a key that another was made to replace."""
        with translate_errors(self._path):
            return select_rotated_domains(self._connection, self._account_id)

    def begun_successors(self) -> dict[RegistrationKey, str]:
        """The keys that are noted to replace another, whose selector it gives, but not registered.

        Their requests may have been sent: see `intents`.
        """
        with translate_errors(self._path):
            return select_begun_successors(self._connection, self._account_id)

    def closed_keys(self) -> list[ClosedKey]:
        """The keys that `retire` has closed, sorted by signing domain and selector."""
        with translate_errors(self._path):
            return list(select_closed_keys(self._connection, self._account_id))

    def alarms(self) -> list[Alarm]:
        """The alarms, sorted by subject and problem."""
        with translate_errors(self._path):
            return list(select_alarms(self._connection, self._account_id))

    def replace_alarms(self, old: Iterable[Alarm], new: Iterable[Alarm]) -> None:
        """Replace the alarms `old` by `new`; all or nothing, and durable on return.

        Others stay: another run may have added them meanwhile.
        """
        with self._transaction():
            replace_alarms(self._connection, self._account_id, old, new)

    def note_looks(self, verdicts: Mapping[RegistrationKey, str]) -> None:
        """Store what all authoritative servers have now for some registrations; durable on return.

        A record that is `published` at each look keeps the time of the first.
        """
        if verdicts:
            with self._transaction():
                note_looks(self._connection, self._account_id, self._now(), verdicts)

    def note_replacements(self, replaced: Mapping[RegistrationKey, str]) -> None:
        """Store the selector that each key was made to replace; durable on return.

        The keys may not be registered yet.
        """
        if replaced:
            with self._transaction():
                note_replacements(self._connection, self._account_id, replaced)

    def forget(self, registrations: Iterable[Registration]) -> None:
        """Delete registrations and their histories, but no intents; durable on return."""
        with self._deleting(list(registrations)):
            pass

    def retire(self, replaced: Mapping[Registration, str | None]) -> None:
        """Close registrations, each with the selector of its successor; durable on return.

        They and their histories are deleted. Of each a ClosedKey stays, until its key is recorded
        again.
        """
        with self._deleting(list(replaced)):
            insert_closed_keys(self._connection, self._account_id, self._now(), replaced)

    def record(self, registrations: Sequence[Registration]) -> None:
        """Store answers of the service, replacing earlier ones; durable on return."""
        self.commit(answered=registrations)

    def commit(
        self,
        *,
        answered: Sequence[Registration] = (),
        settled: Iterable[RegistrationKey] = (),
        begun: Iterable[Sequence[DomainSpec]] = (),
    ) -> None:
        """Store answers, close the intents of `settled`, then open those of `begun`.

        All or nothing, and durable on return. `begun` is the entries of each request. No key is
        repeated, in it and in `answered`. An answer also closes the intents of its domain that have
        its selector or, if the registration is ours, no selector.
        """
        settled = list(settled)
        requests = [specs for specs in begun if specs]
        if not (answered or settled or requests):
            return
        resent = (spec.key for specs in requests for spec in specs)
        closed = itertools.chain(settled, resent, closed_by(answered))
        try:
            self._write(answered, closed, requests)
        except BaseException:  # also an interruption, before or after the commit
            self._cached_domains = self._cached_requests = None
            raise

    def check(self) -> None:
        """Check that the file is sound, before anything is sent.

        A damaged file is quarantined, and the ledger is closed.
        """
        with translate_errors(self._path):
            require_in_place(self._path, self._identity)
            with quarantining(self._path, self._clock, self.close):
                require_sound(self._connection)
                list(select_open_requests(self._connection, self._account_id))  # decodes all

    def verify(self) -> None:
        """Check that the file is sound, and change nothing."""
        with translate_errors(self._path):
            require_sound(self._connection)
            list(select_open_requests(self._connection, self._account_id))  # decodes all

    def require_disk_space(self, entries: int) -> int:
        """Require space for this many answers; returns for how many more there is space."""
        with translate_errors(self._path):
            return require_disk_space(self._path, entries)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(
        self,
        answered: Sequence[Registration],
        closed: Iterable[RegistrationKey],
        begun: Iterable[Sequence[DomainSpec]],
    ) -> None:
        with self._transaction():
            open_requests, domains = self._open_requests(), self._signing_domains()
            remaining = open_requests.remaining_without(closed)
            now = self._now()
            note_answers(self._connection, self._account_id, now, answered, domains)
            record_registrations(self._connection, self._account_id, answered)
            delete_closed_keys(self._connection, self._account_id, answered)
            update_requests(self._connection, remaining)
            new = insert_requests(self._connection, self._account_id, now, begun)
        open_requests.update(remaining)
        open_requests.add(new)
        domains.update(answer.sign_domain.lower() for answer in answered)

    @contextlib.contextmanager
    def _deleting(self, registrations: Sequence[Registration]) -> Iterator[None]:
        """A transaction that ends with deleting registrations and their histories."""
        try:
            with self._transaction():
                yield
                delete_registrations(self._connection, self._account_id, registrations)
                keys = [registration.key for registration in registrations]
                delete_histories(self._connection, self._account_id, keys)
        finally:
            self._cached_domains = None

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with translate_errors(self._path):
            require_in_place(self._path, self._identity)
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                yield

    def _now(self) -> str:
        return utc_text(self._clock())

    def _open_requests(self) -> OpenRequests:
        if self._cached_requests is None:
            with translate_errors(self._path):
                requests = select_open_requests(self._connection, self._account_id)
                self._cached_requests = OpenRequests(requests)
        return self._cached_requests

    def _signing_domains(self) -> set[str]:
        if self._cached_domains is None:
            with translate_errors(self._path):
                self._cached_domains = select_signing_domains(self._connection, self._account_id)
        return self._cached_domains

    def _select(self, rest: str, *values: object) -> Iterator[Registration]:
        with translate_errors(self._path):
            yield from select_registrations(self._connection, self._account_id, rest, *values)
