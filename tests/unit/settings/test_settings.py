"""Settings: which source wins, and how each says what is wrong with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import InputError, UsageError
from dkimctl.settings.config import Config, load_config
from dkimctl.settings.logins import login_of, logins, logins_lock, write_logins
from dkimctl.settings.paths import config_path, data_dir, state_dir
from dkimctl.settings.profile import (
    Profile,
    profiles_with,
    require_account,
    require_ledger_account,
    resolve_profile,
)
from dkimctl.settings.values import CHECKS
from dkimctl.specs.fields import read_defaults

ROOT = Path(__file__).parents[3]
HTTPS = "https://auth.example"


def resolve(flags=None, environ=None, config=None, told=None) -> Profile:
    return resolve_profile(
        flags=flags or {}, environ=environ or {}, config=config or Config(), logins=told or {}
    )


def refusal(**sources) -> UsageError:
    with pytest.raises(UsageError) as caught:
        resolve(**sources)
    assert caught.value.hint
    return caught.value


@pytest.fixture
def load(tmp_path):
    def load(text: str) -> Config:
        path = tmp_path / "config.yaml"
        path.write_text(text, encoding="utf-8")
        return load_config(path, required=True, read_defaults=read_defaults)

    return load


@pytest.fixture
def refused(load, tmp_path):
    def refused(text: str) -> list[str]:
        with pytest.raises(InputError) as caught:
            load(text)
        assert all(problem.hint for problem in caught.value.problems)
        return [
            str(problem).removeprefix(f"{tmp_path}{os.sep}") for problem in caught.value.problems
        ]

    return refused


# --- which source wins -----------------------------------------------------------------


def test_with_no_source_at_all_the_defaults_hold():
    assert resolve() == Profile(
        name="default",
        auth_url=None,
        base_url=None,
        client_id=None,
        batch_size=50,
        concurrency=8,
        timeout=30.0,
        max_wait=300.0,
        ca_bundle=None,
        proxy=None,
        credential_store="keyring",
        defaults={},
    )


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
def test_flag_then_environment_then_config_then_login(sources, expected, key):
    value = "{}" if key == "client_id" else "https://{}.example"
    said = {source: {key: value.format(source)} for source in sources}
    profile = resolve(
        flags=said.get("flag"),
        environ={f"DKIMCTL_{key.upper()}": value.format("environment")}
        if "environment" in said
        else {},
        config=Config(profiles={"default": said.get("config", {})}),
        told={"default": said["login"]},
    )
    assert getattr(profile, key) == value.format(expected)


def test_each_key_is_decided_on_its_own():
    profile = resolve(
        flags={"auth_url": "https://flag.example", "base_url": None},
        environ={"DKIMCTL_CLIENT_ID": "environment"},
        config=Config(profiles={"default": {"base_url": "https://config.example"}}),
        told={"default": {"client_id": "login", "credential_store": "file"}},
    )
    assert profile.auth_url == "https://flag.example"
    assert profile.base_url == "https://config.example"
    assert profile.client_id == "environment"
    assert profile.credential_store == "file"


def test_an_empty_variable_counts_as_unset():
    told = {"default": {"auth_url": HTTPS}}
    empty = {"DKIMCTL_AUTH_URL": "", "DKIMCTL_PROFILE": "", "DKIMCTL_CLIENT_ID": ""}
    assert resolve(environ=empty, told=told).auth_url == HTTPS


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
def test_the_profile_is_named_by_flag_then_environment_then_config(flags, environ, expected):
    config = Config(default_profile="c", profiles={"a": {}, "b": {}, "c": {}})
    assert resolve(flags=flags, environ=environ, config=config).name == expected


def test_two_profiles_at_once_are_refused():
    assert "two profiles" in refusal(flags={"sandbox": True, "profile": "a"}).message


def test_an_unknown_profile_lists_the_known_and_says_how_to_make_one():
    error = refusal(
        flags={"profile": "prdo", "batch_size": 5},
        config=Config(profiles={"prod": {}}),
        told={"agency": {}},
    )
    assert error.message == ("there is no profile prdo; known are agency, default, prod, sandbox")
    assert "dkimctl login --profile prdo" in error.hint


@pytest.mark.parametrize(
    "sources",
    [
        {"flags": {"profile": "new", "auth_url": HTTPS}},
        {"flags": {"profile": "new"}, "environ": {"DKIMCTL_BASE_URL": HTTPS}},
        {"flags": {"profile": "new"}, "told": {"new": {}}},
        {"environ": {"DKIMCTL_PROFILE": "new"}, "config": Config(profiles={"new": {}})},
    ],
)
def test_any_source_that_tells_of_a_profile_makes_it_known(sources):
    assert resolve(**sources).name == "new"


def test_the_account_that_a_command_needs_is_asked_for_by_name():
    profile = Profile("default", HTTPS, "https://api.example", "me")
    assert require_account(profile) == (HTTPS, "https://api.example", "me")
    assert require_ledger_account(profile) == ("https://api.example", "me")
    with pytest.raises(UsageError, match="the profile default has no base_url") as caught:
        require_account(Profile("default", HTTPS))
    assert "--base-url" in caught.value.hint
    assert "--sandbox" in caught.value.hint


# --- the sandbox -----------------------------------------------------------------------


def test_the_sandbox_exists_without_any_source_and_cannot_be_redirected():
    environ = {"DKIMCTL_AUTH_URL": HTTPS, "DKIMCTL_BASE_URL": HTTPS, "DKIMCTL_CLIENT_ID": "me"}
    profile = resolve(
        flags={"sandbox": True}, environ=environ, told={"sandbox": {"client_id": "x"}}
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


def test_the_other_keys_of_the_sandbox_are_set_like_any():
    config = Config(profiles={"sandbox": {"batch_size": 3, "defaults": {"key_len": 2048}}})
    profile = resolve(flags={"sandbox": True, "timeout": "5"}, config=config)
    assert (profile.batch_size, profile.timeout) == (3, 5.0)
    assert profile.defaults == {"key_len": 2048}


@pytest.mark.parametrize(
    ("key", "value"),
    [("auth_url", HTTPS), ("base_url", HTTPS), ("client_id", "me"), ("credential_store", "file")],
)
def test_what_is_fixed_in_the_sandbox_is_no_option_or_key_of_it(key, value, refused):
    option = "--" + key.replace("_", "-")
    assert option in refusal(flags={"sandbox": True, key: value}).message
    (problem,) = refused(f"profiles:\n  sandbox:\n    {key}: {value}\n")
    assert problem == f"config.yaml:3:5: {key} of the sandbox is fixed"


# --- values ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("auth_url", "https://auth.example/", HTTPS),
        ("auth_url", "HTTPS://Auth.Example", HTTPS),
        ("auth_url", "https://auth.example:8443/stage/", "https://auth.example:8443/stage"),
        ("base_url", "http://localhost:8080", "http://localhost:8080"),
        ("base_url", "http://127.9.9.9", "http://127.9.9.9"),
        ("base_url", "http://[::1]:8080/", "http://[::1]:8080"),
        ("batch_size", 1, 1),
        ("batch_size", "10000", 10_000),
        ("concurrency", "64", 64),
        ("timeout", "30", 30.0),
        ("timeout", "0.5s", 0.5),
        ("max_wait", "5m", 300.0),
        ("max_wait", "1h", 3600.0),
        ("proxy", "http://proxy.example:3128", "http://proxy.example:3128"),
        ("credential_store", "file", "file"),
        ("ca_bundle", Path("ca.pem"), "ca.pem"),
    ],
)
def test_a_value_means_the_same_from_an_option_and_from_the_config(key, text, expected, load):
    assert getattr(resolve(flags={key: text}), key) == expected
    assert load(f"profiles: {{default: {{{key}: '{text}'}}}}").profiles["default"][key] == expected


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("batch_size", "0"),
        ("batch_size", "10001"),
        ("batch_size", "1_0"),
        ("batch_size", "٣"),
        ("batch_size", "-1"),
        ("concurrency", "65"),
        ("timeout", "0"),
        ("timeout", "0.0s"),
        ("timeout", "-1"),
        ("timeout", "5 m"),
        ("timeout", "2d"),
        ("timeout", "inf"),
        ("max_wait", "9" * 400),
        ("credential_store", "Keyring"),
        ("client_id", "id:part"),
        ("client_id", ""),
        ("ca_bundle", "~no-such-user-here/ca.pem"),
        ("auth_url", "http://auth.example"),
        ("auth_url", "http://127.0.0.1.example"),
        ("auth_url", "http://127.1"),
        ("auth_url", "http://[::2]"),
        ("auth_url", "ftp://auth.example"),
        ("auth_url", "auth.example"),
        ("auth_url", "https://"),
        ("auth_url", "https://auth.example:99999"),
        ("auth_url", "http://auth.example[::1]"),
        ("auth_url", "https://auth.example:x"),
        ("auth_url", "https://[::1"),
        ("auth_url", "https://auth.example?"),
        ("auth_url", "https://auth.example#"),
        ("auth_url", "https://auth.example\\x"),
        ("auth_url", "https://auth .example"),
        ("auth_url", ""),
        ("proxy", "socks5://proxy.example"),
        ("proxy", "http://user:pass@proxy.example"),
    ],
)
def test_a_wrong_value_is_refused_with_its_source(key, text, refused):
    option = "--" + key.replace("_", "-")
    assert refusal(flags={key: text}).message.startswith(f"in {option}: ")
    (problem,) = refused(f"profiles:\n  default:\n    {key}: '{text}'\n")
    assert problem.startswith(f"config.yaml:3:{7 + len(key)}: {key}: ")


@pytest.mark.parametrize("key", [key for key in CHECKS if key != "ca_bundle"])  # any path will do
def test_a_secret_in_the_wrong_place_is_not_quoted(key, refused):
    (problem,) = refused(f'profiles:\n  default:\n    {key}: "hunter2 is:none \\u0001"\n')
    assert "hunter2" not in problem


@pytest.mark.parametrize("key", ["auth_url", "base_url", "client_id"])
def test_a_wrong_variable_is_named(key):
    variable = f"DKIMCTL_{key.upper()}"
    assert refusal(environ={variable: "a:\x00b"}).message.startswith(f"in {variable}: ")


@pytest.mark.parametrize("name", ["", "a b", "../x", "ü", "a\n"])
def test_a_wrong_profile_name_is_refused_from_every_source(name, refused):
    assert refusal(flags={"profile": name}).message.startswith("in --profile: ")
    if name:
        message = refusal(environ={"DKIMCTL_PROFILE": name}).message
        assert message.startswith("in DKIMCTL_PROFILE: ")
    text = name.replace("\n", "\\n")
    assert refused(f'default_profile: "{text}"\n')[0].startswith("config.yaml:1:18: ")
    assert refused(f'profiles:\n  "{text}": {{}}\n')[0].startswith("config.yaml:2:3: ")


@given(st.text() | st.from_regex(r"https?://[^\s]*", fullmatch=True))
def test_any_url_is_taken_or_refused_in_plain_words(text):
    try:
        url = resolve(flags={"auth_url": text}).auth_url
    except UsageError:
        return
    assert url is not None
    assert url.startswith(("https://", "http://"))
    assert resolve(flags={"auth_url": url}).auth_url == url


def test_a_password_in_a_url_is_never_quoted(refused):
    url = "https://me:hunter2@auth.example"
    assert "hunter2" not in str(refusal(flags={"auth_url": url}))
    assert "hunter2" not in str(refused(f"profiles: {{default: {{auth_url: '{url}'}}}}"))


# --- the config file -------------------------------------------------------------------


def test_a_missing_config_file_is_an_error_only_when_it_was_asked_for(tmp_path):
    path = tmp_path / "none" / "config.yaml"
    assert load_config(path, required=False, read_defaults=read_defaults) == Config()
    with pytest.raises(UsageError, match="there is no file"):
        load_config(path, required=True, read_defaults=read_defaults)


def test_a_directory_as_config_file_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="is a directory"):
        load_config(tmp_path, required=False, read_defaults=read_defaults)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}\n", "profiles: {}\n"])
def test_a_config_file_may_say_nothing(load, text):
    assert load(text) == Config()


def test_no_yaml_is_imported_where_there_is_no_config_file(tmp_path):
    program = (
        "import sys, pathlib; from dkimctl.settings.config import load_config;"
        "from dkimctl.settings.logins import logins;"
        f"load_config(pathlib.Path({str(tmp_path / 'none')!r}), required=False,"
        " read_defaults=lambda document, node: {});"
        "logins(pathlib.Path('none'));"
        "print(sorted({'yaml', 'json', 'difflib', 'platformdirs', 'idna'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_all_problems_of_a_config_file_are_reported_in_one_run(refused):
    text = (
        "default_profil: x\n"
        "profiles:\n"
        "  prod:\n"
        "    batchsize: 5\n"
        "    timeout: never\n"
        "    auth_url:\n"
        "    proxy: [a]\n"
        "    defaults: {key_len: 512, selector: s1}\n"
        "  other: prod\n"
    )
    assert [":".join(problem.split(":")[1:4]) for problem in refused(text)] == [
        '1:1: the config file has no key "default_profil"',
        '4:5: a profile has no key "batchsize"',
        "5:14: timeout",
        "6:14: auth_url has no value",
        "7:12: proxy must be a single value, not a list",
        "8:25: key_len",
        '8:30: defaults has no key "selector"',
        "9:10: the profile other must be a mapping, not a single value",
    ]


def test_an_unknown_key_suggests_the_nearest(load):
    with pytest.raises(InputError) as caught:
        load("profiles: {default: {batchsize: 5}}")
    assert caught.value.hint == "did you mean batch_size?"


@pytest.mark.parametrize(
    "key", ["client_secret", "secret", "secret_key", "password", "token", "access_token", "Secret"]
)
@pytest.mark.parametrize("text", ["{}: hunter2\n", "profiles: {{default: {{{}: hunter2}}}}\n"])
def test_a_secret_in_the_config_file_is_refused_and_never_quoted(load, key, text):
    with pytest.raises(InputError) as caught:
        load(text.format(key))
    (problem,) = caught.value.problems
    assert "no secret belongs in this file" in problem.message
    assert "dkimctl login" in problem.hint
    assert "hunter2" not in repr(caught.value.problems)


def test_the_example_config_shows_every_key_with_its_default():
    path = ROOT / "config.example.yaml"
    config = load_config(path, required=True, read_defaults=read_defaults)
    profile = resolve(config=config)
    text = path.read_text(encoding="utf-8")
    fresh = Profile("default")
    without_default = {"auth_url", "base_url", "client_id", "defaults"}
    for key in Profile.__slots__:
        assert key == "name" or f"{key}:" in text
        if key not in without_default:
            assert getattr(profile, key) == getattr(fresh, key)


# --- paths -----------------------------------------------------------------------------


def test_paths_come_from_flag_or_environment_or_the_platform():
    environ = {"DKIMCTL_CONFIG": "there.yaml", "DKIMCTL_STATE_DIR": "state"}
    assert config_path("here.yaml", environ) == Path("here.yaml")
    assert config_path(None, environ) == Path("there.yaml")
    assert config_path(None, {}).parts[-2:] == ("dkimctl", "config.yaml")
    assert state_dir(environ) == Path("state")
    assert state_dir({}).is_absolute()
    assert "dkimctl" in state_dir({"DKIMCTL_STATE_DIR": ""}).parts
    assert "dkimctl" in data_dir().parts


# --- what login was told ---------------------------------------------------------------

PROD = Profile("prod", HTTPS, "https://api.example", "me", credential_store="file", batch_size=7)


def remember(directory, profile):
    with logins_lock(directory):
        write_logins(directory, logins(directory) | {profile.name: login_of(profile)})


def test_profiles_with_the_same_credentials_are_found_in_both_places():
    login = login_of(PROD)
    agency = {key: login[key] for key in ("auth_url", "base_url", "client_id")}
    config = Config(
        profiles={
            "agency": {**agency, "credential_store": "file", "defaults": {}},
            "keyring": agency,
            "prod": {"client_id": "another"},
        }
    )
    told = {"prod": login, "twin": dict(login), "other": {**login, "client_id": "you"}}
    assert sorted(profiles_with(login, config, told)) == ["agency", "twin"]


def test_a_login_is_remembered_by_profile_until_the_next(tmp_path):
    directory = tmp_path / "a" / "state"
    assert logins(directory) == {}
    remember(directory, PROD)
    remember(directory, Profile("other", HTTPS, HTTPS, "you"))
    told = logins(directory)
    assert told["prod"] == {
        "auth_url": HTTPS,
        "base_url": "https://api.example",
        "client_id": "me",
        "credential_store": "file",
    }
    assert resolve(flags={"profile": "prod"}, told=told).client_id == "me"
    remember(directory, PROD._replace(client_id="new"))
    assert {name: login["client_id"] for name, login in logins(directory).items()} == {
        "prod": "new",
        "other": "you",
    }
    assert {path.suffix for path in directory.iterdir()} <= {".json", ".lock"}


@pytest.mark.skipif(sys.platform == "win32", reason="modes say nothing there")
def test_the_state_directory_is_for_its_owner_alone(tmp_path):
    remember(tmp_path / "state", PROD)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "data",
    [
        *[b"", b"[]", b"{", b"\xff", b'{"a": 1}', b'{"a": {}}', b'"a"', b"[" * 100_000],
        b'{"a": {"auth_url": 1, "base_url": "", "client_id": "", "credential_store": ""}}',
        b'{"a": {"auth_url": "http://evil.example", "base_url": "", "client_id": "x"}}',
    ],
)
def test_a_damaged_login_file_is_a_clear_error(tmp_path, data):
    (tmp_path / "logins.json").write_bytes(data)
    with pytest.raises(UsageError, match=r"logins\.json"):
        logins(tmp_path)


def test_a_state_directory_that_is_a_file_is_a_clear_error(tmp_path):
    path = tmp_path / "state"
    path.touch()
    with pytest.raises(UsageError, match="cannot use"):
        remember(path, PROD)
