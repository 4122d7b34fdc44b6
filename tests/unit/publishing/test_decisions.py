from __future__ import annotations

import pytest

from dkimctl.publishing.plan import Action, NameState, decide, is_key_record

SPF = "v=spf1 -all"


@pytest.fixture
def value(key_records):
    return key_records[2048]


def _publish(value, *values, replace_foreign=False, **state):
    state = NameState(values, 60 if values else None, **state)
    return decide(value, state, remove=False, replace_foreign=replace_foreign)


def _remove(value, *values, replace_foreign=False, **state):
    state = NameState(values, 60 if values else None, **state)
    return decide(value, state, remove=True, replace_foreign=replace_foreign)


def test_what_is_missing_is_created(value):
    assert _publish(value) == (Action.CREATE, "")


@pytest.mark.parametrize("other", ["another key", "truncated", "revoked", "testing", "in quotes"])
def test_another_key_record_is_replaced(value, key_records, other):
    values = {
        "another key": key_records[1024],
        "truncated": value[:250],
        "revoked": "v=DKIM1; p=",
        "testing": f"{value}; t=y",
        "in quotes": f'"{value}"',
    }
    assert _publish(value, values[other]) == (Action.REPLACE, "")


@pytest.mark.parametrize("foreign", [SPF, "", "hello", "verification=1; p=x; v=other"])
def test_other_text_is_replaced_only_if_asked_for(value, foreign):
    action, reason = _publish(value, foreign)
    assert action is Action.BLOCKED
    assert "--replace" in reason
    assert _publish(value, foreign, value)[0] is Action.BLOCKED
    assert _publish(value, foreign, replace_foreign=True) == (Action.REPLACE, "")


@pytest.mark.parametrize("decide_it", [_publish, _remove])
def test_an_alias_and_a_delegation_stand_in_the_way_always(value, decide_it):
    action, reason = decide_it(value, alias="x\x1b[2J.example.net", replace_foreign=True)
    assert (action, reason) == (Action.BLOCKED, r"there is a CNAME, to x\x1b[2J.example.net")
    action, reason = decide_it(value, delegated="mail.example.com", replace_foreign=True)
    assert action is Action.BLOCKED
    assert "delegates mail.example.com" in reason


def test_the_record_of_a_retired_key_is_removed(value):
    assert _remove(value, value) == (Action.REMOVE, "")
    assert _remove(value, "v=DKIM1; p=") == (Action.REMOVE, "")
    assert _remove(value, value[:250]) == (Action.REMOVE, "")


def test_what_is_not_of_the_retired_key_is_not_removed(value, key_records):
    for other in (SPF, key_records[1024], "", "hello"):
        action, reason = _remove(value, other)
        assert action is Action.BLOCKED
        assert "retired key" in reason
    assert _remove(value, value, SPF)[0] is Action.BLOCKED


def test_key_records(value):
    assert is_key_record(value)
    assert is_key_record("p=MIIB")  # v= is optional (RFC 6376 section 3.6.1)
    assert is_key_record(r"\"v=DKIM1\; k=rsa\; p=MIIB")
    assert not is_key_record(SPF)
    assert not is_key_record("p")
    assert not is_key_record("v=DKIM10; p=x")
