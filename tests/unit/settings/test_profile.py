"""A profile: its account, and which profiles share credentials."""

from __future__ import annotations

import pytest

from dkimctl.errors import UsageError
from dkimctl.settings.config import Config
from dkimctl.settings.profile import Profile, login_of, profiles_with, require_account

HTTPS = "https://auth.example"


def test_a_missing_part_of_the_account_is_named():
    with pytest.raises(UsageError, match="the profile default has no base_url") as caught:
        require_account(Profile("default", HTTPS))
    assert "--base-url" in caught.value.hint
    assert "--sandbox" in caught.value.hint


def test_profiles_with_the_same_credentials_come_from_logins_and_config():
    prod = Profile("prod", HTTPS, "https://api.example", "me", credential_store="file")
    login = login_of(prod)
    agency = {key: login[key] for key in ("auth_url", "base_url", "client_id")}
    config = Config(
        profiles={
            "agency": {**agency, "credential_store": "file", "defaults": {}},
            "keyring": agency,
            "prod": {"client_id": "another"},
        }
    )
    logins = {"prod": login, "twin": dict(login), "other": {**login, "client_id": "you"}}
    assert sorted(profiles_with(login, config, logins)) == ["agency", "twin"]
