"""How DNS is changed: the answers about the first DNS target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from dkimctl.cli import prompt
from dkimctl.cli.init.questions import Question, answer
from dkimctl.cli.output.streams import Reporter
from dkimctl.errors import UsageError
from dkimctl.settings.dns_reading import check_class
from dkimctl.settings.dns_targets import DnsTarget
from dkimctl.settings.values import file_path
from dkimctl.text.addresses import parse_server

_NO_FILE = "none"
_METHOD = "How DNS is changed: hand, rfc2136 (dynamic updates) or octodns"
_SERVER = "Primary server (such as 192.0.2.1)"
_CLASS = "Class of the octoDNS provider (such as octodns_route53.Route53Provider)"


class DnsMethod(StrEnum):
    """How DNS is changed."""

    HAND = "hand"
    RFC2136 = "rfc2136"
    OCTODNS = "octodns"


class DnsAnswers(NamedTuple):
    """The options about DNS, of which --dns may follow from the others."""

    given_method: DnsMethod | None = None
    server: str | None = None
    key_file: str | None = None
    class_name: str | None = None

    @property
    def method(self) -> DnsMethod | None:
        if self.given_method is None and (self.server is not None or self.key_file is not None):
            return DnsMethod.RFC2136
        if self.given_method is None and self.class_name is not None:
            return DnsMethod.OCTODNS
        return self.given_method

    def missing(self) -> list[str]:
        """The options that the method needs, and that are not given."""
        missing = {
            "--server": self.method is DnsMethod.RFC2136 and self.server is None,
            "--class": self.method is DnsMethod.OCTODNS and self.class_name is None,
        }
        return [name for name in missing if missing[name]]


def read_target(reporter: Reporter, dns: DnsAnswers) -> DnsTarget | None:
    """The first DNS target; None: by hand. Raises UsageError."""
    method = dns.method
    if method is None:
        question = Question(_METHOD, "--dns", _parse_method, default=DnsMethod.HAND)
        given = None if prompt.is_interactive() else DnsMethod.HAND
        method = answer(reporter, question, given)
    _refuse_others(dns, method)
    if method is DnsMethod.RFC2136:
        server = Question(_SERVER, "--server", _parse_server)
        key = Question("TSIG key file", "--key-file", _parse_key_file, default=_NO_FILE)
        return DnsTarget(
            method,
            server=answer(reporter, server, dns.server),
            key_file=answer(reporter, key, _key_file_given(dns)),
        )
    if method is DnsMethod.OCTODNS:
        question = Question(_CLASS, "--class", check_class)
        return DnsTarget(method, class_name=answer(reporter, question, dns.class_name))
    return None


def _refuse_others(dns: DnsAnswers, method: DnsMethod) -> None:
    """Raise UsageError for options that are about another method."""
    options: Mapping[str, tuple[DnsMethod, object]] = {
        "--server": (DnsMethod.RFC2136, dns.server),
        "--key-file": (DnsMethod.RFC2136, dns.key_file),
        "--class": (DnsMethod.OCTODNS, dns.class_name),
    }
    for name, (of_method, value) in options.items():
        if value is not None and of_method is not method:
            raise UsageError(f"{name} has no effect with --dns {method}", hint=f"remove {name}")


def _key_file_given(dns: DnsAnswers) -> str | None:
    return dns.key_file if dns.key_file or prompt.is_interactive() else _NO_FILE


def _parse_method(text: str) -> DnsMethod:
    for method in DnsMethod:
        if text.lower() == method:
            return method
    raise UsageError("unknown method", hint="write hand, rfc2136 or octodns")


def _parse_server(text: str) -> str:
    return str(parse_server(text))


def _parse_key_file(text: str) -> str:
    """The absolute path of a key that can be used; "" for none."""
    from dkimctl.publishing.tsig_key_file import read_tsig_key

    if text == _NO_FILE:
        return ""
    path = str(Path(file_path(text)).absolute())
    if re.search("[\ud800-\udfff]", path):  # a byte that is not UTF-8, as the config file is
        raise UsageError("the file name is not UTF-8", hint="rename the file")
    read_tsig_key(path)
    return path
