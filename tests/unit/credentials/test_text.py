from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.credentials.text import parse_secret, parse_token
from dkimctl.errors import CredentialsError
from dkimctl.models.secret import Secret


@pytest.mark.parametrize("text", ["abc", "abc\n", "abc\r\n"])
def test_one_trailing_newline_is_not_part_of_it(text: str) -> None:
    assert parse_secret(Secret(text), "it") == Secret("abc")
    assert parse_token(Secret(text), "it") == Secret("abc")


def test_spaces_are_part_of_a_secret() -> None:
    assert parse_secret(Secret(" abc \n"), "it") == Secret(" abc ")


@pytest.mark.parametrize("text", ["", "\n", "\r\n"])
def test_nothing_is_none(text: str) -> None:
    assert parse_secret(Secret(text), "it") is None
    assert parse_token(Secret(text), "it") is None


@pytest.mark.parametrize("bad", ["\n\n", "\x00", "\x1b", "\x7f", "\x85", "\u20ac", "\udcff"])
def test_what_no_header_can_carry_is_refused_unquoted(bad: str) -> None:
    for parse in (parse_secret, parse_token):
        with pytest.raises(CredentialsError) as caught:
            parse(Secret(f"hunter2{bad}"), "DKIMCTL_SOMETHING")
        assert caught.value.message.startswith("DKIMCTL_SOMETHING ")
        assert "hunter2" not in repr(caught.value) + caught.value.hint


@pytest.mark.parametrize("bad", [" ", "\u00e9"])
def test_a_token_is_narrower_than_a_secret(bad: str) -> None:
    assert parse_secret(Secret(f"a{bad}c"), "it") == Secret(f"a{bad}c")
    with pytest.raises(CredentialsError):
        parse_token(Secret(f"a{bad}c"), "it")


@given(st.text(st.characters(max_codepoint=0x17F)))
def test_what_is_accepted_fits_a_header(text: str) -> None:
    try:
        secret = parse_secret(Secret(text), "it")
    except CredentialsError:
        return
    shown = "" if secret is None else secret.reveal()
    assert text in (shown, f"{shown}\n", f"{shown}\r\n")
    assert not any(byte < 0x20 or 0x7F <= byte < 0xA0 for byte in shown.encode("latin-1"))
