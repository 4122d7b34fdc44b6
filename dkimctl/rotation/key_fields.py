"""The fields of a key, by which lists of keys are filtered and sorted."""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, NoReturn

from dkimctl.dns.verdicts import Verdict
from dkimctl.errors import UsageError
from dkimctl.models.key_status import KeyStage, NextAction
from dkimctl.models.listed_key import NOT_CHECKED, ListedKey
from dkimctl.text.durations import parse_duration
from dkimctl.text.escaping import quoted
from dkimctl.text.idn import readable

_FILTER = r"([a-z]+)\s*(<=|>=|!=|<|>|=)\s*(.*)"
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_DATE = r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?"
_NEVER_SEEN = datetime.min.replace(tzinfo=UTC)
_YES, _NO = ("yes", "true"), ("no", "false")

KeyFilter = Callable[[ListedKey], bool]
_Test = Callable[[Any], bool]  # of the value of a field, which is not None


class _Field(NamedTuple):
    """A field; `read_test` makes a test of an operator, a value and the time now."""

    value_of: Callable[[ListedKey], Any]
    read_test: Callable[[str, str, datetime], _Test]


def read_filter(text: str, now: datetime) -> KeyFilter:
    """The filter that `text` states, such as `state=missing`, `age>180d` or `due=2027-03`.

    Raises UsageError. A key without a value, such as one that is never due, is only let through
    by `!=`.
    """
    match = re.fullmatch(_FILTER, text.strip(), re.IGNORECASE | re.DOTALL)
    if match is None:
        raise UsageError(
            f"invalid filter {quoted(text)}",
            hint="write FIELD=VALUE, as in state=missing, or 'age>180d' in quotes",
        )
    name, sign, value = match[1].lower(), match[2], match[3].strip()
    field = _field(name)
    if sign == "!=":
        is_equal = field.read_test("=", value, now)
        return lambda key: (found := field.value_of(key)) is None or not is_equal(found)
    test = field.read_test(sign, value, now)
    return lambda key: (found := field.value_of(key)) is not None and test(found)


def names_field(text: str, name: str) -> bool:
    """Whether a filter is about this field."""
    return re.match(rf"\s*{name}\b", text, re.IGNORECASE) is not None


def sorted_by(keys: Iterable[ListedKey], name: str, *, reverse: bool) -> list[ListedKey]:
    """The keys in the order of a field; those without a value come last. Raises UsageError."""
    value_of = _field(name).value_of
    keys = list(keys)
    known = [key for key in keys if value_of(key) is not None]
    unknown = [key for key in keys if value_of(key) is None]
    return [*sorted(known, key=value_of, reverse=reverse), *unknown]


