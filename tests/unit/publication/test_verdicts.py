"""What is said of a record by what stands in DNS."""

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
def test_what_verifiers_read_the_same_is_published(value):
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
def test_another_meaning_is_a_mismatch_that_names_the_tags(value, tags):
    assert compare_values(OURS, [value]) == Finding(MISMATCH, f"other values of the tags {tags}")


@pytest.mark.parametrize("value", [f"v=DKIM1; p={OTHER_KEY}", f"p={OTHER_KEY}; n={KEY}"])
def test_another_key_is_told_as_such(value):
    assert compare_values(OURS, [value]) == Finding(MISMATCH, "it is another key (p=)")


@pytest.mark.parametrize("tag", ["t=y:s", "t=s:y", "t= s : y", "t=s:y:s"])
def test_the_order_of_flags_means_nothing(tag):
    assert compare_values(f"{OURS}; t=y:s", [f"{OURS}; {tag}"]).verdict is PUBLISHED


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (f"v=DKIM1; p={KEY[:-1]}", f"the first {len(KEY) - 1} of {len(KEY)} characters of the key"),
        (f"p={KEY[:50]} {KEY[50:70]}", f"the first 70 of {len(KEY)} characters of the key"),
        (OURS[:22], f"the first 22 of {len(OURS)} characters"),
        (OURS[:18], f"the first 18 of {len(OURS)} characters"),
        (OURS[:3], f"the first 3 of {len(OURS)} characters"),
        ("v", f"the first 1 of {len(OURS)} characters"),
    ],
)
def test_a_record_cut_short_is_truncated_wherever_it_was_cut(value, said):
    assert compare_values(OURS, [value]) == Finding(TRUNCATED, f"only {said} are published")


def test_a_record_of_2048_bits_cut_at_one_string_is_truncated(key_records):
    found = compare_values(key_records[2048], [key_records[2048][:255]])
    assert found.verdict is TRUNCATED
    assert "the first 232 of 392 characters of the key" in found.reason


@pytest.mark.parametrize("value", [f'"{OURS}"', f"v=DKIM1\\; k=rsa\\; p={KEY}", f'"{OURS[:50]}" "'])
def test_quotes_and_backslashes_in_the_value_are_malformed(value):
    found = compare_values(OURS, [value])
    assert found.verdict is MALFORMED
    assert ("quotation marks" if '"' in value else "backslashes") in found.reason


def test_quotes_and_backslashes_at_once_are_malformed():
    assert compare_values(OURS, [f'"v=DKIM1\\; p={KEY}"']).verdict is MALFORMED


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "empty"),
        (f"{OURS}; n=é", "printable ASCII"),
        (f"{OURS}\udcff", "printable ASCII"),
        (SPF, "no DKIM key record"),
        ("google-site-verification=abc", "list of tag=value"),
        (f"p={KEY}; v=DKIM1", "no DKIM key record"),
        (f"v=dkim1; p={KEY}", "no DKIM key record"),
        ("v=DKIM1; k=rsa", "no tag p="),
        (f"{OURS}; k=rsa", "k= stands twice"),
        (f"{OURS}; p={KEY}", "p= stands twice"),
        (f"v=DKIM1;; p={KEY}", "list of tag=value"),
        (f"v=DKIM1, p={KEY}", "no DKIM key record"),
        (f"v=DKIM1; p={KEY[:80]}*{KEY[81:]}", "not base64"),
        (f"v=DKIM1; p={KEY[8:]}", "not an RSA key"),
        (f"v=DKIM1; t=y; p={KEY[:80]}", "cut short"),
        ("v=DKIM1; k=rsa; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "not an RSA key"),
    ],
)
def test_what_no_verifier_can_read_is_malformed(value, reason):
    found = compare_values(OURS, [value])
    assert found.verdict is MALFORMED
    assert reason in found.reason


