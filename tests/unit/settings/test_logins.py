"""Logins are stored by profile, for their owner only, and damage is reported."""

from __future__ import annotations

import json

import pytest

from dkimctl.errors import UsageError
from dkimctl.settings.profile import (
    Profile,
    login_of,
    logins_lock,
    read_logins,
    stored_login,
    write_logins,
)

HTTPS = "https://auth.example"
PROD = Profile("prod", HTTPS, "https://api.example", "me", credential_store="file", batch_size=7)


def log_in(directory, profile):
    with logins_lock(directory):
        write_logins(directory, read_logins(directory) | {profile.name: login_of(profile)})


def test_a_login_is_stored_until_the_next_of_its_profile(resolve, tmp_path):
    directory = tmp_path / "a" / "state"
    assert read_logins(directory) == {}
    log_in(directory, PROD)
    log_in(directory, Profile("other", HTTPS, HTTPS, "you"))
    logins = read_logins(directory)
    assert logins["prod"] == {
        "auth_url": HTTPS,
        "base_url": "https://api.example",
        "client_id": "me",
        "credential_store": "file",
    }
    assert resolve(flags={"profile": "prod"}, logins=logins).client_id == "me"
    log_in(directory, PROD._replace(client_id="new"))
    assert {name: login["client_id"] for name, login in read_logins(directory).items()} == {
        "prod": "new",
        "other": "you",
    }
    assert {path.suffix for path in directory.iterdir()} <= {".json", ".lock"}


def test_urls_that_an_older_version_stored_are_canonical_as_settings_alone(resolve, tmp_path):
    old = login_of(PROD) | {"base_url": "https://api.example:443"}
    with logins_lock(tmp_path):
        write_logins(tmp_path, {"prod": old})
    logins = read_logins(tmp_path)
    assert logins == {"prod": old}
    profile = resolve(flags={"profile": "prod"}, logins=logins)
    assert profile.base_url == PROD.base_url
    assert stored_login(profile, logins) == old


def test_credentials_are_stored_with_the_urls_of_the_profiles_own_login_first():
    new = login_of(PROD)
    old, older = (new | {"base_url": PROD.base_url + suffix} for suffix in (":443", ":"))
    other = new | {"client_id": "you"}
    assert stored_login(PROD, {}) == stored_login(PROD, {"prod": other}) == new
    assert stored_login(PROD, {"a": old, "prod": older, "b": new}) == older
    assert stored_login(PROD, {"a": old, "b": new, "prod": other}) == new
    assert stored_login(PROD, {"b": other, "a": old}) == old


@pytest.mark.parametrize("name", ["\x1b[31m", "two words", "\u202ea", ""])
def test_a_login_with_a_name_that_no_profile_has_is_a_usage_error(tmp_path, name):
    log_in(tmp_path, PROD)
    path = tmp_path / "logins.json"
    (login,) = json.loads(path.read_text()).values()
    path.write_text(json.dumps({name: login}))
    with pytest.raises(UsageError, match="the file is damaged"):
        read_logins(tmp_path)


@pytest.mark.parametrize(
    "data",
    [
        *(
            b'{"(unused)": 1}',
            b'{"(unused)": [{}]}',
            b"",
            b"[]",
            b"\xff",
            b'{"a": {}}',
            b"[" * 100_000,
        ),
        b'{"a": {"auth_url": 1, "base_url": "", "client_id": "", "credential_store": ""}}',
        b'{"a": {"auth_url": "http://evil.example", "base_url": "", "client_id": "x"}}',
    ],
)
def test_a_damaged_logins_file_is_a_usage_error(tmp_path, data):
    (tmp_path / "logins.json").write_bytes(data)
    with pytest.raises(UsageError, match=r"logins\.json"):
        read_logins(tmp_path)
