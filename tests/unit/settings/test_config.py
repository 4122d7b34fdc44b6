"""The config file is read strictly, and all its problems are reported at once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from configs import read_config
from dkimctl.errors import InputError, UsageError
from dkimctl.settings.config import Config, DnsTarget, NoticeSettings, RotationSettings
from dkimctl.settings.profile import Profile

ROOT = Path(__file__).parents[3]


def test_a_missing_config_file_is_an_error_only_if_it_was_named(tmp_path):
    path = tmp_path / "none" / "config.yaml"
    assert read_config(path, required=False) == Config()
    with pytest.raises(UsageError, match="no such file"):
        read_config(path)


def test_a_directory_as_config_file_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="is a directory"):
        read_config(tmp_path, required=False)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}\n", "profiles: {}\n"])
def test_a_config_file_may_be_empty(load, text):
    assert load(text) == Config()


def test_all_problems_of_a_config_file_are_reported_at_once(problems):
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
    assert [":".join(problem.split(":")[1:4]) for problem in problems(text)] == [
        '1:1: the config file has no key "default_profil"',
        '4:5: the profile prod has no key "batchsize"',
        "5:14: timeout",
        "6:14: auth_url has no value",
        "7:12: proxy must be a single value, not a list",
        "8:25: key_len",
        '8:30: defaults has no key "selector"',
        "9:10: the profile other must be a mapping, not a single value",
    ]


def test_an_unknown_key_suggests_the_most_similar_one(load):
    with pytest.raises(InputError) as caught:
        load("profiles: {default: {batchsize: 5}}")
    assert caught.value.hint == "did you mean batch_size?"


@pytest.mark.parametrize(
    "key", ["client_secret", "secret", "secret_key", "password", "token", "access_token", "Secret"]
)
@pytest.mark.parametrize("text", ["{}: hunter2\n", "profiles: {{default: {{{}: hunter2}}}}\n"])
def test_a_secret_in_the_config_file_is_refused_and_not_quoted(load, key, text):
    with pytest.raises(InputError) as caught:
        load(text.format(key))
    (problem,) = caught.value.problems
    assert "secrets are not allowed in this file" in problem.message
    assert "dkimctl login" in problem.hint
    assert "hunter2" not in repr(caught.value.problems)


def test_the_example_config_shows_every_key_with_its_default(resolve):
    path = ROOT / "config.example.yaml"
    profile, default = resolve(config=read_config(path)), Profile("default")
    text = path.read_text(encoding="utf-8")
    for key in set(Profile.__slots__) - {"name"}:
        assert f"{key}:" in text
        if key not in {"auth_url", "base_url", "client_id", "defaults"}:
            assert getattr(profile, key) == getattr(default, key)


def test_the_targets_and_notices_that_the_example_config_comments_out_are_valid(load, tmp_path):
    text = (ROOT / "config.example.yaml").read_text(encoding="utf-8")
    dns = text[text.index("# dns:") : text.index("\n\n# When `dkimctl rotate run`")]
    notify = text[text.index("notify:") :].replace("# command", "command")
    config = load(
        "\n".join(line.removeprefix("# ") for line in dns.splitlines())
        + f"\n{notify.replace('# webhook', 'webhook')}"
    )
    assert config.dns == (
        DnsTarget(
            "rfc2136",
            zones=("example.com", "*.example.net"),
            server="192.0.2.1",
            key_file=str(tmp_path / "tsig.key"),
        ),
        DnsTarget(
            "octodns",
            profiles=("default",),
            class_name="octodns_route53.Route53Provider",
            settings={
                "access_key_id": "env/AWS_ACCESS_KEY_ID",
                "secret_access_key": "keyring/route53",
            },
        ),
    )
    assert config.notify == NoticeSettings(
        ("/usr/local/bin/page", "--json"), "https://hooks.example.com/x"
    )
    keys = {"class" if key == "class_name" else key for key in DnsTarget._fields}
    assert all(f"{key}: " in dns or f"{key}:\n" in dns for key in keys)


DYNAMIC = "dns: [{{provider: rfc2136, server: 192.0.2.1, {}}}]\n"
OCTODNS = "dns: [{{provider: octodns, class: octodns_x.X, {}}}]\n"


def test_targets_are_read_in_their_order(load, tmp_path):
    config = load(
        "dns:\n"
        "  - zones: [Example.com., '*.Example.net', _domainkey.example.org, 日本.jp]\n"
        "    provider: rfc2136\n"
        "    server: '[2001:DB8::1]:5353'\n"
        "    key_file: keys/tsig.key\n"
        "    ttl: 300\n"
        "    profiles: [default, sandbox]\n"
        "  - provider: octodns\n"
        "    class: octodns_route53.Route53Provider\n"
        "    settings:\n"
        "      access_key_id: env/AWS_ACCESS_KEY_ID\n"
        "      secret_access_key: keyring/route53\n"
        "      client_max_attempts: 5\n"
        "      strict_supports: true\n"
        "      account: '5'\n"
        "      delay: 0.5\n"
        "      old_id: 0123\n"
        "      hosts: [a, 1, {b: off}]\n"
    )
    assert config.dns == (
        DnsTarget(
            "rfc2136",
            zones=("example.com", "*.example.net", "_domainkey.example.org", "xn--wgv71a.jp"),
            profiles=("default", "sandbox"),
            ttl=300,
            server="[2001:db8::1]:5353",
            key_file=str(tmp_path / "keys" / "tsig.key"),
        ),
        DnsTarget(
            "octodns",
            class_name="octodns_route53.Route53Provider",
            settings={
                "access_key_id": "env/AWS_ACCESS_KEY_ID",
                "secret_access_key": "keyring/route53",
                "client_max_attempts": 5,
                "strict_supports": True,
                "account": "5",
                "delay": 0.5,
                "old_id": "0123",
                "hosts": ["a", 1, {"b": "off"}],
            },
        ),
    )


@pytest.mark.parametrize("path", ["/etc/bind/tsig.key", "~/tsig.key", "tsig.key"])
def test_a_key_file_is_relative_to_the_config_file(load, tmp_path, monkeypatch, path):
    monkeypatch.setenv("HOME", "/home/me")
    (target,) = load(DYNAMIC.format(f"key_file: {path}")).dns
    expected = {"~/tsig.key": "/home/me/tsig.key", "tsig.key": str(tmp_path / "tsig.key")}
    assert target.key_file == expected.get(path, path)


@pytest.mark.parametrize(
    ("profiles", "users"),
    [((), {"default", "agency"}), (("agency",), {"agency"}), (("sandbox",), {"sandbox"})],
)
def test_a_target_is_for_its_profiles_or_for_all_but_the_sandbox(profiles, users):
    target = DnsTarget("rfc2136", profiles=profiles)
    assert {name for name in ("default", "agency", "sandbox") if target.is_for(name)} == users


def test_all_problems_are_reported_with_their_place(problems):
    text = (
        "dns:\n"
        "  - zones: [a..b]\n"
        "    provider: octodns\n"
        "    server: 192.0.2.1\n"
        "    tll: 5\n"
        "  - class: octodns_x.X\n"
        "  - {provider: rfc2136, ttl: 0}\n"
        "  - example.com\n"
    )
    assert [problem.split(":", 1)[1] for problem in problems(text)] == [
        "2:5: an entry with the provider octodns needs class",
        '2:13: zones: "a..b" has an empty label',
        "4:5: server has no effect with the provider octodns",
        '5:5: an entry of dns has no key "tll"',
        "6:5: an entry of dns has no provider",
        "7:5: an entry with the provider rfc2136 needs server",
        "7:30: ttl: the value is not a number, or out of range",
        "8:5: an entry of dns must be a mapping, not a single value",
    ]


REPEATED = """dns:
  - {{provider: rfc2136, server: 192.0.2.1, zones: [a.example]{}}}
  - {{provider: rfc2136, server: 192.0.2.2, zones: [b.example, A.example.]{}}}
