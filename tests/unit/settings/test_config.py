"""The config file is read strictly, and all its problems are reported at once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from configs import read_config
from dkimctl.errors import InputError
from dkimctl.settings.config import DnsTarget, NoticeSettings
from dkimctl.settings.profile import Profile
from dkimctl.settings.rotation import RotationSettings

ROOT = Path(__file__).parents[3]


PROBLEMS = """default_profil: x
profiles:
  prod: {batchsize: 5, auth_url: , proxy: [a]}
  third: {defaults: {key_len: 512, selector: s1}}
dns:
  - {zones: [a..b], provider: octodns, server: 192.0.2.1, tll: 5}
  - {provider: rfc2136, ttl: 0}
  - example.com
rotation:
"""


def test_all_problems_of_a_config_file_are_reported_at_once(problems):
    expected = [
        '1:1: the config file has no key "default_profil"',
        '3:10: the profile prod has no key "batchsize"',
        "3:34: auth_url has no value",
        "3:43: proxy must be a single value, not a list",
        "4:31: key_len: ",
        '4:36: defaults has no key "selector"',
        "6:5: an entry of dns needs class",
        '6:14: zones: "a..b" has an empty label',
        "6:40: server has no effect with the provider octodns",
        '6:59: an entry of dns has no key "tll"',
        "7:5: an entry of dns needs server",
        "7:30: ttl: the value is not a number, or out of range",
        "8:5: an entry of dns must be a mapping, not a single value",
        "9:10: rotation has no value",
    ]
    for problem, start in zip(problems(PROBLEMS), expected, strict=True):
        assert problem.startswith(start)


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
    pools = text[text.index("# delegation:") : text.index("\n\n# Who gets a notice")]
    notify = text[text.index("notify:") :].replace("# command", "command")
    lines = [line.removeprefix("# ") for line in (dns + "\n" + pools).splitlines()]
    config = load("\n".join([*lines, notify.replace("# webhook", "webhook")]))
    dynamic, octodns = config.dns
    assert dynamic.key_file == str(tmp_path / "tsig.key")
    assert octodns.settings["secret_access_key"] == "keyring/route53"
    assert config.notify.command
    assert config.notify.webhook
    [to_target, to_servers] = config.delegation
    assert to_target.target_of("shop.example", "a1") == "a1.shop.example.dkim.agency.example"
    assert to_servers.target_of("shop.example.net", "a1") == "a1._domainkey.shop.example.net"
    keys = {"class" if key == "class_name" else key for key in DnsTarget._fields}
    assert all(f"{key}: " in dns or f"{key}:\n" in dns for key in keys)


TARGETS = """dns:
  - zones: [Example.com., '*.Example.net', _domainkey.example.org, 日本.jp]
    provider: rfc2136
    server: '[2001:DB8::1]:5353'
    key_file: keys/tsig.key
    ttl: 300
    profiles: [default, sandbox]
  - provider: octodns
    class: octodns_route53.Route53Provider
    settings:
      {id: env/ID, tries: 5, strict: true, name: '5', delay: 0.5, old: 0123, all: [a, 1, {b: off}]}
"""


def test_targets_are_read_in_their_order(load, tmp_path):
    dynamic, octodns = load(TARGETS).dns
    assert dynamic == DnsTarget(
        "rfc2136",
        zones=("example.com", "*.example.net", "_domainkey.example.org", "xn--wgv71a.jp"),
        profiles=("default", "sandbox"),
        ttl=300,
        server="[2001:db8::1]:5353",
        key_file=str(tmp_path / "keys" / "tsig.key"),
    )
    assert octodns.class_name == "octodns_route53.Route53Provider"
    assert octodns.settings == {
        "id": "env/ID", "tries": 5, "strict": True, "name": "5", "delay": 0.5, "old": "0123",
        "all": ["a", 1, {"b": "off"}],
    }  # fmt: skip


DYNAMIC = "dns: [{{provider: rfc2136, server: 192.0.2.1, {}}}]\n"
OCTODNS = "dns: [{{provider: octodns, class: octodns_x.X, settings: {{{}}}}}]\n"


REPEATED = """dns:
  - {{provider: rfc2136, server: 192.0.2.1, zones: [a.example]{}}}
  - {{provider: rfc2136, server: 192.0.2.2, zones: [b.example, A.example.]{}}}
