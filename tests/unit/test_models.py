"""Keys ignore case, and secrets are not shown."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from dkimctl.models import DomainSpec, Registration, Secret, Token, key_of


def test_a_key_ignores_case_and_may_lack_a_selector():
    key = key_of("mail.example", "s1")
    assert DomainSpec("Mail.Example", "S1").key == Registration("mail.EXAMPLE", "s1").key == key
    assert key_of("A.example", None) == key_of("a.example", "") != key_of("a.example", "s1")


TEXT = "hunter2-hunter2"


@pytest.mark.parametrize(
    "show",
    [
        repr,
        str,
        "{}".format,
        lambda secret: "%s %r" % (secret, [secret]),  # noqa: UP031
        lambda secret: repr(Token(secret, 1.0)),
        lambda secret: str({"secret": secret}),
        lambda secret: repr(ValueError(secret)),
        lambda secret: json.dumps([secret], default=str),
    ],
)
def test_formatting_does_not_show_it(show):
    assert TEXT not in show(Secret(TEXT))
    assert "***" in show(Secret(TEXT))


@pytest.mark.parametrize(
    "leave",
    [copy.copy, copy.deepcopy, lambda secret: secret.__getstate__(), vars,
     *(lambda secret, protocol=protocol: pickle.dumps(Token(secret, 1.0), protocol)
       for protocol in range(pickle.HIGHEST_PROTOCOL + 1))],
)  # fmt: skip
def test_it_can_neither_be_copied_nor_pickled(leave):
    with pytest.raises(TypeError):
        leave(Secret(TEXT))


@pytest.mark.parametrize(
    ("text", "masked"),
    [("x", "(1 characters)"), ("e" * 63, "(63 characters)"), ("e" * 64, "eeee... (64 characters)")],
)
def test_masked_text_is_too_little_to_use(text, masked):
    assert Secret(text).masked() == masked
