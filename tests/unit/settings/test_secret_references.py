"""What stands for a secret in the config file."""

from __future__ import annotations

import pytest

from dkimctl.errors import UsageError
from dkimctl.settings.values import SecretReference, parse_reference


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("env/AWS_KEY", SecretReference("env", "AWS_KEY")),
        ("keyring/route53", SecretReference("keyring", "route53")),
        ("keyring/dns/me@example.com", SecretReference("keyring", "dns/me@example.com")),
    ],
)
def test_a_reference_names_a_variable_or_an_entry(text, reference):
    assert parse_reference(text) == reference
    assert str(reference) == text


@pytest.mark.parametrize("text", ["", "env", "env:AWS", "environment/A", "a env/B", "ENV/A", "5"])
def test_other_text_is_no_reference(text):
    assert parse_reference(text) is None


@pytest.mark.parametrize(
    "text", ["env/", "env/1A", "env/A-B", "env/A\n", "keyring/", "keyring/a b"]
)
def test_a_reference_without_a_valid_name_is_refused(text):
    with pytest.raises(UsageError, match="the name after env/ or keyring/ is invalid"):
        parse_reference(text)
