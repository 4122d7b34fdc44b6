"""Signatures that are valid or not, for every reason; and mail of attackers."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from damaged_mail import CASES, DOMAIN, MAIL, key_pair, rsa_record, signed
from dkimctl.dkim import record_name
from dkimctl.dns.messages import NOERROR, Answer
from dkimctl.dns.queries import Source
from dkimctl.mail.message import KnownKey, read_message
from dkimctl.mail.verification import MAX_SIGNATURES, verify_mail
from dkimctl.models import DnsRecord, Registration


class FakeDns:
    """A DNS server with TXT values by name; an alias is the name that it leads to."""

    def __init__(self, values=()) -> None:
        self._values = dict(values)
        self.asked: list[str] = []

    async def prefetch(self, questions):
        pass

    async def ask(self, question):
        name = question.name.to_text(omit_final_dot=True)
        self.asked.append(name)
        found = self._values.get(name, ())
        if isinstance(found, str):
            return Answer(NOERROR, True, False, alias=found)
        values = tuple(value.encode("utf-8", "surrogateescape") for value in found)
        return Answer(NOERROR, True, False, values)


def verify(data: bytes, dns: FakeDns, *registrations: Registration):
    keys = {one.key: KnownKey("signing", one) for one in registrations}

    def read_known(domains):
        return {key: one for key, one in keys.items() if key.sign_domain in domains}

    message = read_message(data, "mail.eml")
    source = Source(given={"dns.test": dns})
    return verify_mail(message, "mail.eml", source, source, read_known, time.time())


def at(selector: str, domain: str = DOMAIN) -> str:
    return record_name(selector, domain)


def registration(value: str, selector: str = "s1", domain: str = DOMAIN, **fields):
    record = DnsRecord(at(selector, domain), "TXT", value)
    return Registration(domain, selector, 2048, record=record, code="201", **fields)


RIGHT = key_pair(2048)[1]
OTHER = key_pair(3072)[1]
GOOD = signed(MAIL)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_damage_is_found_and_named(case):
    report = verify(case.received(), FakeDns({at(case.name): case.values()}))
    [found] = report.signatures
    assert found.verdict == case.verdict, found
    assert case.reason in found.reason
    assert bool(case.reason) == bool(found.reason)


@pytest.mark.parametrize(
    "change",
    [
        lambda mail: mail.replace(b"\r\n", b"\n"),
        lambda mail: mail.replace(b"\r\n", b"\r"),
        lambda mail: b"From joe@example.com Wed Jan  6 10:00:00 2027\r\n" + mail,
        lambda mail: b"\xef\xbb\xbf" + mail,
        lambda mail: mail.replace(b"\r\nFrom:", b"\r\nX-Other: \xff\0\x1b[2J\r\nFrom:"),
    ],
    ids=["LF", "CR", "mbox", "BOM", "8-bit and NUL"],
)
def test_files_as_programs_save_them(change):
    [found] = verify(change(GOOD), FakeDns({at("s1"): [RIGHT]})).signatures
    assert found.verdict == "pass", found


def test_aliases_are_followed_to_the_key_but_not_for_ever():
    dns = {at("s1"): "a.example.net", "a.example.net": "b.example.net", "b.example.net": [RIGHT]}
    assert verify(GOOD, FakeDns(dns)).verdict == "pass"
    [found] = verify(GOOD, FakeDns({at("s1"): at("s1")})).signatures
    assert (found.verdict, "aliases" in found.reason) == ("unknown", True)


def test_of_several_records_each_has_to_verify():
    values = [RIGHT, f"{RIGHT};"]
    assert verify(GOOD, FakeDns({at("s1"): values})).verdict == "pass"
    [found] = verify(GOOD, FakeDns({at("s1"): [OTHER, RIGHT]})).signatures
    assert (found.verdict, "any of 2 TXT records" in found.reason) == ("fail", True)


def test_a_registered_key_tells_whether_dns_is_at_fault():
    ours = registration(RIGHT)
    for values, note in (
        ([OTHER], "it is valid with the registered key: DNS is at fault"),
        ([], "it is valid with the registered key: DNS is at fault"),
        ([RIGHT], None),
    ):
        [found] = verify(GOOD, FakeDns({at("s1"): values}), ours).signatures
        assert (found.verdict == "pass") is (note is None)
        assert note is None or note in found.notes
        assert found.known.stage == "signing"
    damaged = GOOD.replace(b"Verify", b"Check")
    [found] = verify(damaged, FakeDns({at("s1"): [OTHER]}), ours).signatures
    assert "it is not valid with the registered key either" in found.notes
    assert found.in_dns.verdict == "mismatch"


def test_ten_thousand_signatures_do_not_hide_ours():
    junk = b"DKIM-Signature: v=1; a=rsa-sha256; d=evil.test; s=s%d; h=from; bh=AA==; b=AA==\r\n"
    flood = b"".join(junk % number for number in range(10_000)) + GOOD
    dns = FakeDns({at("s1"): [RIGHT]})
    began = time.monotonic()
    report = verify(flood, dns, registration(RIGHT))
    assert (report.signatures[0].verdict, report.verdict) == ("pass", "pass")
    assert len(report.signatures) == MAX_SIGNATURES
    assert report.unverified == 10_001 - MAX_SIGNATURES
    assert len(dns.asked) < 200
    ours = b"".join(junk.replace(b"evil.test", b"example.com") % n for n in range(10_000))
    report = verify(ours + GOOD, dns, registration(RIGHT))
    assert (report.verdict, report.of_ours) == ("fail", True)
    assert len(dns.asked) < 200
    assert time.monotonic() - began < 20


_NAMES = b" : ".join(b"x%d" % number for number in range(499))
_SIGNATURE = b"DKIM-Signature: v=1; a=rsa-sha256; d=example.com; s=s1; bh=AA==; c=relaxed/relaxed; "


@pytest.mark.parametrize(
    "mail",
    [
        pytest.param(_SIGNATURE + mail, id=name)
        for name, mail in {
            "long line": b"h=from; b=AA==\r\n" + MAIL + b" " * 5_000_000 + b"x\r\n",
            "trailing spaces": b"h=from; b=AA==\r\n" + MAIL + b" \r\n" * 1_000_000,
            "folds": b"h=x:from; b=AA==\r\nX: a\r\n" + b" folded\r\n" * 500_000 + MAIL,
            "names": b"h=from:" + _NAMES + b"; b=AA==\r\n" + b"X: a\r\n" * 50_000 + MAIL,
            "folded b=": b"h=from; b=" + b"\r\n " * 100_000 + b"!\r\n" + MAIL,
            "tag spaces": b"h=from; b=AA==" + b"; b" + b" " * 16_000 + b"\r\n" + MAIL,
            "tags": b"h=from; b=AA==" + (b"; b" + b" " * 999) * 16 + b"\r\n" + MAIL,
        }.items()
    ],
)
def test_no_mail_takes_long(mail):
    began = time.process_time()
    assert verify(mail, FakeDns({at("s1"): [RIGHT]})).verdict == "fail"
    assert time.process_time() - began < 10


def test_a_huge_key_is_refused_at_once():
    [found] = verify(GOOD, FakeDns({at("s1"): [rsa_record(2048, 1 << 4_000 | 1)]})).signatures
    assert found.reason == "the key record has a key that is too long"


@given(st.dictionaries(st.sampled_from("vabcdhilqstx"), st.text(max_size=20)), st.text())
def test_no_tag_values_and_no_key_end_in_a_traceback(tags, record):
    usual = {"v": "1", "a": "rsa-sha256", "b": "AAAA", "bh": "AAAA", "d": "example.com",
             "h": "from", "s": "s1"}  # fmt: skip
    text = "; ".join(f"{name}={value}" for name, value in (usual | tags).items())
    field = f"DKIM-Signature: {text}".replace("\r", "").replace("\n", "") + "\r\n"
    data = field.encode("utf-8", "surrogatepass") + MAIL
    record = record.encode("utf-8", "replace").decode()
    [found] = verify(data, FakeDns({at("s1"): [record]})).signatures
    assert found.verdict == "fail"
