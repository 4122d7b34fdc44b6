"""How people write where a DNS server is."""

from __future__ import annotations

import contextlib
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.resolver.addresses import Address, parse_address, system_nameservers


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("192.0.2.1", Address("192.0.2.1", 53), "192.0.2.1"),
        ("192.0.2.1:53", Address("192.0.2.1", 53), "192.0.2.1"),
        ("192.0.2.1:5353", Address("192.0.2.1", 5353), "192.0.2.1:5353"),
        ("192.0.2.1:00053", Address("192.0.2.1", 53), "192.0.2.1"),
        ("192.0.2.1:65535", Address("192.0.2.1", 65535), "192.0.2.1:65535"),
        ("2001:db8::1", Address("2001:db8::1", 53), "2001:db8::1"),
        ("2001:DB8:0::1", Address("2001:db8::1", 53), "2001:db8::1"),
        ("::1:53", Address("::1:53", 53), "::1:53"),
        ("[::1]", Address("::1", 53), "::1"),
        ("[::1]:5353", Address("::1", 5353), "[::1]:5353"),
        ("fe80::1%eth0", Address("fe80::1%eth0", 53), "fe80::1%eth0"),
        ("[fe80::1%eth0]:5353", Address("fe80::1%eth0", 5353), "[fe80::1%eth0]:5353"),
    ],
)
def test_an_address_is_read_as_people_write_it(text, address, shown):
    assert parse_address(text) == address
    assert str(address) == shown


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "localhost", "ns1.example.com", "ns1.example.com:53", "192.0.2", "192.0.2.256",
        "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536", "192.0.2.1:999999", "192.0.2.1:-1",
        "192.0.2.1:dns", "192.0.2.1 ", "192.0.2.1\n", "192.0.2.1:53\n", "192.0.2.1/24",
        "0x7f000001", "192.0.2.01", "1", "[::1", "::1]", "[::1]:", "[::1]:0", "[]", "[]:53", ":53",
        "[[::1]]:53",
        "::1::2", "[::1]5353", "udp://192.0.2.1", "192.0.2.1:\u0665\u0663", "\u0661.2.3.4",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_with_an_example(text):
    with pytest.raises(UsageError) as caught:
        parse_address(text)
    assert "is no address of a DNS server" in caught.value.message
    assert "192.0.2.1:5353" in caught.value.hint


@given(st.text(st.characters(), max_size=40) | st.text("0123456789.:[]%abf", max_size=40))
def test_no_text_raises_anything_else(text):
    with contextlib.suppress(UsageError):
        address = parse_address(text)
        ipaddress.ip_address(address.host)
        assert 0 < address.port < 65536


@given(st.ip_addresses(), st.integers(1, 65535))
def test_what_is_shown_is_read_back(ip, port):
    address = Address(str(ip), port)
    assert parse_address(str(address)) == address


def test_the_resolvers_of_this_machine_are_addresses():
    for address in system_nameservers():
        assert parse_address(str(address)) == address
