"""The schema of the config file accepts what the loader accepts, and little else; modelines."""

from __future__ import annotations

import json
import re

import pytest

from configs import read_config
from dkimctl.errors import InputError
from dkimctl.settings.dns_targets import DEFAULT_TTL, DnsTarget
from dkimctl.settings.notices import NoticeSettings
from dkimctl.settings.profile import DEFAULT_PROFILE, Profile
from dkimctl.settings.rotation import RotationSettings
from dkimctl.settings.schemas import Schema, modeline, read_schema, schema_url
from dkimctl.settings.values import CHECKS, SANDBOX_FIXED
from dkimctl.text.durations import parse_duration
from documents import ROOT
from editors import accepts
from schema_limits import CONFIG, are_beyond

SCHEMA = json.loads(read_schema(Schema.CONFIG))
DEFINITIONS = SCHEMA["$defs"]
PROFILE = "profiles: {{default: {{{}}}}}".format
TARGET = "dns: [{{provider: rfc2136, server: 192.0.2.1, {}}}]".format
PROVIDER = "dns: [{{provider: octodns, class: a.A, settings: {{{}}}}}]".format
# What the loader accepts, in every way to write it.
VALID = (
    "", "# nothing", "---", "{}", "profiles: {}", "dns: []", "rotation: {}", "notify: {}",
    "default_profile: 2027", "default_profile: true",
    "profiles: {sandbox: {batch_size: 5}, '1': {}}",
    *(PROFILE(f"auth_url: '{url}'") for url in
      ("https://a.example", "HTTPS://A.example:8443/v2/", "http://localhost",
       "http://LocalHost.:80/",
       "http://127.0.0.1:8025", "http://127.1.2.3", "http://[::1]/x", "http://l%6fcalhost",
       "http://\uff4cocalhost", "https://日本.jp/ü", "https://[2001:db8::1]:443")),
    *(PROFILE(f"proxy: {url}") for url in ("http://proxy.example:3128", "https://a.example/")),
    *(PROFILE(f"client_id: {name}") for name in ("12345", "true", "-1.5", "'a b'", "日本", "a@b")),
    *(PROFILE(f"batch_size: {number}") for number in ("1", "10000", "'30'", "007", "'0000000050'")),
    *(PROFILE(f"concurrency: {number}") for number in ("64", "'64'", "'9'")),
    *(PROFILE(f"timeout: {time}") for time in ("30", "0.5", "'30'", "30s", "24h", "1d", "1.5m")),
    *(PROFILE(f"ca_bundle: {path}") for path in ("/a.pem", "~/a", "''", "5")),
    PROFILE("credential_store: file, max_wait: 0.5s, defaults: {key_len: 2048, enable: true}"),
    *(TARGET(f"zones: [{zone}]") for zone in
      ("example.com.", "Example.COM", "'*.example.net'", "'*'", "日本.jp", "_domainkey.a", "com",
       "1e3",
       "'[!a]x.example'", "'?.a.'")),
    *(f"dns: [{{provider: rfc2136, server: '{server}'}}]" for server in
      ("192.0.2.1:5353", "[::1]:53", "2001:db8::1", "::1", "ns1.A.example.:5353", "fe80::1%eth0",
       "::ffff:192.0.2.1", "[fe80::1%eth0]", "ns_1")),
    TARGET("key_file: ~/a.key, ttl: 2147483647, profiles: [default, 5]"), TARGET("ttl: '60'"),
    "dns: [{provider: octodns, class: octodns_route53.Route53Provider}]",
    *(PROVIDER(setting) for setting in
      ("token: env/A", "api_key: [keyring/a.b, env/C]", "key_name: x, token_url: https://a/b?c",
       "a: [1, 0.5, true, x, {b: [], c: {}}], limit: '5'", "secret: {a: env/B}", "pass_file: /x")),
    "rotation: {max_age: 26w, lead: 1.5d, grace: 5d, limit: 1000000}", "rotation: {limit: '5'}",
    "notify: {command: [/usr/local/bin/page, --json, '', 5], recheck: 0.5}",
    """notify: {command: "a 'b c' -d"}""", "notify: {command: 5}",
    *(f"notify: {{webhook: '{url}'}}" for url in
      ("https://a.example/x?y=%20&z", "http://127.0.0.1/x?", "env/URL", "keyring/a/b@c",
       "HTTPS://a.example?x@y")),
)  # fmt: skip
# Common mistakes, each of which an editor shows.
MISTAKES = (
    "[]", "x", "default_profil: x", "profiles:", "profiles: [default]", "profiles: {a b: {}}",
    "profiles: {default: }", "default_profile: a b", "token: x", "dns: {}", "dns: [x]",
    *(PROFILE(setting) for setting in
      ("batchsize: 5", "client_secret: x", "credential_store: File", "client_id: 'a:b'",
       "client_id:",
       "batch_size: 0", "batch_size: 10001", "batch_size: '10001'", "batch_size: 1.5",
       "concurrency: 65", "concurrency: '65'", "concurrency: '0'", "timeout: never", "timeout: 0",
       "timeout: '0s'", "timeout: 90000", "timeout: 5 m", "timeout: -1", "proxy: [a]",
       "defaults: {selector: s1}", "defaults: {key_len: 512}", "defaults: x")),
    *(PROFILE(f"base_url: '{url}'") for url in
      ("a.example", "//a", "http://a.example", "http://localhost.example",
       "http://127.0.0.1.example",
       "https://me:x@a.example", "https://a.example/?x", "https://a.example/#x", "https://",
       "https://a b", "ftp://a.example", "http://[::1].example")),
    *(PROFILE(f"proxy: '{url}'") for url in ("socks5://a", "a:3128", "http://me:x@a")),
    *(f"profiles: {{sandbox: {{{key}: 'https://a.example'}}}}" for key in SANDBOX_FIXED),
    "dns: [{server: 192.0.2.1}]", "dns: [{provider: rfc2136}]", "dns: [{provider: octodns}]",
    "dns: [{provider: route53, class: a.A}]", "dns: [{provider: octodns, class: A}]",
    "dns: [{provider: octodns, class: os-x.A}]",
    "dns: [{provider: octodns, class: a.A, server: b}]",
    "dns: [{provider: rfc2136, server: 'https://a'}]", "dns: [{provider: rfc2136, server: a b}]",
    *(TARGET(setting) for setting in
      ("class: a.A", "settings: {}", "ttl: 0", "ttl: 2147483648", "key_file: ''", "zones: []",
       "zones: example.com", "zones: ['https://a.example']", "zones: ['a..*']",
       "zones: ['*.日本.jp']",
       "zones: [192.0.2.1]", "zones: ['']", "profiles: []", "profiles: [a b]", "zone: a.example")),
    *(PROVIDER(setting) for setting in
      ("token: x", "api_key: [x]", "secret: {a: b}", "password: 5", "a: {client_secret: x}", "a:",
       "url: 'https://me:x@a'", "a: 'env/'", "a: 'keyring/a b'",
       "a: '-----BEGIN PRIVATE KEY-----'")),
    *(f"rotation: {{{setting}}}" for setting in
      ("max_age: 180", "max_age: 1.5", "lead: 0d", "lead: 1.5", "lead: 7 d", "grace: 14",
       "limit: 0",
       "limit: 1000001", "limit: '1000001'", "maxage: 5d")),
    *(f"notify: {{{setting}}}" for setting in
      ("command: []", "command: ''", "command: ['']", "command: [[a]]",
       "webhook: 'http://a.example'",
       "webhook: 'env/a-b'", "webhook: 'https://a.example/#x'", "webhook: 'https://me:x@a.example'",
       "recheck: 0", "recheck: soon", "token: x")),
)  # fmt: skip


