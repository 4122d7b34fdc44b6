"""Equivalent URLs have one canonical form, which is what the HTTP library requests."""

from __future__ import annotations

import contextlib
from urllib.parse import unquote

import httpx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dkimctl.addresses import (
    Address,
    is_loopback,
    other_loopback_urls,
    parse_address,
    parse_server,
    parse_url,
)
from dkimctl.errors import UsageError

HOSTS = st.sampled_from(
    ("127.0.0.1", "localhost", "API.example", "api.example.", "my_host", "[::1]", "[2001:DB8::0]",
     "[::FFFF:192.0.2.1]", "例え.jp", "例え。jp", "Bücher.example", "XN--R8JZ45G.jp", "192.0.2.1")
)  # fmt: skip
PORTS = st.sampled_from(("", ":", ":80", ":0443", ":443", ":0", ":00", ":65535", ":008080"))
SEGMENTS = st.sampled_from(
    ("", ".", "..", "a", "~b", "%7e", "%2F", "%2f", "%41", "%2E%2e", "%25", "%2541", "ü", "%c3%bc",
     ";x=1", "a|b", "@", "'", "[", "{}", "\U0001f600")
)  # fmt: skip
PATHS = st.lists(SEGMENTS, max_size=5).map(lambda segments: "".join(f"/{one}" for one in segments))
URLS = st.tuples(st.sampled_from(("http://", "HTTPS://")), HOSTS, PORTS, PATHS).map("".join)


def canonical(text: str) -> str:
    return str(parse_url(text))


def port_of(url: httpx.URL) -> int:
    return {"http": 80, "https": 443}[url.scheme] if url.port is None else url.port


@pytest.mark.parametrize(
    ("text", "expected"),
    [("http://127.0.0.1", "http://127.0.0.1"), ("http://127.0.0.1:80", "http://127.0.0.1"),
     ("http://127.0.0.1:", "http://127.0.0.1"),
     ("HTTPS://API.Example:443//", "https://api.example"),
     ("https://api.example:80", "https://api.example:80"),
     ("https://api.example:0", "https://api.example:0"),
     ("https://api.example:" + "0" * 5000 + "8443", "https://api.example:8443"),
     ("https://api.example.", "https://api.example"),
     ("http://[0:0:0:0:0:0:0:1]:8080", "http://[::1]:8080"),
     ("https://[2001:DB8:0:0:1:0:0:1]", "https://[2001:db8::1:0:0:1]"),
     ("https://[2001:db8:0:1:1:1:1:1]", "https://[2001:db8:0:1:1:1:1:1]"),
     ("https://[::ffff:c000:201]", "https://[::ffff:192.0.2.1]"),
     ("https://例え。jp。", "https://xn--r8jz45g.jp"),
     ("https://%E4%BE%8B%e3%81%88.jp", "https://xn--r8jz45g.jp"),
     ("https://BÜCHER.example", "https://xn--bcher-kva.example"),
     ("https://%61pi.example", "https://api.example"),
     ("https://a.example/%7euser/%2f", "https://a.example/~user/%2F"),
     ("https://a.example/a/%2e%2E/b", "https://a.example/b"),
     ("https://a.example/../..", "https://a.example"),
     ("https://a.example/a//b", "https://a.example/a//b"),
     ("https://a.example/%2541", "https://a.example/%2541"),
     ("https://a.example/ü|", "https://a.example/%C3%BC%7C")],
)  # fmt: skip
def test_the_canonical_form(text, expected):
    assert canonical(text) == expected


@given(URLS)
def test_the_http_library_requests_the_canonical_url_unchanged(text):
    url = parse_url(text)
    assert canonical(str(url)) == str(url)
    requested = httpx.URL(str(url))
    assert requested.scheme == url.scheme
    assert requested.netloc.decode() == url.host + (f":{url.port}" if url.port else "")
    assert requested.raw_path.decode() == (url.path or "/")


