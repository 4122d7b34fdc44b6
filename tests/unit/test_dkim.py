"""Which records may be published."""

from __future__ import annotations

import base64

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from dkimctl import dkim
from dkimctl.models import DnsRecord


@pytest.mark.interface("2.4", "value")
@pytest.mark.parametrize(
    "value",
    ["v=DKIM1; g=*; k=rsa; p={}", "p={}", " v=DKIM1 ; k = rsa ; p = {} ;", "v=DKIM1;p={};x=y"],
)
def test_the_grammar_of_rfc_6376_is_accepted(key_records, value):
    for bits, record in key_records.items():
        key = record.partition("p=")[2]
        for text in (key, f"{key[:50]} {key[50:]}"):
            assert dkim.parse_key_record(value.format(text)).key_len == bits


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "empty"),
        ("v=DKIM1; p=", "no public key"),
        ("v=DKIM2; p=AAAA", "leading v=DKIM1"),
        ("v=DKIM1; k=ed25519; p=AAAA", "key type"),
        ("v=DKIM1; k=RSA; p=AAAA", "key type"),
        ("v=DKIM1; p=AAAA; p=AAAA", "occurs twice"),
        ("v=DKIM1; x-y=1; p=AAAA", "tag=value"),
        ("v=DKIM1; p=AAAA=", "not base64"),
        ("v=DKIM1; p=" + "A" * 4086, "4097 characters, more than 4096"),
        ("v=DKIM1;  p=" + "A" * 4084, "not an RSA key"),
        ("x" * 70_000, "70000 characters, more than 4096"),
        ("v=DKIM1;; p=AAAA", "tag=value"),
        ("hello", "tag=value"),
        ("v=DKIM1; p=AAAA", "not an RSA key"),
        ("v=DKIM1; p=MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "not an RSA"),
        *((f"v=DKIM1; p=AAAA{stray}AAAA", "not base64") for stray in ("****", "----", "====")),
        ("v=DKIM1; p=AAAA\n", "printable ASCII"),
        ("v=DKIM1; n=é; p=AAAA", "printable ASCII"),
        ("v=DKIM1; p=AAAA\x1b[2J", "printable ASCII"),
    ],
)
def test_other_records_are_refused_with_the_reason(value, reason):
    with pytest.raises(dkim.KeyRecordError, match=reason):
        dkim.parse_key_record(value)


def test_a_truncated_key_or_a_stray_character_is_a_fault(key_records, make_registration):
    value = key_records[2048]
    broken = [value[:length] for length in range(30, len(value) - 1)]
    broken += [f"{value[:150]}{stray}{value[151:]}" for stray in '"\\;=-_ \né\ud800']
    for text in broken:
        record = DnsRecord("s1._domainkey.example.com", "TXT", text)
        fault = dkim.record_fault(make_registration(record=record))
        assert fault.startswith("the TXT value is not a DKIM key record: ")


@pytest.mark.parametrize("bits", [1024, 2048, 4096])
@pytest.mark.parametrize("flipped", [0x01, 0x80, 0xFF])
def test_a_damaged_key_has_the_length_that_cryptography_reads(key_records, bits, flipped):
    der = base64.b64decode(key_records[bits].partition("p=")[2])
    read = 0
    for position in range(len(der)):
        changed = bytearray(der)
        changed[position] ^= flipped
        try:
            key_len = dkim.parse_key_record(f"p={base64.b64encode(changed).decode()}").key_len
            expected = serialization.load_der_public_key(bytes(changed)).key_size
        except (ValueError, UnsupportedAlgorithm):  # KeyRecordError is a ValueError
            continue
        assert key_len == expected
        read += 1
    assert read > bits // 8 - 3  # most are still keys


@pytest.mark.parametrize("bits", [1024, 2048])
@pytest.mark.parametrize("start", ["v=DKIM1; g=*; k=rsa; p=", "v=DKIM1; k=rsa; p="])
@pytest.mark.parametrize("flipped", [0x01, 0x80, 0xFF])
def test_the_usual_form_and_the_parser_agree(key_records, make_registration, bits, start, flipped):
    der = base64.b64decode(key_records[bits].partition("p=")[2])
    keys = [der, der[:-1], der + b"\0"]
    for position in range(len(der)):
        changed = bytearray(der)
        changed[position] ^= flipped
        keys.append(bytes(changed))
    texts = [base64.b64encode(key).decode() for key in keys]
    for other in (1024, 2048, 4096):  # the beginning of one key, and as much as another has
        text = key_records[other].partition("p=")[2]
        texts += [texts[0][:start_at] + text[at:] for start_at in (39, 45) for at in (39, 45)]
    for text in [*texts, f"{texts[0]};", f"{texts[0]}; t=s", f"{texts[0]}=", f"{texts[0]}\x1b"]:
        faults = {
            dkim.record_fault(make_registration(key_len=None)._replace(record=record))
            for value in (f"{start}{text}", f"{start}{text[:8]} {text[8:]}")
            for record in [DnsRecord("s1._domainkey.example.com", "TXT", value)]
        }
        assert len(faults) == 1


@given(st.text(max_size=200))
def test_any_text_raises_only_key_record_errors(text):
    with pytest.raises(dkim.KeyRecordError):
        dkim.parse_key_record(text)