"""


@pytest.mark.parametrize(
    ("first", "second"),
    [("", ""), ("", "[agency]"), ("[a, b]", "[b, c]"), ("[sandbox, a]", ""), ("", "[b, sandbox]")],
)
def test_a_zone_that_an_earlier_target_has_is_refused(problems, first, second):
    text = REPEATED.format(*(each and f", profiles: {each}" for each in (first, second)))
    (problem,) = problems(text)
    assert problem.endswith(':3:5: the zone "a.example" is already in the entry on line 2')


@pytest.mark.parametrize(
    ("first", "second"),
    [("", "[sandbox]"), ("[sandbox]", ""), ("[a]", "[b]"), ("[a]", "[sandbox]")],
)
def test_each_profile_may_have_a_target_of_its_own_for_a_zone(load, first, second):
    text = REPEATED.format(*(each and f", profiles: {each}" for each in (first, second)))
    assert len(load(text).dns) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("zones: [a.example, A.example]", 'the zone "a.example" is already in the entry on line 1'),
        ("zones: [https://example.com/]", '"https://example.com" is a URL'),
        ("zones: [192.0.2.1]", '"192.0.2.1" ends in a number'),
        ("zones: ['*.日本.jp']", "is not a glob of zone names"),
        (f"zones: ['{'a.' * 127}*']", "is not a glob of zone names"),
        ("zones: example.com", "zones must be a list, not a single value"),
        ("zones: []", "zones is empty"),
        ("profiles: []", "profiles is empty"),
        ("profiles: [a b]", "profiles: invalid profile name"),
        ("key_file: ''", "key_file: the file name is empty or invalid"),
        (r'key_file: "a\0b"', "key_file: the file name is empty or invalid"),
        ("ttl: 2147483648", "ttl: the value is not a number, or out of range"),
        ("server: 192.0.2.2", 'the key "server" is already on line 1'),
        ("class: a.B", "class has no effect with the provider rfc2136"),
    ],
)
def test_an_invalid_value_is_refused(problems, given, message):
    assert any(message in problem for problem in problems(DYNAMIC.format(given)))


@pytest.mark.parametrize("name", ["Route53", "", "a..B", "a.B()", "a/b.C", ".a.B", "1a.B", "ä.B"])
def test_an_invalid_class_is_refused(problems, name):
    (problem,) = problems(f"dns: [{{provider: octodns, class: '{name}'}}]\n")
    assert "is not the name of a Python class" in problem


def test_an_unknown_provider_is_told_how_to_use_octodns(load):
    with pytest.raises(InputError, match="unknown provider") as caught:
        load("dns: [{provider: route53}]")
    assert "octodns" in caught.value.hint


SECRET_KEYS = (
    "secret_access_key", "api_key", "token", "access_token", "key", "client_secret", "password",
    "application_key", "apikey", "key_secret", "credentials", "session-token", "TOKEN",
    "passphrase", "db_pass",
)  # fmt: skip


@pytest.mark.parametrize("key", SECRET_KEYS)
@pytest.mark.parametrize("value", ["hunter2", "'12345'", "12345", "[hunter2]", "{a: hunter2}"])
def test_a_secret_in_settings_is_refused_and_not_quoted(load, key, value):
    with pytest.raises(InputError, match="secrets are not allowed") as caught:
        load(OCTODNS.format(f"settings: {{{key}: {value}}}"))
    assert "env/NAME" in caught.value.hint
    assert "keyring/NAME" in caught.value.hint
    assert "hunter2" not in repr(caught.value.problems)


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_reference_to_a_secret_is_read(load, key):
    (target,) = load(OCTODNS.format(f"settings: {{{key}: keyring/mine}}")).dns
    assert target.settings == {key: "keyring/mine"}


@pytest.mark.parametrize(
    "key",
    ["key_name", "private_key_file", "token_url", "key_algorithm", "access_key_id", "keys", "host"],
)
def test_a_setting_that_is_no_secret_is_read(load, key):
    (target,) = load(OCTODNS.format(f"settings: {{{key}: plain}}")).dns
    assert target.settings == {key: "plain"}


@pytest.mark.parametrize(
    "settings",
    ["url: 'https://me:hunter2@api.example'", "hosts: ['https://hunter2@a']", "x: env/hunter-2",
     'pem: "-----BEGIN RSA PRIVATE KEY-----\\nhunter2"'],
)  # fmt: skip
def test_what_holds_a_secret_under_any_key_is_refused(load, settings):
    with pytest.raises(InputError) as caught:
        load(OCTODNS.format(f"settings: {{{settings}}}"))
    assert "hunter" not in repr(caught.value.problems)


@pytest.mark.parametrize("text", ["dns: [{{server: '{}'}}]", "dns: [{{server: {}, api_key: x}}]"])
def test_a_secret_in_the_wrong_place_is_not_quoted(load, text):
    with pytest.raises(InputError) as caught:
        load(text.format("https://me:hunter2@192.0.2.1"))
    assert "hunter2" not in repr(caught.value.problems)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("[/usr/local/bin/page, --json]", ("/usr/local/bin/page", "--json")),
        ("[page, 'two words', '']", ("page", "two words", "")),
        ("page --to 'on call' $HOME", ("page", "--to", "on call", "$HOME")),
        ("'a; b'", ("a;", "b")),
    ],
)
def test_a_command_is_words_which_no_shell_reads(load, command, words):
    assert load(f"notify: {{command: {command}}}\n").notify.command == words


@pytest.mark.parametrize(
    "url",
    ["https://hooks.example.com/x/", "https://hooks.example.com/x?sig=a%20b&v=1",
     "http://127.0.0.1:8080/", "http://localhost/", "env/WEBHOOK", "keyring/webhook"],
)  # fmt: skip
def test_a_webhook_is_kept_as_it_is_written(load, url):
    config = load(f"notify: {{webhook: '{url}', recheck: 5m}}\n")
    assert config.notify == NoticeSettings(webhook=url, recheck=timedelta(minutes=5))


def test_the_scheme_of_a_webhook_is_in_lower_case(load):
    """What sends it tells http and https apart by that."""
    config = load("notify: {webhook: 'HTTP://localhost/Path/'}\n")
    assert config.notify.webhook == "http://localhost/Path/"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("command: []", "command is empty"),
        ("command: ['']", "command names no program"),
        ("command: '\"page'", "command: a quotation mark is not closed"),
        (r'command: ["a\0"]', "command: contains a character that no argument can have"),
        ("command: {a: b}", "command must be a single value, not a mapping"),
        ("webhook: http://hooks.example.com/", "http:// is allowed for loopback addresses only"),
        ("webhook: 'https://h.example/?a#b'", "the URL has an invalid query"),
        ("webhook: env/", "the name after env/ or keyring/ is invalid"),
        ("recheck: 2d", "recheck: invalid duration"),
        ("mail: me@example.com", 'notify has no key "mail"'),
    ],
)
def test_what_cannot_be_told_is_refused(problems, given, problem):
    (found,) = problems(f"notify: {{{given}}}\n")
    assert problem in found


def test_the_variables_that_are_named_as_secrets(load):
    config = load("""