@pytest.mark.parametrize("value", ["v=DKIM1; p=", "p=", "p= ;", "v=DKIM1; g=*; k=rsa; p="])
def test_an_empty_key_revokes(value):
    assert compare_values(OURS, [value]).verdict is Verdict.REVOKED


@pytest.mark.parametrize("value", [" ", "   "])
def test_blanks_alone_are_no_beginning_of_the_record(value):
    assert compare_values(OURS, [value]).verdict is MALFORMED


def test_a_tab_is_as_good_as_a_space():
    assert (
        compare_values(OURS, [OURS.replace("; ", ";\t")]).verdict is PUBLISHED
    )  # RFC 6376 section 2.8


def test_no_record_is_missing():
    assert compare_values(OURS, []) == Finding(Verdict.MISSING)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([OURS, SPF], "2 TXT records stand there, one of them ours"),
        ([SPF, OURS], "2 TXT records stand there, one of them ours"),
        ([SPF, f"p={OTHER_KEY}"], "2 TXT records stand there, none of them ours"),
        ([SPF, OURS, "v=DKIM1; p="], "3 TXT records stand there, one of them ours"),
        (["", "x", "y"], "3 TXT records stand there, none of them ours"),
    ],
)
def test_several_records_are_duplicate_and_whether_ours_is_there_is_told(values, said):
    found = compare_values(OURS, values)
    assert found.verdict is Verdict.DUPLICATE
    assert said in found.reason


def test_ours_in_other_words_is_one_of_several_as_well():
    found = compare_values(OURS, [f"v=DKIM1;p={KEY}", SPF])
    assert ", one of them ours" in found.reason


@given(st.lists(st.text(st.characters(), max_size=80), max_size=3))
def test_any_values_come_to_a_finding(values):
    assert compare_values(OURS, values).verdict in Verdict


@given(
    st.lists(st.sampled_from([*'vkgpnst=;: \\"\x7fé', "DKIM1", "rsa", KEY, KEY[:9], "v=DKIM1;"]))
)
def test_any_pieces_of_a_record_come_to_a_finding(pieces):
    value = "".join(pieces)
    assert (compare_values(OURS, [value]).reason == "") == (
        compare_values(OURS, [value]).verdict is PUBLISHED
    )


@pytest.mark.parametrize("bits", [1024, 2048, 4096])
def test_no_part_of_a_record_is_taken_for_the_whole(key_records, bits):
    whole = key_records[bits]
    told = {compare_values(whole, [whole[:length]]).verdict for length in range(1, len(whole))}
    assert told == {TRUNCATED, Verdict.REVOKED}  # where it ends in p=


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
def test_published_is_what_has_the_same_key_and_the_same_meaning_of_tags(data):
    ours, theirs = data.draw(MEANINGS), data.draw(MEANINGS)
    registered, published = data.draw(written(ours)), data.draw(written(theirs))
    found = compare_values(registered, [published])
    usual = {"g": "*", "k": "rsa", "s": "*"}
    if {**usual, **ours} == {**usual, **theirs}:
        assert found == Finding(PUBLISHED)
    elif "".join(registered.split()).startswith("".join(published.split())):
        assert found.verdict is TRUNCATED
    else:
        assert found.verdict is MISMATCH


def said(*verdicts: Verdict | Finding) -> list[ServerFinding]:
    """Of servers a, b, c and so on."""
    findings = [found if isinstance(found, Finding) else Finding(found) for found in verdicts]
    return [ServerFinding(name, found) for name, found in zip("abcdefgh", findings, strict=False)]


SILENT = Finding(NO_ANSWER, "it does not answer")
EACH = [*(Finding(verdict) for verdict in Verdict if verdict is not NO_ANSWER), SILENT]


@pytest.mark.parametrize("finding", [found for found in EACH if found is not SILENT])
@pytest.mark.parametrize("number", [1, 2, 4])
def test_servers_that_agree_are_one(finding, number):
    assert combine_findings(said(*[finding] * number)) == finding


