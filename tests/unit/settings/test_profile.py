"""A profile: its account, and which profiles share credentials."""

from __future__ import annotations

import json

import pytest

from configs import settings_from
from dkimctl.errors import UsageError
from dkimctl.settings.config import Config
from dkimctl.settings.profile import (
    Profile,
    exported_proxy,
    login_of,
    read_logins,
    read_used_profile,
    stored_login,
    write_used_profile,
)

HTTPS = "https://auth.example"
PROD = Profile("prod", HTTPS, "https://api.example", "me", credential_store="file", batch_size=7)


@pytest.mark.parametrize("key", ["auth_url", "base_url", "client_id"])
def test_option_then_environment_then_config_then_login(key):
    order = ["option", "environment", "config", "login"]
    values = {name: name if key == "client_id" else f"https://{name}.example" for name in order}
    for at, name in enumerate(order):
        left = {name: {key: values[name]} for name in order[at:]}
        exported = left.get("environment", {}).get(key, "")  # an empty variable counts as unset
        settings = settings_from(
            flags=left.get("option", {}),
            environ={f"DKIMCTL_{key.upper()}": exported, "DKIMCTL_PROFILE": ""},
            config=Config(profiles={"default": left.get("config", {})}),
            logins={"default": left["login"]},
        )
        assert getattr(settings.profile, key) == values[name]
        assert settings.sources[key].kind == name


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


def test_the_sandbox_always_exists_and_cannot_be_redirected(resolve, refusal, problems):
    environ = {"DKIMCTL_AUTH_URL": HTTPS, "DKIMCTL_BASE_URL": HTTPS, "DKIMCTL_CLIENT_ID": "me"}
    profile = resolve(
        flags={"sandbox": True}, environ=environ, logins={"sandbox": {"client_id": "x"}}
    )
    url = "https://sandbox.invalid"
    assert profile.is_sandbox
    assert profile == Profile(
        "sandbox", url, url, "sandbox", credential_store="file", concurrency=1
    )
    config = Config(profiles={"sandbox": {"concurrency": 3}})
    assert resolve(flags={"sandbox": True}, config=config).concurrency == 3
    for key, value in login_of(PROD).items():
        option = "--" + key.replace("_", "-")
        assert option in refusal(flags={"sandbox": True, key: value}).message
        (problem,) = problems(f"profiles:\n  sandbox:\n    {key}: {value}\n")
        assert problem == f"3:5: {key} of the sandbox is fixed"


TOKEN = "K3OusQdIy72bcW2vXwoxII_k5Axen0-xzuotPcmgW9Yd"  # also valid as a name


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"flags": {"profile": TOKEN}}, "unknown profile"),
        ({"environ": {"DKIMCTL_PROFILE": TOKEN}}, "unknown profile (environment variable"),
        ({"environ": {"DKIMCTL_PROFILE": "x"}}, "unknown profile x (environment variable"),
        ({"config": Config(default_profile="x")}, "unknown profile x (config file /c.yaml)"),
    ],
)
def test_an_unknown_profile_says_what_named_it_but_not_what_may_be_a_secret(refusal, given, said):
    error = refusal(**given)
    assert error.message.startswith(said)
    assert error.message.endswith("known profiles: default, sandbox")
    assert TOKEN not in f"{error.message} {error.hint}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://proxy.example:3128", "http://proxy.example:3128"),
        ("me:hunt@er2@proxy.example", "***@proxy.example"),
        ("http://me:hunt/er2@proxy.example", "http://***@proxy.example"),
        ("socks5h://me:hunter2\n@proxy.example", "socks5h://***@proxy.example"),
    ],
)
def test_the_proxy_of_the_environment_is_shown_without_its_password(text, shown):
    proxy = exported_proxy({"HTTPS_PROXY": text, "ALL_PROXY": "http://other", "https_proxy": ""})
    assert proxy is not None
    assert (proxy[0], str(proxy[1])) == (shown, "environment variable HTTPS_PROXY")


@pytest.mark.parametrize("data", [b"", b"a b\n", b"\xff", b"a" * 5000])
def test_a_damaged_choice_is_refused(tmp_path, data):
    tmp_path.chmod(0o700)
    write_used_profile(tmp_path, "agency")
    assert read_used_profile(tmp_path) == "agency"
    (tmp_path / "profile").write_bytes(data)
    with pytest.raises(UsageError) as caught:
        read_used_profile(tmp_path)
    assert caught.value.hint
    assert str(tmp_path / "profile") in caught.value.message


def test_credentials_are_stored_with_the_urls_of_the_profiles_own_login_first(resolve):
    """An older version did not store them in canonical form."""
    new = login_of(PROD)
    old, older = (new | {"base_url": PROD.base_url + suffix} for suffix in (":443", ":"))
    other = new | {"client_id": "you"}
    assert resolve(flags={"profile": "prod"}, logins={"prod": old}).base_url == PROD.base_url
    assert stored_login(PROD, {}) == stored_login(PROD, {"prod": other}) == new
    assert stored_login(PROD, {"a": old, "prod": older, "b": new}) == older
    assert stored_login(PROD, {"a": old, "b": new, "prod": other}) == new
    assert stored_login(PROD, {"b": other, "a": old}) == old


LOGIN = json.dumps(login_of(PROD)).encode()


@pytest.mark.parametrize(
    "data",
    [b'{"(unused)": 1}', b'{"(unused)": [{}]}', b"", b"[]", b"5", b"\xff", b'{"a": {}}',
     b"[" * 100_000,
     b'{"a": {"auth_url": 1, "base_url": "", "client_id": "", "credential_store": ""}}',
     b'{"a": %s}' % LOGIN.replace(b"https://api", b"http://api"),
     *(b'{"%s": %s}' % (name, LOGIN) for name in (rb"\u001b[31m", b"two words", rb"\u202ea", b""))],
)  # fmt: skip
def test_a_damaged_logins_file_is_a_usage_error(tmp_path, data):
    (tmp_path / "logins.json").write_bytes(b'{"a": %s}' % LOGIN)
    assert read_logins(tmp_path) == ({"a": login_of(PROD)}, [])
    (tmp_path / "logins.json").write_bytes(data)
    with pytest.raises(UsageError, match=r"logins\.json"):
        read_logins(tmp_path)
