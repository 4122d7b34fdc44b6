"""The fields of an entry (interface 2.3, and `replaces`), and what entries may not repeat."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any

from dkimctl.dkim import record_name
from dkimctl.errors import UsageError
from dkimctl.models import DomainSpec, RegistrationKey, key_of
from dkimctl.names import MAX_NAME, is_name, parse_domain, parse_selector
from dkimctl.strict_yaml import Converter, Document, Node, Problems
from dkimctl.text import printable, quoted

_MAX_ENTRIES = 250_000  # to check and plan them takes up to 8 s and 350 MB
_MAX_A_LABELS = 3_000_000  # characters; to check them takes 5 s
_SPLIT = "split the file into several, and register one after the other"
_START_DATE = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}"
    r"(?::00)?(?:Z|[+-][0-9]{2}:[0-5][0-9])"
)
_DATE_AND_PERHAPS_TIME = r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[Tt ]([0-9]{2}:[0-9]{2}))?"

# The entries of a file have few different values, except for their domains.
_cached = lru_cache(maxsize=64)


def _sign_domain(text: str, _is_plain: bool) -> str:
    return parse_domain(text)


def _plain(
    pattern: str, expected: str, hint: str, convert: Callable[[str], object]
) -> Converter[object]:
    """A converter of values that are neither text nor in quotes."""

    @_cached
    def read(text: str, is_plain: bool) -> object:
        if not is_plain:
            message = f"{quoted(text)} in quotes is not {expected}"
            raise UsageError(message, hint="remove the quotes")
        if not re.fullmatch(pattern, text):
            raise UsageError(f"{quoted(text)} is not {expected}", hint=hint)
        return convert(text)

    return read


@_cached
def _replaces(text: str, _is_plain: bool) -> str:
    # A selector that the service chose may contain underscores, which `is_name` allows.
    is_selector = is_name(text) and "_domainkey" not in text.lower()
    return text if is_selector else parse_selector(text)


# In the order of interface 2.3; `replaces` is ours.
ENTRY_FIELDS: Mapping[str, Converter[object]] = {
    "sign_domain": _sign_domain,
    "selector": _cached(lambda text, _is_plain: parse_selector(text)),
    "key_len": _plain("1024|2048", "1024 or 2048", "write 2048 or 1024", int),
    "start_date": _cached(lambda text, _is_plain: parse_start_date(text)),
    "default": _plain("0|[1-9][0-9]{0,8}", "a decimal number", "write digits, such as 0", int),
    "enable": _plain("true|false", "true or false", "write it in lower case", "true".__eq__),
    "replaces": _replaces,
}
_DEFAULTS: Mapping[str, Converter[object]] = {
    key: ENTRY_FIELDS[key] for key in ("key_len", "start_date", "default", "enable")
}


def read_entry(document: Document, node: Node, entries: Entries) -> dict[str, Any]:
    """The fields of a mapping, or only a signing domain. What is wrong is None, and reported."""
    if document.is_mapping(node):
        return _read_mapping(document, node, "an entry", ENTRY_FIELDS, entries)
    return {"sign_domain": document.value(node, "an entry", _sign_domain)}


def read_defaults(document: Document, node: Node, entries: Entries | None = None) -> dict[str, Any]:
    """A `defaults:` mapping: any field except `sign_domain`, `selector` and `replaces`."""
    return _read_mapping(document, node, "defaults", _DEFAULTS, entries)


def parse_start_date(text: str) -> str:
    """An ISO 8601 date-time as `YYYY-MM-DDThh:mm±hh:mm` (interface 2.3). Raises UsageError."""
    is_complete = re.fullmatch(_START_DATE, text[:64])  # characters, more than any date has
    written = re.match(_DATE_AND_PERHAPS_TIME, text)
    day, hour = (written[1], written[2] or "00:00") if written else ("2027-07-01", "00:00")
    try:
        start = datetime.fromisoformat(text if is_complete else f"{day}T{hour}+09:00")
        start.astimezone(UTC)
    except (ValueError, OverflowError):
        message = f"{quoted(text)} is not a date and time that exists"
        raise UsageError(message, hint="correct the date, time or offset") from None
    if not is_complete:
        message = f"{quoted(text)} is not a date and time to the minute, with an offset"
        hint = f"write {day}T{hour}+09:00, with the offset of your time zone"
        raise UsageError(message, hint=hint)
    return start.isoformat(timespec="minutes")


def _read_mapping(
    document: Document, node: Node, what: str, fields: Mapping[str, Converter[object]],
    entries: Entries | None,
) -> dict[str, Any]:  # fmt: skip
    values: dict[str, Any] = {}
    for key, value in document.pairs(node, what):
        if convert := fields.get(key.value):
            values[key.value] = document.value(value, key.value, convert)
            if key.value == "start_date" and entries is not None:
                entries.note_date(values[key.value], value)
        else:
            document.unknown_key(key, what, fields)
    return values


def first_defaults() -> dict[str, Any]:
    """What `init` writes, and a domain without a spec file gets.

    2048 bits (RFC 8301 3.2), and a start at midnight in a week, longer than the time in which a key
    without a record counts as urgent. With the offset that the local zone has then.
    """
    start = datetime.combine(date.today() + timedelta(days=7), time()).astimezone()
    return {"key_len": 2048, "start_date": start.isoformat(timespec="minutes")}


class Entries:
    """Collects entries in `specs`. Call `begin` before those of each file, and `end` after them."""

    def __init__(self) -> None:
        self.specs: list[DomainSpec] = []
        self.dates: dict[str, str] = {}  # where each start date is written first: its file and line
        self.count = 0  # also of those that are wrong
        self._a_labels = 0  # characters
        self._starts: list[int] = []  # the position in `specs` of each file's first entry
        self._files: list[str] = []
        self._lines: list[int] = []  # of `specs`
        # Positions in `specs`: of each domain's first entry, and of all where there are several.
        self._first: dict[str, int] = {}
        self._repeated: dict[str, dict[RegistrationKey, int]] = {}

    def begin(self, file: str) -> None:
        self._starts.append(len(self.specs))
        self._files.append(file)

    def note_date(self, start_date: object, node: Node) -> None:
        if isinstance(start_date, str) and start_date not in self.dates:
            self.dates[start_date] = f"{self._files[-1]}:{node.start_mark.line + 1}"

    def end(self, defaults: Mapping[str, Any]) -> None:
        """Apply `defaults` to the entries of the file."""
        if not defaults:
            return
        template = DomainSpec("", **defaults)
        for position in range(self._starts[-1], len(self.specs)):
            # In place: a second list takes as much memory.
            pairs = zip(self.specs[position], template, strict=True)
            self.specs[position] = DomainSpec._make([b if a is None else a for a, b in pairs])

    def add(self, problems: Problems, node: Node, fields: Mapping[str, Any]) -> None:
        """Add the entry at `node`. A field is None if its problem has been reported."""
        self.count += 1
        if self.count > _MAX_ENTRIES:
            problems.stop(node, f"more than {_MAX_ENTRIES:,} entries", _SPLIT)
        if "sign_domain" not in fields:
            problems.problem(node, "an entry needs a sign_domain", "add the signing domain")
            return
        if None in (fields["sign_domain"], fields.get("selector", "")):
            return
        spec = DomainSpec(**fields)
        if spec.replaces is not None and spec.selector is None:
            message = "an entry with replaces: needs a selector of its own"
            problems.problem(node, message, "add the selector of the new key")
        elif spec.replaces is not None and key_of(spec.sign_domain, spec.replaces) == spec.key:
            message = f"the selector {quoted(spec.selector or '')} cannot replace itself"
            problems.problem(node, message, "write the selector of the old key at replaces:")
        octets = len(record_name(spec.selector or "s", spec.sign_domain))
        if octets > MAX_NAME:
            message = f"SELECTOR._domainkey.DOMAIN has {octets} octets, more than {MAX_NAME}"
            hint = f"a DNS name has at most {MAX_NAME} octets: use a shorter selector or domain"
            problems.problem(node, message, hint)
        if "xn--" in spec.sign_domain:
            labels = spec.sign_domain.split(".")
            self._a_labels += sum(len(label) for label in labels if label.startswith("xn--"))
        if self._a_labels > _MAX_A_LABELS:
            message = f"more than {_MAX_A_LABELS:,} characters of internationalized labels (xn--)"
            problems.stop(node, message, _SPLIT)
        position = len(self.specs)
        self.specs.append(spec)
        self._lines.append(node.start_mark.line + 1)
        if self._first.setdefault(spec.sign_domain, position) != position:
            self._check_repeated(problems, node, position)

    def _check_repeated(self, problems: Problems, node: Node, position: int) -> None:
        """Report an entry that repeats an earlier one, or makes it ambiguous."""
        spec = self.specs[position]
        first = self._first[spec.sign_domain]
        positions = self._repeated.setdefault(spec.sign_domain, {self.specs[first].key: first})
        if spec.key in positions:
            name, hint = quoted(spec.sign_domain), "remove one of the two"
            if spec.selector:
                name += f" with selector {quoted(spec.selector)}"
            else:
                hint += ", or give each its own selector"
            message = f"{name} is already on {self._place(positions[spec.key])}"
            problems.problem(node, message, hint)
            return
        other = first if spec.selector is None else positions.get(key_of(spec.sign_domain, None))
        if other is not None:
            what = f"{quoted(spec.sign_domain)} has entries with and without a selector"
            hint = "give every entry of the domain a selector"
            problems.problem(node, f"{what} ({self._place(other)})", hint)
        positions[spec.key] = position

    def _place(self, position: int) -> str:
        """The line of an entry, and its file if that is another one."""
        file, line = self._files[bisect(self._starts, position) - 1], self._lines[position]
        return f"line {line}" + ("" if file == self._files[-1] else f" of {printable(file)}")
