"""Verdicts by what is in DNS."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.dns.verdicts import (
    Check,
    Finding,
    Looks,
    ServerFinding,
    Urgency,
    Verdict,
    combine_findings,
    compare_values,
    recording_looks,
    same_records,
    urgency_of,
)
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import key_of
from key_record_cases import CASES
from ledgers import histories_of

PUBLISHED, DIFFERS, MISMATCH = Verdict.PUBLISHED, Verdict.DIFFERS, Verdict.MISMATCH
MISSING, NO_ANSWER = Verdict.MISSING, Verdict.NO_ANSWER


def answered(*verdicts: Verdict | Finding) -> list[ServerFinding]:
    """Of servers a, b, c and so on."""
    findings = [one if isinstance(one, Finding) else Finding(one) for one in verdicts]
    return [ServerFinding(*one) for one in zip("abcdefgh", findings, strict=False)]


SILENT = Finding(NO_ANSWER, "it does not answer")
EACH = [*(Finding(verdict) for verdict in Verdict if verdict is not NO_ANSWER), SILENT]


@pytest.mark.parametrize("number", [1, 3])
def test_no_answer_from_any_server_names_each(number):
    finding = combine_findings(answered(*[SILENT] * number))
    assert finding.verdict is NO_ANSWER
    assert finding.reason.split("; ") == [f"{name}: it does not answer" for name in "abc"[:number]]


def test_servers_that_disagree_are_named():
    finding = combine_findings(answered(PUBLISHED, Verdict.MISSING, PUBLISHED, SILENT))
    assert finding.verdict is Verdict.INCONSISTENT
    assert finding.reason == "published at 2 of 4 servers; b: missing; d: no answer"


@pytest.mark.parametrize("other", [SILENT, Finding(MISSING)])
@pytest.mark.parametrize(("servers", "end"), [(1500, "; and 1480 more"), (21, "; and 1 more")])
def test_a_reason_names_at_most_20_servers(other, servers, end):
    right = [ServerFinding(f"right{number}", Finding(PUBLISHED)) for number in range(1501)]
    wrong = [ServerFinding(f"wrong{number}", other) for number in range(servers)]
    reason = combine_findings(right + wrong).reason
    assert reason.count("wrong") == 20
    assert reason.endswith(end)


@given(st.lists(st.sampled_from(EACH), min_size=1, max_size=5))
def test_published_if_and_only_if_all_servers_answer_so(findings):
    verdicts = {finding.verdict for finding in findings}
    verdict = combine_findings(answered(*findings)).verdict
    assert (verdict is PUBLISHED) == (verdicts == {PUBLISHED})
    assert (verdict is Verdict.INCONSISTENT) == (
        len(verdicts - {NO_ANSWER}) > 1 or verdicts - {NO_ANSWER} == {Verdict.INCONSISTENT}
    )


NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
WITHIN = timedelta(days=2)


def check_of(verdict: Verdict = Verdict.MISSING, **changes) -> Check:
    fields = {"start_date": None, "enable": None, "finding": Finding(verdict)}
    return Check("example.com", "s1", "s1._domainkey.example.com", **{**fields, **changes})


@pytest.mark.parametrize(
    ("start_date", "expected"),
    [("2026-11-01T00:00+09:00", Urgency.SIGNING), ("2026-11-21T12:00+00:00", Urgency.SIGNING),
     ("2026-11-21T12:01+00:00", Urgency.SOON), ("2026-11-23T12:01+00:00", Urgency.NONE),
     ("2099-01-01T00:00+00:00", Urgency.NONE), (None, Urgency.SIGNING),
     ("2026-11-30T00:00", Urgency.SIGNING)],
)  # fmt: skip
@pytest.mark.parametrize("enable", [None, True])
def test_urgency_depends_on_the_start_of_signing(start_date, expected, enable):
    assert urgency_of(check_of(start_date=start_date, enable=enable), NOW, WITHIN) is expected


@pytest.mark.parametrize(
    ("registered", "expected"),
    [("2026-11-30T12:00:00+00:00", Urgency.SIGNING),
     ("2026-11-30T21:00:59+09:00", Urgency.SIGNING), ("2026-11-30T11:59:59+00:00", Urgency.NONE),
     ("2026-11-21T11:00:00+00:00", Urgency.NONE), ("soon", Urgency.NONE), (None, Urgency.NONE)],
)  # fmt: skip
def test_a_start_by_the_registration_has_begun_whatever_our_clock_says(registered, expected):
    check = check_of(start_date="2026-11-30T12:00+00:00", regist_date=registered)
    assert urgency_of(check, NOW, WITHIN) is expected


HARMLESS = (PUBLISHED, Verdict.RETIRED, DIFFERS, NO_ANSWER)


@pytest.mark.parametrize("verdict", Verdict)
def test_every_fault_is_urgent_unless_the_key_is_disabled(verdict):
    expected = Urgency.NONE if verdict in HARMLESS else Urgency.SIGNING
    assert urgency_of(check_of(verdict), NOW, WITHIN) is expected
    assert urgency_of(check_of(verdict, enable=False), NOW, WITHIN) is Urgency.NONE


PARTLY, INCONSISTENT = Urgency.PARTLY, Finding(Verdict.INCONSISTENT, "it is an alias at one")


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [([PUBLISHED, PUBLISHED, MISSING], PARTLY), ([MISSING, MISSING, PUBLISHED], PARTLY),
     ([MISMATCH, DIFFERS], PARTLY), ([PUBLISHED, MISSING, SILENT], PARTLY),
     ([PUBLISHED, DIFFERS], Urgency.NONE), ([PUBLISHED, DIFFERS, SILENT], Urgency.NONE),
     ([MISSING, MISMATCH], Urgency.SIGNING), ([MISSING, MISMATCH, SILENT], Urgency.SIGNING),
     ([Verdict.DUPLICATE, Verdict.BOGUS], Urgency.SIGNING),
     ([INCONSISTENT, INCONSISTENT], Urgency.SIGNING), ([INCONSISTENT, PUBLISHED], PARTLY)],
)  # fmt: skip
def test_a_record_that_some_servers_have_is_less_urgent(verdicts, expected):
    finding = combine_findings(answered(*verdicts))
    assert urgency_of(check_of(finding=finding), NOW, WITHIN) is expected
    later = check_of(finding=finding, start_date="2026-11-22T12:00+00:00")
    assert urgency_of(later, NOW, WITHIN) is (Urgency.SOON if expected else Urgency.NONE)
    assert urgency_of(check_of(finding=finding, enable=False), NOW, WITHIN) is Urgency.NONE


# Of 1024 bits.
KEY = (
    "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCqrIpQkyykYEQbNzvHfgGsiYfoyX3b3Z6CPMHa5aNn/Bd8skLaqwK9"
    "vj2fHn70DA+X67L/pV2U5VYDzb5AUfQeD6NPDwZ7zLRc0XtX+5jyHWhHueSQT8uo6acMA+9JrVHdRfvtlQo8Oag8SLIk"
    "haUea3xqZpijkQR/qHmo3GIfnQIDAQAB"
)
OTHER_KEY = KEY.replace("Bd8skLaqwK9", "Bd8skLaqwK8")
BARE_KEY = base64.b64encode(base64.b64decode(KEY)[22:]).decode()  # an RSAPublicKey
OURS = f"v=DKIM1; g=*; k=rsa; p={KEY}"
SPF = "v=spf1 -all"

TESTING = "t=y is for testing: receivers treat such mail like unsigned mail"
NOT_FIRST = "v= is not the first tag"

TRUNCATED, MALFORMED = Verdict.TRUNCATED, Verdict.MALFORMED


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_on_every_way_to_write_a_record(key_records, case):
    registered = key_records[2048]
    finding = compare_values(registered, [case.write(registered)])
    assert finding.verdict is case.verdict, finding
    assert bool(finding.reason) is (finding.verdict is not PUBLISHED)


@pytest.mark.parametrize(
    ("verdict", "values", "reason"),
    [
        (
            DIFFERS,
            [f"{OURS}; t=s"],
            "dkimpy, OpenDKIM and Mail::DKIM accept it, but not as registered: t=",
        ),
        (
            DIFFERS,
            [f"{OURS.replace('g=*', 'g=a')}; h=sha1 : sha256"],
            "dkimpy and OpenDKIM accept it, Mail::DKIM refuses its g= and h=; not as",
        ),
        (DIFFERS, [f"{OURS}; h=sha1:sha256; s=email"], "not as registered: h=, s="),
        (DIFFERS, [f"{OURS}; x-note=1; y=2; z.z=3"], 'not a valid tag name: "x-note", "z.z"'),
        (DIFFERS, [f"k=rsa; v=DKIM1; p={KEY}; t=y"], f"t=; {TESTING}; {NOT_FIRST}"),
        (DIFFERS, [f"{OURS}=="], "its p= ends in too many equals signs"),
        (MISMATCH, [f"{OURS}; h=sha1"], "its h= does not allow sha256, with which mail is signed"),
        (
            MISMATCH,
            ["v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=; s=web; t=y"],
            'not rsa; some verifiers refuse its s="web": only email and * are safe',
        ),
        (Verdict.DUPLICATE, [SPF, OURS, "v=DKIM1; p="], "3 TXT records, one of them ours"),
        (Verdict.DUPLICATE, [SPF, f"p={OTHER_KEY}"], "2 TXT records, none of them ours"),
    ],
)
def test_the_reason_says_what_is_not_as_registered(verdict, values, reason):
    finding = compare_values(OURS, values)
    assert (finding.verdict, reason in finding.reason) == (verdict, True), finding


def test_a_record_whose_key_is_too_far_behind_is_malformed():
    reason = "some verifiers read only its first 1024 characters, and refuse those"
    for length in range(790, 830):
        value = f"v=DKIM1; n={'x' * length}; p={KEY}"
        finding = compare_values(OURS, [value])
        assert finding == (Finding(PUBLISHED) if len(value) <= 1024 else Finding(MALFORMED, reason))
    assert compare_values(OURS, [f"{OURS}; n={'x' * 5000}"]) == Finding(PUBLISHED)


@pytest.mark.parametrize(
    ("value", "reason"),
    [("", "empty"), (f"{OURS}; n=é", "printable ASCII"), (SPF, "not a DKIM key record"),
     ("google-site-verification=abc", "no tag p="), (f"{OURS}; k=rsa", "k= occurs twice"),
     (f"v=DKIM1;; p={KEY}", "list of tag=value"),
     (f"v=DKIM1; p={KEY[:80]}*{KEY[81:]}", "not base64"),
     (f"v=DKIM1; p={KEY[8:]}", "not an RSA key"),
     (f"v=DKIM1; p={KEY[:80]}AAAA{KEY[84:200]}", "cut short"),
     (f"v=DKIM1; p={BARE_KEY}", "our key in an encoding that some verifiers cannot read"),
     (f'"{OURS[:50]}" "', "quotation marks"), (f"v=DKIM1\\; k=rsa\\; p={KEY}", "backslashes")],
)  # fmt: skip
def test_record_that_verifiers_cannot_read_is_malformed(value, reason):
    finding = compare_values(OURS, [value])
    assert finding.verdict is MALFORMED
    assert reason in finding.reason


# What copying, web forms and panels do to a value, all of which verifiers refuse, too.
@pytest.mark.parametrize(
    ("write", "reason"),
    [(str.lower, "upper and lower case"), (str.upper, "upper and lower case"),
     (lambda value: value.replace("DKIM1", "dkim1"), "upper and lower case"),
     (lambda value: f"v=DKIM1; p={KEY.lower()}", "upper and lower case"),
     (lambda value: value.replace("+", " "), "lacks the plus signs"),
     (lambda value: value.replace("+", ""), "lacks the plus signs"),
     (lambda value: value.replace("+", "-").replace("/", "_"), "encoded as in a URL"),
     (lambda value: value.replace("+", "%2B").replace("/", "%2F"), "encoded as in a URL"),
     (lambda value: KEY, "the key alone"),
     (lambda value: f"p=-----BEGIN PUBLIC KEY-----\r\n{KEY}\r\n-----END PUBLIC KEY-----",
      "lines BEGIN and END PUBLIC KEY")],
)  # fmt: skip
def test_what_was_done_to_the_value_is_said(write, reason):
    finding = compare_values(OURS, [write(OURS)])
    assert finding.verdict is MALFORMED
    assert reason in finding.reason
    other = compare_values(OURS.replace(KEY, OTHER_KEY), [write(OURS)])
    assert reason not in other.reason


@pytest.mark.parametrize("parts", [(OURS[:99], OURS[99:]), (OURS[200:], OURS[:100], OURS[100:200])])
def test_a_key_in_parts_is_to_be_one_record(parts):
    what = f"{len(parts)} of them our key in parts: enter those as strings of one record"
    for others in ((), (SPF,)):
        finding = compare_values(OURS, [*parts, *others])
        reason = f"{len(parts) + len(others)} TXT records, {what}"
        assert finding == Finding(Verdict.DUPLICATE, reason)
    assert "none of them ours" in compare_values(OURS, [*parts, *[SPF] * 3]).reason
    assert "none of them ours" in compare_values(OURS, [*parts[1:], OURS[:98]]).reason


REGISTERED = key_of("example.com", "s1")
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


@pytest.mark.parametrize(
    ("verdict", "noted"), [(PUBLISHED, None), (MISSING, Verdict.INCONSISTENT), (MISMATCH, MISMATCH)]
)
def test_what_is_not_certain_is_not_noted(verdict, noted):
    assert looks_of(make_check(verdict, verdict, verdict)).latest == {REGISTERED: verdict}
    for doubtful in (
        make_check(verdict, verdict, NO_ANSWER),  # a silent server
        make_check(verdict, verdict)._replace(is_delegation_known=False),
    ):
        assert looks_of(doubtful).latest == ({REGISTERED: noted} if noted else {})
    assert looks_of(make_check(verdict), make_check(NO_ANSWER)).latest == {REGISTERED: verdict}


def test_only_keys_that_count_are_noted():
    check = make_check(PUBLISHED)
    assert looks_of(check, counted={REGISTERED}).latest == {REGISTERED: PUBLISHED}
    assert not looks_of(check, counted={key_of("example.com", "s2")}).latest
    assert not looks_of(check, counted=()).latest


def test_last_check_of_a_record_counts_and_a_break_is_kept():
    published, missing = make_check(PUBLISHED), make_check(MISSING)
    looks = looks_of(published, missing)
    assert (looks.latest, looks.breaks) == ({REGISTERED: MISSING}, {})
    looks.add(published)
    looks.add(published)
    assert (looks.latest, looks.breaks) == (
        {REGISTERED: PUBLISHED},
        {REGISTERED: MISSING},
    )


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
        assert histories_of(ledger)[REGISTERED].verdict == "missing"


def test_same_records_ignore_the_case_of_names_alone(open_ledger, make_registration):
    there = make_registration()
    upper = there._replace(
        sign_domain="EXAMPLE.COM", record=there.record._replace(fqdn=there.record.fqdn.upper())
    )
    other = there._replace(record=there.record._replace(value=there.record.value + ";"))
    with open_ledger() as ledger:
        assert same_records(ledger, [upper]) == {REGISTERED}
        assert same_records(ledger, [other, there._replace(record=None)]) == set()
        assert same_records(ledger, [make_registration(selector="s2")]) == set()