@pytest.fixture
def problems(tmp_path):
    """The problems of a config file with this text."""

    def problems(text: str):
        path = tmp_path / "config.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            read_config(path)
        except InputError as error:
            return error.problems
        return ()

    return problems


@pytest.mark.parametrize("limit", CONFIG, ids=lambda limit: f"{limit.reason}: {limit.problem}")
def test_what_no_schema_could_refuse_is_accepted(limit, problems):
    found = problems(limit.example)
    assert found
    assert all(re.search(limit.problem, problem.message) for problem in found)
    assert are_beyond(CONFIG, found)
    assert accepts(Schema.CONFIG, limit.example.encode())


@pytest.mark.parametrize("text", VALID)
def test_it_accepts_what_the_loader_accepts(text, problems):
    assert problems(text) == ()
    assert accepts(Schema.CONFIG, text.encode())


@pytest.mark.parametrize("text", MISTAKES)
def test_common_mistakes_are_refused_by_both(text, problems):
    assert problems(text)
    assert not accepts(Schema.CONFIG, text.encode())


def test_it_has_the_keys_of_each_section():
    sections = SCHEMA["properties"]
    profile = {*DEFINITIONS["profile"]["properties"]}
    assert profile == {*CHECKS, "defaults"}
    assert {*DEFINITIONS["sandbox"]["properties"]} == profile - SANDBOX_FIXED.keys()
    assert {*sections["rotation"]["properties"]} == {*RotationSettings._fields}
    assert {*sections["notify"]["properties"]} == {*NoticeSettings._fields}
    keys = {"class" if key == "class_name" else key for key in DnsTarget._fields}
    assert {*DEFINITIONS["target"]["properties"]} == keys


