"""What a service quotes of a secret is redacted: each run of 12 characters, in every form."""

from __future__ import annotations

import base64
import json
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dkimctl.client.redaction import Redactor
from dkimctl.models import Secret
from quotations import ESCAPES, FORMS, RUN, leaks, runs_of

TOKEN = "t0ken.Leak-Test/4711+abcdefghij=="
BEARER = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/"

tokens = st.text(BEARER, min_size=RUN, max_size=90)
secrets = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x17F), min_size=RUN)
# Characters of no form, so that a run cannot go on in the text around it.
surroundings = st.text("<|>", max_size=40)


def redacting(*secrets: str) -> Redactor:
    redactor = Redactor()
    for secret in secrets:
        redactor.add(Secret(secret))
    return redactor


def pieces(text: str) -> st.SearchStrategy[str]:
    """Parts of `text` of at least 12 characters."""
    starts = st.integers(0, len(text) - RUN)
    return starts.flatmap(
        lambda start: st.integers(start + RUN, len(text)).map(lambda end: text[start:end])
    )


@given(data=st.data(), token=tokens, before=surroundings, after=surroundings)
@settings(max_examples=200)
def test_a_piece_is_redacted_and_the_rest_stays(data, token, before, after):
    form = FORMS[data.draw(st.sampled_from([*FORMS]), "form")]
    piece = data.draw(pieces(form(token)), "piece")
    for quoted in (piece, piece.upper(), piece.lower()):  # names in DNS have no case
        redacted = redacting(token).redact(f"{before}{quoted}{after}".encode())
        assert redacted == f"{before}***{after}".encode()


@given(data=st.data(), token=tokens, before=surroundings, after=surroundings)
@settings(max_examples=200)
def test_an_escaped_piece_is_redacted(data, token, before, after):
    escape = ESCAPES[data.draw(st.sampled_from([*ESCAPES]), "escape")]
    piece = escape(data.draw(pieces(token), "piece"))
    redacted = redacting(token).redact(f"{before}{piece}{after}".encode())
    assert redacted == f"{before}***{after}".encode()


@given(token=tokens, before=st.binary(max_size=30), after=st.binary(max_size=30))
def test_base64_of_more_than_the_secret_shows_none_of_it(token, before, after):
    encoded = base64.b64encode(before + token.encode() + after)
    redacted = redacting(token).redact(encoded)
    assert not leaks(redacted, runs_of(token))
    assert b"***" in redacted


@given(secret=secrets, before=st.text(), after=st.text(), ascii_only=st.booleans())
def test_json_stays_json(secret, before, after, ascii_only):
    document = {"message": f"{before}{secret}{after}", "code": 1}
    body = json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    redacted = redacting(secret).redact(body).decode("utf-8", "surrogatepass")
    assert json.loads(redacted).keys() == document.keys()
    assert secret not in json.loads(redacted)["message"]


@given(data=st.data(), token=tokens, noise=st.binary())
def test_a_shorter_piece_stays(data, token, noise):
    start = data.draw(st.integers(0, len(token) - RUN + 1))
    text = noise + b"<" + token[start : start + RUN - 1].encode() + b">"
    assert redacting(token).redact(text) is text


def test_no_escape_is_cut_in_half():
    redactor = redacting("net-secret-0815", "ends-with-a-backslash\\")
    body = rb'["\net-secret-0815", "ends-with-a-backslash\\"]'
    assert json.loads(redactor.redact(body)) == ["***"] * 2


def test_runs_of_the_request_are_exempt_and_no_others():
    secret = "example-company.com/of-a-secret"
    text = b"mail.example-company.com: company.com/of, any/of-a-secret"
    redacted = redacting(secret).redact(text, exempt=b'{"sign_domain":"mail.example-company.com"}')
    assert redacted == b"mail.example-company.com: ***, any***"


def test_the_public_part_of_a_secret_is_not_redacted():
    redactor = Redactor()
    redactor.add(Secret(f"client.example.com:{TOKEN}"), "client.example.com:")
    assert redactor.redact(b"client.example.com:") == b"client.example.com:"
    in_base64 = base64.b64encode(b"client.example.com")
    assert redactor.redact(in_base64) == in_base64
    assert redactor.redact(f"client.example.com:{TOKEN}".encode()) == b"client.e***"


@pytest.mark.parametrize(
    "text",
    ["aXRlbXM=", base64.b64encode(b"users:items").decode(), b"items".hex().upper(), "ITEMS"],
)
def test_a_short_secret_is_not_redacted_but_known_in_each_form(text):
    redactor = redacting("items")
    body = f"quoted: {text}!"
    assert redactor.redact(body.encode()) == body.encode()
    assert redactor.has_short_secret(body)
    assert not redactor.has_short_secret("nothing")


def test_a_text_that_quotes_secrets_without_end_is_withheld():
    assert redacting(TOKEN).redact(f"{TOKEN} ".encode() * 20_000) == b"***"


@pytest.mark.slow
@pytest.mark.parametrize(
    "flood",
    ["\\", "\\/", r"\u002b", f"{TOKEN[: RUN - 1]}!", f"{TOKEN[:4]}!!!!", TOKEN, f"{TOKEN}!"],
)
def test_hostile_text_takes_time_and_memory_in_proportion_to_its_length(flood):
    redactor = redacting(TOKEN)

    def seconds(size):
        text = (flood * (size // len(flood))).encode()
        began = time.process_time()
        redactor.redact(text)
        return time.process_time() - began

    assert seconds(2 << 20) < max(0.5, 12 * seconds(1 << 19))
    text = (flood * ((1 << 20) // len(flood))).encode()
    tracemalloc.start()
    redactor.redact(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * len(text)