notify: {webhook: env/HOOK}
dns:
- {provider: octodns, class: a.B, zones: [example.com], settings: {token: env/ONE}}
- provider: octodns
  class: a.B
  profiles: [other]
  settings: {retries: 3, key_name: env, inner: [{secret: env/TWO}], password: keyring/THREE}
""")
    assert config.secret_variables() == {"HOOK", "ONE", "TWO"}
    assert load("{}").secret_variables() == set()


@pytest.mark.parametrize("given", ["webhook: https://me:hunter2@h.example/", "token: hunter2"])
def test_a_secret_is_not_quoted(load, given):
    with pytest.raises(InputError) as caught:
        load(f"notify: {{{given}}}\n")
    assert "hunter2" not in repr(caught.value.problems)


def test_what_is_not_set_has_its_default(load):
    config = load("rotation: {max_age: 26w, limit: 5}\n")
    assert config.rotation == RotationSettings(timedelta(days=182), limit=5)
    assert load("rotation: {grace: 5d}\n").rotation.grace == timedelta(days=5)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("max_age: 7d", "1:12: lead is not shorter than max_age"),
        ("max_age: 30d, lead: 30d", "1:26: lead is not shorter than max_age"),
        ("lead: 0", "1:18: lead: invalid duration"),
        (
            "grace: 119h",
            "1:19: grace: shorter than 5 days, for which signed mail may be on its way",
        ),
        ("max_age: 180", "1:21: max_age: a number without a unit"),
        ("limit: 0", "1:19: limit: the value is not a number, or out of range"),
        ("maxage: 90d", '1:12: rotation has no key "maxage"'),
    ],
)
def test_a_plan_that_cannot_work_is_refused(problems, given, problem):
    assert [found.split(":", 1)[1] for found in problems(f"rotation: {{{given}}}\n")] == [problem]