def test_its_defaults_are_those_of_the_code():
    default = Profile("x")._asdict()
    for key, schema in DEFINITIONS["profile"]["properties"].items():
        stated = DEFINITIONS.get(key, schema).get("default")
        if key in ("timeout", "max_wait"):
            assert parse_duration(stated) == default[key]
        elif key != "defaults":
            assert stated == default[key]
    rotation, sections = RotationSettings(), SCHEMA["properties"]
    for key, schema in sections["rotation"]["properties"].items():
        value = getattr(rotation, key)
        stated = schema["default"]
        assert (stated if key == "limit" else parse_duration(stated)) == (
            value if key == "limit" else value.total_seconds()
        )
    recheck = sections["notify"]["properties"]["recheck"]["default"]
    assert parse_duration(recheck) == NoticeSettings().recheck.total_seconds()
    assert DEFINITIONS["target"]["properties"]["ttl"]["default"] == DEFAULT_TTL
    assert sections["default_profile"]["default"] == DEFAULT_PROFILE


def test_the_defaults_of_a_profile_are_those_of_a_spec_file():
    specs = json.loads(read_schema(Schema.SPECS))["$defs"]
    for name in ("key_len", "start_date", "default", "enable"):
        assert DEFINITIONS[name] == specs[name]
    assert DEFINITIONS["defaults"]["properties"] == specs["defaults"]["properties"]


@pytest.mark.parametrize(
    ("name", "schema"),
    [("domains.example.yaml", Schema.SPECS), ("config.example.yaml", Schema.CONFIG)],
)
def test_the_examples_name_their_schema_and_agree_with_it(name, schema):
    data = (ROOT / name).read_bytes()
    assert data.decode().startswith(modeline(schema))
    assert accepts(schema, data)


@pytest.mark.parametrize("schema", Schema)
def test_a_schema_is_published_where_it_says(schema):
    url = schema_url(schema)
    document = json.loads(read_schema(schema))
    assert document["$id"] == url
    path = ROOT / url.removeprefix("https://raw.githubusercontent.com/dkimctl/dkimctl/main/")
    assert json.loads(path.read_text(encoding="utf-8")) == document
