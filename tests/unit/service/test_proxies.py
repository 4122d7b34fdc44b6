"""Whose X-Forwarded-For is believed."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.service.access_log import UNIX, TrustedProxies

PROXIES = TrustedProxies(["10.0.0.0/8", "2001:db8::1"])


def address(peer, header=None, proxies=PROXIES):
    environ = {"REMOTE_ADDR": peer}
    if header is not None:
        environ["HTTP_X_FORWARDED_FOR"] = header
    return proxies.client_address(environ)


@pytest.mark.parametrize(
    ("peer", "header", "expected"),
    [
        ("192.0.2.1", None, "192.0.2.1"),
        ("192.0.2.1", "198.51.100.9", "192.0.2.1"),  # not a proxy
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", "198.51.100.9", "198.51.100.9"),
        ("10.0.0.1", "1.2.3.4, 198.51.100.9", "198.51.100.9"),  # the client wrote the first
        ("10.0.0.1", "1.2.3.4,198.51.100.9 , 10.2.0.1", "198.51.100.9"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("2001:db8::1", "2001:DB8::0:99", "2001:db8::99"),
        ("::ffff:10.0.0.1", "::ffff:198.51.100.9", "198.51.100.9"),
        ("fe80::1%eth0", None, "fe80::1"),
        ("", None, UNIX),
        ("", "198.51.100.9", UNIX),
    ],
)
def test_the_last_address_that_no_trusted_proxy_has(peer, header, expected):
    assert address(peer, header) == expected


def test_who_can_open_a_unix_socket_is_trusted_only_if_told():
    assert address("", "198.51.100.9", TrustedProxies(["unix"])) == "198.51.100.9"


@pytest.mark.parametrize(
    "header",
    ["", ",", "unknown", "_hidden", "198.51.100.9:80", "[2001:db8::9]", "\x1b[2J", "\u0661.2.3.4",
     "1.2.3.4\n5.6.7.8", "198.51.100.9, evil", "9" * 100_000, "," * 100_000],
)  # fmt: skip
def test_anything_but_addresses_leaves_that_of_the_proxy(header):
    assert address("10.0.0.1", header) == "10.0.0.1"


def test_only_the_last_hops_of_a_long_way_are_read():
    assert address("10.0.0.1", "192.0.2.1, " + "10.0.0.2, " * 50_000 + "10.0.0.3") == "10.0.0.2"


@given(st.text(), st.text())
@example("fe80::1%\n", "::1%a b")
def test_whatever_arrives_the_result_is_an_address(peer, header):
    result = address(peer, header)
    assert result == UNIX or str(ipaddress.ip_address(result)) == result
    assert address("10.0.0.1", header) != UNIX


@pytest.mark.parametrize("text", ["", "x", "10.0.0.0/33", "10.0.0.1/8", "proxy.example", "\x1b"])
def test_an_invalid_network_is_named(text):
    with pytest.raises(UsageError, match="invalid address or network") as caught:
        TrustedProxies([text])
    assert "\x1b" not in caught.value.message
