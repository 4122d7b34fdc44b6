"""What a file seems to be: guessed from its beginning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.text.file_kinds import FileKind, guess_kind


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", FileKind.EMPTY),
        (b"\xef\xbb\xbf\r\n", FileKind.EMPTY),
        (b"# only a comment\n", FileKind.EMPTY),
        (b"\xff\xfea\0", FileKind.UTF_16),
        (b"\x1f\x8b\x08\0", FileKind.BINARY),
        (b"%PDF-1.7\n", FileKind.BINARY),
        (b"<?xml version='1.0'?>\n<a/>", FileKind.HTML),
        (b'{"items": []}', FileKind.SAVED),
        (b'{\n  "items": [\n', FileKind.SAVED),
        (b'{"sign_domain": "a.example", "setting_values": {}}\n', FileKind.SAVED_LINES),
        (b'{"a": 1}\n{"a": 2}\n', FileKind.JSON_LINES),
        (b'{\n"a": 1\n}\n', None),
        (b"- example.com\n", FileKind.SPECS),
        (b"# mine\ndomains:\n- example.com\n", FileKind.SPECS),
        (b"example.com\n", FileKind.DOMAINS),
        (b"# mine\n\n  example.com\n  example.net.\n", FileKind.DOMAINS),
        ("bücher.example\n".encode(), FileKind.DOMAINS),
        (b"example.com example.net\n", FileKind.DOMAINS_IN_A_LINE),
        (b"example.com,\nexample.net,\n", FileKind.DOMAINS_IN_A_LINE),
        (b"domain\nexample.com\n", FileKind.CSV),
        (b"1;example.com;x\n2;example.net;y\n", FileKind.CSV),
        (b"ns1 3600 IN A 192.0.2.1\n", FileKind.ZONE),
        (b"hello world\n", None),
        (b"hello, world\nhow, are you\n", None),
        (b"\xff\xff\xff", None),
        (b"\0" * 9, None),
    ],
)
def test_kinds(data, kind):
    assert guess_kind(data) is kind


def test_only_the_beginning_is_looked_at():
    assert guess_kind(b"example.com\n" * 1_000_000 + b"\xff{<") is FileKind.DOMAINS
    assert guess_kind(b"a" * 100_000_000) is None
    assert guess_kind(b"\n" * 100_000_000) is FileKind.EMPTY
    assert guess_kind(b"a." * 1_000_000) is None
    assert guess_kind(b"a IN " * 1_000_000) is FileKind.ZONE


@given(st.binary() | st.text().map(str.encode))
def test_any_data_is_of_one_kind_or_none(data):
    assert guess_kind(data) is None or guess_kind(data) in FileKind
