"""A profile: its account, and which profiles share credentials."""

from __future__ import annotations

import json

import pytest

from dkimctl.errors import UsageError
from dkimctl.settings.config import Config
from dkimctl.settings.profile import (
    Profile,
    exported_proxy,
    login_of,
    logins_lock,
    profiles_with,
    read_logins,
    read_used_profile,
    require_account,
    stored_login,
    write_logins,
    write_used_profile,
)

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


TOKEN = "K3OusQdIy72bcW2vXwoxII_k5Axen0-xzuotPcmgW9Yd"  # also valid as a name


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["flag", "environment", "config", "login"], "flag"),
        (["environment", "config", "login"], "environment"),
        (["config", "login"], "config"),
        (["login"], "login"),
    ],
)
@pytest.mark.parametrize("key", ["auth_url", "base_url", "client_id"])
def test_flag_then_environment_then_config_then_login(resolve, sources, expected, key):
    value = "{}" if key == "client_id" else "https://{}.example"
    settings = {source: {key: value.format(source)} for source in sources}
    profile = resolve(
        flags=settings.get("flag", {}),
        environ={f"DKIMCTL_{key.upper()}": value.format("environment")}
        if "environment" in settings
        else {},
        config=Config(profiles={"default": settings.get("config", {})}),
        logins={"default": settings["login"]},
    )
    assert getattr(profile, key) == value.format(expected)


def test_an_empty_variable_counts_as_unset(resolve):
    logins = {"default": {"auth_url": HTTPS}}
    empty = {"DKIMCTL_AUTH_URL": "", "DKIMCTL_PROFILE": "", "DKIMCTL_CLIENT_ID": ""}
    assert resolve(environ=empty, logins=logins).auth_url == HTTPS


@pytest.mark.parametrize(
    ("flags", "environ", "expected"),
    [
        ({"profile": "a"}, {"DKIMCTL_PROFILE": "b"}, "a"),
        ({"profile": None}, {"DKIMCTL_PROFILE": "b"}, "b"),
        ({}, {}, "c"),
        ({"sandbox": True}, {"DKIMCTL_PROFILE": "b"}, "sandbox"),
        ({"sandbox": True, "profile": "sandbox"}, {}, "sandbox"),
        ({"sandbox": False, "profile": "sandbox"}, {}, "sandbox"),
    ],
)
def test_the_profile_is_named_by_flag_then_environment_then_config(
    resolve, flags, environ, expected
):
    config = Config(default_profile="c", profiles={"a": {}, "b": {}, "c": {}})
    assert resolve(flags=flags, environ=environ, config=config).name == expected


@pytest.mark.parametrize(
    "sources",
    [
        {"flags": {"profile": "new", "auth_url": HTTPS}},
        {"flags": {"profile": "new"}, "environ": {"DKIMCTL_BASE_URL": HTTPS}},
        {"flags": {"profile": "new"}, "logins": {"new": {}}},
        {"environ": {"DKIMCTL_PROFILE": "new"}, "config": Config(profiles={"new": {}})},
    ],
)
def test_any_source_that_defines_a_profile_makes_it_known(resolve, sources):
    assert resolve(**sources).name == "new"


def test_the_sandbox_always_exists_and_cannot_be_redirected(resolve):
    environ = {"DKIMCTL_AUTH_URL": HTTPS, "DKIMCTL_BASE_URL": HTTPS, "DKIMCTL_CLIENT_ID": "me"}
    profile = resolve(
        flags={"sandbox": True}, environ=environ, logins={"sandbox": {"client_id": "x"}}
    )
    assert profile == Profile(
        name="sandbox",
        auth_url="https://sandbox.invalid",
        base_url="https://sandbox.invalid",
        client_id="sandbox",
        credential_store="file",
        concurrency=1,
    )
    assert profile.is_sandbox
    assert not resolve().is_sandbox


