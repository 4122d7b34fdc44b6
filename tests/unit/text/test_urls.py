"""Equivalent URLs have one canonical form, which is what the HTTP library requests."""

from __future__ import annotations

from urllib.parse import unquote

import httpx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dkimctl.addresses import is_loopback, other_loopback_urls, parse_url
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
    [
        ("http://127.0.0.1", "http://127.0.0.1"),
        ("http://127.0.0.1:80", "http://127.0.0.1"),
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
        ("https://a.example/ü|", "https://a.example/%C3%BC%7C"),
    ],
)
def test_the_canonical_form(text, expected):
    assert canonical(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("https://a.example/%zz-hunter2", "without two hexadecimal digits"),
        ("https://a.example/hunter2%4", "without two hexadecimal digits"),
        ("http://0x7f000001/hunter2", "IPv4"),
        ("http://127.0.0.01/hunter2", "IPv4"),
        ("http://[::1%25lo]/hunter2", "IPv6"),
        ("http://[v1.hunter2]", "IPv6"),
        ("http://[127.0.0.1]/hunter2", "IPv6"),
        ("http://[::1]hunter2", "host or port"),
        ("https://a.example:65536/hunter2", "host or port"),
        ("https://a.example:٨٠/hunter2", "host or port"),
        ("https://a.example../hunter2", "host or port"),
        ("https://hunter2%40a.example", "host or port"),
        ("https://hunter2%2541.example", "host or port"),
        ("https://hunter2%ff.example", "internationalized"),
        ("https://" + "hunter2" * 10 + ".example", "host or port"),
        ("https://" + "例" * 300, "host or port"),
        ("http\u017f://hunter2.example", "scheme or host"),
        ("https:///hunter2", "scheme or host"),
        ("https://me:hunter2@a.example", "user name or password"),
        ("https://a.example?hunter2", "query or fragment"),
    ],
)
def test_any_other_text_is_refused_and_not_quoted(text, reason):
    with pytest.raises(UsageError, match=reason) as caught:
        parse_url(text)
    assert caught.value.hint
    assert "hunter2" not in f"{caught.value.message} {caught.value.hint}"


def test_a_url_without_a_scheme_gets_the_one_that_fits():
    for scheme in "http", "https":
        with pytest.raises(UsageError) as caught:
            parse_url("a.example", scheme)
        assert caught.value.hint == f"write {scheme}://HOST"


@given(URLS)
def test_the_canonical_form_is_its_own(text):
    url = canonical(text)
    assert canonical(url) == url
    assert url.isascii()


@given(URLS)
def test_the_http_library_requests_the_canonical_url_unchanged(text):
    url = parse_url(text)
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
    assert unquote(written.raw_path.decode()).rstrip("/") == unquote(url.raw_path.decode()).rstrip(
        "/"
    )


@given(st.text() | st.from_regex(r"https?://[^\s]*", fullmatch=True) | URLS)
def test_any_text_has_a_canonical_form_or_is_refused(text):
    try:
        url = canonical(text)
    except UsageError:
        return
    assert canonical(url) == url
    httpx.URL(url)


def test_loopback_hosts():
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "[::1]")))
    others = ("128.0.0.1", "[::2]", "[::ffff:127.0.0.1]", "localhost.example", "127.0.0.1.example")
    assert not any(map(is_loopback, others))


def test_this_machine_under_its_other_names():
    assert other_loopback_urls("http://localhost:8080/x") == [
        "http://127.0.0.1:8080/x", "http://[::1]:8080/x",
    ]  # fmt: skip
    assert other_loopback_urls("http://[::1]") == ["http://localhost", "http://127.0.0.1"]
    assert other_loopback_urls("https://api.example") == []
    assert other_loopback_urls("http://127.9.9.9") == []
