"""The ledger of one account."""

# ruff: noqa: S608 - what queries are made of are constants

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from dkimctl.errors import LedgerError
from dkimctl.ledger import intents, opening, tables
from dkimctl.ledger.intents import Intent, OpenRequests
from dkimctl.ledger.opening import SqliteStore, translate_errors
from dkimctl.ledger.tables import COLUMNS, IS_OURS, text_of, time_of
from dkimctl.models import (
    MAX_NETWORKS,
    NO_REPORTS_FOR,
    NOBODY,
    OTHER_NETWORKS,
    Actor,
    Alarm,
    ClosedKey,
    DmarcReport,
    DomainSpec,
    Event,
    EventKind,
    KeyHistory,
    MailStats,
    Registration,
    RegistrationKey,
    key_of,
    utc_time,
    written_time,
)
from dkimctl.text import DAY

if TYPE_CHECKING:
    from dkimctl.ledger.postgresql import Database

_KEPT = ["key_len", "start_date", '"default"', "enable", "fqdn", "type", "value", "regist_date"]
_REGISTRATIONS = f"SELECT {COLUMNS} FROM registration WHERE account_id = ?"
# Upserts, so that the ID keeps the order of the first answers. A field that an answer leaves out
# keeps its value.
_KNOWN = "ON CONFLICT (account_id, sign_domain, selector) DO UPDATE SET"
_RECORD = f"""
INSERT INTO registration (account_id, {COLUMNS}) VALUES (?{12 * ", ?"})
{_KNOWN} code = excluded.code, message = excluded.message,
  {", ".join(f"{name} = coalesce(excluded.{name}, registration.{name})" for name in _KEPT)}
"""
_KEYS = f"""
SELECT lower(sign_domain), lower(selector) FROM registration WHERE account_id = ?1
UNION ALL SELECT lower(sign_domain), '' FROM registration WHERE account_id = ?1 AND {IS_OURS}
"""
_TIMES = f"""
INSERT INTO history (account_id, sign_domain, selector, enabled_at, disabled_at)
VALUES (?, ?, ?, ?, ?)
{_KNOWN} enabled_at = excluded.enabled_at, disabled_at = excluded.disabled_at
"""
_REPLACEMENT = f"""
INSERT INTO history (account_id, sign_domain, selector, replaces) VALUES (?, ?, ?, ?)
{_KNOWN} replaces = excluded.replaces
"""
_LOOK = f"""
INSERT INTO history (account_id, sign_domain, selector, published_at, looked_at, verdict)
VALUES (?, ?, ?, ?, ?, ?)
{_KNOWN}
  published_at = excluded.published_at, looked_at = excluded.looked_at,
  verdict = excluded.verdict,
  closed_at = CASE WHEN excluded.verdict = 'published' THEN NULL ELSE history.closed_at END
"""
_SEEN = """
SELECT CAST(published_at AS BLOB), CAST(regist_date AS BLOB), CAST(verdict AS BLOB)
FROM history LEFT JOIN registration USING (account_id, sign_domain, selector)
"""
_ROTATED = """
SELECT DISTINCT new.sign_domain FROM history AS new JOIN registration AS old
  ON old.account_id = new.account_id AND old.sign_domain = new.sign_domain
  AND old.selector = new.replaces
WHERE new.account_id = ?
"""
_SUCCESSORS = """
SELECT lower(sign_domain), lower(selector) FROM history
WHERE account_id = ? AND replaces IS NOT NULL
"""
_BEGUN = """
SELECT sign_domain, selector, CAST(replaces AS BLOB) FROM history
WHERE account_id = ?1 AND replaces IS NOT NULL AND NOT EXISTS (
  SELECT * FROM registration
  WHERE account_id = ?1 AND sign_domain = history.sign_domain AND selector = history.selector)
"""
_CLOSED_KEYS = """
SELECT CAST(sign_domain AS BLOB), CAST(selector AS BLOB),
  "default", CAST(created_at AS BLOB), CAST(started_at AS BLOB), CAST(replaced_by AS BLOB),
  CAST(closed_at AS BLOB), CAST(start_date AS BLOB)
FROM closed_key WHERE account_id = ? ORDER BY sign_domain, selector
"""
_ALARMS = """
SELECT CAST(subject AS BLOB), CAST(problem AS BLOB), CAST(first_seen AS BLOB),
  CAST(looked_at AS BLOB), CAST(told_at AS BLOB)
FROM alarm WHERE account_id = ?
"""
_ALARM = """
INSERT INTO alarm VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (account_id, subject, problem) DO UPDATE SET
  first_seen = excluded.first_seen, looked_at = excluded.looked_at, told_at = excluded.told_at
"""
_THIS = "WHERE account_id = ?1 AND sign_domain = ?2 AND selector = ?3"
# A closed key comes back: it is registered again, if its record is known, and is not in DNS.
_REMOVED = f"""
SELECT account_id, sign_domain, selector, key_len, start_date, "default", 1, fqdn, type, value,
  regist_date, '409', NULL
FROM closed_key {_THIS} AND value IS NOT NULL
"""
_ANY_CLOSED = "SELECT id FROM account WHERE id = ? AND id IN (SELECT account_id FROM closed_key)"
_REOPENED = (
    f"INSERT INTO registration (account_id, {COLUMNS}) {_REMOVED} ON CONFLICT DO NOTHING",
    f"""
INSERT INTO history (account_id, sign_domain, selector, enabled_at, looked_at, verdict, closed_at)
  SELECT account_id, sign_domain, selector, started_at, closed_at, 'missing', closed_at
  FROM closed_key JOIN registration USING (account_id, sign_domain, selector) {_THIS}
{_KNOWN} looked_at = excluded.looked_at, verdict = excluded.verdict, closed_at = excluded.closed_at
""",
    f"DELETE FROM closed_key {_THIS} AND EXISTS (SELECT * FROM registration {_THIS})",
)
_EVENT = """
INSERT INTO event (account_id, sign_domain, selector, at, username, machine, command, what, detail)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
"""
# Unless the ledger has the key (?10: its value), closed or not.
_SAME = f"{_THIS} AND coalesce(value, ?10, '') = coalesce(?10, value, '')"
_REPLACED = f"SELECT 'replaces ' || replaces FROM history {_THIS} AND replaces IS NOT NULL"
_REGISTERED = f"""
{_EVENT.replace("?9", f"coalesce(({_REPLACED}), ?9)")}
WHERE NOT EXISTS (SELECT * FROM registration {_SAME} AND {IS_OURS})
  AND NOT EXISTS (SELECT * FROM closed_key {_SAME})
"""
_LATEST = "SELECT detail FROM event WHERE account_id = ?1 AND what = ?8 ORDER BY id DESC LIMIT 1"
_POLICY = f"{_EVENT} WHERE coalesce(({_LATEST}), '') <> ?9"
_KEPT_MAIL = 60  # days; the last mail with a key is kept
_THIS_MAIL = f"{_THIS} AND day = ?4 AND reporter = ?5"
_MAIL_OF = f"SELECT passed_from, failed_from FROM mail {_THIS_MAIL}"
_MAIL = """
INSERT INTO mail VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (account_id, sign_domain, selector, day, reporter) DO UPDATE SET
  passed = excluded.passed, failed = excluded.failed,
  passed_from = excluded.passed_from, failed_from = excluded.failed_from
"""
_MAIL_STATS = """
SELECT sign_domain, selector, CAST(sum(CASE WHEN day > ?2 THEN passed ELSE 0 END) AS bigint),
  CAST(sum(CASE WHEN day > ?2 THEN failed ELSE 0 END) AS bigint),
  max(CASE WHEN passed > 0 THEN day END),
  max(max(day)) OVER (PARTITION BY sign_domain) >= ?3
FROM mail WHERE account_id = ?1 GROUP BY sign_domain, selector
"""
_FORGET_MAIL = """
DELETE FROM mail WHERE account_id = ?1 AND day < ?2 AND EXISTS (
  SELECT * FROM mail AS newer WHERE newer.account_id = ?1 AND newer.passed > 0
  AND newer.sign_domain = mail.sign_domain AND newer.selector = mail.selector
  AND newer.day > mail.day)
"""
# Those of a day of which mail is kept could be read again, and would count twice.
_FORGET_REPORTS = """
DELETE FROM report WHERE account_id = ?1 AND day < ?2
AND day NOT IN (SELECT day FROM mail WHERE account_id = ?1)
"""
_SIGNS = f"{_EVENT} WHERE EXISTS (SELECT * FROM closed_key {_THIS})"
_FIELDS = "at", "sign_domain", "selector", "what", "detail", "username", "machine", "command"
_EVENTS = f"""
SELECT {", ".join(f"CAST({name} AS BLOB)" for name in _FIELDS)} FROM event
WHERE account_id = ? AND at >= ? ORDER BY id
"""
_Rows = Sequence[Sequence[Any]]