"""


@pytest.mark.parametrize(
    ("first", "second", "is_refused"),
    [("", "", True), ("", "[agency]", True), ("[a, b]", "[b, c]", True), ("[sandbox, a]", "", True),
     ("", "[b, sandbox]", True), ("", "[sandbox]", False), ("[sandbox]", "", False),
     ("[a]", "[b]", False), ("[a]", "[sandbox]", False)],
)  # fmt: skip
def test_a_profile_has_one_target_for_a_zone(load, problems, first, second, is_refused):
    text = REPEATED.format(*(each and f", profiles: {each}" for each in (first, second)))
    if is_refused:
        (problem,) = problems(text)
        assert problem == '3:5: the zone "a.example" is already in the entry on line 2'
    else:
        targets = load(text).dns
        for name in ("a", "b", "sandbox"):
            assert sum(target.is_for(name) for target in targets) <= 1


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
        ("profiles: [a b]", "profiles: invalid profile name"),
        (r'key_file: "a\0b"', "key_file: the file name is empty or invalid"),
        ("server: 192.0.2.2", 'the key "server" is already on line 1'),
        ("class: a.B", "class has no effect with the provider rfc2136"),
        *((f"class: '{name}'", "not the name of a Python class")
          for name in ("Route53", "", "a..B", "a.B()", "a/b.C", ".a.B", "1a.B", "ä.B")),
    ],
)  # fmt: skip
def test_an_invalid_target_is_refused(problems, given, message):
    assert any(message in problem for problem in problems(DYNAMIC.format(given)))


def test_a_glob_without_quotes_needs_them(load):
    with pytest.raises(InputError) as caught:
        load("dns: [{provider: rfc2136, server: 192.0.2.1, zones: [*.example.net]}]")
    assert caught.value.hint.startswith("put text that begins with * in quotes")


@pytest.mark.parametrize(
    ("key", "hint"),
    [("batchSize", "did you mean batch_size?"), ("x", "known keys: auth_url, base_url, client_id")],
)
def test_an_unknown_key_suggests_known_ones(load, key, hint):
    with pytest.raises(InputError) as caught:
        load(f"profiles: {{default: {{{key}: 5}}}}")
    assert caught.value.hint.startswith(hint)


SECRET_KEYS = (
    "secret_access_key", "api_key", "token", "access_token", "key", "client_secret", "password",
    "application_key", "apikey", "key_secret", "credentials", "session-token", "TOKEN",
    "passphrase", "db_pass",
)  # fmt: skip


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_setting_that_is_secret_is_only_a_reference(load, problems, key):
    for value in ("hunter2", "'12345'", "12345", "[hunter2]", "{a: hunter2}"):
        (problem,) = problems(OCTODNS.format(f"{key}: {value}"))
        assert "secrets are not allowed" in problem
    (target,) = load(OCTODNS.format(f"{key}: keyring/mine")).dns
    assert target.settings == {key: "keyring/mine"}


def test_a_setting_that_only_resembles_a_secret_is_read(load):
    keys = ("key_name", "private_key_file", "token_url", "token_ttl", "secret_type", "keys", "host",
            "passphrase_path", "api_token_endpoint", "access_key_id")  # fmt: skip
    (target,) = load(OCTODNS.format(", ".join(f"{key}: plain" for key in keys))).dns
    assert target.settings == dict.fromkeys(keys, "plain")


@pytest.mark.parametrize(
    "place", ["{}", "profiles: {{default: {{{}}}}}", "notify: {{{}}}", DYNAMIC, "rotation: {{{}}}"]
)
def test_a_key_for_a_secret_is_refused_as_such_and_its_value_not_quoted(problems, place):
    for key in ("client_secret", "password", "access_token", "Secret", "private_key"):
        (problem,) = problems(place.format(f"{key}: hunter2"))
        assert problem.endswith(f'"{key}": secrets are not allowed in this file')


@pytest.mark.parametrize(
    "text",
    [OCTODNS.format("url: 'https://me:hunter2@api.example'"),
     OCTODNS.format("hosts: ['https://hunter2@a']"), OCTODNS.format("x: env/hunter2-"),
     OCTODNS.format('pem: "-----BEGIN RSA PRIVATE KEY-----\\nhunter2"'),
     "dns: [{server: 'https://me:hunter2@192.0.2.1'}]", "dns: [{provider: hunter2}]",
     "notify: {webhook: 'https://me:hunter2@h.example/'}"],
)  # fmt: skip
def test_a_secret_in_the_wrong_place_is_refused_and_not_quoted(problems, text):
    assert problems(text)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("notify: {command: []}", "command is empty"),
        ("notify: {command: ['']}", "command names no program"),
        ("notify: {command: '\"page'}", "command: a quotation mark is not closed"),
        (r'notify: {command: ["a\0"]}', "command: contains a character that no argument can have"),
        ("notify: {command: {a: b}}", "command must be a single value, not a mapping"),
        ("notify: {webhook: http://h.example/}", "http:// is allowed for loopback addresses only"),
        ("notify: {webhook: 'https://h.example/?a#b'}", "the URL has an invalid query"),
        ("notify: {webhook: env/}", "the name after env/ or keyring/ is invalid"),
        ("notify: {recheck: 2d}", "recheck: invalid duration"),
        ("rotation: {max_age: 7d}", "1:12: lead is not shorter than max_age"),
        ("rotation: {max_age: 30d, lead: 30d}", "1:26: lead is not shorter than max_age"),
        ("rotation: {lead: 0}", "1:18: lead: invalid duration"),
        ("rotation: {grace: 119h}", "1:19: grace: shorter than 5 days"),
        ("rotation: {max_age: 180}", "1:21: max_age: a number without a unit"),
        ("rotation: {limit: 0}", "1:19: limit: the value is not a number, or out of range"),
        ("rotation: {maxage: 90d}", '1:12: rotation has no key "maxage"'),
    ],
)
def test_notices_and_plans_that_cannot_work_are_refused(problems, given, problem):
    (found,) = problems(f"{given}\n")
    assert problem in found


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("command: [/usr/local/bin/page, --json, '']", ("/usr/local/bin/page", "--json", "")),
        ("command: page --to 'on call' $HOME", ("page", "--to", "on call", "$HOME")),
        ("command: 'a; b'", ("a;", "b")),  # no shell reads it
        *((f"webhook: '{url}'", url) for url in (
            "https://hooks.example.com/x/", "https://hooks.example.com/x?sig=a%20b&v=1",
            "http://127.0.0.1:8080/", "env/WEBHOOK", "keyring/webhook")),
        # What sends it tells http and https apart by the case.
        ("webhook: 'HTTP://localhost/Path/'", "http://localhost/Path/"),
    ],
)  # fmt: skip
def test_a_command_is_words_and_a_webhook_is_kept_as_it_is_written(load, given, expected):
    notify = load(f"notify: {{{given}, recheck: 5m}}\n").notify
    assert expected in (notify.command, notify.webhook)
    assert notify.recheck == timedelta(minutes=5)


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


def test_what_is_not_set_of_a_plan_has_its_default(load):
    config = load("rotation: {max_age: 26w, limit: 5, grace: 5d}\n")
    settings = RotationSettings(timedelta(days=182), grace=timedelta(days=5), limit=5)
    assert config.rotation.of("any.example") == settings
    assert config.notify == NoticeSettings()


POOLS = """delegation:
  - {domains: ['*.Example.com', 日本.jp.], selectors: 'A{n}', count: 3,
     target: '{selector}.{Domain}.dkim.example.net.'}
  - {domains: [b.example.com, c.example], selectors: 's{n}.x', count: 1, ns: [NS1.example.net]}
