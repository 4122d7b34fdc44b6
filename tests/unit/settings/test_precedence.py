"""Which source of settings takes precedence, which profile is used, and what is fixed."""

from __future__ import annotations

import pytest

from dkimctl.errors import UsageError
from dkimctl.settings.config import Config
from dkimctl.settings.profile import Profile, exported_proxy

HTTPS = "https://auth.example"
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
        flags=settings.get("flag"),
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
def test_a_word_as_long_as_a_secret_is_not_quoted_as_a_profile(sources, given):
    with pytest.raises(UsageError, match="unknown profile") as caught:
        sources(**given)
    assert TOKEN not in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.hint.endswith("create it with `dkimctl login --profile NAME`")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"environ": {"DKIMCTL_PROFILE": "x"}}, "unknown profile x (in DKIMCTL_PROFILE)"),
        (
            {"config": Config(default_profile="x")},
            "unknown profile x (default_profile of the config file)",
        ),
        ({"used": lambda: "x"}, "unknown profile x (chosen with `dkimctl profile use`)"),
    ],
)
def test_an_unknown_profile_says_who_named_it(sources, given, said):
    with pytest.raises(UsageError) as caught:
        sources(**given)
    assert caught.value.message.startswith(f"{said}; known profiles: default, sandbox")


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
