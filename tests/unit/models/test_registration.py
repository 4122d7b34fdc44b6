"""The key that identifies a registration."""

from __future__ import annotations

import pytest

from dkimctl.ledger.intents import Intent
from dkimctl.models import DomainSpec, Registration, key_of


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
