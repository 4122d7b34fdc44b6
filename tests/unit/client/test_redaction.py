"""What a service quotes of a token is withheld, in every form it is likely to take."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from dkimctl.client.redaction import without
from dkimctl.models.secret import Secret

TOKEN = "t0ken.Leak-Test/4711+abcdefghij=="


@pytest.mark.parametrize(
    "quoted",
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
def test_a_quoted_token_is_withheld_and_the_rest_stays(quoted):
    body = b'{"message": "you sent ' + quoted.encode() + b'"}'
    shown = without([Secret(TOKEN)], body)
    assert quoted.encode() not in shown
    assert json.loads(shown)["message"].startswith("you sent ***")


def test_an_answer_without_it_is_the_very_same():
    body = b'{"items": []}'
    assert without([Secret(TOKEN)], body) is body


def test_a_word_as_short_as_others_is_no_token_to_look_for():
    assert without([Secret("items")], b'{"items": []}') == b'{"items": []}'
