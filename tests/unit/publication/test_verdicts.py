"""Verdicts by what is in DNS."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dkimctl.publication.verdicts import (
    Check,
    Finding,
    ServerFinding,
    Urgency,
    Verdict,
    combine_findings,
    compare_values,
    urgency_of,
)

# Of 1024 bits.
KEY = (
    "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCqrIpQkyykYEQbNzvHfgGsiYfoyX3b3Z6CPMHa5aNn/Bd8skLaqwK9"
    "vj2fHn70DA+X67L/pV2U5VYDzb5AUfQeD6NPDwZ7zLRc0XtX+5jyHWhHueSQT8uo6acMA+9JrVHdRfvtlQo8Oag8SLIk"
    "haUea3xqZpijkQR/qHmo3GIfnQIDAQAB"
)
OTHER_KEY = KEY.replace("Bd8skLaqwK9", "Bd8skLaqwK8")
OURS = f"v=DKIM1; g=*; k=rsa; p={KEY}"
SPF = "v=spf1 -all"

PUBLISHED, MISMATCH, TRUNCATED = Verdict.PUBLISHED, Verdict.MISMATCH, Verdict.TRUNCATED
MALFORMED, NO_ANSWER = Verdict.MALFORMED, Verdict.NO_ANSWER


@pytest.mark.parametrize(
    "value",
    [
        OURS,
        f"{OURS};",
        f"{OURS} ; ",
        f"v=DKIM1;g=*;k=rsa;p={KEY}",
        f"v=DKIM1; p={KEY}; k=rsa; g=*",
        f"v = DKIM1 ; k = rsa ; p = {KEY} ;",
        f"v=DKIM1; g=*; k=rsa; p={KEY[:100]} {KEY[100:]}",
        f"v=DKIM1; p= {KEY[:1]}  {KEY[1:-1]} {KEY[-1:]}",
        f"v=DKIM1; p={KEY}",
        f"k=rsa; p={KEY}",
        f"p={KEY}",
        f"{OURS}; s=*",
        f"{OURS}; t=",
        f"{OURS}; n=for the newsletter",
        f"{OURS}; x=unknown; foo_1=bar",
    ],
)
def test_record_with_the_same_meaning_is_published(value):
    assert compare_values(OURS, [value]) == Finding(PUBLISHED)


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        (f"{OURS}; t=y", "t="),
        (f"{OURS}; t=s", "t="),
        (f"{OURS}; s=other", "s="),
        (f"{OURS}; h=sha1", "h="),
        (f"{OURS}; h=", "h="),
        (f"{OURS}; h=sha1:sha256; t=y", "h=, t="),
        (f"v=DKIM1; g=user; k=rsa; p={KEY}", "g="),
        (f"v=DKIM1; g=; p={KEY}", "g="),
        (f"v=DKIM1; k=ed25519; p={KEY}", "k="),
        (f"v=DKIM1; p={OTHER_KEY}; t=y", "p=, t="),
        ("v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "p=, k="),
    ],
)
def test_other_tags_are_a_mismatch_that_names_them(value, tags):
    assert compare_values(OURS, [value]) == Finding(MISMATCH, f"other values of the tags {tags}")


@pytest.mark.parametrize("value", [f"v=DKIM1; p={OTHER_KEY}", f"p={OTHER_KEY}; n={KEY}"])
def test_other_key_is_a_mismatch(value):
    assert compare_values(OURS, [value]) == Finding(MISMATCH, "it is another key (p=)")


@pytest.mark.parametrize("tag", ["t=y:s", "t=s:y", "t= s : y", "t=s:y:s"])
def test_order_of_flags_does_not_matter(tag):
    assert compare_values(f"{OURS}; t=y:s", [f"{OURS}; {tag}"]).verdict is PUBLISHED


@pytest.mark.parametrize(
    ("value", "length"),
    [
        (f"v=DKIM1; p={KEY[:-1]}", f"the first {len(KEY) - 1} of {len(KEY)} characters of the key"),
        (f"p={KEY[:50]} {KEY[50:70]}", f"the first 70 of {len(KEY)} characters of the key"),
        (OURS[:22], f"the first 22 of {len(OURS)} characters"),
        (OURS[:18], f"the first 18 of {len(OURS)} characters"),
        (OURS[:3], f"the first 3 of {len(OURS)} characters"),
        ("v", f"the first 1 of {len(OURS)} characters"),
    ],
)
def test_cut_record_is_truncated_wherever_it_was_cut(value, length):
    assert compare_values(OURS, [value]) == Finding(TRUNCATED, f"only {length} are published")


def test_2048_bit_record_cut_after_one_string_is_truncated(key_records):
    finding = compare_values(key_records[2048], [key_records[2048][:255]])
    assert finding.verdict is TRUNCATED
    assert "the first 232 of 392 characters of the key" in finding.reason


@pytest.mark.parametrize("value", [f'"{OURS}"', f"v=DKIM1\\; k=rsa\\; p={KEY}", f'"{OURS[:50]}" "'])
def test_quotes_or_backslashes_in_the_value_are_malformed(value):
    finding = compare_values(OURS, [value])
    assert finding.verdict is MALFORMED
    assert ("quotation marks" if '"' in value else "backslashes") in finding.reason


def test_quotes_and_backslashes_together_are_malformed():
    assert compare_values(OURS, [f'"v=DKIM1\\; p={KEY}"']).verdict is MALFORMED


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "empty"),
        (f"{OURS}; n=é", "printable ASCII"),
        (f"{OURS}\udcff", "printable ASCII"),
        (SPF, "not a DKIM key record"),
        ("google-site-verification=abc", "list of tag=value"),
        (f"p={KEY}; v=DKIM1", "not a DKIM key record"),
        (f"v=dkim1; p={KEY}", "not a DKIM key record"),
        ("v=DKIM1; k=rsa", "no tag p="),
        (f"{OURS}; k=rsa", "k= occurs twice"),
        (f"{OURS}; p={KEY}", "p= occurs twice"),
        (f"v=DKIM1;; p={KEY}", "list of tag=value"),
        (f"v=DKIM1, p={KEY}", "not a DKIM key record"),
        (f"v=DKIM1; p={KEY[:80]}*{KEY[81:]}", "not base64"),
        (f"v=DKIM1; p={KEY[8:]}", "not an RSA key"),
        (f"v=DKIM1; t=y; p={KEY[:80]}", "cut short"),
        ("v=DKIM1; k=rsa; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "not an RSA key"),
    ],
)
def test_record_that_verifiers_cannot_read_is_malformed(value, reason):
    finding = compare_values(OURS, [value])
    assert finding.verdict is MALFORMED
    assert reason in finding.reason


@pytest.mark.parametrize("value", ["v=DKIM1; p=", "p=", "p= ;", "v=DKIM1; g=*; k=rsa; p="])
def test_empty_key_is_revoked(value):
    assert compare_values(OURS, [value]).verdict is Verdict.REVOKED


@pytest.mark.parametrize("value", [" ", "   "])
def test_blank_value_is_malformed_and_not_truncated(value):
    assert compare_values(OURS, [value]).verdict is MALFORMED


def test_tab_is_the_same_as_a_space():
    assert (
        compare_values(OURS, [OURS.replace("; ", ";\t")]).verdict is PUBLISHED
    )  # RFC 6376 section 2.8


def test_no_record_is_missing():
    assert compare_values(OURS, []) == Finding(Verdict.MISSING)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([OURS, SPF], "2 TXT records, one of them ours"),
        ([SPF, OURS], "2 TXT records, one of them ours"),
        ([SPF, f"p={OTHER_KEY}"], "2 TXT records, none of them ours"),
        ([SPF, OURS, "v=DKIM1; p="], "3 TXT records, one of them ours"),
        (["", "x", "y"], "3 TXT records, none of them ours"),
    ],
)
def test_several_records_are_duplicate_and_the_reason_says_whether_ours_is_one(values, reason):
    finding = compare_values(OURS, values)
    assert finding.verdict is Verdict.DUPLICATE
    assert reason in finding.reason


def test_record_with_the_same_meaning_is_ours_among_several():
    finding = compare_values(OURS, [f"v=DKIM1;p={KEY}", SPF])
    assert ", one of them ours" in finding.reason


@given(st.lists(st.text(st.characters(), max_size=80), max_size=3))
def test_any_values_have_a_finding(values):
    assert compare_values(OURS, values).verdict in Verdict


@given(
    st.lists(st.sampled_from([*'vkgpnst=;: \\"\x7fé', "DKIM1", "rsa", KEY, KEY[:9], "v=DKIM1;"]))
)
def test_any_pieces_of_a_record_have_a_finding(pieces):
    value = "".join(pieces)
    assert (compare_values(OURS, [value]).reason == "") == (
        compare_values(OURS, [value]).verdict is PUBLISHED
    )


@pytest.mark.parametrize("bits", [1024, 2048, 4096])
def test_part_of_a_record_is_never_published(key_records, bits):
    whole = key_records[bits]
    verdicts = {compare_values(whole, [whole[:length]]).verdict for length in range(1, len(whole))}
    assert verdicts == {TRUNCATED, Verdict.REVOKED}  # where it ends in p=


MEANINGS = st.fixed_dictionaries(
    {"p": st.sampled_from([KEY, OTHER_KEY])},
    optional={
        "g": st.sampled_from(["*", "user"]),
        "k": st.just("rsa"),
        "h": st.sampled_from(["sha1", "sha256"]),
        "s": st.sampled_from(["*", "email"]),
        "t": st.sampled_from(["y", "s"]),
    },
)
SPACES = st.sampled_from(["", " ", "  "])


@st.composite
def written(draw, meaning):
    """The record in any of the ways to write it."""
    tags = {**meaning, **draw(st.dictionaries(st.sampled_from(["n", "x"]), st.just("1")))}
    names = draw(st.permutations(sorted(tags)))
    at = draw(st.integers(0, len(tags["p"])))
    tags["p"] = tags["p"][:at] + draw(SPACES) + tags["p"][at:]
    specs = ["v=DKIM1"] * draw(st.booleans()) + [f"{name}={tags[name]}" for name in names]
    return ";".join(draw(SPACES) + spec + draw(SPACES) for spec in specs) + draw(SPACES)


@given(st.data())
def test_published_means_the_same_key_and_tags_of_the_same_meaning(data):
    ours, theirs = data.draw(MEANINGS), data.draw(MEANINGS)
    registered, published = data.draw(written(ours)), data.draw(written(theirs))
    finding = compare_values(registered, [published])
    usual = {"g": "*", "k": "rsa", "s": "*"}
    if {**usual, **ours} == {**usual, **theirs}:
        assert finding == Finding(PUBLISHED)
    elif "".join(registered.split()).startswith("".join(published.split())):
        assert finding.verdict is TRUNCATED
    else:
        assert finding.verdict is MISMATCH


def answered(*verdicts: Verdict | Finding) -> list[ServerFinding]:
    """Of servers a, b, c and so on."""
    findings = [one if isinstance(one, Finding) else Finding(one) for one in verdicts]
    return [ServerFinding(*one) for one in zip("abcdefgh", findings, strict=False)]


SILENT = Finding(NO_ANSWER, "it does not answer")
EACH = [*(Finding(verdict) for verdict in Verdict if verdict is not NO_ANSWER), SILENT]


@pytest.mark.parametrize("finding", [finding for finding in EACH if finding is not SILENT])
@pytest.mark.parametrize("number", [1, 2, 4])
def test_servers_that_agree_have_one_finding(finding, number):
    assert combine_findings(answered(*[finding] * number)) == finding


@pytest.mark.parametrize("number", [1, 3])
def test_no_answer_from_any_server_names_each(number):
    finding = combine_findings(answered(*[SILENT] * number))
    assert finding.verdict is NO_ANSWER
    assert finding.reason.split("; ") == [f"{name}: it does not answer" for name in "abc"[:number]]


def test_published_only_if_every_server_answers_so():
    finding = combine_findings(answered(PUBLISHED, SILENT, PUBLISHED))
    assert finding == Finding(NO_ANSWER, "published elsewhere; b: it does not answer")
    assert combine_findings(answered(PUBLISHED, SILENT)) == finding


def test_server_without_an_answer_does_not_hide_a_fault():
    other = Finding(MISMATCH, "it is another key (p=)")
    finding = combine_findings(answered(other, other, SILENT))
    assert finding == Finding(MISMATCH, "it is another key (p=); c: it does not answer")
    assert combine_findings(answered(Verdict.MISSING, SILENT)).verdict is Verdict.MISSING


def test_servers_that_disagree_are_named():
    finding = combine_findings(answered(PUBLISHED, Verdict.MISSING, PUBLISHED, SILENT))
    assert finding.verdict is Verdict.INCONSISTENT
    assert finding.reason == "published at 2 of 4 servers; b: missing; d: no answer"


@given(st.lists(st.sampled_from(EACH), min_size=1, max_size=5), st.randoms())
def test_verdict_does_not_depend_on_the_order_of_servers(findings, random):
    servers = answered(*findings)
    mixed = random.sample(servers, len(servers))
    assert combine_findings(servers).verdict is combine_findings(mixed).verdict


@given(st.lists(st.sampled_from(EACH), min_size=1, max_size=5))
def test_published_if_and_only_if_all_servers_answer_so(findings):
    verdicts = {finding.verdict for finding in findings}
    verdict = combine_findings(answered(*findings)).verdict
    assert (verdict is PUBLISHED) == (verdicts == {PUBLISHED})
    assert (verdict is Verdict.INCONSISTENT) == (
        len(verdicts - {NO_ANSWER}) > 1 or verdicts - {NO_ANSWER} == {Verdict.INCONSISTENT}
    )


def test_all_reasons_for_one_verdict_are_given():
    servers = answered(
        Finding(MISMATCH, "it is another key (p=)"),
        Finding(MISMATCH, "other values of the tags t="),
    )
    for findings in itertools.permutations(servers):
        reason = combine_findings(findings).reason
        assert "p=" in reason
        assert "t=" in reason


def test_reason_does_not_depend_on_the_order_of_servers():
    servers = answered(PUBLISHED, Verdict.MISSING)
    assert len({combine_findings(findings) for findings in itertools.permutations(servers)}) == 1


NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
WITHIN = timedelta(days=2)
ZERO = timedelta(0)


def check_of(verdict: Verdict = Verdict.MISSING, **changes) -> Check:
    fields = {"start_date": None, "enable": None, "finding": Finding(verdict)}
    return Check("example.com", "s1", "s1._domainkey.example.com", **{**fields, **changes})


@pytest.mark.parametrize(
    ("start_date", "expected"),
    [
        ("2026-11-01T00:00+09:00", Urgency.SIGNING),
        ("2026-11-21T12:00+00:00", Urgency.SIGNING),
        ("2026-11-21T21:00+09:00", Urgency.SIGNING),
        ("2026-11-21T12:01+00:00", Urgency.SOON),
        ("2026-11-23T12:00+00:00", Urgency.SOON),
        ("2026-11-23T21:00+09:00", Urgency.SOON),
        ("2026-11-23T12:01+00:00", Urgency.NONE),
        ("2099-01-01T00:00+00:00", Urgency.NONE),
        (None, Urgency.SIGNING),
        ("", Urgency.SIGNING),
        ("soon", Urgency.SIGNING),
        ("2026-11-30T00:00", Urgency.SIGNING),
    ],
)
@pytest.mark.parametrize("enable", [None, True])
def test_urgency_depends_on_the_start_of_signing(start_date, expected, enable):
    assert urgency_of(check_of(start_date=start_date, enable=enable), NOW, WITHIN) is expected


@pytest.mark.parametrize(
    ("registered", "expected"),
    [
        ("2026-11-30T12:00:00+00:00", Urgency.SIGNING),
        ("2026-11-30T21:00:59+09:00", Urgency.SIGNING),
        ("2026-11-30T11:59:59+00:00", Urgency.NONE),
        ("2026-11-21T11:00:00+00:00", Urgency.NONE),
        ("soon", Urgency.NONE),
        (None, Urgency.NONE),
    ],
)
def test_a_start_by_the_registration_has_begun_whatever_our_clock_says(registered, expected):
    check = check_of(start_date="2026-11-30T12:00+00:00", regist_date=registered)
    assert urgency_of(check, NOW, WITHIN) is expected


HARMLESS = (PUBLISHED, Verdict.RETIRED, Verdict.DIFFERS, NO_ANSWER)


@pytest.mark.parametrize("verdict", [one for one in Verdict if one not in HARMLESS])
def test_every_fault_is_urgent(verdict):
    assert urgency_of(check_of(verdict), NOW, WITHIN) is Urgency.SIGNING


@pytest.mark.parametrize("check", [*map(check_of, HARMLESS), check_of(enable=False)])
def test_harmless_unknown_and_disabled_records_are_not_urgent(check):
    assert urgency_of(check, NOW, WITHIN) is Urgency.NONE


def test_warn_within_zero_warns_from_the_start_of_signing():
    check = check_of(start_date="2026-11-21T12:01+00:00")
    assert urgency_of(check, NOW, ZERO) is Urgency.NONE
    assert urgency_of(check, NOW + timedelta(minutes=1), ZERO) is Urgency.SIGNING


@given(st.text(st.characters(), max_size=40) | st.datetimes(timezones=st.timezones()).map(str))
def test_any_date_has_an_urgency(text):
    assume(text)
    assert urgency_of(check_of(start_date=text), NOW, WITHIN) in Urgency
