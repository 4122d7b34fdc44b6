"""Files that the loaders and the schemas accept, and common mistakes that both refuse."""

from __future__ import annotations

from dkimctl.settings.schemas import Schema
from dkimctl.settings.values import SANDBOX_FIXED

_PROFILE = "profiles: {{default: {{{}}}}}".format
_TARGET = "dns: [{{provider: rfc2136, server: 192.0.2.1, {}}}]".format
_PROVIDER = "dns: [{{provider: octodns, class: a.A, settings: {{{}}}}}]".format
_SPECS_VALID = (
    "[]",
    "domains: []",
    "domains: []\ndefaults: {}",
    "- example.com\n- EXAMPLE.NET.\n- 1.2.example",
    "- 日本語.jp\n- \uff22ücher\u3002example\n- xn--bcher-kva.example.net",
    f"- {'a.' * 119}ab.",
    *(f"- {{sign_domain: a.example, selector: {word}}}" for word in
      ("s1", "S.1", "on", "true", "20260101", "0123", "1e3", "1e-3", "0x1f", "1.5", "'null'")),
    *(f"- {{sign_domain: a.example, selector: s2, replaces: {word}}}" for word in
      ("k_1", "_x", "S1", "20260101", "true", "1.0")),
    *(f"- {{sign_domain: a.example, start_date: {date}}}" for date in
      ("2027-07-01T00:00+09:00", "2027-07-01T00:00:00Z", "'2028-02-29T23:59-00:00'")),
    "- {sign_domain: a.example, key_len: 1024, default: 999999999, enable: false}",
    '{"defaults": {"key_len": 2048, "enable": true},\t"domains": [{"sign_domain": "a.example"}]}',
)  # fmt: skip
_SPECS_MISTAKES = (
    "example.com",
    "defaults: {key_len: 2048}",
    "domain: [a.example]",
    "domains: a.example",
    "domains: []\ndefaults: {selector: s1}",
    *(f"- {entry}" for entry in
      ("localhost", "192.0.2.1", "2001:db8::1", "https://a.example/", "'*.a.example'",
       "me@a.example", "_dmarc.a.example", "a..example", "-a.example", "\u201ca.example\u201d",
       "a b.example", "a.é b", "12", "~",
       "[a.example]", "{selector: s1}", f"{'a' * 64}.example", f"{'a.' * 120}ab",
       '"a.example\\n"')),
    *(f"- {{sign_domain: a.example, {field}}}" for field in
      ("selecter: s1", "selector: s_1", "selector: s1._domainkey", "selector: -1", "selector:",
       "selector: 12:30", "selector: [s1]", "key_len: 512", "key_len: '2048'", "enable: yes",
       "enable: 'true'", "default: -1", "default: '0'", "default: 1000000000",
       "start_date: 2027-07-01",
       "start_date: 2027-07-01T00:00", "start_date: 2027-07-01T00:00:30Z", "replaces: s1",
       "start_date: 2027-13-01T00:00Z", "start_date: 2027-07-01T00:00+24:00",
       "selector: s2, replaces: s1._DomainKey", "selector: s1, selector: s2")),
)  # fmt: skip
_CONFIG_VALID = (
    "", "# nothing", "---", "{}", "profiles: {}", "dns: []", "rotation: {}", "notify: {}",
    "default_profile: 2027", "default_profile: true",
    "profiles: {sandbox: {batch_size: 5}, '1': {}}",
    *(_PROFILE(f"auth_url: '{url}'") for url in
      ("https://a.example", "HTTPS://A.example:8443/v2/", "http://localhost",
       "http://LocalHost.:80/",
       "http://127.0.0.1:8025", "http://127.1.2.3", "http://[::1]/x", "http://l%6fcalhost",
       "http://\uff4cocalhost", "https://日本.jp/ü", "https://[2001:db8::1]:443")),
    *(_PROFILE(f"proxy: {url}") for url in ("http://proxy.example:3128", "https://a.example/")),
    *(_PROFILE(f"client_id: {name}") for name in ("12345", "true", "-1.5", "'a b'", "日本", "a@b")),
    *(_PROFILE(f"batch_size: {number}") for number in ("1", "10000", "'30'", "007", "'00050'")),
    *(_PROFILE(f"concurrency: {number}") for number in ("64", "'64'", "'9'")),
    *(_PROFILE(f"timeout: {time}") for time in ("30", "0.5", "'30'", "30s", "24h", "1d", "1.5m")),
    *(_PROFILE(f"ca_bundle: {path}") for path in ("/a.pem", "~/a", "''", "5")),
    _PROFILE("credential_store: file, max_wait: 0.5s, defaults: {key_len: 2048, enable: true}"),
    *(_TARGET(f"zones: [{zone}]") for zone in
      ("example.com.", "Example.COM", "'*.example.net'", "'*'", "日本.jp", "_domainkey.a", "com",
       "1e3",
       "'[!a]x.example'", "'?.a.'")),
    *(f"dns: [{{provider: rfc2136, server: '{server}'}}]" for server in
      ("192.0.2.1:5353", "[::1]:53", "2001:db8::1", "::1", "ns1.A.example.:5353", "fe80::1%eth0",
       "::ffff:192.0.2.1", "[fe80::1%eth0]", "ns_1")),
    _TARGET("key_file: ~/a.key, ttl: 2147483647, profiles: [default, 5]"), _TARGET("ttl: '60'"),
    "dns: [{provider: octodns, class: octodns_route53.Route53Provider}]",
    *(_PROVIDER(setting) for setting in
      ("token: env/A", "api_key: [keyring/a.b, env/C]", "key_name: x, token_url: https://a/b?c",
       "a: [1, 0.5, true, x, {b: [], c: {}}], limit: '5'", "secret: {a: env/B}", "pass_file: /x")),
    "rotation: {max_age: 26w, lead: 1.5d, grace: 5d, limit: 1000000}", "rotation: {limit: '5'}",
    "notify: {command: [/usr/local/bin/page, --json, '', 5], recheck: 0.5}",
    """notify: {command: "a 'b c' -d"}""", "notify: {command: 5}",
    *(f"notify: {{webhook: '{url}'}}" for url in
      ("https://a.example/x?y=%20&z", "http://127.0.0.1/x?", "env/URL", "keyring/a/b@c",
       "HTTPS://a.example?x@y")),
)  # fmt: skip
_CONFIG_MISTAKES = (
    "[]", "x", "default_profil: x", "profiles:", "profiles: [default]", "profiles: {a b: {}}",
    "profiles: {default: }", "default_profile: a b", "token: x", "dns: {}", "dns: [x]",
    *(_PROFILE(setting) for setting in
      ("batchsize: 5", "client_secret: x", "credential_store: File", "client_id: 'a:b'",
       "client_id:",
       "batch_size: 0", "batch_size: 10001", "batch_size: '10001'", "batch_size: 1.5",
       "concurrency: 65", "concurrency: '65'", "concurrency: '0'", "timeout: never", "timeout: 0",
       "timeout: '0s'", "timeout: 90000", "timeout: 5 m", "timeout: -1", "proxy: [a]",
       "defaults: {selector: s1}", "defaults: {key_len: 512}", "defaults: x")),
    *(_PROFILE(f"base_url: '{url}'") for url in
      ("a.example", "//a", "http://a.example", "http://localhost.example",
       "http://127.0.0.1.example",
       "https://me:x@a.example", "https://a.example/?x", "https://a.example/#x", "https://",
       "https://a b", "ftp://a.example", "http://[::1].example")),
    *(_PROFILE(f"proxy: '{url}'") for url in ("socks5://a", "a:3128", "http://me:x@a")),
    *(f"profiles: {{sandbox: {{{key}: 'https://a.example'}}}}" for key in SANDBOX_FIXED),
    "dns: [{server: 192.0.2.1}]", "dns: [{provider: rfc2136}]", "dns: [{provider: octodns}]",
    "dns: [{provider: route53, class: a.A}]", "dns: [{provider: octodns, class: A}]",
    "dns: [{provider: octodns, class: os-x.A}]",
    "dns: [{provider: octodns, class: a.A, server: b}]",
    "dns: [{provider: rfc2136, server: 'https://a'}]", "dns: [{provider: rfc2136, server: a b}]",
    *(_TARGET(setting) for setting in
      ("class: a.A", "settings: {}", "ttl: 0", "ttl: 2147483648", "key_file: ''", "zones: []",
       "zones: example.com", "zones: ['https://a.example']", "zones: ['a..*']",
       "zones: ['*.日本.jp']",
       "zones: [192.0.2.1]", "zones: ['']", "profiles: []", "profiles: [a b]", "zone: a.example")),
    *(_PROVIDER(setting) for setting in
      ("token: x", "api_key: [x]", "secret: {a: b}", "password: 5", "a: {client_secret: x}", "a:",
       "url: 'https://me:x@a'", "a: 'env/'", "a: 'keyring/a b'",
       "a: '-----BEGIN PRIVATE KEY-----'")),
    *(f"rotation: {{{setting}}}" for setting in
      ("max_age: 180", "max_age: 1.5", "lead: 0d", "lead: 1.5", "lead: 7 d", "grace: 14",
       "limit: 0",
       "limit: 1000001", "limit: '1000001'", "maxage: 5d")),
    *(f"notify: {{{setting}}}" for setting in
      ("command: []", r'command: "a\0"', r'command: ["a\0"]', r'command: [a, "b\0"]',
       "command: ''", "command: ['']", "command: [[a]]",
       "webhook: 'http://a.example'",
       "webhook: 'env/a-b'", "webhook: 'https://a.example/#x'", "webhook: 'https://me:x@a.example'",
       "recheck: 0", "recheck: soon", "token: x")),
)  # fmt: skip

# In every way to write it.
VALID = {Schema.SPECS: _SPECS_VALID, Schema.CONFIG: _CONFIG_VALID}
# Each of which an editor shows.
MISTAKES = {Schema.SPECS: _SPECS_MISTAKES, Schema.CONFIG: _CONFIG_MISTAKES}
