"""Saved results: read back, and imported into a ledger."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from dkimctl.formats.renderer import Format
from dkimctl.models import DnsRecord, Outcome, Registration, Result
from dkimctl.registration.saved_results import (
    ImportPlan,
    import_results,
    read_saved_results,
    results_of,
)
from rendering import render_text


@pytest.fixture
def read(tmp_path):
    """The results of a file with this text."""

    def read(text):
        path = tmp_path / "saved.json"
        path.write_text(text)
        saved = read_saved_results(str(path))
        assert saved.faults == ()
        return list(results_of(saved.items, saved.retired))

    return read


def save(*results) -> str:
    return render_text(Format.JSON, results)


def test_a_retired_registration_stays_retired(read, make_registration):
    old, new = make_registration(selector="s1"), make_registration(selector="s2")
    [first, second] = read(save(Result(old, Outcome.RETIRED), Result(new, Outcome.EXISTS)))
    assert first == Result(old, Outcome.RETIRED, "it was retired when saved")
    assert second == Result(new, Outcome.CREATED)


@pytest.mark.parametrize(
    "outcome", ["created", "taken", "unknown", "Retired", "", None, 17, ["retired"], True]
)
def test_no_other_saved_outcome_is_trusted(read, make_registration, outcome):
    document = json.loads(save(Result(make_registration(), Outcome.RETIRED)))
    document["items"][0]["outcome"] = outcome
    [result] = read(json.dumps(document))
    assert result.outcome is Outcome.CREATED


def import_(results, known=()):
    ledger = SimpleNamespace(all=lambda: known, record=lambda registrations: None)
    return import_results(ledger, results)


def plan(items, known=()):
    return import_(results_of(items), known)


def test_our_registrations_are_new_or_known_and_others_are_skipped(make_registration):
    unusable = make_registration(selector="s3", key_len=1024)._replace(key_len=2048)
    ours = [make_registration(), make_registration(selector="s2", code="409"), unusable]
    others = [
        Registration("a.example", "s1"),
        Registration("b.example", "s1", code="500", message="later"),
        Registration("c.example", "s1", code="400", message="no"),
        Registration("d.example", "s1", code="409"),
        Registration("e.example", "s1", code="201"),
        *map(make_registration, ("f..example", "b\u00fccher.example", "../etc/passwd",
             "x.example\n- y.example", "127.0.0.1", "")),
    ]  # fmt: skip
    imported = plan([*ours, *others])
    skipped = imported.skipped
    assert imported == ImportPlan(ours, [], [], skipped)
    assert plan(ours, known=ours) == ImportPlan([], ours, [], [])
    assert [result.outcome for result in skipped] == [
        Outcome.UNKNOWN, Outcome.FAILED, Outcome.INVALID, Outcome.TAKEN, Outcome.UNUSABLE,
        *[Outcome.INVALID] * 6,
    ]  # fmt: skip
    assert all(result.reason for result in skipped)


@pytest.mark.parametrize(
    ("change", "is_same"),
    [({"selector": "S1", "enable": False, "start_date": "2027-01-01T00:00+00:00"}, True),
     ({"key_len": 1024, "record": DnsRecord("s1._domainkey.example.com", "TXT", "v=x")}, False)],
)  # fmt: skip
def test_another_record_is_a_conflict_but_other_attributes_are_not(
    make_registration, change, is_same
):
    known = make_registration()
    imported = import_([Result(known._replace(**change), Outcome.EXISTS)], [known])
    assert imported.new == imported.skipped == []
    assert (len(imported.known), len(imported.conflicts)) == ((1, 0) if is_same else (0, 1))


def test_the_first_of_two_items_counts_and_the_ledger_before_both(make_registration, key_records):
    first = make_registration()
    other = first._replace(record=first.record._replace(value=key_records[2048] + ";"))
    imported = plan([first, other, first])
    assert (imported.new, imported.known) == ([first], [first])
    assert [result.registration for result in imported.conflicts] == [other]
    theirs = make_registration(code="409", record=None)
    assert "another account" in plan([first], [theirs]).conflicts[0].reason
    assert plan([first], [make_registration(record=None)]).new == [first]