class DomainKeys(NamedTuple):
    """What the ledger has of the keys of one signing domain, which is in lower case."""

    sign_domain: str
    histories: Mapping[Registration, KeyHistory]  # of each registration, sorted by selector
    intents: Sequence[Intent] = ()
    begun: Mapping[RegistrationKey, str] = {}  # see `Ledger.begun_successors`
    closed: Sequence[ClosedKey] = ()
    mail: Mapping[RegistrationKey, MailStats] = {}  # see `Ledger.mail`
    no_mail: MailStats | None = None  # of keys that no report names; None: there are no reports

    @property
    def selectors(self) -> Set[str]:
        """All that were ever registered or asked for, in lower case."""
        known: list[Registration | Intent | ClosedKey] = [*self.histories, *self.intents]
        known += self.closed
        used = {(each.selector or "").lower() for each in known}
        return used.union(key.selector for key in self.begun) if self.begun else used


class Ledger:
    """The registrations, open intents, histories, closed keys and alarms of one account.

    Every failure is a LedgerError. Use a ledger only in the thread that opened it. It caches what
    it has read, so open it for writing only under the account's lock, unless you only note looks
    or replace alarms.
    """

    def __init__(
        self,
        store: SqliteStore | Database,
        account_id: int,
        clock: Callable[[], float] = time.time,
        actor: Actor = NOBODY,
    ) -> None:
        self._store = store
        self._account_id = account_id
        self._clock = clock
        self._actor = actor
        self._cached_domains: set[str] | None = None
        self._cached_requests: OpenRequests | None = None

    @classmethod
    def open(
        cls,
        place: Path | Database,
        *,
        base_url: str,
        client_id: str,
        clock: Callable[[], float] = time.time,
        actor: Actor = NOBODY,
    ) -> Self:
        """Open the ledger for writing, creating a missing file; a damaged one is quarantined.

        `clock` returns seconds since the epoch; `actor` is who is named in events.
        """
        if not isinstance(place, Path):
            account_id = place.open(base_url, client_id, for_writing=True)
            return cls(place, account_id, clock, actor)
        path = place.absolute()
        with translate_errors(path), opening.quarantining(path, clock):
            connection, account_id = opening.open_for_writing(path, base_url, client_id)
            return cls(SqliteStore(connection, path, clock), account_id, clock, actor)

    @classmethod
    def open_existing(cls, place: Path | Database, *, base_url: str, client_id: str) -> Self:
        """Open the ledger read-only. Without a file it is empty, and no file is created."""
        if not isinstance(place, Path):
            return cls(place, place.open(base_url, client_id, for_writing=False))
        path = place.absolute()
        with translate_errors(path):
            connection, account_id = opening.open_read_only(path, base_url, client_id)
            return cls(SqliteStore(connection, path), account_id)

    @functools.cached_property
    def quarantined(self) -> Path | None:
        """The newest damaged ledger that was quarantined: this one may know less than it."""
        return self._store.find_quarantined()

    @property
    def is_new(self) -> bool:
        """Whether nothing is known of the account, nor was a damaged ledger put aside."""
        return not (self._signing_domains() or self.intents() or self.quarantined)

    def of_domain(self, sign_domain: str) -> list[Registration]:
        """The registrations of one signing domain, oldest first."""
        # A query for each of 100,000 new domains would take longer than reading their file.
        if sign_domain.lower() not in self._signing_domains():
            return []
        query = f"{_REGISTRATIONS} AND sign_domain = ? ORDER BY id"
        return [tables.registration_of(row) for row in self._rows(query, sign_domain)]

    def all(self) -> Iterator[Registration]:
        """All registrations of the account, sorted by signing domain and selector."""
        query = f"{_REGISTRATIONS} ORDER BY sign_domain, selector"
        return map(tables.registration_of, self._rows(query))

    def ours(self) -> Iterator[Registration]:
        """The same without those of other accounts (409 without data, interface 7.3)."""
        return (registration for registration in self.all() if not registration.is_taken)

    def has_ours(self) -> bool:
        query = f"SELECT id FROM registration WHERE account_id = ? AND {IS_OURS} LIMIT 1"
        return any(self._rows(query))

    def known_keys(self) -> Set[tuple[str, str]]:
        """The keys of all registrations; of ours, also those with "" for the selector."""
        return set(self._rows(_KEYS))  # RegistrationKeys, which they equal, take ten times as long

    def count_domains(self, base_url: str, client_id: str) -> int:
        """The number of signing domains of any account."""
        query = f"SELECT count(DISTINCT sign_domain) {tables.OF_ACCOUNT}"
        with self._store.translating():
            return int(self._store.execute(query, (base_url, client_id)).fetchone()[0])

    def intents_of(self, sign_domain: str) -> list[Intent]:
        """The open intents of one signing domain, oldest first."""
        return self._open_requests().of_domain(sign_domain)

    def intents(self) -> list[Intent]:
        """All open intents of the account, oldest first."""
        with self._store.translating():
            requests = intents.select_open_requests(self._store, self._account_id)
            return [intent for _, request in requests for intent in request]

    def domains(self, *, with_values: bool = True) -> Iterator[DomainKeys]:
        """What is known of the keys of each signing domain, sorted by it, in one pass.

        Without the values of records, which are "" then, a key takes half the memory; those of
        which the length of the key is not known have them.
        """
        # Those without a registration may be anywhere between others.
        sent: dict[str, list[Intent]] = {}
        begun: dict[str, dict[RegistrationKey, str]] = {}
        closed: dict[str, list[ClosedKey]] = {}
        for intent in self.intents():
            sent.setdefault(intent.key.sign_domain, []).append(intent)
        for key, replaces in self.begun_successors().items():
            begun.setdefault(key.sign_domain, {})[key] = replaces
        for closed_key in self.closed_keys():
            closed.setdefault(closed_key.key.sign_domain, []).append(closed_key)
        no_keys: Iterator[tuple[Registration, KeyHistory]] = iter(())
        others = ((domain, no_keys) for domain in sorted({*sent, *begun, *closed}))
        columns = COLUMNS
        if not with_values:
            lean = "CASE WHEN key_len IS NULL OR value IS NULL THEN value ELSE '' END"
            columns = COLUMNS.replace(" value,", f" {lean},")
        query = f"SELECT {columns}, {tables.HISTORY} ORDER BY sign_domain, selector"
        keys = map(_registered, self._rows(query))
        registered = itertools.groupby(keys, lambda pair: pair[0].key.sign_domain)
        merged = heapq.merge(registered, others, key=itemgetter(0))
        mail: dict[str, dict[RegistrationKey, MailStats]] = {}
        for key, stats in self.mail().items():
            mail.setdefault(key.sign_domain, {})[key] = stats
        for domain, parts in itertools.groupby(merged, itemgetter(0)):
            histories = {
                registration: history for _, part in parts for registration, history in part
            }
            of_mail = mail.get(domain, {})
            for registration in histories if of_mail else ():
                if (seen := of_mail.get(registration.key)) is not None:
                    known = histories[registration]
                    histories[registration] = known._replace(passed_on=seen.passed_on)
            more = sent.get(domain, ()), begun.get(domain, {}), closed.get(domain, ())
            is_reported = any(stats.is_reported for stats in of_mail.values())
            no_mail = MailStats(0, 0, None, is_reported) if mail else None
            yield DomainKeys(domain, histories, *more, of_mail, no_mail)

    def rotated_domains(self) -> set[str]:
        """The signing domains, in lower case, with a key that another was made to replace."""
        return {str(row[0]).lower() for row in self._rows(_ROTATED)}

    def successors(self) -> Set[tuple[str, str]]:
        """The keys that were made to replace others, registered or not."""
        return set(self._rows(_SUCCESSORS))

    def begun_successors(self) -> dict[RegistrationKey, str]:
        """Of the keys that are noted to replace another, but not registered, its selector."""
        return {
            key_of(str(domain), str(selector)): text_of(replaced) or ""
            for domain, selector, replaced in self._rows(_BEGUN)
        }

    def closed_keys(self) -> list[ClosedKey]:
        """The keys that `close_keys` has closed, sorted by signing domain and selector."""
        return [
            ClosedKey(
                text_of(domain) or "", text_of(selector) or "",
                third_party if isinstance(third_party, int) else 0,
                time_of(created), time_of(started), text_of(replaced_by), time_of(closed),
                text_of(start_date),
            )
            for (
                domain, selector, third_party, created, started, replaced_by, closed, start_date
            ) in self._rows(_CLOSED_KEYS)
        ]  # fmt: skip

    def alarms(self) -> list[Alarm]:
        """The alarms, sorted by subject and problem, without those whose times are invalid."""
        alarms = []
        for subject, problem, *columns in self._rows(_ALARMS):
            first, looked_at, told_at = map(time_of, columns)
            if first and looked_at:
                text = text_of(subject) or "", text_of(problem) or ""
                alarms.append(Alarm(*text, first, looked_at, told_at))
        return sorted(alarms, key=itemgetter(0, 1))

    def events(self, since: datetime | None = None) -> Iterator[Event]:
        """The events since a time, in the order in which they were written."""
        for at, *texts in self._rows(_EVENTS, written_time(since) or ""):
            yield Event(time_of(at), *(text_of(text) or "" for text in texts))

    def replace_alarms(self, old: Iterable[Alarm], new: Iterable[Alarm]) -> None:
        """Replace these alarms, all or nothing; durable on return. Those of other runs stay."""
        with self._transaction():
            delete = "DELETE FROM alarm WHERE account_id = ? AND subject = ? AND problem = ?"
            self._execute_many(delete, (alarm[:2] for alarm in old))
            self._execute_many(
                _ALARM, ((*alarm[:2], *map(written_time, alarm[2:])) for alarm in new)
            )

    def note_looks(
        self,
        verdicts: Mapping[RegistrationKey, str],
        breaks: Mapping[RegistrationKey, str] = {},
        *,
        restarts: bool = False,
    ) -> None:
        """Store what all authoritative servers have now; durable on return.

        A record that is `published` at each look keeps the time of the first. `breaks` and
        `restarts`: see `Looks`; that a clock may be wrong is not an event of the keys.
        """
        if not verdicts:
            return
        now, doubted = self._now(), set[RegistrationKey]()
        with self._transaction():
            for looks in (breaks, verdicts):
                known = self._each(f"{_SEEN} {_THIS}", looks)
                rows, news = [], []
                for (key, verdict), seen in zip(looks.items(), known, strict=True):
                    *times, before = seen or (None, None, None)
                    since = written_time(tables.published_since(*map(time_of, times)))
                    since = min(since or now, now)  # one to come is from a wrong clock
                    rows.append((*key, since if verdict == "published" else None, now, verdict))
                    if (verdict == "published") != (text_of(before) == "published"):
                        if restarts and looks is breaks:
                            doubted.add(key)
                        elif key not in doubted:
                            news.append((*key, verdict))
                self._note(EventKind.SEEN, news)
                self._execute_many(_LOOK, rows)

    def note_published(self, where: Mapping[RegistrationKey, str]) -> None:
        """Store that the records of these keys were written into DNS, and where; durable."""
        with self._transaction():
            self._note(EventKind.PUBLISHED, [(*key, text) for key, text in where.items()])

    def note_reports(self, reports: Iterable[DmarcReport]) -> list[DmarcReport]:
        """Store what is in these reports, each once; returns those that are new. Durable."""
        given = {(report.reporter, report.report_id): report for report in reports}
        with self._transaction():
            query = "SELECT 1 FROM report WHERE account_id = ? AND reporter = ? AND report_id = ?"
            known = self._each(query, given)
            new = [report for report, row in zip(given.values(), known, strict=True) if row is None]
            rows = ((*report[:2], report.day.isoformat()) for report in new)
            self._execute_many("INSERT INTO report VALUES (?, ?, ?, ?)", rows)
            mail: dict[tuple[str, str, str, str], list[Iterable[Mapping[str, int]]]] = {}
            for report in new:
                for key, seen in report.mail.items():
                    name = (*key, report.day.isoformat(), report.reporter)
                    mail.setdefault(name, []).append(seen)
            for parts, row in zip(mail.values(), self._each(_MAIL_OF, mail), strict=True):
                parts.extend([map(json.loads, row)] if row is not None else [])
            self._execute_many(_MAIL, (
                (*name, passed.total(), failed.total(), json.dumps(passed), json.dumps(failed))
                for name, parts in mail.items()
                for passed, failed in [map(_sum, zip(*parts, strict=True))]
            ))  # fmt: skip
        return new

    def forget_mail(self) -> None:
        """Forget what reports of more than 60 days ago say, but the last mail with each key."""
        with self._transaction():
            for statement in _FORGET_MAIL, _FORGET_REPORTS:
                self._execute_many(statement, [(self._day(_KEPT_MAIL),)])

    def mail(self) -> dict[RegistrationKey, MailStats]:
        """What reports say of the mail with each key; one of "" is of keys that are not known."""
        rows = self._rows(_MAIL_STATS, self._day(7), self._day(NO_REPORTS_FOR.days))
        return {
            key_of(domain, selector): MailStats(passed, failed, tables.date_of(day), bool(reported))
            for domain, selector, passed, failed, day, reported in rows
        }

    def networks(self, key: RegistrationKey, *, failed: bool = False) -> list[str]:
        """Whence mail that passed (or failed) with a key came in the last 7 days, most first."""
        column = "failed_from" if failed else "passed_from"
        query = f"SELECT {column} FROM mail {_THIS} AND day > ?4"
        rows = self._rows(query, *key, self._day(7))
        return [network for network, _ in _sum(json.loads(row[0]) for row in rows).most_common()]

    def _day(self, ago: int) -> str:
        """The day (UTC) so many days ago."""
        return time.strftime("%Y-%m-%d", time.gmtime(self._clock() - ago * DAY))

    def note_policy(self, text: str) -> None:
        """Record the policies of a run as an event, unless the run before it had the same."""
        with self._transaction():
            self._note(EventKind.POLICY, [("", "", text)], _POLICY)

    def note_replacements(self, replaced: Mapping[RegistrationKey, str]) -> None:
        """Store the selector that each key, registered or not yet, was made to replace; durable."""
        if replaced:
            with self._transaction():
                rows = ((*key, selector) for key, selector in replaced.items())
                self._execute_many(_REPLACEMENT, rows)

    def note_signing(self, keys: Collection[RegistrationKey]) -> None:
        """Store that mail is signed with these keys, though others replaced them; durable.

        Closed ones are registered again, as far as the ledger has their records.
        """
        try:
            with self._transaction():
                self._note(EventKind.SEEN, [(*key, "signs mail again") for key in keys], _SIGNS)
                for statement in _REOPENED:
                    self._execute_many(statement, keys)
                signed = f"UPDATE history SET signed_at = '{self._now()}' {_THIS}"
                self._execute_many(signed, keys)
        finally:
            self._cached_domains = None

    def removed_registration(self, key: RegistrationKey) -> Registration | None:
        """A closed key as it was registered, if the ledger has its record."""
        return next((tables.registration_of(row[1:]) for row in self._rows(_REMOVED, *key)), None)

    def forget(self, registrations: Iterable[Registration]) -> None:
        """Delete registrations and their histories, but no intents; durable on return."""
        names = list(map(_name_of, registrations))
        self._delete(names, (), EventKind.FORGOTTEN, [(*name, "") for name in names])

    def close_keys(
        self, replaced: Mapping[Registration, str | None], what: EventKind = EventKind.REMOVED
    ) -> None:
        """Delete registrations, each with the selector of its successor; durable on return.

        Of each a ClosedKey stays, until its key is recorded again, or signs. `what` is the event.
        """
        closed, news = [], []
        with self._store.translating():
            histories = self._histories(replaced)
        for (registration, successor), known in zip(replaced.items(), histories, strict=True):
            history = known or KeyHistory()
            started_at = registration.starts_at
            if started_at is not None and history.enabled_at is not None:
                started_at = max(started_at, history.enabled_at)
            times = map(written_time, (registration.created_at, started_at))
            if history.closed_at is None or what is EventKind.FORGOTTEN:
                detail = f"replaced by {successor}" if successor else ""
                news.append((*_name_of(registration), detail))
            # What was not put back is gone since then.
            closed_at = written_time(history.closed_at) or self._now()
            asked, columns = registration.third_party, tables.row_of(registration)
            row = (*_name_of(registration), asked, *times, successor, closed_at)
            closed.append((*row, *columns[2:4], *columns[6:10]))
        self._delete(list(map(_name_of, replaced)), closed, what, news)

    def record(self, registrations: Sequence[Registration]) -> None:
        """Store imported answers of the service, replacing earlier ones; durable on return."""
        self.commit(answered=registrations, what=EventKind.IMPORTED)

    def commit(
        self,
        *,
        answered: Sequence[Registration] = (),
        settled: Iterable[RegistrationKey] = (),
        begun: Iterable[Sequence[DomainSpec]] = (),
        what: EventKind = EventKind.REGISTERED,
    ) -> None:
        """Store answers, close the intents of `settled`, then open those of the requests `begun`.

        All or nothing, and durable on return. An answer also closes the intents of its domain that
        have its selector or, if the registration is ours, none. No key is repeated. `what` is the
        event of a key that is new.
        """
        settled = list(settled)
        requests = [specs for specs in begun if specs]
        if not (answered or settled or requests):
            return
        resent = (spec.key for specs in requests for spec in specs)
        # One of another account does not answer a request that let the service choose a selector.
        ours = (key_of(each.sign_domain, None) for each in answered if not each.is_taken)
        closed = itertools.chain(settled, resent, (each.key for each in answered), ours)
        try:
            with self._transaction():
                open_requests, domains = self._open_requests(), self._signing_domains()
                remaining = open_requests.remaining_without(closed)
                now = self._now()
                self._note_times(answered, domains, now, what)
                self._execute_many(_RECORD, map(tables.row_of, answered))
                for statement in _REOPENED[1:] if any(self._rows(_ANY_CLOSED)) else ():
                    self._execute_many(statement, map(_name_of, answered))
                intents.update_requests(self._store, remaining)
                new = [*intents.insert_requests(self._store, self._account_id, now, requests)]
            open_requests.update(remaining)
            open_requests.add(new)
            domains.update(answer.sign_domain.lower() for answer in answered)
        except BaseException:  # also an interruption, before or after the commit
            self._cached_domains = self._cached_requests = None
            raise

    def counts(self) -> dict[str, int]:
        """The number of rows of the account in each table that has some."""
        query = "SELECT count(*) FROM {} WHERE account_id = ?"
        counts = {table: next(self._rows(query.format(table)))[0] for table in tables.TABLES}
        return {table: count for table, count in counts.items() if count}

    def copy_from(self, source: Ledger) -> dict[str, int]:
        """Add all that another ledger has of its account; returns the counts.

        All or nothing, and durable. Raises LedgerError, also if there is something of the account.
        """
        with source._transaction(), self._transaction():
            if there := self.counts():
                raise LedgerError(
                    f"the target has this account already ({summed(there)}); nothing was copied",
                    hint="name another target: ledgers are not merged",
                )
            for table in tables.TABLES:
                empty = self._store.execute(f"SELECT * FROM {table} WHERE 1 = 0")
                empty.fetchall()  # a server may not have said what is in it before
                names = [name for name, *_ in empty.description]
                order = "ORDER BY id" if "id" in names else ""  # new rows get new ones
                kept = [f'"{name}"' for name in names if name not in ("id", "account_id")]
                query = f"SELECT {', '.join(kept)} FROM {table} WHERE account_id = ? {order}"
                insert = f"INSERT INTO {table} (account_id, {', '.join(kept)}) VALUES (?"
                insert += f"{len(kept) * ', ?'})"
                self._execute_many(insert, source._rows(query))
            return self.counts()

    def check(self) -> None:
        """Check that the ledger is sound. A damaged file is quarantined and closed."""
        with self._store.translating():
            self._store.check(self._account_id)

    def verify(self) -> None:
        """Check that the ledger is sound, and change nothing."""
        with self._store.translating():
            self._store.verify(self._account_id)

    def require_disk_space(self, entries: int) -> None:
        """Raise LedgerError unless there is space for this many answers."""
        self._store.require_disk_space(entries)

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _note_times(
        self, answers: Iterable[Registration], domains: Set[str], now: str, what: EventKind
    ) -> None:
        """Note what is new, and since when keys are enabled or disabled, before it is recorded."""
        at = datetime.fromisoformat(now)
        rows, news = [], []
        had = "the service had it" if what is EventKind.REGISTERED else ""
        among = [answer for answer in answers if answer.sign_domain.lower() in domains]
        histories = dict(zip(map(_name_of, among), self._histories(among), strict=True))
        for answer in answers:
            known = histories.get(_name_of(answer))
            # A new key needs no row if its answer says when it was registered (see `history_of`).
            is_told = answer.code == "201" and utc_time(answer.regist_date) is not None
            if known is not None or not (is_told or answer.is_taken):
                times = tables.times_after(answer, known or KeyHistory(), at)
                rows.append((*_name_of(answer), *map(written_time, times)))
            if not answer.is_taken:
                detail, record = "" if answer.code == "201" else had, answer.record
                news.append((*_name_of(answer), detail, record and record.value))
        self._note(what, news, _REGISTERED)
        self._execute_many(_TIMES, rows)

    def _histories(self, registrations: Iterable[Registration]) -> list[KeyHistory | None]:
        """The history of each; None: the account has no such registration."""
        query = f"SELECT {tables.HISTORY} AND sign_domain = ? AND selector = ?"
        rows = self._each(query, map(_name_of, registrations))
        return [None if row is None else tables.history_of(*row) for row in rows]

    def _delete(self, names: _Rows, closed: _Rows, what: EventKind, news: _Rows) -> None:
        """Delete registrations and their histories, and insert the rows of closed keys."""
        try:
            with self._transaction():
                self._note(what, news)
                self._execute_many(f"DELETE FROM closed_key {_THIS}", (row[:2] for row in closed))
                self._execute_many(f"INSERT INTO closed_key VALUES (?{13 * ', ?'})", closed)
                for table in ("registration", "history"):
                    self._execute_many(f"DELETE FROM {table} {_THIS}", names)
        finally:
            self._cached_domains = None

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._store.translating(), self._store.transaction():
            yield

    def _note(self, what: EventKind, news: _Rows, statement: str = _EVENT) -> None:
        """Add events, each of a signing domain, selector and detail, within a transaction."""
        said = (self._now(), *self._actor, what.value)
        rows = (
            (domain.lower(), selector.lower(), *said, *rest) for domain, selector, *rest in news
        )
        self._execute_many(statement, rows)

    def _execute_many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Execute it for each row, which the account goes before, within a transaction."""
        self._store.executemany(statement, ((self._account_id, *row) for row in rows))

    def _each(self, query: str, rows: Iterable[Sequence[object]]) -> Sequence[Any]:
        """The first row of a query, or None, for each of `rows`, which the account goes before."""
        return self._store.select_each(query, ((self._account_id, *row) for row in rows))

    def _rows(self, query: str, *values: object) -> Iterator[Any]:
        """The rows of a query whose first value is the account."""
        with self._store.translating():
            cursor = self._store.execute(query, (self._account_id, *values))
            # `yield from` would also close it: after the ledger, for a reader that stops early.
            for row in cursor:  # noqa: UP028
                yield row

    def _now(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(self._clock()))

    def _open_requests(self) -> OpenRequests:
        if self._cached_requests is None:
            with self._store.translating():
                requests = intents.select_open_requests(self._store, self._account_id)
                self._cached_requests = OpenRequests(requests)
        return self._cached_requests

    def _signing_domains(self) -> set[str]:
        if self._cached_domains is None:
            query = "SELECT DISTINCT sign_domain FROM registration WHERE account_id = ?"
            self._cached_domains = {str(row[0]).lower() for row in self._rows(query)}
        return self._cached_domains


def _registered(row: Sequence[Any]) -> tuple[Registration, KeyHistory]:
    """Those of a row of COLUMNS and HISTORY; a registration of another account has no history."""
    count = len(tables.COLUMN_TYPES)
    registration = tables.registration_of(row[:count])
    history = KeyHistory() if registration.is_taken else tables.history_of(*row[count:])
    return registration, history


def summed(counts: Mapping[str, int]) -> str:
    """Such as `registration 12, event 40`."""
    return ", ".join(f"{table} {count}" for table, count in counts.items())


def _name_of(registration: Registration) -> tuple[str, str]:
    return registration.sign_domain, registration.selector or ""


def _sum(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """All of them, of at most MAX_NETWORKS networks, and those of the others."""
    total = Counter[str]()
    for each in counts:
        total.update(each)
    if len(total) > MAX_NETWORKS + 1:
        for network, count in total.most_common()[MAX_NETWORKS:]:
            del total[network]
            total[OTHER_NETWORKS] += count
    return total