def _field(name: str) -> _Field:
    if name in _FIELDS:
        return _FIELDS[name]
    import difflib

    near = difflib.get_close_matches(name[:60].lower(), _FIELDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"fields: {', '.join(FIELDS)}"
    raise UsageError(f"unknown field {quoted(name)}", hint=hint)


def _name_test(sign: str, value: str, _now: datetime) -> _Test:
    """Names are globs; an IDN may be written either way."""
    _require(sign, "=", "a name")
    patterns = [re.compile(fnmatch.translate(word.lower())) for word in _words(value)]

    def test(name: str) -> bool:
        shown = readable(name)
        return any(one.match(name.lower()) or one.match(shown.lower()) for one in patterns)

    return test


def _word_test(choices: Sequence[str]) -> Callable[[str, str, datetime], _Test]:
    def read(sign: str, value: str, _now: datetime) -> _Test:
        _require(sign, "=", "a word")
        words = {re.sub("[-_]", " ", word.lower()) for word in _words(value)}
        if unknown := sorted(words.difference(choices)):
            hint = f"write one of: {', '.join(choices)}"
            raise UsageError(f"unknown value {quoted(unknown[0])}", hint=hint)
        return words.__contains__

    return read


def _yes_or_no(sign: str, value: str, _now: datetime) -> _Test:
    _require(sign, "=", "yes or no")
    if value.lower() not in _YES + _NO:
        raise UsageError(f"unknown value {quoted(value)}", hint="write yes or no")
    wanted = value.lower() in _YES
    return lambda found: found is wanted


def _number_test(sign: str, value: str, _now: datetime) -> _Test:
    if not re.fullmatch("[0-9]{1,9}(,[0-9]{1,9})*", value) or (sign != "=" and "," in value):
        raise UsageError(f"invalid number {quoted(value)}", hint="write a number, such as 2048")
    numbers = {*map(int, value.split(","))}
    if sign == "=":
        return numbers.__contains__
    return lambda found: _ORDERS[sign](found, min(numbers))


def _duration_test(sign: str, value: str, _now: datetime) -> _Test:
    if sign == "=":
        _refuse_sign(sign, "a duration", "<, <=, > or >=")
    duration = timedelta(seconds=parse_duration(value, may_be_zero=True))
    return lambda found: _ORDERS[sign](found, duration)


def _date_test(sign: str, value: str, now: datetime) -> _Test:
    """A date is a year, a month or a day, as a whole; a duration is the time from now until then.

    So `due<=2027-03` is until the end of March, and `due<30d` in the next 30 days.
    """
    if date := re.fullmatch(_DATE, value):
        begin, end = _period(date)
    else:
        if sign == "=":
            hint = "write a year, a month or a day, such as 2027-03, or use < or >"
            raise UsageError(f"invalid date {quoted(value)}", hint=hint)
        begin = end = now + timedelta(seconds=parse_duration(value, may_be_zero=True))
    tests: Mapping[str, _Test] = {
        "=": lambda found: begin <= found < end,
        "<": lambda found: found < begin,
        "<=": lambda found: found < end,
        ">": lambda found: found >= end,
        ">=": lambda found: found >= begin,
    }
    return tests[sign]


def _past_test(sign: str, value: str, now: datetime) -> _Test:
    """As `_date_test`, but a duration is the time since then: `seen>7d` is over a week ago."""
    if re.fullmatch(_DATE, value):
        return _date_test(sign, value, now)
    test = _duration_test(sign, value, now)
    return lambda found: test(now - found)


def _period(date: re.Match[str]) -> tuple[datetime, datetime]:
    """The begin and the end of a year, a month or a day (UTC)."""
    try:
        year, month, day = (int(text) if text else None for text in date.groups())
        begin = datetime(year or 0, month or 1, day or 1, tzinfo=UTC)
        if day is not None:
            return begin, begin + timedelta(days=1)
        later = begin.year * 12 + begin.month - 1 + (1 if month else 12)
        return begin, datetime(later // 12, later % 12 + 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"invalid date {quoted(date[0])}", hint="write it as 2027-03-31") from None


def _seen(key: ListedKey) -> datetime | None:
    """When a record was last looked at; one that never was counts as very long ago."""
    return key.looked_at if key.state is None else key.looked_at or _NEVER_SEEN


def _words(value: str) -> list[str]:
    """The values of a list with commas."""
    words = [word.strip() for word in value.split(",")]
    if not all(words):
        raise UsageError("a filter has an empty value", hint="write FIELD=VALUE")
    return words


def _require(sign: str, wanted: str, what: str) -> None:
    if sign != wanted:
        _refuse_sign(sign, what, "= or !=")


def _refuse_sign(sign: str, what: str, wanted: str) -> NoReturn:
    raise UsageError(f"{sign} cannot compare {what}", hint=f"use {wanted}")


_STATES = (*(verdict for verdict in Verdict if verdict is not Verdict.RETIRED), NOT_CHECKED)
_FIELDS: Mapping[str, _Field] = {
    "domain": _Field(lambda key: key.sign_domain, _name_test),
    "selector": _Field(lambda key: key.selector, _name_test),
    "bits": _Field(lambda key: key.key_len, _number_test),
    "age": _Field(lambda key: key.age, _duration_test),
    "start": _Field(lambda key: key.starts_at, _date_test),
    "enabled": _Field(lambda key: key.enable, _yes_or_no),
    "state": _Field(lambda key: key.state, _word_test(_STATES)),
    "seen": _Field(_seen, _past_test),
    "stage": _Field(lambda key: key.status.stage, _word_test([*KeyStage])),
    "next": _Field(lambda key: key.status.action, _word_test([*NextAction])),
    "due": _Field(lambda key: key.status.due, _date_test),
}
FIELDS = (*_FIELDS,)
