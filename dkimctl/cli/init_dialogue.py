"""What `init` asks for on a terminal, in the words of its options."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from dkimctl.cli import prompt
from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.session import Session
from dkimctl.errors import UsageError, naming
from dkimctl.settings.dns_reading import check_class
from dkimctl.settings.dns_targets import DnsTarget
from dkimctl.settings.first_config import FirstConfig
from dkimctl.settings.profile import DEFAULT_PROFILE
from dkimctl.settings.sources import option, variable
from dkimctl.settings.values import CHECKS, Check, profile_name
from dkimctl.text.addresses import parse_server

_NO_FILE = "none"


class DnsMethod(StrEnum):
    """How DNS is changed."""

    HAND = "hand"
    RFC2136 = "rfc2136"
    OCTODNS = "octodns"


class Question(NamedTuple):
    """`option` is the one that answers it; `check` converts a valid answer."""

    label: str
    option: str
    check: Check
    default: str = ""


_ACCOUNT = {
    "auth_url": "Auth URL (such as https://auth.example.com)",
    "base_url": "Base URL (such as https://api.example.com)",
    "client_id": "Client ID (such as 0a1b2c3d)",
}
_DOMAINS = "Domains (such as example.com mail.example.com)"
_METHOD = "How DNS is changed: hand, rfc2136 (dynamic updates) or octodns"


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


def read_domains(session: Session, given: Sequence[str] | None) -> list[str]:
    """The signing domains of the first spec file, as A-labels. Raises UsageError."""
    question = Question(_DOMAINS, "--domain", _parse_domains)
    if given is None:
        named: list[str] = _answer(session.reporter, question, None)
    else:
        named = [one for word in given for one in _answer(session.reporter, question, word)]
    return list(dict.fromkeys(named))


def read_account(session: Session, dns: DnsAnswers) -> FirstConfig:
    """What the first config file says, without the client secret. Raises UsageError."""
    reporter = session.reporter
    name = _read_name(session)
    values = {}
    for key, label in _ACCOUNT.items():
        question = Question(label, option(key).name, CHECKS[key])
        values[key] = _answer(reporter, question, given_value(session, key))
    store = session.flags["credential_store"]
    if store is not None:
        with naming("--credential-store"):
            CHECKS["credential_store"](store)
    return FirstConfig(name, **values, credential_store=store, target=_read_target(reporter, dns))


def missing_options(
    session: Session, domains: Sequence[str] | None, dns: DnsAnswers, *, needs_account: bool
) -> list[str]:
    """The options that would have to answer what nothing else does."""
    keys = [key for key in _ACCOUNT if needs_account and given_value(session, key) is None]
    missing = {
        "--domain": domains is None,
        "--server": dns.method is DnsMethod.RFC2136 and dns.server is None,
        "--class": dns.method is DnsMethod.OCTODNS and dns.class_name is None,
    }
    return [*(option(key).name for key in keys), *(name for name in missing if missing[name])]


def given_value(session: Session, key: str) -> str | None:
    """What an option or the environment says; None if neither does."""
    value: str | None = session.flags[key]
    return value if value is not None else os.environ.get(variable(key).name) or None


def _read_name(session: Session) -> str:
    question = Question("Profile", "--profile", profile_name, default=DEFAULT_PROFILE)
    given = given_value(session, "profile")
    if given is None and not prompt.is_interactive():
        given = DEFAULT_PROFILE
    return str(_answer(session.reporter, question, given))


def _read_target(reporter: Reporter, dns: DnsAnswers) -> DnsTarget | None:
    method = dns.method
    if method is None:
        question = Question(_METHOD, "--dns", _parse_method, default=DnsMethod.HAND)
        given = None if prompt.is_interactive() else DnsMethod.HAND
        method = _answer(reporter, question, given)
    _refuse_others(dns, method)
    if method is DnsMethod.RFC2136:
        server = Question("Primary server (such as 192.0.2.1)", "--server", _parse_server)
        key = Question("TSIG key file", "--key-file", _parse_key_file, default=_NO_FILE)
        return DnsTarget(
            method,
            server=_answer(reporter, server, dns.server),
            key_file=_answer(reporter, key, _key_file_given(dns)),
        )
    if method is DnsMethod.OCTODNS:
        label = "Class of the octoDNS provider (such as octodns_route53.Route53Provider)"
        question = Question(label, "--class", check_class)
        return DnsTarget(method, class_name=_answer(reporter, question, dns.class_name))
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


def _answer(reporter: Reporter, question: Question, given: str | None) -> Any:
    """The value of what was given, or of an answer. Raises UsageError."""
    if given is not None:
        with naming(question.option):
            return question.check(given)
    if not prompt.is_interactive():
        raise no_terminal([question.option])
    label = re.split(r" \(|:", question.label, maxsplit=1)[0]
    try:
        text = prompt.ask(
            question.label,
            question.check,
            lambda error: reporter.warn(f"{label}: {error.message}", hint=error.hint),
            default=question.default,
        )
    except UsageError as error:
        hint = f"give it as an option: {question.option}"
        raise UsageError(f"{label}: {error.message}", hint=hint) from None
    return question.check(text)


def no_terminal(options: Sequence[str]) -> UsageError:
    words = " and ".join(filter(None, (", ".join(options[:-1]), options[-1])))
    return UsageError(
        f"there is no terminal to ask on, and no {words}",
        hint=f"give {words}, or run it on a terminal",
    )


def _parse_domains(text: str) -> list[str]:
    from dkimctl.specs.names import parse_domain

    domains = [parse_domain(word) for word in re.split(r"[\s,]+", text.strip(" ,\t\r\n")) if word]
    if not domains:
        raise UsageError("no domain is named", hint="write a domain, such as example.com")
    return domains


def _parse_method(text: str) -> DnsMethod:
    for method in DnsMethod:
        if text.lower() == method:
            return method
    raise UsageError("unknown method", hint="write hand, rfc2136 or octodns")


def _parse_server(text: str) -> str:
    return str(parse_server(text))


def _parse_key_file(text: str) -> str:
    """The absolute path of a key that can be used; "" for none."""
    from dkimctl.publication.publishing.tsig_key_file import read_tsig_key
    from dkimctl.settings.values import file_path

    if text == _NO_FILE:
        return ""
    path = str(Path(file_path(text)).absolute())
    if re.search("[\ud800-\udfff]", path):  # a byte that is not UTF-8, as the config file is
        raise UsageError("the file name is not UTF-8", hint="rename the file")
    read_tsig_key(path)
    return path