"""


def test_the_first_pool_with_a_domain_is_its_pool(load):
    first, second = load(POOLS).delegation
    pool_of = load(POOLS).pool_of
    names = ["a.example.com", "b.example.com", "xn--wgv71a.jp", "c.example", "example.com"]
    assert list(map(pool_of, names)) == [first, first, first, second, None]
    assert (first.names(), second.names()) == (("a1", "a2", "a3"), ("s1.x",))
    assert first.target_of("xn--wgv71a.jp", "a2") == "a2.xn--wgv71a.jp.dkim.example.net"
    assert second.ns == ("ns1.example.net",)


POOL_MISTAKES = """delegation:
  - {domains: ['*.a.example'], selectors: a, count: 0, target: '{selector}{domain}.x.example'}
  - {domains: ['*.b.example'], selectors: 'a{n}', count: 1001, target: '{domain}.x.example'}
  - {domains: ['*.c.example'], selectors: 'a{n}', count: 5, target: '{selector}.x.example'}
  - {domains: [d.example], selectors: 'a{n}', count: 5, target: '{selector}.x.example'}
  - {domains: [e.example, f.example], selectors: 'b{n}', count: 5, target: '{selector}.x.example'}
  - {selectors: 'a{m}', target: '{selector}._domainkey.{domain}', ns: [n.example]}
