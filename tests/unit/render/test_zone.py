from __future__ import annotations

import re
from collections.abc import Callable

import dns.name
import dns.rdatatype
import dns.rrset
import dns.zone
import dns.zonefile
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dkimctl.models.registration import DnsRecord, Outcome, Result
from dkimctl.render.formats import open_renderer
from dkimctl.render.records import character_strings, txt_data
from dkimctl.render.renderer import Format, render_all

ANY_TEXT = st.text(st.characters())
PRINTABLE_ASCII = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=1500)


def zone_of(*results: Result, ttl: int = 3600) -> str:
    return "".join(render_all(open_renderer(Format.ZONE, ttl=ttl), results))


def parsed(text: str) -> list[dns.rrset.RRset]:
    """The RRsets of a master file, read by dnspython."""
    return dns.zonefile.read_rrsets(text, origin=".", relativize=False, rdclass=None)


def strings_of(rrset: dns.rrset.RRset) -> tuple[bytes, ...]:
    [rdata] = rrset
    return rdata.strings


def test_one_line_a_record_under_its_comment(result: Callable[..., Result]) -> None:
    record = DnsRecord("s1._domainkey.example.com", "TXT", "v=DKIM1; p=" + "A" * 250)
    assert zone_of(result(record=record), ttl=300) == (
        "; example.com selector s1, 2048 bits, result 201 created\n"
        's1._domainkey.example.com. 300 IN TXT "v=DKIM1; p=' + "A" * 244 + '" "AAAAAA"\n'
    )


def test_dnspython_reads_back_names_ttl_and_values(every_outcome: list[Result]) -> None:
    rrsets = parsed(zone_of(*every_outcome, ttl=86400))
    expected = [
        result.registration.record
        for result in every_outcome
        if result.outcome in (Outcome.CREATED, Outcome.EXISTS, Outcome.DIFFERS)
    ]
    assert len(expected) == 3
    for rrset, record in zip(rrsets, expected, strict=True):
        assert rrset.name == dns.name.from_text(record.fqdn)
        assert rrset.rdtype == dns.rdatatype.TXT
        assert rrset.ttl == 86400
        assert b"".join(strings_of(rrset)).decode() == record.value


def test_included_in_a_zone_no_name_is_doubled(result: Callable[..., Result]) -> None:
    results = [result(sign_domain="example.com"), result(sign_domain="mail.example.com")]
    apex = "@ 60 IN SOA ns.example.com. root.example.com. 1 2 3 4 5\n@ 60 IN NS ns.example.com.\n"
    zone = dns.zone.from_text(apex + zone_of(*results), origin="example.com.")
    names = {name.to_text() for name, _ in zone.iterate_rdatasets(dns.rdatatype.TXT)}
    assert names == {"s1._domainkey", "s1._domainkey.mail"}


@pytest.mark.parametrize("outcome", Outcome)
def test_only_what_is_sound_and_registered_is_rendered(
    result: Callable[..., Result], outcome: Outcome
) -> None:
    rendered = outcome in (Outcome.CREATED, Outcome.EXISTS, Outcome.DIFFERS)
    for fmt in (Format.ZONE, Format.VALUE):
        assert bool("".join(render_all(open_renderer(fmt), [result(outcome)]))) is rendered
        assert "".join(render_all(open_renderer(fmt), [result(outcome, record=None)])) == ""


def test_a_comment_tells_only_what_is_known(result: Callable[..., Result]) -> None:
    bare = result(selector=None, key_len=None, code="201", message=None)
    assert zone_of(bare).startswith("; example.com, result 201\n")
    assert zone_of(result(code=None, message=None)).startswith(
        "; example.com selector s1, 2048 bits\n"
    )


@given(text=ANY_TEXT)
@example(text="x\nevil.example. 1 IN TXT gotcha")
@example(text="x\revil")
@example(text="x\u2028evil \u202e 日本語")
def test_nothing_ends_the_comment(result: Callable[..., Result], text: str) -> None:
    hostile = result(selector=text, message=text, code=text)
    zone = zone_of(hostile)
    assert re.fullmatch(r";[ -~]*\n[ -~]*\n", zone)
    [rrset] = parsed(zone)
    assert b"".join(strings_of(rrset)).decode() == hostile.registration.record.value


@given(value=PRINTABLE_ASCII | ANY_TEXT)
@example(value='v=DKIM1; n="a\\b"; p=')
@example(value="\\032\\" * 100)
@example(value="é" * 200)
def test_any_value_comes_back_exactly(result: Callable[..., Result], value: str) -> None:
    record = DnsRecord("s1._domainkey.example.com", "TXT", value)
    zone = zone_of(result(record=record))
    [rrset] = parsed(zone)
    assert zone.isascii()
    assert b"".join(strings_of(rrset)) == value.encode("utf-8", "surrogatepass")
    assert all(len(string) <= 255 for string in strings_of(rrset))


def test_escapes_are_those_of_the_rfc() -> None:
    assert txt_data('a; "b"\\\0\x7f\u00e9') == r'"a; \"b\"\\\000\127\195\169"'
    assert txt_data("") == '""'


@given(value=PRINTABLE_ASCII)
def test_strings_are_as_few_and_as_quoted_as_can_be(value: str) -> None:
    strings = character_strings(value)
    assert b"".join(strings).decode() == value
    assert len(strings) == max(1, -(-len(value) // 255))
    assert txt_data(value).startswith('"')
    assert txt_data(value).endswith('"')


@given(label=st.text(st.characters(exclude_characters="."), min_size=1, max_size=15))
@example(label='a b;c"d\\e')
@example(label="@")
@example(label="*")
@example(label="$ORIGIN")
def test_any_name_comes_back_exactly(result: Callable[..., Result], label: str) -> None:
    record = DnsRecord(f"{label}._domainkey.example.com", "TXT", "v=DKIM1; p=")
    [rrset] = parsed(zone_of(result(record=record)))
    assert rrset.name.labels == (
        label.encode("utf-8", "surrogatepass"),
        b"_domainkey",
        b"example",
        b"com",
        b"",
    )


def test_a_trailing_dot_is_not_doubled(result: Callable[..., Result]) -> None:
    record = DnsRecord("s1._domainkey.example.com.", "TXT", "v=DKIM1; p=")
    assert "\ns1._domainkey.example.com. 3600 " in zone_of(result(record=record))
