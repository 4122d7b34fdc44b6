"""Registrations: 201 and 409 for the entries of a request (interface 4.2); what operators do."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from dkimctl.errors import NegativeAnswer, UsageError
from dkimctl.service.access_log import describe_failure
from dkimctl.service.database import Store
from dkimctl.service.key_pairs import KEY_LENGTHS, KeyPair
from dkimctl.service.schema import registrations

_logger = logging.getLogger(__name__)

Item = dict[str, Any]  # an item of a registration response (interface 2.4)

KeysMaker = Callable[[str, Sequence[int]], Sequence[KeyPair | Exception]]
"""Makes a pair for each of the lengths in bits, for a client; or tells why there is none."""

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_SELECTOR = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
# Without names whose last label is all digits: those are IP addresses.
_DOMAIN = re.compile(rf"(?:{_LABEL}\.)+(?![0-9]+$){_LABEL}")
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9][+-](?:[01][0-9]|2[0-3]):[0-5][0-9]"
)
_FQDN_OCTETS = 253
_GENERATED_SELECTOR_OCTETS = 9
_INTEGER_LIMIT = 2**63  # of SQLite


class RegistrationName(NamedTuple):
    """What identifies a registration, in lower case."""

    sign_domain: str
    selector: str


class StoredRegistration(NamedTuple):
    """One registration. Names are in lower case."""

    client_id: str
    sign_domain: str
    selector: str
    key_len: int
    start_date: str  # ISO 8601 with offset, to the minute
    default: int
    enable: bool
    value: str  # the TXT value to publish
    regist_date: str  # ISO 8601 with offset, to the second

    @property
    def name(self) -> RegistrationName:
        return RegistrationName(self.sign_domain, self.selector)


class Entry(NamedTuple):
    """A valid entry; names in lower case. None: not given, the service decides."""

    sign_domain: str
    selector: str | None
    key_len: int
    start_date: str | None
    default: int
    enable: bool

    @property
    def name(self) -> RegistrationName | None:
        return RegistrationName(self.sign_domain, self.selector) if self.selector else None


class Rejection(NamedTuple):
    """An invalid entry, and what is wrong with it. Names as sent, if they are strings."""

    sign_domain: str | None
    selector: str | None
    message: str
    name: None = None


def register(
    store: Store,
    make_keys: KeysMaker,
    clock: Callable[[], float],
    client_id: str,
    entries: Sequence[Entry | Rejection],
) -> list[Item]:
    """One response item for each entry, in the same order; `clock` gives seconds since the epoch.

    Whatever can be registered is, in one transaction. A key that cannot be made affects only its
    own entry.
    """
    names = [
        RegistrationName(entry.sign_domain, entry.selector or f"k{secrets.token_hex(4)}")
        if isinstance(entry, Entry)
        else None
        for entry in entries
    ]
    wanted = {name for name in names if name}
    known = find_all(store, wanted)
    new: dict[RegistrationName, Entry] = {}  # of those with the same name the first
    for name, entry in zip(names, entries, strict=True):
        if name and isinstance(entry, Entry) and name not in known:
            new.setdefault(name, entry)
    made = make_keys(client_id, [entry.key_len for entry in new.values()])
    failures = [key for key in made if isinstance(key, Exception)]
    added: set[RegistrationName] = set()
    try:
        now = datetime.fromtimestamp(clock(), UTC)
        waiting = {
            StoredRegistration(
                client_id=client_id,
                sign_domain=name.sign_domain,
                selector=name.selector,
                key_len=entry.key_len,
                start_date=entry.start_date or now.isoformat(timespec="minutes"),
                default=entry.default,
                enable=entry.enable,
                value=key.value,
                regist_date=now.isoformat(timespec="seconds"),
            ): key.private_key
            for (name, entry), key in zip(new.items(), made, strict=True)
            if isinstance(key, KeyPair)
        }
        added = add_all(store, waiting)
        known |= {stored.name: stored for stored in waiting if stored.name in added}
        known |= find_all(store, wanted - known.keys())
    except Exception as failure:  # noqa: BLE001 - logged, and no reason to lose the rest
        failures.append(failure)
    if failures:
        _logger.error("registering failed: %s", describe_failure(failures[0]))
    items = []
    for name, entry in zip(names, entries, strict=True):
        # A selector that we have chosen, and somebody else as well, is not what was asked for.
        is_answer = name in added or entry.selector is not None
        stored = known.get(name) if name and is_answer else None
        items.append(_item(entry, stored, client_id, is_new=name in added))
        added -= {name}  # what has the same name in this request is a repetition
    return items


def _item(
    entry: Entry | Rejection, stored: StoredRegistration | None, client_id: str, *, is_new: bool
) -> Item:
    """The item of an entry; `stored` is the registration of its name, if any."""
    if stored is None:
        result = {"code": "500", "message": "unexpected error while registering; retry later"}
        if isinstance(entry, Rejection):
            result = {"code": "400", "message": entry.message}
        names = {"sign_domain": entry.sign_domain, "selector": entry.selector}
        given = {field: name for field, name in names.items() if name is not None}
        return {"result": result, **given}
    code, message = ("201", "created") if is_new else ("409", "already registered")
    item: Item = {
        "result": {"code": code, "message": message},
        "sign_domain": stored.sign_domain,
        "selector": stored.selector,
    }
    if stored.client_id != client_id:
        return item  # the data is only for the client that registered it (interface 7.3)
    return item | {
        "key_len": stored.key_len,
        "start_date": stored.start_date,
        "default": stored.default,
        "enable": stored.enable,
        "setting_values": {
            "fqdn": f"{stored.selector}._domainkey.{stored.sign_domain}",
            "type": "TXT",
            "value": stored.value,
        },
        "regist_date": stored.regist_date,
    }


# What is stored.

_COLUMNS = [registrations.c[name] for name in StoredRegistration._fields]
_AT_ONCE = 50  # names in a query
# SQLite reads the whole table for pairs of names, but not for this, which may find a few more.
_NAMED = sa.select(*_COLUMNS).where(
    registrations.c.sign_domain.in_(sa.bindparam("domains", expanding=True)),
    registrations.c.selector.in_(sa.bindparam("selectors", expanding=True)),
)


def add_all(store: Store, new: Mapping[StoredRegistration, bytes]) -> set[RegistrationName]:
    """Store registrations, each with its private key (PKCS #8 in PEM), all in one transaction.

    Returns the names of those that are stored now. The others are taken: the table's primary key
    decides which of several was first. Raises UsageError if the passphrase has changed.
    """
    if not new:
        return set()
    # In one order everywhere, or two transactions could wait for each other.
    rows = [
        registration._asdict() | {"private_key": store.seal(new[registration])}
        for registration in sorted(new, key=lambda registration: registration.name)
    ]
    name = (registrations.c.sign_domain, registrations.c.selector)
    statement = store.insert_new(registrations).returning(*name)
    with store.writing() as connection:
        store.require_same_passphrase(connection)
        return {RegistrationName(*row) for row in connection.execute(statement, rows)}


def find_all(
    store: Store, names: Iterable[RegistrationName]
) -> dict[RegistrationName, StoredRegistration]:
    """Those of `names`, in lower case, that are registered, by any client."""
    wanted = sorted(names)
    stored = []
    for start in range(0, len(wanted), _AT_ONCE):
        domains, selectors = zip(*wanted[start : start + _AT_ONCE], strict=True)
        parameters = {"domains": [*{*domains}], "selectors": [*{*selectors}]}
        with store.reading() as connection:
            stored += [StoredRegistration(*row) for row in connection.execute(_NAMED, parameters)]
    by_name = {registration.name: registration for registration in stored}
    return {name: by_name[name] for name in wanted if name in by_name}


# What an operator does.


def read_name(sign_domain: str, selector: str) -> RegistrationName:
    """The name, in lower case. Raises UsageError for what cannot be registered."""
    if name := validate_entry({"sign_domain": sign_domain, "selector": selector}).name:
        return name
    raise UsageError(
        "invalid domain or selector",
        hint="write a domain such as example.com, with xn-- for other letters than those of ASCII, "
        "and a selector such as s1",
    )


def list_registrations(
    store: Store, client_id: str | None = None, sign_domain: str | None = None
) -> Iterator[StoredRegistration]:
    """All registrations, or those of a client or domain, sorted by name."""
    table = registrations.c
    query = sa.select(*_COLUMNS).order_by(table.sign_domain, table.selector)
    if client_id is not None:
        query = query.where(table.client_id == client_id)
    if sign_domain is not None:
        query = query.where(table.sign_domain == sign_domain.lower().removesuffix("."))
    query = query.execution_options(yield_per=1000)
    with store.reading(snapshot=True) as connection, connection.execute(query) as rows:
        for row in rows:
            yield StoredRegistration(*row)


def require_registration(store: Store, name: RegistrationName) -> None:
    """Raise NegativeAnswer unless the combination is registered."""
    if not find_all(store, [name]):
        raise _unknown(name)


def set_enabled(store: Store, name: RegistrationName, is_enabled: bool) -> None:
    """Enable or disable the registration (interface 3.3). Raises NegativeAnswer if unknown."""
    _change(store, name, sa.update(registrations).values(enable=is_enabled))


def delete_registration(store: Store, name: RegistrationName) -> None:
    """Delete it with its key: the name can be registered again. Raises NegativeAnswer."""
    _change(store, name, sa.delete(registrations))


def _change(store: Store, name: RegistrationName, change: sa.Update | sa.Delete) -> None:
    table = registrations.c
    is_named = (table.sign_domain == name.sign_domain) & (table.selector == name.selector)
    with store.writing() as connection:
        if not connection.execute(change.where(is_named)).rowcount:
            raise _unknown(name)


def _unknown(name: RegistrationName) -> NegativeAnswer:
    return NegativeAnswer(
        f"the selector {name.selector} of {name.sign_domain} is not registered",
        hint="list what is with `dkimctl service registration list`",
    )


def validate_entry(entry: Mapping[str, Any]) -> Entry | Rejection:
    """What a decoded JSON object of `domains` asks for, or everything that is wrong with it."""
    message = "; ".join(
        text
        for name, (is_valid, text) in _RULES.items()
        if (not is_valid(entry[name]) if name in entry else name == "sign_domain")
    )
    selector = entry.get("selector")
    if not message:
        label = _GENERATED_SELECTOR_OCTETS if selector is None else len(selector)
        if label + len("._domainkey.") + len(entry["sign_domain"]) > _FQDN_OCTETS:
            message = f"selector and sign_domain make a name of more than {_FQDN_OCTETS} octets"
    if message:
        domain = entry.get("sign_domain")
        return Rejection(
            domain if isinstance(domain, str) else None,
            selector if isinstance(selector, str) else None,
            message,
        )
    return Entry(
        sign_domain=entry["sign_domain"].lower(),
        selector=None if selector is None else selector.lower(),
        key_len=int(entry.get("key_len", 1024)),
        start_date=entry.get("start_date"),
        default=int(entry.get("default", 0)),
        enable=entry.get("enable", True),
    )


def _is_whole_number(value: object) -> bool:
    """Whether this is an integral JSON number (1.0 is 1) that the database can store."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < _INTEGER_LIMIT and value == int(value)


def _is_date_time(value: object) -> bool:
    if not isinstance(value, str) or not _DATE_TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_like(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


# What each field must be, and the message if it is not.
_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "sign_domain": (_is_like(_DOMAIN), "sign_domain must be a domain name such as example.com"),
    "selector": (_is_like(_SELECTOR), "selector must be one or more DNS labels joined by dots"),
    # As a number, whole or not: 1024.0 is 1024.
    "key_len": (lambda value: value in KEY_LENGTHS, "key_len must be the number 1024 or 2048"),
    "start_date": (
        _is_date_time,
        "start_date must be an ISO 8601 date-time with offset such as 2021-07-01T00:00+09:00",
    ),
    "default": (_is_whole_number, "default must be a whole number"),
    "enable": (lambda value: isinstance(value, bool), "enable must be true or false"),
}
