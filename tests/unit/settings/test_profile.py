"""A profile: its account, and which profiles share credentials."""

from __future__ import annotations

from dkimctl.settings.config import Config
from dkimctl.settings.logins import login_of
from dkimctl.settings.profile import Profile, profiles_with

HTTPS = "https://auth.example"


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
