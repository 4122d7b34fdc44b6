"""Which keys sign mail at a moment.

A registration is in effect if it is enabled, its start_date has come and its client is not deleted.
Of a domain's registrations in effect, the one with the latest start_date signs, and of several with
the same one the latest registered: so a new key takes over on its day. Those marked `default`
(interface 2.3) have a line of their own: the latest of them is the key for third-party signing,
that is, for mail of domains without a key. It signs mail of its own domain only if no other
registration of the domain does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, select

from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service.clients import ClientState
from dkimctl.service.database.schema import clients, registrations
from dkimctl.service.database.store import Store
from dkimctl.service.http.validation import Entry, validate_entry
from dkimctl.service.keys.encryption import ENCRYPTED_HEADER, WrongPassphrase


class SigningKey(NamedTuple):
    """A key in use. Names are valid and in lower case; `private_key` is PKCS #8 in PEM."""

    sign_domain: str
    selector: str
    private_key: bytes

    @property
    def fqdn(self) -> str:
        """The name of its DNS record, which is also the name of its file."""
        return f"{self.selector}._domainkey.{self.sign_domain}"

    def __repr__(self) -> str:  # without the private key
        return f"SigningKey({self.fqdn})"


class _Candidate(NamedTuple):
    """A registration. The columns of the query are named in the same order."""

    sign_domain: str
    selector: str
    client_id: str
    start_date: datetime
    regist_date: datetime
    default: int
    enable: bool
    private_key: bytes
    client_state: str

    @property
    def begin(self) -> tuple[datetime, datetime, str]:
        """The latest signs."""
        return self.start_date, self.regist_date, self.selector


_CANDIDATES = (
    select(*(registrations.c[name] for name in _Candidate._fields[:-1]), clients.c.state)
    .join(clients, clients.c.client_id == registrations.c.client_id)
    .order_by(registrations.c.sign_domain, registrations.c.selector)
    .execution_options(yield_per=1000)
)


class Plan(NamedTuple):
    """What a signer is to use.

    `left_out` counts the other registrations by the reason, in words. `contested` are domains that
    several clients have registered: the keys of the first one sign. `third_party_owners` are the
    clients with a key for third-party signing, of which none was chosen.
    """

    by_domain: Mapping[str, SigningKey]
    third_party: SigningKey | None
    left_out: Mapping[str, int]
    contested: list[str]
    third_party_owners: list[str]

    @property
    def keys(self) -> list[SigningKey]:
        """All keys in use, each once."""
        third_party = [self.third_party] if self.third_party else []
        return list({key.fqdn: key for key in [*self.by_domain.values(), *third_party]}.values())


def read_plan(store: Store, now: datetime, third_party_client: str | None = None) -> Plan:
    """The keys that sign at `now`.

    `third_party_client` is the client whose key signs mail of domains without one. Without it, no
    key does if there are registrations of several clients: a client may mark any of its own. Raises
    NegativeAnswer if it is unknown or deleted, UsageError if the data cannot be used.
    """
    choice = _Choice(now)
    with store.snapshot() as connection:
        if third_party_client is not None:
            _require_client(connection, third_party_client)
        with connection.execute(_CANDIDATES) as rows:  # closes the cursor also after an error
            candidates = (_candidate(store, row) for row in rows)
            for domain, of_domain in groupby(candidates, attrgetter("sign_domain")):
                choice.add(domain, of_domain)
    third_party = choice.third_party_of(third_party_client)
    kept = {id(row): row for row in [*choice.by_domain.values(), *filter(None, [third_party])]}
    keys = {number: _key(store, row) for number, row in kept.items()}
    superseded = choice.in_effect - len(keys)
    return Plan(
        {domain: keys[id(row)] for domain, row in choice.by_domain.items()},
        keys[id(third_party)] if third_party is not None else None,
        choice.left_out + Counter({"superseded": superseded}),
        choice.contested,
        [] if third_party is not None else sorted(choice.third_party),
    )


