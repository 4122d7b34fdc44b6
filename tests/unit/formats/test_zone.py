"""Master-file lines, read by dnspython; and the bare value."""

from __future__ import annotations

import re

import dns.name
import dns.rdatatype
import dns.rrset
import dns.zone
import dns.zonefile
from hypothesis import example, given
from hypothesis import strategies as st

from dkimctl.formats.renderer import Format, txt_data
from dkimctl.models import DnsRecord
from dkimctl.text import character_strings
from rendering import render_files, render_text

ANY_TEXT = st.text(st.characters())


PRINTABLE_ASCII = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=1500)


ZONES = ["example.com", "mail.example.com", "example.net"]


def zone_text(*results, ttl=3600):
    return render_text(Format.ZONE, results, ttl=ttl)


def parsed(text):
    """The RRsets of a master file, read by dnspython."""
    return dns.zonefile.read_rrsets(text, origin=".", relativize=False, rdclass=None)


def strings_of(rrset):
    [rdata] = rrset
    return rdata.strings


def test_a_file_for_each_zone_is_included_in_it(result, tmp_path):
    domains = ("example.com", "www.example.com", "mail.example.com", "example.net")
    results = [result(sign_domain=domain) for domain in domains]
    apex = "@ 60 IN SOA ns.example.com. root.example.com. 1 2 3 4 5\n@ 60 IN NS ns.example.com.\n"
    found = {}
    for file in render_files(Format.ZONE, results, ZONES):
        (tmp_path / file.name).write_text("".join(file.chunks))
        text = f'$INCLUDE {tmp_path / file.name}\nafter 60 IN TXT "x"\n'
        # For the origin of the whole, `after` must be a name of it again.
        origin = dns.name.from_text(file.zone)
        zone = dns.zone.from_text(apex + text, origin=origin, allow_include=True)
        found[file.zone] = {
            name.derelativize(origin).to_text(omit_final_dot=True)
            for name, _ in zone.iterate_rdatasets(dns.rdatatype.TXT)
        }
    assert found == {
        "example.com": {
            "s1._domainkey.example.com", "s1._domainkey.www.example.com", "after.example.com",
        },
        "mail.example.com": {"s1._domainkey.mail.example.com", "after.mail.example.com"},
        "example.net": {"s1._domainkey.example.net", "after.example.net"},
    }  # fmt: skip


@given(text=ANY_TEXT)
@example(text="x\nevil.example. 1 IN TXT gotcha")
@example(text="x\revil")
@example(text="x\u2028evil \u202e 日本語")
def test_no_text_ends_the_comment(result, text):
    hostile = result(selector=text, message=text, code=text)
    zone = zone_text(hostile)
    assert re.fullmatch(r";[ -~]*\n[ -~]*\n", zone)
    [rrset] = parsed(zone)
    assert b"".join(strings_of(rrset)).decode() == hostile.registration.record.value


@given(value=PRINTABLE_ASCII | ANY_TEXT)
@example(value='v=DKIM1; n="a\\b"; p=')
@example(value="\\032\\" * 100)
@example(value="é" * 200)
def test_any_value_is_read_back_exactly(result, value):
    record = DnsRecord("s1._domainkey.example.com", "TXT", value)
    zone = zone_text(result(record=record))
    [rrset] = parsed(zone)
    assert zone.isascii()
    assert b"".join(strings_of(rrset)) == value.encode("utf-8", "surrogatepass")
    assert all(len(string) <= 255 for string in strings_of(rrset))


@given(label=st.text(st.characters(exclude_characters="."), min_size=1, max_size=15))
@example(label='a b;c"d\\e')
@example(label="@")
@example(label="*")
@example(label="$ORIGIN")
def test_any_name_is_read_back_exactly(result, label):
    record = DnsRecord(f"{label}._domainkey.example.com", "TXT", "v=DKIM1; p=")
    [rrset] = parsed(zone_text(result(record=record)))
    assert rrset.name.labels == (
        label.encode("utf-8", "surrogatepass"),
        b"_domainkey",
        b"example",
        b"com",
        b"",
    )


@given(value=PRINTABLE_ASCII)
def test_a_value_is_split_into_as_few_strings_as_possible(value):
    strings = character_strings(value)
    assert b"".join(strings).decode() == value
    assert len(strings) == max(1, -(-len(value) // 255))
    assert txt_data(value).startswith('"')
    assert txt_data(value).endswith('"')


def values_of(*results):
    return render_text(Format.VALUE, results)


def test_control_characters_are_escaped(result):
    hostile = result(record=DnsRecord("a\tb", "TXT", "x\ny\x1b[2J"))
    assert values_of(hostile) == "x\\x0ay\\x1b[2J\n"
    assert values_of(hostile, hostile).splitlines()[0] == "a\\x09b\tx\\x0ay\\x1b[2J"
