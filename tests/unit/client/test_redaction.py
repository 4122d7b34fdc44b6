"""A token that the service echoes is redacted, in every encoding it is likely to use."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from dkimctl.client.redaction import redact
from dkimctl.models.secret import Secret

TOKEN = "t0ken.Leak-Test/4711+abcdefghij=="


@pytest.mark.parametrize(
    "echo",
    [
        TOKEN,
        TOKEN.replace("/", "\\/"),
        TOKEN.replace("/", "\\u002f").replace("+", "\\u002b").replace("=", "\\u003d"),
        TOKEN.replace("/", "\\u002F").replace("+", "\\u002B").replace("=", "\\u003D"),
        quote(TOKEN),
        quote(TOKEN, safe=""),
        base64.b64encode(TOKEN.encode()).decode(),
        base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("="),
    ],
)
def test_an_echoed_token_is_redacted_and_the_rest_stays(echo):
    body = b'{"message": "you sent ' + echo.encode() + b'"}'
    redacted = redact(body, [Secret(TOKEN)])
    assert echo.encode() not in redacted
    assert json.loads(redacted)["message"].startswith("you sent ***")


def test_a_body_without_the_token_is_returned_as_it_is():
    body = b'{"items": []}'
    assert redact(body, [Secret(TOKEN)]) is body


def test_a_short_secret_is_not_redacted():
    assert redact(b'{"items": []}', [Secret("items")]) == b'{"items": []}'
