"""The key that identifies a registration."""

from __future__ import annotations

import copy
import json
import pickle
import traceback

import pytest

from dkimctl.ledger.intents import Intent
from dkimctl.models import DomainSpec, Registration, Secret, Token, key_of


@pytest.mark.parametrize(
    "named",
    [
        DomainSpec("Mail.Example", "S1"),
        Registration("mail.example", "s1", key_len=2048),
        Intent("MAIL.example", "s1", "2026-11-21T12:00:00+00:00"),
    ],
)
def test_key_ignores_case(named):
    assert named.key == key_of("mail.example", "s1") == ("mail.example", "s1")


def test_key_without_selector_is_a_key_of_its_own():
    assert DomainSpec("a.example").key == key_of("A.example", None) == key_of("a.example", "")
    assert DomainSpec("a.example").key != DomainSpec("a.example", "s1").key


TEXT = "hunter2-hunter2"


@pytest.mark.parametrize(
    "show",
    [
        repr,
        str,
        "{}".format,
        "{!r}".format,
        "{!s}".format,
        lambda secret: f"{secret}",
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


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_cannot_be_pickled(protocol):
    with pytest.raises(TypeError):
        pickle.dumps(Token(Secret(TEXT), 1.0), protocol)


@pytest.mark.parametrize("leave", [copy.copy, copy.deepcopy, lambda s: s.__getstate__(), vars])
def test_it_cannot_be_copied(leave):
    with pytest.raises(TypeError):
        leave(Secret(TEXT))


def test_local_variables_of_a_traceback_do_not_show_it():
    secret = Secret(TEXT)
    try:
        raise ValueError(secret)
    except ValueError as error:
        report = traceback.TracebackException.from_exception(error, capture_locals=True)
    shown = "".join(report.format())
    assert "secret = Secret(***)" in shown
    assert TEXT not in shown


def test_it_is_revealed_and_compared_by_its_text():
    assert Secret(TEXT).reveal() == TEXT
    assert Secret(TEXT) == Secret(TEXT)
    assert Secret(TEXT) != Secret("other")
    assert len({Secret(TEXT), Secret(TEXT)}) == 1


@pytest.mark.parametrize(
    ("text", "masked"), [("x", "(1 characters)"), ("e" * 100, "eeee... (100 characters)")]
)
def test_masked_text_is_too_little_to_use(text, masked):
    assert Secret(text).masked() == masked
