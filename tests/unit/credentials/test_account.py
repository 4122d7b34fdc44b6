"""Account, secret and token are valid in an HTTP header, and never quoted in errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.credentials.store import Account, parse_secret, parse_token
from dkimctl.errors import CredentialsError
from dkimctl.models import Secret


@pytest.mark.parametrize("text", ["abc", "abc\n", "abc\r\n"])
def test_one_trailing_newline_is_stripped(text):
    assert parse_secret(Secret(text), "it") == Secret("abc")
    assert parse_token(Secret(text), "it") == Secret("abc")


def test_spaces_are_part_of_a_secret():
    assert parse_secret(Secret(" abc \n"), "it") == Secret(" abc ")


@pytest.mark.parametrize("text", ["", "\n", "\r\n"])
def test_empty_text_is_none(text):
    assert parse_secret(Secret(text), "it") is None
    assert parse_token(Secret(text), "it") is None


@pytest.mark.parametrize("bad", ["\n\n", "\x00", "\x1b", "\x7f", "\x85", "\u20ac", "\udcff"])
def test_text_that_no_header_can_carry_is_refused_and_not_quoted(bad):
    for parse in (parse_secret, parse_token):
        with pytest.raises(CredentialsError) as caught:
            parse(Secret(f"hunter2{bad}"), "DKIMCTL_SOMETHING")
        assert caught.value.message.startswith("DKIMCTL_SOMETHING ")
        assert "hunter2" not in repr(caught.value) + caught.value.hint


@pytest.mark.parametrize("bad", [" ", "\u00e9"])
def test_a_secret_may_contain_more_characters_than_a_token(bad):
    assert parse_secret(Secret(f"a{bad}c"), "it") == Secret(f"a{bad}c")
    with pytest.raises(CredentialsError):
        parse_token(Secret(f"a{bad}c"), "it")


@given(st.text(st.characters(max_codepoint=0x17F)))
def test_an_accepted_secret_fits_a_header(text):
    try:
        secret = parse_secret(Secret(text), "it")
    except CredentialsError:
        return
    accepted = "" if secret is None else secret.reveal()
    assert text in (accepted, f"{accepted}\n", f"{accepted}\r\n")
    assert not any(byte < 0x20 or 0x7F <= byte < 0xA0 for byte in accepted.encode("latin-1"))


@pytest.mark.parametrize("client_id", ["", "id:secret", "id\n", "id\x00", "id\x7f", "id\udc80"])
def test_a_client_id_that_http_basic_cannot_carry_is_refused_and_not_quoted(client_id):
    with pytest.raises(CredentialsError) as caught:
        Account("https://auth.example", "https://api.example", client_id)
    assert "client ID" in caught.value.message
    assert "id:secret" not in caught.value.message + caught.value.hint
