"""What a file seems to be: guessed from its beginning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.text.lookalikes import Lookalike, lookalike


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", Lookalike.EMPTY),
        (b"\xef\xbb\xbf\r\n", Lookalike.EMPTY),
        (b"# only a comment\n", Lookalike.EMPTY),
        (b"\xff\xfea\0", Lookalike.UTF_16),
        (b"\x1f\x8b\x08\0", Lookalike.BINARY),
        (b"%PDF-1.7\n", Lookalike.BINARY),
        (b"<?xml version='1.0'?>\n<a/>", Lookalike.HTML),
        (b'{"items": []}', Lookalike.SAVED),
        (b'{\n  "items": [\n', Lookalike.SAVED),
        (b'{"sign_domain": "a.example", "setting_values": {}}\n', Lookalike.SAVED_LINES),
        (b'{"a": 1}\n{"a": 2}\n', Lookalike.JSON_LINES),
        (b'{\n"a": 1\n}\n', None),
        (b"- example.com\n", Lookalike.SPECS),
        (b"# mine\ndomains:\n- example.com\n", Lookalike.SPECS),
        (b"example.com\n", Lookalike.DOMAINS),
        (b"# mine\n\n  example.com\n  example.net.\n", Lookalike.DOMAINS),
        ("bücher.example\n".encode(), Lookalike.DOMAINS),
        (b"example.com example.net\n", Lookalike.DOMAINS_IN_A_LINE),
        (b"example.com,\nexample.net,\n", Lookalike.DOMAINS_IN_A_LINE),
        (b"domain\nexample.com\n", Lookalike.CSV),
        (b"1;example.com;x\n2;example.net;y\n", Lookalike.CSV),
        (b"ns1 3600 IN A 192.0.2.1\n", Lookalike.ZONE),
        (b"hello world\n", None),
        (b"hello, world\nhow, are you\n", None),
        (b"\xff\xff\xff", None),
        (b"\0" * 9, None),
    ],
)
def test_kinds(data, kind):
    assert lookalike(data) is kind


def test_only_the_beginning_is_looked_at():
    assert lookalike(b"example.com\n" * 1_000_000 + b"\xff{<") is Lookalike.DOMAINS
    assert lookalike(b"a" * 100_000_000) is None
    assert lookalike(b"\n" * 100_000_000) is Lookalike.EMPTY
    assert lookalike(b"a." * 1_000_000) is None
    assert lookalike(b"a IN " * 1_000_000) is Lookalike.ZONE


@given(st.binary() | st.text().map(str.encode))
def test_any_data_is_of_one_kind_or_none(data):
    assert lookalike(data) is None or lookalike(data) in Lookalike
