"""The ledger of one account."""

from __future__ import annotations

import functools
import itertools
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Self

from dkimctl.ledger.errors import translate_errors
from dkimctl.ledger.health import (
    file_identity,
    find_quarantined,
    quarantining,
    require_disk_space,
    require_in_place,
    require_sound,
)
from dkimctl.ledger.intents import (
    Intent,
    OpenSendings,
    add_sendings,
    change_sendings,
    intents_of,
    select_sendings,
    utc,
)
from dkimctl.ledger.opening import open_for_writing, open_read_only, resolve_links
from dkimctl.ledger.publications import add_publications, end_publications, select_publications
from dkimctl.ledger.registrations import (
    delete_registrations,
    record_registrations,
    select_registrations,
    signing_domains,
)
from dkimctl.models.registration import DomainSpec, Registration, RegistrationKey, key_of


class Ledger:
    """The registrations, open intents and publications of one account.

    Any trouble is a LedgerError. A registration that the service did not give us (409 without
    data, interface 7.3) has no record. A ledger is for the thread that opened it, and alone in
    writing for its account: it reads what is there only once, so whoever writes opens it under
    the account's lock, unless it writes publications alone.
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
        self._known: set[str] | None = None  # the signing domains, once asked for
        self._open: OpenSendings | None = None  # likewise

    @classmethod
    def open(
        cls, path: Path, *, base_url: str, client_id: str, clock: Callable[[], float] = time.time
    ) -> Self:
        """Open the ledger of one account, creating the file if there is none.

        Raises LedgerError, also for a damaged file, which is quarantined. `clock` gives seconds
        since the epoch.
        """
        path = resolve_links(path)
        with translate_errors(path), quarantining(path, clock):
            return cls(*open_for_writing(path, base_url, client_id), path, clock)

    @classmethod
    def open_existing(cls, path: Path, *, base_url: str, client_id: str) -> Self:
        """Open the ledger to read it only; where there is no file, it is empty and none is made."""
        path = resolve_links(path)
        with translate_errors(path):
            return cls(*open_read_only(path, base_url, client_id), path)

    @functools.cached_property
    def quarantined(self) -> Path | None:
        """The newest damaged ledger that was quarantined: this one may know less than it."""
        with translate_errors(self._path):
            return find_quarantined(self._path)

    def of_domain(self, sign_domain: str) -> list[Registration]:
        """What is known of one signing domain, oldest first."""
        # Of 100,000 new domains none is there, and a query for each would take longer than
        # reading their file.
        if sign_domain.lower() not in self._domains():
            return []
        return list(self._select("AND sign_domain = ? ORDER BY id", sign_domain))

    def all(self) -> Iterator[Registration]:
        """Everything that is known of the account, by signing domain and selector."""
        return self._select("ORDER BY sign_domain, selector")

    def ours(self) -> Iterator[Registration]:
        """The same, without what is somebody else's (409 without data, interface 7.3)."""
        return self._select(
            "AND NOT (code IS '409' AND value IS NULL) ORDER BY sign_domain, selector"
        )

    def intents_of(self, sign_domain: str) -> list[Intent]:
        """The open intents of one signing domain, oldest first."""
        return self._sendings().of_domain(sign_domain)

    def intents(self) -> list[Intent]:
        """All open intents of the account, oldest first."""
        with translate_errors(self._path):
            sendings = select_sendings(self._connection, self._account_id)
            return [intent for sending in sendings for intent in intents_of(sending)]

    def publications(self) -> dict[RegistrationKey, datetime]:
        """Since when (UTC) records are seen in DNS.

        A record that is not there was not seen, or not when DNS was last asked.
        """
        with translate_errors(self._path):
            return select_publications(self._connection, self._account_id)

    def note_publications(
        self,
        published: Iterable[RegistrationKey],
        not_published: Iterable[RegistrationKey] = (),
    ) -> None:
        """Keep that some records are in DNS now, and others are not; durable on return.

        Of the former the time of the first sight stays; the latter start anew.
        """
        seen, gone = list(published), list(not_published)
        if not (seen or gone):
            return
        with translate_errors(self._path):
            require_in_place(self._path, self._identity)
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                end_publications(self._connection, self._account_id, gone)
                add_publications(self._connection, self._account_id, utc(self._clock()), seen)

    def forget(self, registrations: Iterable[Registration]) -> None:
        """Drop registrations and when they were published; durable on return. Intents stay."""
        dropped = list(registrations)
        try:
            with translate_errors(self._path):
                require_in_place(self._path, self._identity)
                with self._connection:
                    self._connection.execute("BEGIN IMMEDIATE")
                    delete_registrations(self._connection, self._account_id, dropped)
                    keys = [found.key for found in dropped]
                    end_publications(self._connection, self._account_id, keys)
        finally:
            self._known = None

    def record(self, registrations: Sequence[Registration]) -> None:
        """Keep what the service answered, replacing what it answered before; durable on return."""
        self.commit(answered=registrations)

    def commit(
        self,
        *,
        answered: Sequence[Registration] = (),
        settled: Iterable[RegistrationKey] = (),
        begun: Iterable[Sequence[DomainSpec]] = (),
    ) -> None:
        """Keep what was answered, close the intents of `settled`, then open those of `begun`.

        All of it or nothing, and durable on return. `begun` is what each request holds; no key
        is there twice. An answer also closes the intents of its domain that have its selector
        or, where the registration is ours, none.
        """
        settled = list(settled)
        requests = [specs for specs in begun if specs]
        if not (answered or settled or requests):
            return
        resent = (spec.key for specs in requests for spec in specs)
        over = itertools.chain(settled, resent, _closed_by(answered))
        try:
            with translate_errors(self._path):
                require_in_place(self._path, self._identity)
                self._write(answered, over, requests)
        except BaseException:
            self._known = self._open = None  # an interruption may come before or after the end
            raise

    def check(self) -> None:
        """Check that the file is sound, before anything is sent.

        A damaged file is quarantined, and the ledger is closed.
        """
        with translate_errors(self._path):
            require_in_place(self._path, self._identity)
            with quarantining(self._path, self._clock, self.close):
                require_sound(self._connection)
                list(select_sendings(self._connection, self._account_id))  # all can be read

    def require_disk_space(self, entries: int) -> int:
        """Require space for the answers to `entries`; returns for how many more there is space."""
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
        over: Iterable[RegistrationKey],
        begun: Iterable[Sequence[DomainSpec]],
    ) -> None:
        sendings = self._sendings()
        left = sendings.without(over)
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            record_registrations(self._connection, self._account_id, answered)
            change_sendings(self._connection, left)
            new = add_sendings(self._connection, self._account_id, utc(self._clock()), begun)
        sendings.change(left)
        sendings.begin(new)
        if self._known is not None:
            self._known.update(found.sign_domain.lower() for found in answered)

    def _sendings(self) -> OpenSendings:
        if self._open is None:
            with translate_errors(self._path):
                self._open = OpenSendings(select_sendings(self._connection, self._account_id))
        return self._open

    def _domains(self) -> set[str]:
        if self._known is None:
            with translate_errors(self._path):
                self._known = signing_domains(self._connection, self._account_id)
        return self._known

    def _select(self, rest: str, *values: object) -> Iterator[Registration]:
        with translate_errors(self._path):
            yield from select_registrations(self._connection, self._account_id, rest, *values)


def _closed_by(answered: Iterable[Registration]) -> Iterator[RegistrationKey]:
    for found in answered:
        yield found.key
        if not found.is_taken:
            # What is somebody else's says nothing of a request where the service was to choose.
            yield key_of(found.sign_domain, None)
