"""A failure is logged in one line, without secrets."""

from __future__ import annotations

import pytest

from dkimctl.errors import UsageError
from dkimctl.service.access_log import describe_failure
from dkimctl.service.key_pairs import KeyQueue
from dkimctl.service.registrations import Entry, Registrar


def test_our_own_errors_are_logged_with_their_message_in_one_line():
    assert describe_failure(UsageError("a\nb", hint="c")) == "a\\x0ab"


def test_other_errors_are_logged_with_type_and_place_only():
    with pytest.raises(ValueError, match="hush") as caught:
        int("hush")
    assert describe_failure(caught.value).startswith("ValueError at test_errors.py:")
    assert describe_failure(ValueError("hush")) == "ValueError"


def test_the_failures_of_one_request_are_logged_in_one_line(store, credentials, caplog):
    def fail(_key_len):
        raise ValueError("-----BEGIN PRIVATE KEY-----")

    entries = [Entry(f"d{number}.example", "s1", 1024, None, 0, True) for number in range(3)]
    queue = KeyQueue(fail, max_waiting=6, limit=5.0)
    registrar = Registrar(store, queue.make_all, lambda: 0.0)
    items = registrar.register(credentials.client_id, entries)
    assert [item["result"]["code"] for item in items] == ["500"] * 3
    (record,) = caplog.records
    assert record.exc_info is None
    assert record.getMessage().startswith("registering failed: ValueError at test_errors.py:")
