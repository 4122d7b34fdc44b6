"""Mail is split as others split it, whatever is in it."""

from __future__ import annotations

import email
import email.policy

from dkim.canonicalization import Relaxed
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.mail.message import Message, read_message, read_signature, squeezed

_LINE = st.text(st.characters(min_codepoint=32, max_codepoint=126)).map(str.encode)
_NAME = st.from_regex(rb"[A-Za-z][A-Za-z0-9-]{0,20}", fullmatch=True)
_FIELD = st.tuples(_NAME, _LINE, st.lists(_LINE.map(lambda text: b" x" + text)))


@given(st.lists(_FIELD, min_size=1), st.lists(_LINE), st.sampled_from([b"\r\n", b"\n"]))
def test_the_email_package_finds_the_same_fields_and_body(fields, lines, end):
    header = [end.join((name + b":" + value, *folds)) for name, value, folds in fields]
    data = end.join([*header, b"", *lines, b""])
    message = read_message(data, "mail.eml")
    other = email.message_from_bytes(data, policy=email.policy.compat32)
    assert [one.name.decode() for one in message.fields] == other.keys()
    assert [one.value.decode().replace("\r\n", "").strip() for one in message.fields] == [
        "".join(value.splitlines()).strip() for value in other.values()
    ]
    body = data.partition(end * 2)[2]
    assert message.body.replace(b"\r\n", b"\n") == body.replace(b"\r\n", b"\n")


@given(st.binary())
def test_no_data_ends_in_a_traceback(data):
    said = ""
    try:
        assert read_message(data, "mail.eml").fields
    except UsageError as error:
        said = f"{error.message}: {error.hint}"
    assert not said or (said.startswith("mail.eml ") and "save the whole mail" in said)


@given(st.lists(st.sampled_from([b"a", b" ", b"\t", b"\r\n", b"\r", b"\n", b"  "])))
def test_a_squeezed_body_has_the_same_relaxed_form(parts):
    message = Message([], b"".join(parts))
    relaxed = Relaxed.canonicalize_body(message.body)
    assert Relaxed.canonicalize_body(squeezed(message.body)) == relaxed


@given(st.text(min_size=1), st.sampled_from("qb"), st.text())
def test_a_signature_encoded_in_any_way_is_malformed(charset, encoding, text):
    value = f"=?{charset}?{encoding}?{text}?=".replace("\r", "").replace("\n", "")
    data = f"DKIM-Signature: {value}\nFrom: a@example.com\n\n".encode("utf-8", "surrogatepass")
    (field, _) = read_message(data, "mail.eml").fields
    assert "malformed" in read_signature(field, 0.0).fault


def test_the_character_set_of_an_encoded_signature_may_not_be_one():
    message = read_message("DKIM-Signature: =?ü?q?v=3D1?=\n\n".encode(), "mail.eml")
    assert "malformed" in read_signature(message.fields[0], 0.0).fault