@given(URLS)
def test_the_http_library_requests_the_same_place_for_the_url_as_written(text):
    assume("%2e" not in text.lower())  # it sends an encoded dot as it is
    written, url = httpx.URL(text), httpx.URL(canonical(text))
    assert written.scheme == url.scheme
    assert port_of(written) == port_of(url)
    assert written.raw_host.lower().removesuffix(b".") == url.raw_host or ":" in url.host
    paths = [unquote(one.raw_path.decode()).rstrip("/") for one in (written, url)]
    assert paths[0] == paths[1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("https://a.example/%zz-hunter2", "without two hexadecimal digits"),
     ("https://a.example/hunter2%4", "without two hexadecimal digits"),
     ("http://0x7f000001/hunter2", "IPv4"), ("http://127.0.0.01/hunter2", "IPv4"),
     ("http://[::1%25lo]/hunter2", "IPv6"), ("http://[v1.hunter2]", "IPv6"),
     ("http://[127.0.0.1]/hunter2", "IPv6"), ("http://[::1]hunter2", "host or port"),
     ("https://a.example:65536/hunter2", "host or port"),
     ("https://a.example:٨٠/hunter2", "host or port"),
     ("https://a.example../hunter2", "host or port"),
     ("https://hunter2%40a.example", "host or port"),
     ("https://hunter2%2541.example", "host or port"),
     ("https://hunter2%ff.example", "internationalized"),
     ("https://" + "hunter2" * 10 + ".example", "host or port"),
     ("https://" + "例" * 300, "host or port"), ("http\u017f://hunter2.example", "scheme or host"),
     ("https:///hunter2", "scheme or host"), ("https://a.example/x\\hunter2", "backslash"),
     ("https://me:hunter2@a.example", "user name or password"),
     ("https://a.example?hunter2", "query or fragment")],
)  # fmt: skip
def test_any_other_text_is_refused_and_not_quoted(text, reason):
    with pytest.raises(UsageError, match=reason) as caught:
        parse_url(text)
    assert caught.value.hint
    assert "hunter2" not in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [("192.0.2.1", Address("192.0.2.1", 53), "192.0.2.1"),
     ("192.0.2.1:53", Address("192.0.2.1", 53), "192.0.2.1"),
     ("192.0.2.1:5353", Address("192.0.2.1", 5353), "192.0.2.1:5353"),
     ("192.0.2.1:00053", Address("192.0.2.1", 53), "192.0.2.1"),
     ("192.0.2.1:65535", Address("192.0.2.1", 65535), "192.0.2.1:65535"),
     ("2001:db8::1", Address("2001:db8::1", 53), "2001:db8::1"),
     ("2001:DB8:0::1", Address("2001:db8::1", 53), "2001:db8::1"),
     ("::1:53", Address("::1:53", 53), "::1:53"), ("[::1]", Address("::1", 53), "::1"),
     ("[::1]:5353", Address("::1", 5353), "[::1]:5353"),
     ("fe80::1%eth0", Address("fe80::1%eth0", 53), "fe80::1%eth0"),
     ("[fe80::1%eth0]:5353", Address("fe80::1%eth0", 5353), "[fe80::1%eth0]:5353")],
)  # fmt: skip
def test_address_is_parsed(text, address, shown):
    assert parse_address(text) == parse_server(text) == address
    assert str(address) == shown


@pytest.mark.parametrize(
    "text",
    ["", " ", "localhost", "ns1.example.com:53", "192.0.2", "192.0.2.256", "192.0.2.1:",
     "192.0.2.1:0", "192.0.2.1:65536", "192.0.2.1:999999", "192.0.2.1:-1", "192.0.2.1:dns",
     "192.0.2.1\n", "192.0.2.1:53\n", "192.0.2.1/24", "0x7f000001", "192.0.2.01", "1", "[::1",
     "[::1]:", "[]:53", "[[::1]]:53", "::1::2", "[::1]5353", "udp://192.0.2.1",
     "192.0.2.1:\u0665\u0663", "\u0661.2.3.4"],
)  # fmt: skip
def test_invalid_address_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match="invalid DNS server address") as caught:
        parse_address(text)
    assert "192.0.2.1:5353" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "address"),
    [("ns1.example.com", Address("ns1.example.com")),
     ("NS1.Example.COM.", Address("ns1.example.com")),
     ("ns1.example.com.:5353", Address("ns1.example.com", 5353)),
     ("localhost:5300", Address("localhost", 5300)), ("knot_1", Address("knot_1"))],
)  # fmt: skip
def test_a_server_is_an_address_or_a_name(text, address):
    assert parse_server(text) == address
    assert parse_server(str(address)) == address


def test_this_machine_and_its_other_names():
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "[::1]")))
    others = ("128.0.0.1", "[::2]", "[::ffff:127.0.0.1]", "localhost.example", "127.0.0.1.example")
    assert not any(map(is_loopback, others))
    assert other_loopback_urls("http://[::1]") == ["http://localhost", "http://127.0.0.1"]
    assert other_loopback_urls("https://api.example") == []


@pytest.mark.parametrize(
    "text",
    [
        "", " ", ".", "192.0.2", "192.0.2.256", "192.0.2.1:0", "ns1.example.com:0", "ns1:65536",
        "ns1.example.com:dns", "ns1..example.com", "-ns1.example.com", "ns1\n", "dns://ns1", "a/b",
        "me@ns1", "ns1:", ":53", "[ns1", "n" * 64, "日本.jp", "fe80::1%\x1b[2J", "ns1;rm",
    ],
)  # fmt: skip
def test_what_is_neither_is_refused_with_examples(text):
    with pytest.raises(UsageError, match="invalid DNS server") as caught:
        parse_server(text)
    assert "ns1.example.com" in caught.value.hint


@given(st.text(max_size=40) | st.text("htps:/0123456789.[]%abf@?", max_size=40))
def test_any_text_is_an_address_or_a_usage_error(text):
    with contextlib.suppress(UsageError):
        assert 0 < parse_address(text).port < 65536
    with contextlib.suppress(UsageError):
        url = canonical(text)
        assert canonical(str(httpx.URL(url))) == url
