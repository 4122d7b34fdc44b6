"""Saved results, read back."""

from __future__ import annotations

import json

import pytest

from dkimctl.formats.renderer import Format
from dkimctl.models import Outcome, Result
from dkimctl.registration.saved_results import read_saved_results, results_of
from rendering import render_text


@pytest.fixture
def read(tmp_path):
    """The results of a file with this text."""

    def read(text):
        path = tmp_path / "saved.json"
        path.write_text(text)
        saved = read_saved_results(str(path))
        assert saved.faults == ()
        return list(results_of(saved.registrations, saved.retired))

    return read


def save(*results) -> str:
    return render_text(Format.JSON, results)


def test_a_retired_registration_stays_retired(read, make_registration):
    old, new = make_registration(selector="s1"), make_registration(selector="s2")
    [first, second] = read(save(Result(old, Outcome.RETIRED), Result(new, Outcome.EXISTS)))
    assert first == Result(old, Outcome.RETIRED, "it was retired when saved")
    assert second == Result(new, Outcome.CREATED)


@pytest.mark.parametrize("outcome", [one for one in Outcome if one is not Outcome.RETIRED])
def test_no_other_saved_outcome_is_trusted(read, make_registration, outcome):
    [result] = read(save(Result(make_registration(), outcome)))
    assert result.outcome is Outcome.CREATED


@pytest.mark.parametrize("outcome", ["Retired", "", None, 17, ["retired"], {"retired": 1}, True])
def test_an_outcome_of_any_shape_is_ignored(read, make_registration, outcome):
    document = json.loads(save(Result(make_registration(), Outcome.RETIRED)))
    document["items"][0]["outcome"] = outcome
    [result] = read(json.dumps(document))
    assert result.outcome is Outcome.CREATED


def test_an_unusable_record_does_not_become_retired(read, make_registration):
    broken = make_registration(key_len=1024)._replace(key_len=2048)
    [result] = read(save(Result(broken, Outcome.RETIRED)))
    assert result.outcome is Outcome.UNUSABLE


def test_two_records_for_a_name_conflict_in_any_case(make_registration, key_records):
    first = make_registration()
    fqdn = "S1._DomainKey.Example.COM"
    second = first._replace(
        key_len=1024, record=first.record._replace(fqdn=fqdn, value=key_records[1024])
    )
    results = list(results_of([first, second]))
    assert [result.outcome for result in results] == [Outcome.CREATED, Outcome.UNUSABLE]
    assert results[1].reason == f"another item has another record for {fqdn}"
