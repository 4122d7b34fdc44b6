from __future__ import annotations

import base64
import time

import dns.message
import dns.name
import dns.tsig
import pytest

from dkimctl.dns.messages import encode, make_txt_question
from dkimctl.dns.transport import NotSigned, NotTrusted, SignatureRefused, Signer

SECRET = base64.b64encode(b"a key for this test alone").decode()
QUERY = encode(0x1234, make_txt_question("s1._domainkey.example.com"), recursion=False, edns=False)
ALGORITHMS = [
    "hmac-sha1", "hmac-sha224", "hmac-sha256", "hmac-sha256-128", "hmac-sha384", "hmac-sha384-192",
    "hmac-sha512", "hmac-sha512-256",
]  # fmt: skip


def signer(algorithm="hmac-sha256") -> Signer:
    return Signer(dns.tsig.Key("Key.Example", SECRET, algorithm))


def keyring(algorithm="hmac-sha256"):
    return {dns.name.from_text("key.example"): dns.tsig.Key("key.example", SECRET, algorithm)}


def answer_to(signed: bytes, keys) -> bytes:
    made = dns.message.make_response(dns.message.from_wire(signed, keyring=keys))
    return made.to_wire()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_dnspython_verifies_our_signature_and_we_verify_its(algorithm):
    one, keys = signer(algorithm), keyring(algorithm)
    signed, mac = one.sign(QUERY)
    assert len(signed) == len(QUERY) + one.size
    parsed = dns.message.from_wire(signed, keyring=keys)
    assert parsed.had_tsig
    assert parsed.mac == mac
    plain = one.verify(answer_to(signed, keys), mac)
    assert dns.message.from_wire(QUERY).is_response(dns.message.from_wire(plain))


def test_every_changed_byte_of_an_answer_is_noticed():
    one = signer()
    signed, mac = one.sign(QUERY)
    answer = answer_to(signed, keyring())
    for at in range(2, len(answer)):  # the ID of the message is not signed
        changed = bytearray(answer)
        changed[at] ^= 1
        try:
            plain = one.verify(bytes(changed), mac)
        except (NotTrusted, SignatureRefused):
            continue
        assert plain == one.verify(answer, mac)  # the name of the key as the server writes it


def test_an_answer_to_another_question_is_not_trusted():
    one = signer()
    signed, _ = one.sign(QUERY)
    with pytest.raises(NotTrusted, match="signature of its answer is wrong"):
        one.verify(answer_to(signed, keyring()), one.sign(QUERY[:-1] + b"\2")[1])


def test_answers_without_signature_are_not_trusted():
    one = signer()
    signed, mac = one.sign(QUERY)
    refused = dns.message.make_response(dns.message.from_wire(QUERY))
    refused.set_rcode(5)
    with pytest.raises(NotSigned, match="REFUSED") as raised:
        one.verify(refused.to_wire(), mac)
    assert raised.value.rcode == 5
    for wire in (b"", QUERY[:5], QUERY, signed[:-1], QUERY[:4] + b"\xff" * 8, b"\xff" * 400):
        with pytest.raises(NotSigned):
            one.verify(wire, mac)


def test_an_answer_of_another_time_is_not_trusted(monkeypatch):
    one, now = signer(), time.time()
    signed, mac = one.sign(QUERY)
    answer = answer_to(signed, keyring())
    monkeypatch.setattr(time, "time", lambda: now + 290)
    assert one.verify(answer, mac)
    monkeypatch.setattr(time, "time", lambda: now + 310)
    with pytest.raises(NotTrusted, match=r"differs by 3[01][0-9] s"):
        one.verify(answer, mac)


@pytest.mark.parametrize(("error", "name"), [(16, "BADSIG"), (17, "BADKEY"), (18, "BADTIME")])
def test_what_the_server_says_of_our_signature_is_told(error, name):
    one = signer()
    _, mac = one.sign(QUERY)
    other = (1_800_000_000).to_bytes(6) if name == "BADTIME" else b""
    answer = _with_tsig(bytes(8), b"", error.to_bytes(2) + len(other).to_bytes(2) + other)
    with pytest.raises(SignatureRefused) as raised:
        one.verify(answer, mac)
    assert raised.value.error == error
    assert raised.value.server_time == (1_800_000_000 if other else None)


@pytest.mark.parametrize("other", [b"\xff" * 2000, b"\xff" * 8, b"\x01"])
def test_other_data_that_is_no_time_is_ignored(other):
    """Nobody has authenticated it."""
    one = signer()
    _, mac = one.sign(QUERY)
    answer = _with_tsig(bytes(8), b"", (18).to_bytes(2) + len(other).to_bytes(2) + other)
    with pytest.raises(SignatureRefused) as raised:
        one.verify(answer, mac)
    assert raised.value.server_time is None


def test_the_secret_is_shown_nowhere():
    one = signer()
    assert SECRET not in f"{one!r} {vars(one)}"


def _with_tsig(signed_at: bytes, mac: bytes, end: bytes = bytes(4)) -> bytes:
    """An answer that is the question itself, with a TSIG record."""
    data = b"\x0bhmac-sha256\0" + signed_at + len(mac).to_bytes(2) + mac + QUERY[:2] + end
    record = b"\x03key\x07example\0\0\xfa\0\xff\0\0\0\0" + len(data).to_bytes(2) + data
    return QUERY[:10] + b"\0\1" + QUERY[12:] + record