"""


def test_a_pool_whose_keys_have_no_name_or_the_same_is_refused(problems):
    expected = [
        "2:43: selectors: {n} is missing",
        "2:53: count: the value is not a number, or out of range",
        '2:64: target: "{selector}{domain}.x.example" is not a template of DNS names',
        "3:58: count: the value is not a number, or out of range",
        '3:72: target: "{domain}.x.example" is not a template of DNS names',
        "4:5: *.c.example and other domains have the target {selector}.x.example",
        "6:5: e.example and other domains have the target",
        "6:5: f.example and other domains have the target",
        "7:5: an entry of delegation needs domains",
        "7:5: an entry of delegation needs count",
        "7:5: an entry of delegation needs target or ns",
        "7:17: selectors: {n} is missing",
        "7:33: target: the CNAME would lead to itself",
    ]
    for problem, start in zip(problems(POOL_MISTAKES), expected, strict=True):
        assert problem.startswith(start)


def test_the_first_policy_that_names_a_domain_counts(load):
    policies = load("""
rotation:
- {domains: [one.example, '*.shops.example'], limit: 1}
- {domains: ['*.example', Bücher.test], limit: 2}
""").rotation
    domains = ("one.example", "a.shops.example", "shops.example", "xn--bcher-kva.test", "x.test")
    assert [policies.of(domain).limit for domain in domains] == [1, 1, 2, 2, 50]
    assert policies.of("x.test").domains == ()


def test_what_a_policy_cannot_be(load):
    policy = load("rotation: {freeze: [2027-01-05/2027-01-10, 2026-12-15/2027-01-04]}").rotation
    [(begin, end)] = policy.of("any.example").freeze
    assert (str(begin.date()), str(end)) == ("2026-12-15", "2027-01-11 00:00:00+00:00")
    with pytest.raises(InputError) as caught:
        load("""
rotation:
- {domains: [], key_len: 4096, selectors: '%x', owner: ""}
- {freeze: [2027-01-05, 2027-02-30/2027-03-01, 2027-01-10/2027-01-05]}
- {domains: [a.example]}
""")
    assert [problem.message.partition(":")[0] for problem in caught.value.problems] == [
        "domains is empty", "key_len", "selectors", "owner", "freeze", "freeze", "freeze",
        "the entry before it has all domains",
    ]  # fmt: skip
