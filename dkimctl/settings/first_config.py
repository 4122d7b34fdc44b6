"""The text of a first config file: what the user has answered, and every other key in a comment."""

from __future__ import annotations

from typing import NamedTuple

from dkimctl.settings.dns_targets import DnsTarget
from dkimctl.settings.profile import DEFAULT_PROFILE
from dkimctl.text.yaml_scalars import yaml_scalar

_PROFILE = """\
# Every key of the config file; those in comments have their default. Options and environment
# variables take precedence over this file, and this file over `dkimctl login`. Secrets are not
# allowed here: `dkimctl login` stores them, and `dns` and `notify` only name them.

# The profile to use if neither --profile nor DKIMCTL_PROFILE names one.
{default_profile}

profiles:
  {name}:
    # The URL that issues access tokens, the URL of the service, and the client ID. URLs must be
    # https://, except for loopback addresses. No default.
    auth_url: {auth_url}
    base_url: {base_url}
    client_id: {client_id}

    # Where to store the secret and token: keyring, or file for a machine without a keyring.
    {credential_store}

    # Domains per request, 1 to 10000.
    # batch_size: 50

    # Number of parallel requests, 1 to 64. Default for the sandbox: 1, because one request keeps
    # all processors busy.
    # concurrency: 8

    # Longest wait for a response: seconds, or a number with s, m or h.
    # timeout: 30s

    # Longest Retry-After to honour, in total per request.
    # max_wait: 5m

    # PEM file of CAs to trust instead of the system's. No default.
    # ca_bundle: /etc/ssl/certs/company.pem

    # Proxy for all requests. No default.
    # proxy: http://proxy.example.com:3128

    # Fields for entries of spec files that do not set them. By default none are sent, and the
    # service's own defaults apply: a key of 1024 bits, and signing at once.
    defaults:
      key_len: 2048
      # start_date: 2027-07-01T00:00+09:00
      # default: 0
      # enable: true
"""
_DNS = """
# How `dkimctl publish` changes DNS. No default. The target of a record is the one with the longest
# name of a zone that holds it; else the first in this list whose glob matches, or without zones.
"""
_RFC2136 = """\
  # rfc2136: dynamic updates, which BIND, Knot DNS, PowerDNS and other servers take.
  - provider: rfc2136
    # IP address or name of the primary server, as in 192.0.2.1:5353 or [2001:db8::1]:5353.
    server: {server}
    # TSIG key, as `tsig-keygen` or `keymgr -t` writes it; relative to the directory of this file.
    # Without one, updates are not signed.
    {key_file}
"""
_OCTODNS = """\
  # octodns: any provider for which octoDNS has a class.
  - provider: octodns
    class: {class_name}
    # What the class takes. Secrets only as env/NAME (an environment variable) or keyring/NAME
    # (stored with `keyring set dkimctl-dns NAME`).
    # settings:
    #   access_key_id: env/AWS_ACCESS_KEY_ID
    #   secret_access_key: keyring/route53
"""
_OF_ALL_TARGETS = """\
    # Names or globs of zones, in quotes if they begin with *. Default: all zones that it has.
    # zones: [example.com, '*.example.net']
    # TTL of new records, in seconds.
    # ttl: 3600
    # The profiles that may use it. Default: all but the sandbox.
    # profiles: [default]
"""
_REST = """
# When `dkimctl rotate run` replaces keys: numbers with d (days) or w (weeks).
# rotation:
#   # Age at which a key gets a successor, which starts signing after the lead.
#   max_age: 180d
#   lead: 7d
#
#   # How long the old record stays in DNS after its successor has started, for mail on its way.
#   grace: 14d
#
#   # Successors a day at most; the oldest keys come first.
#   limit: 50

# Who is told when something has changed for the worse or for the better.
# notify:
#   # Program and arguments. It gets JSON on standard input. No default.
#   command: [/usr/local/bin/page, --json]
#
#   # URL that JSON is posted to; env/NAME or keyring/NAME if it contains a secret. No default.
#   webhook: https://hooks.example.com/x
#
#   # A problem is looked at again after this time, before anyone is told.
#   recheck: 1m
"""
_EXAMPLES = (
    DnsTarget("rfc2136", server="192.0.2.1", key_file="tsig.key"),
    DnsTarget("octodns", class_name="octodns_route53.Route53Provider"),
)


class FirstConfig(NamedTuple):
    """What the user has answered. Without a `target`, DNS is changed by hand."""

    profile: str
    auth_url: str
    base_url: str
    client_id: str
    credential_store: str | None = None
    target: DnsTarget | None = None


def first_config(config: FirstConfig) -> str:
    """The text of the config file."""
    store = _key("credential_store", config.credential_store, "keyring")
    # Named only if it is another: hints then name it in each command.
    used = None if config.profile == DEFAULT_PROFILE else config.profile
    profile = _PROFILE.format(
        default_profile=_key("default_profile", used, DEFAULT_PROFILE),
        name=yaml_scalar(config.profile),
        auth_url=yaml_scalar(config.auth_url),
        base_url=yaml_scalar(config.base_url),
        client_id=yaml_scalar(config.client_id),
        credential_store=store,
    )
    return f"{profile}{_DNS}{_targets(config.target)}{_REST}"


def _targets(target: DnsTarget | None) -> str:
    """The user's target, or none, and in comments an example of each other provider."""
    if target is None:
        first, *rest = map(_entry, _EXAMPLES)
        return _commented("dns:\n" + first + _OF_ALL_TARGETS + "".join(rest))
    others = (_entry(one) for one in _EXAMPLES if one.provider != target.provider)
    return f"dns:\n{_entry(target)}{_OF_ALL_TARGETS}{_commented(''.join(others))}"


def _entry(target: DnsTarget) -> str:
    if target.provider == "rfc2136":
        key_file = _key("key_file", target.key_file, "tsig.key")
        return _RFC2136.format(server=yaml_scalar(target.server), key_file=key_file)
    return _OCTODNS.format(class_name=yaml_scalar(target.class_name))


def _key(name: str, value: str | None, example: str) -> str:
    """The key with its value or, if it has none, a comment with an example."""
    return f"{name}: {yaml_scalar(value)}" if value else f"# {name}: {example}"


def _commented(text: str) -> str:
    return "".join(f"# {line}" for line in text.splitlines(keepends=True))
