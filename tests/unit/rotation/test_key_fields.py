"""Filters and orders of lists of keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.dns.verdicts import Verdict
from dkimctl.errors import UsageError
from dkimctl.models.key_status import KeyDates, KeyStage, KeyStatus, NextAction
from dkimctl.models.listed_key import NOT_CHECKED, ListedKey
from dkimctl.rotation.key_fields import FIELDS, names_field, read_filter, sorted_by

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def key(name="example.com", selector="s1", *, stage=KeyStage.SIGNING, action=NextAction.REGISTER,
        due=NOW + 80 * DAY, **fields) -> ListedKey:  # fmt: skip
    status = KeyStatus(name, selector, stage, None, action, due, KeyDates())
    usual = {"fqdn": None, "key_len": 2048, "age": 100 * DAY, "starts_at": NOW - 100 * DAY,
             "enable": True, "state": Verdict.PUBLISHED, "looked_at": NOW - 2 * DAY}  # fmt: skip
    return ListedKey(status, **(usual | fields))


USUAL = key()
IDN = key("mail.xn--r8jz45g.jp")
NOTHING = key(due=None, key_len=None, age=None, starts_at=None, enable=None, state=None,
              looked_at=None, selector=None)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        ("domain=*.jp", IDN, USUAL),
        ("domain=mail.例え.jp,other.com", IDN, USUAL),
        ("domain=mail.XN--R8JZ45G.jp", IDN, USUAL),
        ("selector!=s1", key(selector="s2"), USUAL),
        ("bits=1024", key(key_len=1024), USUAL),
        ("bits<2048", key(key_len=1024), USUAL),
        ("bits=1024,4096", key(key_len=4096), USUAL),
        ("age>180d", key(age=181 * DAY), key(age=180 * DAY)),
        ("age >= 26w", key(age=182 * DAY), USUAL),
        ("start=2027", key(starts_at=datetime(2027, 12, 31, 23, 59, tzinfo=UTC)), USUAL),
        ("start>=2027-02", key(starts_at=datetime(2027, 2, 1, tzinfo=UTC)),
         key(starts_at=datetime(2027, 1, 31, 23, 59, 59, tzinfo=UTC))),
        ("start<=2027-02-03", key(starts_at=datetime(2027, 2, 3, 23, 59, tzinfo=UTC)),
         key(starts_at=datetime(2027, 2, 4, tzinfo=UTC))),
        ("start>2026-12", key(starts_at=datetime(2027, 1, 1, tzinfo=UTC)), USUAL),
        ("due=2026-12", key(due=datetime(2026, 12, 31, tzinfo=UTC)),
         key(due=datetime(2027, 1, 1, tzinfo=UTC))),
        ("due<30d", key(due=NOW + 29 * DAY), key(due=NOW + 31 * DAY)),
        ("seen>7d", key(looked_at=NOW - 8 * DAY), USUAL),
        ("seen>7d", key(looked_at=None, state=NOT_CHECKED), NOTHING),
        ("seen=2026-11", USUAL, key(looked_at=NOW - 30 * DAY)),
        ("enabled=no", key(enable=False), USUAL),
        ("ENABLED = TRUE", USUAL, key(enable=False)),
        ("state=missing", key(state=Verdict.MISSING), USUAL),
        ("state!=published", key(state=NOT_CHECKED), USUAL),
        ("state=no-answer,unchecked", key(state=Verdict.NO_ANSWER), USUAL),
        ("stage=grace-period", key(stage=KeyStage.GRACE), USUAL),
        ("next=register successor", USUAL, key(action=NextAction.PUBLISH)),
    ],
)  # fmt: skip
def test_a_filter_tells_keys_apart(text, one, other):
    test = read_filter(text, NOW)
    assert (test(one), test(other)) == (True, False)


@pytest.mark.parametrize("name", FIELDS)
def test_a_key_without_a_value_is_let_through_by_no_filter_but_not_equal(name):
    value = {"domain": "*", "selector": "*", "bits": "1", "enabled": "yes", "state": "missing",
             "stage": "signing", "next": "wait"}.get(name, "2027")  # fmt: skip
    if name in ("domain", "stage", "next", "age"):
        return  # each key has these; an age cannot be compared with =
    assert not read_filter(f"{name}={value}", NOW)(NOTHING)
    assert read_filter(f"{name}!={value}", NOW)(NOTHING)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("missing", 'invalid filter "missing"', "write FIELD=VALUE"),
        ("", 'invalid filter ""', "write FIELD=VALUE"),
        ("stat=x", 'unknown field "stat"', "did you mean state?"),
        ("zzz=x", 'unknown field "zzz"', "fields: domain, selector"),
        ("state=mising", 'unknown value "mising"', "write one of: published"),
        ("state=", "a filter has an empty value", "write FIELD=VALUE"),
        ("state<published", "< cannot compare a word", "use = or !="),
        ("domain>a", "> cannot compare a name", "use = or !="),
        ("bits=many", 'invalid number "many"', "such as 2048"),
        ("bits<1,2", 'invalid number "1,2"', "such as 2048"),
        ("age=180d", "= cannot compare a duration", "use <, <=, > or >="),
        ("age>long", "invalid duration", "write 30s"),
        ("due=soon", 'invalid date "soon"', "such as 2027-03"),
        ("due=2027-13", 'invalid date "2027-13"', "write it as"),
        ("due=9999-12", 'invalid date "9999-12"', "write it as"),
        ("enabled=perhaps", 'unknown value "perhaps"', "write yes or no"),
    ],
)
def test_a_filter_that_cannot_be_read_is_explained(text, message, hint):
    with pytest.raises(UsageError) as caught:
        read_filter(text, NOW)
    assert caught.value.message == message
    assert hint in caught.value.hint


@given(st.text(max_size=40))
def test_any_text_is_a_filter_or_a_usage_error(text):
    try:
        test = read_filter(text, NOW)
    except UsageError:
        return
    assert test(USUAL) in (True, False)


@given(st.sampled_from(FIELDS), st.text(max_size=10), st.sampled_from(["=", "!=", "<", ">="]))
def test_any_value_of_a_field_is_read_or_a_usage_error(field, value, sign):
    try:
        test = read_filter(f"{field}{sign}{value}", NOW)
    except UsageError:
        return
    assert test(USUAL) in (True, False)


def test_keys_are_sorted_and_those_without_a_value_come_last():
    keys = [key(key_len=2048), key(key_len=None), key(key_len=1024)]
    assert [one.key_len for one in sorted_by(keys, "bits", reverse=False)] == [1024, 2048, None]
    assert [one.key_len for one in sorted_by(keys, "bits", reverse=True)] == [2048, 1024, None]


@pytest.mark.parametrize("name", FIELDS)
def test_keys_can_be_sorted_by_each_field(name):
    assert sorted_by([NOTHING, USUAL], name, reverse=False)[0] in (USUAL, NOTHING)


def test_which_field_a_filter_is_about():
    assert names_field("Stage=signing", "stage")
    assert not names_field("stages=signing", "stage")