@pytest.mark.interface("2.4", "fqdn", "type")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fqdn": "s1._domainkey.example.org"}, "not s1._domainkey.example.com"),
        ({"fqdn": "s1._domainkey.example.com.example.com"}, "not s1._domainkey.example.com"),
        ({"fqdn": ""}, "not s1._domainkey.example.com"),
        ({"type": "CNAME"}, "CNAME, not TXT"),
        ({"value": "v=DKIM1; p="}, "no public key"),
        ({"value": 'v=DKIM1; p=AAAA" "x'}, "not base64"),
        ({"value": "v=DKIM1; n=***; p=AAAA"}, "contains ***"),
    ],
)
def test_another_name_type_or_value_is_a_fault(make_registration, change, reason):
    sound = make_registration()
    assert reason in dkim.record_fault(sound._replace(record=sound.record._replace(**change)))


@pytest.mark.parametrize("selector", ["a b", 'a"b', "a..b", "-", "a;b", "ä", "x" * 64, "a\\", "*"])
def test_what_dns_does_not_allow_is_a_fault(make_registration, selector):
    assert "not a valid DNS name" in dkim.record_fault(make_registration(selector=selector))
    longest = "a" * 53 + ".a" * 92 + ".b"  # 253 octets with s1._domainkey
    assert dkim.record_fault(make_registration(longest)) == ""
    assert "not a valid DNS name" in dkim.record_fault(make_registration(f"a{longest}"))


def test_what_is_missing_is_a_fault_and_case_is_none(make_registration):
    """DNS ignores it (RFC 4343)."""
    sound = make_registration(selector="a.b_c-d")
    assert dkim.record_fault(sound) == ""
    record = sound.record._replace(fqdn=sound.record.fqdn.upper(), type="txt")
    assert dkim.record_fault(sound._replace(record=record, selector="A.b_c-d")) == ""
    assert "no DNS record" in dkim.record_fault(sound._replace(record=None))
    assert "no selector" in dkim.record_fault(sound._replace(selector=""))


def _rsa_record(modulus: int, exponent: int) -> DnsRecord:
    """A record with this key, as RSAPublicKey (RFC 8017 appendix A.1.1)."""
    numbers = b"".join(
        _element(0x02, number.to_bytes(number.bit_length() // 8 + 1))
        for number in (modulus, exponent)
    )
    key = base64.b64encode(_element(0x30, numbers)).decode()
    return DnsRecord("s1._domainkey.example.com", "TXT", f"v=DKIM1; k=rsa; p={key}")


def _element(tag: int, contents: bytes) -> bytes:
    return bytes([tag, 0x82]) + len(contents).to_bytes(2) + contents


@pytest.mark.interface("2.4", "key_len")
@pytest.mark.parametrize(
    ("bits", "exponent", "fault"),
    [
        (512, 65537, "the key has 512 bits, fewer than 1024"),
        (1023, 65537, "the key has 1023 bits, fewer than 1024"),
        (1024, 3, ""),
        (1025, 65537, ""),
        (3072, 65537, ""),
        # A signature with the exponent 1 is the message itself.
        *((1024, exponent, "its p= is not an RSA key") for exponent in (0, 1, 2)),
    ],
)
def test_a_key_that_is_too_weak_is_a_fault(make_registration, bits, exponent, fault):
    """RFC 8301 section 3.2, even if the service says that it is as long as was asked."""
    for key_len in (bits, None):
        record = _rsa_record((1 << bits) - 1, exponent)
        said = dkim.record_fault(make_registration()._replace(key_len=key_len, record=record))
        assert said.endswith(fault), said
        assert bool(said) is bool(fault)
    longer = make_registration()._replace(key_len=4096, record=record)
    assert fault or dkim.record_fault(longer) == f"the key has {bits} bits, not 4096"


def test_what_is_not_exactly_one_sound_rsa_key_is_a_fault(make_registration, key_records):
    der = base64.b64decode(key_records[1024].partition("p=")[2])
    oid = bytes.fromhex("06092a864886f70d0101")
    for key, fault in (
        (der, ""),
        (2 * der, "bytes after the key"),
        # RSASSA-PSS (RFC 4055), whose keys look the same, but whose signatures DKIM does not have.
        (der.replace(oid + b"\x01", oid + b"\x0a"), "not an RSA key"),
        # The indefinite form of a length (X.690 section 10.1), here of a number with 128 octets.
        (_element(0x30, b"\2\x80" + b"\xff" * 128 + b"\2\3\1\0\1"), "not an RSA key"),
        (base64.b64decode(_rsa_record(1 << 1023, 65537).value.partition("p=")[2]), "not an RSA"),
    ):
        value = f"v=DKIM1; p={base64.b64encode(key).decode()}"
        record = DnsRecord("s1._domainkey.example.com", "TXT", value)
        said = dkim.record_fault(make_registration(key_len=1024, record=record))
        assert (fault in said, bool(said)) == (True, bool(fault))


@pytest.mark.interface("2.4", "value")
def test_a_value_over_4096_characters_is_a_fault(make_registration, key_records):
    name, longest = "s1._domainkey.example.com", f"{key_records[2048]}; n="
    longest += "x" * (4096 - len(longest))
    sound = make_registration(record=DnsRecord(name, "TXT", longest))
    assert dkim.record_fault(sound) == ""
    assert dkim.with_key_len(sound._replace(key_len=None)).key_len == 2048
    longer = make_registration(key_len=None, record=DnsRecord(name, "TXT", f"{longest}x"))
    assert "4097 characters, more than 4096" in dkim.record_fault(longer)
    assert dkim.with_key_len(longer).key_len is None