class _Choice:
    """The candidates in use, gathered domain by domain."""

    def __init__(self, now: datetime) -> None:
        self.by_domain: dict[str, _Candidate] = {}
        self.third_party: dict[str, _Candidate] = {}  # the latest of each client
        self.left_out: Counter[str] = Counter()
        self.contested: list[str] = []
        self.in_effect = 0
        self._clients: set[str] = set()
        self._now = now

    def add(self, domain: str, rows: Iterable[_Candidate]) -> None:
        """Choose from all registrations of a domain."""
        in_effect = self._of_first_client(domain, list(self._in_effect(rows)))
        if not in_effect:
            return
        self.in_effect += len(in_effect)
        self.by_domain[domain] = max(in_effect, key=lambda row: (not row.default, row.begin))
        if marked := [row for row in in_effect if row.default]:
            latest = max(marked, key=lambda row: row.begin)
            known = self.third_party.get(latest.client_id)
            if known is None or latest.begin > known.begin:
                self.third_party[latest.client_id] = latest

    def third_party_of(self, client_id: str | None) -> _Candidate | None:
        """The row for third-party signing: of this client, or of the only one that there is."""
        if client_id is None and len(self._clients) == 1:
            (client_id,) = self._clients
        return self.third_party.get(client_id or "")

    def _in_effect(self, rows: Iterable[_Candidate]) -> Iterator[_Candidate]:
        for row in rows:
            if row.client_state == ClientState.DELETED:
                self.left_out["of deleted clients"] += 1
                continue
            self._clients.add(row.client_id)
            if not row.enable:
                self.left_out["disabled"] += 1
            elif row.start_date > self._now:
                self.left_out["not yet in effect"] += 1
            else:
                yield row

    def _of_first_client(self, domain: str, rows: list[_Candidate]) -> list[_Candidate]:
        """Those of the client that was first: a later one may not take over its mail."""
        if len({row.client_id for row in rows}) < 2:
            return rows
        first = min(rows, key=lambda row: row.regist_date).client_id
        self.contested.append(domain)
        of_first = [row for row in rows if row.client_id == first]
        self.left_out["of a second client of the domain"] += len(rows) - len(of_first)
        return of_first


def _candidate(store: Store, row: Row[*tuple[Any, ...]]) -> _Candidate:
    try:
        candidate = _Candidate._make(row)
        dates = (_date(candidate.start_date), _date(candidate.regist_date))
    except (TypeError, ValueError):
        raise _invalid(store, row[0], row[1]) from None
    return candidate._replace(start_date=dates[0], regist_date=dates[1])


def _date(text: Any) -> datetime:
    """As it is: the first and last ones there are would not fit into another time zone."""
    date = datetime.fromisoformat(text)
    if date.tzinfo is None:
        raise ValueError
    return date


def _key(store: Store, row: _Candidate) -> SigningKey:
    """Check the names again: they become part of paths, and of lines of tables."""
    entry = validate_entry({"sign_domain": row.sign_domain, "selector": row.selector})
    if not isinstance(entry, Entry) or (entry.sign_domain, entry.selector) != row[:2]:
        raise _invalid(store, row.sign_domain, row.selector)
    return SigningKey(row.sign_domain, row.selector, _plain(store, row))


def _invalid(store: Store, sign_domain: object, selector: object) -> UsageError:
    return UsageError(
        f"{store.name}: cannot use the service data: invalid registration {selector!a} of "
        f"{sign_domain!a}",
        hint="restore a backup of the data, or delete this registration",
    )


def _plain(store: Store, row: _Candidate) -> bytes:
    pem = bytes(row.private_key)
    if not pem.startswith(ENCRYPTED_HEADER):
        return pem
    try:
        if store.encryptor is not None:
            return store.encryptor.decrypt(pem)
    except WrongPassphrase:
        pass
    raise UsageError(
        f"{store.name}: the private key of {row.selector} of {row.sign_domain} is encrypted with "
        "another passphrase",
        hint="set DKIMCTL_SERVICE_PASSPHRASE to the passphrase it was encrypted with",
    )


def _require_client(connection: Connection, client_id: str) -> None:
    query = select(clients.c.state).where(clients.c.client_id == client_id)
    if connection.execute(query).scalar_one_or_none() in (None, ClientState.DELETED):
        raise NegativeAnswer(
            "in --third-party-client: the client does not exist, or is deleted",
            hint="list the clients with `dkimctl service client list`",
        )
