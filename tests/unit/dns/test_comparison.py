"""The TXT values at a record's name, next to the registered one."""

from __future__ import annotations

import base64
import hashlib

import dkim
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.dns.verdicts import Finding, Verdict, compare_values
from key_record_cases import CASES

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

CHARACTERS = "characters, without spaces,"
TESTING = "t=y is for testing: receivers treat such mail like unsigned mail"
NOT_FIRST = "v= is not the first tag"

PUBLISHED, DIFFERS, MISMATCH = Verdict.PUBLISHED, Verdict.DIFFERS, Verdict.MISMATCH
TRUNCATED, MALFORMED = Verdict.TRUNCATED, Verdict.MALFORMED


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_on_every_way_to_write_a_record(key_records, case):
    registered = key_records[2048]
    finding = compare_values(registered, [case.write(registered)])
    assert finding.verdict is case.verdict, finding
    assert bool(finding.reason) is (finding.verdict is not PUBLISHED)


@pytest.fixture(scope="module")
def signed_mail() -> tuple[str, bytes]:
    """The record of a key, and a mail that it has signed."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    der = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    mail = b"From: a@example.com\nSubject: test\n\nbody\n"
    record = f"v=DKIM1; g=*; k=rsa; p={base64.b64encode(der).decode()}"
    return record, dkim.sign(mail, b"s1", b"example.com", pem) + mail


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.verifies], ids=lambda case: case.name
)
def test_dkimpy_verifies_mail_with_every_record_that_is_accepted(signed_mail, case):
    record, mail = signed_mail
    value = case.write(record).encode()
    assert dkim.verify(mail, dnsfunc=lambda name, timeout=5: value)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (f"{OURS}; t=s", "not as registered: t="),
        (f"{OURS}; t=y", f"not as registered: t=; {TESTING}"),
        (f"{OURS}; h=sha1:sha256; s=email", "not as registered: h=, s="),
        (f"v=DKIM1; g=; p={KEY}", "not as registered: g="),
        (f"{OURS}; x-note=1; y=2; z.z=3", 'not a valid tag name: "x-note", "z.z"'),
        (f"k=rsa; v=DKIM1; p={KEY}; t=y", f"not as registered: t=; {TESTING}; {NOT_FIRST}"),
        (f"{OURS}==", "its p= ends in too many equals signs"),
    ],
)
def test_what_verifiers_accept_differs_and_says_in_what(value, why):
    assert compare_values(OURS, [value]) == Finding(DIFFERS, f"verifiers accept it, but {why}")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (f"{OURS}; h=sha1", "its h= does not allow sha256, with which mail is signed"),
        (f"{OURS}; s=web", 'some verifiers refuse its s="web": only email and * are safe'),
        (f"v=DKIM1; k=ed25519; p={KEY}", 'its key type is k="ed25519", not rsa'),
        (
            "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=; s=web; t=y",
            (
                'its key type is k="ed25519", not rsa; '
                'some verifiers refuse its s="web": only email and * are safe'
            ),
        ),
    ],
)
def test_tags_that_verifiers_refuse_are_a_mismatch(value, reason):
    assert compare_values(OURS, [value]) == Finding(MISMATCH, reason)


def summary(key: str, bits: int) -> str:
    digest = hashlib.sha256(base64.b64decode(key)).hexdigest()
    return f"{bits} bits, SHA-256 {digest[:16]}"


def test_another_key_is_told_with_both_fingerprints(key_records):
    registered, other = key_records[2048], key_records[1024]
    keys = [summary(value.partition("p=")[2], bits) for bits, value in key_records.items()]
    finding = compare_values(registered, [other])
    assert finding == Finding(MISMATCH, f"another key: {keys[0]}; registered: {keys[1]}")
    assert compare_values(registered, [f"{other}; t=y; x-y=1"]) == finding
    refused = compare_values(registered, [f"{other}; s=web"])
    assert refused.reason.endswith(f"; {finding.reason}")


def test_a_record_whose_key_is_too_far_behind_is_malformed():
    reason = "some verifiers read only its first 1024 characters, and refuse those"
    for length in range(790, 830):
        value = f"v=DKIM1; n={'x' * length}; p={KEY}"
        finding = compare_values(OURS, [value])
        assert finding == (Finding(PUBLISHED) if len(value) <= 1024 else Finding(MALFORMED, reason))
    assert compare_values(OURS, [f"{OURS}; n={'x' * 5000}"]) == Finding(PUBLISHED)


@pytest.mark.parametrize(
    ("value", "length"),
    [
        (f"v=DKIM1; p={KEY[:-1]}", f"the first {len(KEY) - 1} of {len(KEY)} characters of the key"),
        (f"p={KEY[:50]} {KEY[50:70]}", f"the first 70 of {len(KEY)} characters of the key"),
        (OURS[:22], f"the first 19 of {len(OURS) - 3} {CHARACTERS}"),
        ("v", f"the first 1 of {len(OURS) - 3} {CHARACTERS}"),
        ("v=D  KIM1 ;g", f"the first 9 of {len(OURS) - 3} {CHARACTERS}"),
    ],
)
def test_cut_record_is_truncated_wherever_it_was_cut(value, length):
    assert compare_values(OURS, [value]) == Finding(TRUNCATED, f"only {length} are published")


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


def test_no_record_is_missing():
    assert compare_values(OURS, []) == Finding(Verdict.MISSING)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([OURS, SPF], "2 TXT records, one of them ours"),
        ([SPF, f"p={OTHER_KEY}"], "2 TXT records, none of them ours"),
        ([SPF, OURS, "v=DKIM1; p="], "3 TXT records, one of them ours"),
    ],
)
def test_several_records_are_duplicate_and_the_reason_says_whether_ours_is_one(values, reason):
    finding = compare_values(OURS, values)
    assert finding.verdict is Verdict.DUPLICATE
    assert reason in finding.reason


@given(
    st.lists(st.sampled_from([*'vkgpnst=;: \\"\x7fé', "DKIM1", "rsa", KEY, KEY[:9], "v=DKIM1;"]))
)
def test_any_pieces_of_a_record_have_a_finding(pieces):
    value = "".join(pieces)
    assert (compare_values(OURS, [value]).reason == "") == (
        compare_values(OURS, [value]).verdict is PUBLISHED
    )