@pytest.mark.parametrize(
    ("key", "value"),
    [("auth_url", HTTPS), ("base_url", HTTPS), ("client_id", "me"), ("credential_store", "file")],
)
def test_the_fixed_keys_of_the_sandbox_are_refused(refusal, problems, key, value):
    option = "--" + key.replace("_", "-")
    assert option in refusal(flags={"sandbox": True, key: value}).message
    (problem,) = problems(f"profiles:\n  sandbox:\n    {key}: {value}\n")
    assert problem == f"config.yaml:3:5: {key} of the sandbox is fixed"


@pytest.mark.parametrize(
    "given", [{"flags": {"profile": TOKEN}}, {"environ": {"DKIMCTL_PROFILE": TOKEN}}]
)
def test_a_word_as_long_as_a_secret_is_not_quoted_as_a_profile(refusal, given):
    error = refusal(**given)
    assert error.message.startswith("unknown profile")
    assert TOKEN not in f"{error.message} {error.hint}"
    assert error.hint.endswith("create it with `dkimctl login --profile NAME`")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"environ": {"DKIMCTL_PROFILE": "x"}},
            "unknown profile x (environment variable DKIMCTL_PROFILE)",
        ),
        (
            {"config": Config(default_profile="x")},
            "unknown profile x (config file /c.yaml)",
        ),
    ],
)
def test_an_unknown_profile_says_who_named_it(refusal, given, said):
    assert refusal(**given).message.startswith(f"{said}; known profiles: default, sandbox")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://proxy.example:3128", "http://proxy.example:3128"),
        ("http://me:hunter2@proxy.example:3128", "http://***@proxy.example:3128"),
        ("me:hunt@er2@proxy.example", "***@proxy.example"),
        ("http://me:hunt/er2@proxy.example", "http://***@proxy.example"),
        ("socks5h://me:hunter2\n@proxy.example", "socks5h://***@proxy.example"),
    ],
)
def test_the_proxy_of_the_environment_is_shown_without_its_password(text, shown):
    proxy = exported_proxy({"HTTPS_PROXY": text, "ALL_PROXY": "http://other"})
    assert proxy is not None
    assert proxy[0] == shown
    assert str(proxy[1]) == "environment variable HTTPS_PROXY"
    assert exported_proxy({"https_proxy": ""}) is None


@pytest.fixture
def state(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.mark.parametrize("data", [b"", b"a b\n", b"\xff", b"a" * 5000])
def test_a_damaged_file_is_refused(state, data):
    write_used_profile(state, "agency")
    (state / "profile").write_bytes(data)
    with pytest.raises(UsageError) as caught:
        read_used_profile(state)
    assert caught.value.hint
    assert str(state / "profile") in caught.value.message


PROD = Profile("prod", HTTPS, "https://api.example", "me", credential_store="file", batch_size=7)


def log_in(directory, profile):
    with logins_lock(directory):
        write_logins(directory, read_logins(directory)[0] | {profile.name: login_of(profile)})


def test_a_login_is_stored_until_the_next_of_its_profile(resolve, tmp_path):
    directory = tmp_path / "a" / "state"
    assert read_logins(directory) == ({}, [])
    log_in(directory, PROD)
    log_in(directory, Profile("other", HTTPS, HTTPS, "you"))
    logins, _ = read_logins(directory)
    assert logins["prod"] == {
        "auth_url": HTTPS,
        "base_url": "https://api.example",
        "client_id": "me",
        "credential_store": "file",
    }
    assert resolve(flags={"profile": "prod"}, logins=logins).client_id == "me"
    log_in(directory, PROD._replace(client_id="new"))
    assert {name: login["client_id"] for name, login in read_logins(directory)[0].items()} == {
        "prod": "new",
        "other": "you",
    }
    assert {path.suffix for path in directory.iterdir()} <= {".json", ".lock"}


def test_urls_that_an_older_version_stored_are_canonical_as_settings_alone(resolve, tmp_path):
    old = login_of(PROD) | {"base_url": "https://api.example:443"}
    with logins_lock(tmp_path):
        write_logins(tmp_path, {"prod": old})
    logins, _ = read_logins(tmp_path)
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
