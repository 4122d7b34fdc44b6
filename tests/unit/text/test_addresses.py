"""Addresses of DNS servers."""

from __future__ import annotations

import contextlib
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.addresses import Address, parse_address, parse_server
from dkimctl.errors import UsageError


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
def test_address_is_parsed(text, address, shown):
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
def test_invalid_address_is_refused_with_an_example(text):
    with pytest.raises(UsageError) as caught:
        parse_address(text)
    assert "invalid DNS server address" in caught.value.message
    assert "192.0.2.1:5353" in caught.value.hint


@given(st.text(st.characters(), max_size=40) | st.text("0123456789.:[]%abf", max_size=40))
def test_any_text_is_an_address_or_a_usage_error(text):
    with contextlib.suppress(UsageError):
        address = parse_address(text)
        ipaddress.ip_address(address.host)
        assert 0 < address.port < 65536


@given(st.ip_addresses(), st.integers(1, 65535))
def test_shown_address_is_parsed_back(ip, port):
    address = Address(str(ip), port)
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "address"),
    [("192.0.2.1:5353", Address("192.0.2.1", 5353)),
     ("[2001:db8::1]:5353", Address("2001:db8::1", 5353)),
     ("2001:db8::1", Address("2001:db8::1")), ("ns1.example.com", Address("ns1.example.com")),
     ("NS1.Example.COM.", Address("ns1.example.com")),
     ("ns1.example.com.:5353", Address("ns1.example.com", 5353)),
     ("localhost:5300", Address("localhost", 5300)), ("knot_1", Address("knot_1"))],
)  # fmt: skip
def test_a_server_is_an_address_or_a_name(text, address):
    assert parse_server(text) == address
    assert parse_server(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "", " ", ".", "192.0.2", "192.0.2.256", "192.0.2.1:0", "ns1.example.com:0", "ns1:65536",
        "ns1.example.com:dns", "ns1..example.com", "-ns1.example.com", "ns1.example.com ", "ns1\n",
        "dns://ns1", "https://ns1", "a/b", "me@ns1", "ns1:", ":53", "[ns1", "n" * 64,
        "a." * 127 + "b", "日本.jp", "fe80::1%\x1b[2J", "ns1;rm", "\x1b[2J",
    ],
)  # fmt: skip
def test_what_is_neither_is_refused_with_examples(text):
    with pytest.raises(UsageError, match="invalid DNS server") as caught:
        parse_server(text)
    assert "ns1.example.com" in caught.value.hint
