"""What looks at DNS tell the ledger."""

from __future__ import annotations

import pytest

from dkimctl.dns.verdicts import (
    Check,
    Finding,
    Looks,
    ServerFinding,
    Verdict,
    recording_looks,
    same_records,
)
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import key_of
from ledgers import histories_of

KEY = key_of("example.com", "s1")
ANSWERS = [one for one in Verdict if one is not Verdict.NO_ANSWER]
PUBLISHED, MISSING, NO_ANSWER = Verdict.PUBLISHED, Verdict.MISSING, Verdict.NO_ANSWER
ACCOUNT = {"base_url": "https://api.example", "client_id": "me"}


def make_check(verdict: Verdict, *servers: Verdict) -> Check:
    fqdn = "S1._domainkey.Example.COM"
    findings = tuple(ServerFinding("192.0.2.1", Finding(one)) for one in servers)
    return Check("Example.COM", "S1", fqdn, None, None, Finding(verdict), findings)


def looks_of(*checks: Check, counted=None) -> Looks:
    looks = Looks(counted)
    for check in checks:
        looks.add(check)
    return looks


@pytest.mark.parametrize("verdict", ANSWERS)
def test_every_verdict_is_noted(verdict):
    assert looks_of(make_check(verdict, verdict, verdict)).latest == {KEY: verdict}


def test_no_answer_is_not_noted():
    assert not looks_of(make_check(NO_ANSWER, NO_ANSWER)).latest
    assert not looks_of(make_check(NO_ANSWER)).latest
    assert looks_of(make_check(MISSING), make_check(NO_ANSWER)).latest == {KEY: MISSING}


@pytest.mark.parametrize(
    ("verdict", "noted"),
    [(PUBLISHED, {}), (MISSING, {KEY: Verdict.INCONSISTENT}),
     (Verdict.MISMATCH, {KEY: Verdict.MISMATCH})],
)  # fmt: skip
def test_with_a_silent_server_nothing_is_published_or_gone(verdict, noted):
    assert looks_of(make_check(verdict, verdict, NO_ANSWER)).latest == noted


@pytest.mark.parametrize(
    ("verdict", "noted"), [(PUBLISHED, {}), (MISSING, {KEY: Verdict.INCONSISTENT})]
)
def test_without_the_delegation_nothing_is_published_or_gone(verdict, noted):
    check = make_check(verdict, verdict)._replace(is_delegation_known=False)
    assert looks_of(check).latest == noted


def test_only_keys_that_count_are_noted():
    check = make_check(PUBLISHED)
    assert looks_of(check, counted={KEY}).latest == {KEY: PUBLISHED}
    assert not looks_of(check, counted={key_of("example.com", "s2")}).latest
    assert not looks_of(check, counted=()).latest


def test_last_check_of_a_record_counts_and_a_break_is_kept():
    published, missing = make_check(PUBLISHED), make_check(MISSING)
    looks = looks_of(published, missing)
    assert (looks.latest, looks.breaks) == ({KEY: MISSING}, {})
    looks.add(published)
    looks.add(published)
    assert (looks.latest, looks.breaks) == ({KEY: PUBLISHED}, {KEY: MISSING})


@pytest.fixture
def open_ledger(tmp_path, make_registration):
    def open_(now: float = 1000.0) -> Ledger:
        return Ledger.open(tmp_path / "ledger.db", **ACCOUNT, clock=lambda: now)

    with open_() as ledger:
        ledger.record([make_registration()])
    return open_


def test_looks_are_recorded_even_if_an_error_ends_the_checks(open_ledger):
    def check() -> None:
        with recording_looks(open_ledger, on_failure=pytest.fail) as looks:
            looks.add(make_check(MISSING))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check()
    with open_ledger() as ledger:
        assert histories_of(ledger)[KEY].verdict == "missing"


def test_same_records_ignore_the_case_of_names_alone(open_ledger, make_registration):
    there = make_registration()
    upper = there._replace(
        sign_domain="EXAMPLE.COM", record=there.record._replace(fqdn=there.record.fqdn.upper())
    )
    other = there._replace(record=there.record._replace(value=there.record.value + ";"))
    with open_ledger() as ledger:
        assert same_records(ledger, [upper]) == {KEY}
        assert same_records(ledger, [other, there._replace(record=None)]) == set()
        assert same_records(ledger, [make_registration(selector="s2")]) == set()