@pytest.mark.parametrize("number", [1, 3])
def test_where_none_answers_nothing_is_known_and_each_is_named(number):
    found = combine_findings(said(*[SILENT] * number))
    assert found.verdict is NO_ANSWER
    assert found.reason.split("; ") == [f"{name}: it does not answer" for name in "abc"[:number]]


def test_published_is_only_what_every_server_says():
    found = combine_findings(said(PUBLISHED, SILENT, PUBLISHED))
    assert found == Finding(NO_ANSWER, "published elsewhere; b: it does not answer")
    assert combine_findings(said(PUBLISHED, SILENT)) == found


def test_one_silent_server_does_not_hide_what_the_others_say():
    other = Finding(MISMATCH, "it is another key (p=)")
    found = combine_findings(said(other, other, SILENT))
    assert found == Finding(MISMATCH, "it is another key (p=); c: it does not answer")
    assert combine_findings(said(Verdict.MISSING, SILENT)).verdict is Verdict.MISSING


def test_servers_that_disagree_are_told_apart():
    found = combine_findings(said(PUBLISHED, Verdict.MISSING, PUBLISHED, SILENT))
    assert found.verdict is Verdict.INCONSISTENT
    assert found.reason == "published at 2 of 4 servers; b: missing; d: no answer"


@given(st.lists(st.sampled_from(EACH), min_size=1, max_size=5), st.randoms())
def test_the_order_of_servers_changes_no_verdict(findings, random):
    servers = said(*findings)
    mixed = random.sample(servers, len(servers))
    assert combine_findings(servers).verdict is combine_findings(mixed).verdict


@given(st.lists(st.sampled_from(EACH), min_size=1, max_size=5))
def test_all_is_published_where_all_servers_say_so(findings):
    verdicts = {found.verdict for found in findings}
    found = combine_findings(said(*findings)).verdict
    assert (found is PUBLISHED) == (verdicts == {PUBLISHED})
    assert (found is Verdict.INCONSISTENT) == (
        len(verdicts - {NO_ANSWER}) > 1 or verdicts - {NO_ANSWER} == {Verdict.INCONSISTENT}
    )


def test_different_faults_of_one_kind_are_all_told():
    servers = said(
        Finding(MISMATCH, "it is another key (p=)"),
        Finding(MISMATCH, "other values of the tags t="),
    )
    for findings in itertools.permutations(servers):
        reason = combine_findings(findings).reason
        assert "p=" in reason
        assert "t=" in reason


def test_the_order_of_servers_changes_no_words():
    servers = said(PUBLISHED, Verdict.MISSING)
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
def test_what_is_to_sign_without_dns_is_urgent(start_date, expected, enable):
    assert urgency_of(check_of(start_date=start_date, enable=enable), NOW, WITHIN) is expected


@pytest.mark.parametrize("verdict", [one for one in Verdict if one not in (PUBLISHED, NO_ANSWER)])
def test_every_fault_is_urgent(verdict):
    assert urgency_of(check_of(verdict), NOW, WITHIN) is Urgency.SIGNING


@pytest.mark.parametrize(
    "check", [check_of(PUBLISHED), check_of(NO_ANSWER), check_of(enable=False)]
)
def test_what_is_published_unknown_or_disabled_is_not_urgent(check):
    assert urgency_of(check, NOW, WITHIN) is Urgency.NONE


def test_no_warning_beforehand_warns_from_the_start_on():
    check = check_of(start_date="2026-11-21T12:01+00:00")
    assert urgency_of(check, NOW, ZERO) is Urgency.NONE
    assert urgency_of(check, NOW + timedelta(minutes=1), ZERO) is Urgency.SIGNING


@given(st.text(st.characters(), max_size=40) | st.datetimes(timezones=st.timezones()).map(str))
def test_no_date_spoils_the_urgency(text):
    assume(text)
    assert urgency_of(check_of(start_date=text), NOW, WITHIN) in Urgency
