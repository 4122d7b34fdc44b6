"""Config files and stored logins: any content is read, or refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs import read_config, settings_from
from dkimctl.errors import InputError, UsageError
from dkimctl.settings.profile import LOGIN_KEYS, read_logins
from dkimctl.text import printable
from mutations import JSON_SCALARS, YAML_SCALARS, block, documents, flow, json_tree
from terminals import is_harmless

URLS = st.sampled_from(
    ("https://a.example", "http://127.0.0.1:8080/", "http://[::1]", "https://a.example/v2?x",
     "http://a.example", "https://me:hunter2@a.example", "https://[", "https://a:99999", "HTTPS://A",
     "https://[fe80::1%25a]", "https://a℀b", "http://localhost", "//a", "https://日本.jp")
)  # fmt: skip
NUMBERS = st.sampled_from(
    ("1", "0", "64", "30s", "5m", "1.5h", "1e3", "9" * 400, "-1", '"30"', "٣")
)
PATHS = st.sampled_from(("/a.pem", "~/a", "~nobody-of-that-name/a", r'"a\0b"', r'"\uD800"', "''"))
PROFILE = {
    "auth_url": URLS,
    "base_url": URLS,
    "client_id": st.sampled_from(("me", '"a:b"', "''", r'"\e[2J"', "日本", "9" * 5000)),
    "batch_size": NUMBERS,
    "concurrency": NUMBERS,
    "timeout": NUMBERS,
    "max_wait": NUMBERS,
    "ca_bundle": PATHS,
    "proxy": URLS,
    "credential_store": st.sampled_from(("keyring", "file", "File")),
    "client_secret": st.just("hunter2"),
    "defaults": st.sampled_from(
        ((), (("key_len", "2048"), ("enable", "true")), (("selector", "s1"),), "[]", "x")
    ),
}
NAMES = st.sampled_from(("default", "sandbox", "agency", "'a b'", "..", r'"\e"', "日本", "''", "~"))


def mappings(required, optional):
    """Mappings of these keys."""
    return st.fixed_dictionaries(required, optional=optional).map(
        lambda mapping: (*mapping.items(),)
    )


REFERENCES = ("env/A", "keyring/a", "env/", "env/a-b", "keyring/a b", r'"env/\e"')
SETTINGS = mappings(
    {},
    {
        "token": st.sampled_from(("hunter2", *REFERENCES, ["hunter2"], (("a", "hunter2"),))),
        "url": st.sampled_from(("https://me:hunter2@a.example", "https://a.example", *REFERENCES)),
        "limit": st.sampled_from(("5", "0.5", "true", "9" * 400, "~", "01", ["1", (("a", "2"),)])),
    },
)
TARGET = {
    "zones": st.lists(
        st.sampled_from(
            ("example.com.", "'*.example.net'", "'*'", "日本.jp", "'*.日本.jp'", "a..b", r'"\e*"',
             "https://me:hunter2@a.example", "192.0.2.1", "_domainkey.a", "[", "'[!a'", "''", "~")
        ), max_size=3),
    "profiles": st.lists(NAMES, max_size=2),
    "server": st.sampled_from(
        ("192.0.2.1", "'[::1]:53'", "ns1.a.example:5353", "192.0.2.1:0", "https://hunter2@a",
         r'"fe80::1%\e[2J"', "fe80::1%eth0", "日本.jp", "a" * 300)
    ),
    "key_file": PATHS,
    "class": st.sampled_from(("octodns_a.A", "A", "os.system", r'"a.\e"', "a.ä", "''")),
    "settings": SETTINGS,
    "ttl": NUMBERS,
    "secret": st.just("hunter2"),
}  # fmt: skip
ROTATION = dict.fromkeys(("max_age", "lead", "grace", "limit"), NUMBERS)
NOTIFY = {
    "command": st.sampled_from(
        ("a -b 'c d'", "'\"'", r'"a\0"', r'"\uD800"', "''", ["a", "b"], ["''"], [], "~")
    ),
    "webhook": URLS | st.sampled_from(REFERENCES),
    "recheck": NUMBERS,
    "token": st.just("hunter2"),
}
TREES = mappings(
    {"profiles": st.dictionaries(NAMES, mappings({}, PROFILE), max_size=3).map(
        lambda mapping: (*mapping.items(),))},
    {"default_profile": NAMES,
     "dns": st.lists(mappings(
         {"provider": st.sampled_from(("rfc2136", "octodns", "route53"))}, TARGET), max_size=3),
     "rotation": mappings({}, ROTATION),
     "notify": mappings({}, NOTIFY)},
)  # fmt: skip
FILES = documents(TREES, scalars=YAML_SCALARS, writers=(block, flow))
LOGIN = st.fixed_dictionaries(
    {"auth_url": URLS, "base_url": URLS, "client_id": st.text(max_size=5) | st.just("me"),
     "credential_store": st.sampled_from(("keyring", "file", "File"))}
)  # fmt: skip
LOGINS = documents(
    st.dictionaries(st.text(max_size=5), LOGIN, max_size=2).map(json_tree),
    scalars=JSON_SCALARS,
    writers=(flow,),
)


@pytest.fixture(scope="session")
def config_file(tmp_path_factory):
    """Where the config file is."""
    return tmp_path_factory.mktemp("config") / "config.yaml"


def attempt(read: Callable[..., Any], *given: Any, **sources: Any) -> Any:
    """What it returns, or its UsageError."""
    try:
        return read(*given, **sources)
    except UsageError as error:
        return error


def is_safe(url: str | None) -> bool:
    """Whether requests to it are encrypted or stay on this machine."""
    loopback = ("http://127.0.0.1", "http://[::1]", "http://localhost")
    return url is None or url.startswith(("https://", *loopback))


@given(FILES)
def test_a_config_file_is_read_or_each_problem_has_a_position(config_file, data):
    config_file.write_bytes(data)
    config = attempt(read_config, config_file)
    if isinstance(config, InputError):
        for problem in config.problems:
            assert min(problem.line, problem.column) >= 1
            assert problem.message
            assert problem.hint
            assert is_harmless(printable(f"{problem} {problem.hint}"))
            assert "hunter2" not in f"{problem.message} {problem.hint}"
        return
    # What the rest of the program relies on.
    for target in config.dns:
        assert 1 <= target.ttl < 1 << 31
        assert bool(target.server) == (target.provider == "rfc2136")
        assert bool(target.class_name) == (target.provider == "octodns")
        assert all(zone == zone.lower().rstrip(".") and zone.isascii() for zone in target.zones)
        assert is_harmless(f"{target.zones} {target.server} {target.class_name}")
        assert "hunter2" not in str(target)
    for policy in config.rotation.entries:
        assert timedelta() < policy.lead < policy.max_age
        assert policy.limit >= 1
    assert all(isinstance(word, str) for word in config.notify.command)
    webhook = config.notify.webhook
    assert webhook.startswith(("env/", "keyring/")) or is_safe(webhook.lower() or None)
    assert "hunter2" not in webhook
    for name in {*config.profiles, "default", "sandbox"}:
        settings = attempt(settings_from, flags={"profile": name}, config=config)
        if isinstance(settings, UsageError):
            assert name not in config.profiles
            continue
        profile = settings.profile
        assert profile.name == name
        assert is_safe(profile.auth_url)
        assert is_safe(profile.base_url)
        assert 1 <= profile.batch_size <= 10_000
        assert 1 <= profile.concurrency <= 64
        assert min(profile.timeout, profile.max_wait) > 0
        assert max(profile.timeout, profile.max_wait) <= 86400
        assert profile.credential_store in {"keyring", "file"}


@given(data=FILES, fmt=st.sampled_from(("table", "json")))
def test_a_command_uses_a_config_file_or_reports_the_problem(command_line, config_file, data, fmt):
    config_file.write_bytes(data)
    config = attempt(read_config, config_file)
    done = command_line("show-dns", "--config", config_file, "--format", fmt)
    assert done.out == ""
    assert done.status in {1, 2}  # nothing is registered
    if fmt == "json":
        errors = [error["message"] for error in json.loads(done.err)["errors"]]
    else:
        assert all(map(is_harmless, done.err.splitlines()))
        start = "dkimctl: error: "
        lines = [line for line in done.err.splitlines() if line.startswith(start)]
        errors = [line.removeprefix(start) for line in lines]
    if isinstance(config, InputError):
        assert done.status == 2
        assert len(errors) == len(config.problems)
        assert all(error.startswith(f"{config_file}:") for error in errors)
    else:
        assert len(errors) == 1


@given(LOGINS)
def test_stored_logins_are_read_or_refused(tmp_path_factory, data):
    state = tmp_path_factory.getbasetemp()
    (state / "logins.json").write_bytes(data)
    stored = attempt(read_logins, state)
    if isinstance(stored, UsageError):
        assert "logins.json" in stored.message
        assert stored.hint
        assert is_harmless(printable(f"{stored.message} {stored.hint}"))
        return
    logins, _ = stored
    for name, login in logins.items():
        assert set(login) == set(LOGIN_KEYS)
        assert is_safe(login["auth_url"])
        assert is_safe(login["base_url"])
        attempt(settings_from, flags={"profile": name}, logins=logins)
