"""The account and the domains: what the files say first."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from dkimctl.cli import prompt
from dkimctl.cli.init.dns import DnsAnswers, read_target
from dkimctl.cli.init.questions import Question, answer
from dkimctl.cli.session import Session
from dkimctl.errors import UsageError, naming
from dkimctl.settings.first_config import FirstConfig
from dkimctl.settings.profile import DEFAULT_PROFILE
from dkimctl.settings.sources import option, variable
from dkimctl.settings.values import CHECKS, profile_name

_ACCOUNT = {
    "auth_url": "Auth URL (such as https://auth.example.com)",
    "base_url": "Base URL (such as https://api.example.com)",
    "client_id": "Client ID (such as 0a1b2c3d)",
}
_DOMAINS = "Domains (such as example.com mail.example.com)"


def read_domains(session: Session, given: Sequence[str] | None) -> list[str]:
    """The signing domains of the first spec file, as A-labels. Raises UsageError."""
    question = Question(_DOMAINS, "--domain", _parse_domains)
    if given is None:
        named: list[str] = answer(session.reporter, question, None)
    else:
        named = [one for word in given for one in answer(session.reporter, question, word)]
    return list(dict.fromkeys(named))


def read_account(session: Session, dns: DnsAnswers) -> FirstConfig:
    """What the first config file says, without the client secret. Raises UsageError."""
    reporter = session.reporter
    name = _read_name(session)
    values = {}
    for key, label in _ACCOUNT.items():
        question = Question(label, option(key).name, CHECKS[key])
        values[key] = answer(reporter, question, given_value(session, key))
    store = session.flags["credential_store"]
    if store is not None:
        with naming("--credential-store"):
            CHECKS["credential_store"](store)
    return FirstConfig(name, **values, credential_store=store, target=read_target(reporter, dns))


def missing_options(
    session: Session, domains: Sequence[str] | None, dns: DnsAnswers, *, needs_account: bool
) -> list[str]:
    """The options that would have to answer what nothing else does."""
    keys = [key for key in _ACCOUNT if needs_account and given_value(session, key) is None]
    domain = ["--domain"] if domains is None else []
    return [*(option(key).name for key in keys), *domain, *dns.missing()]


def given_value(session: Session, key: str) -> str | None:
    """What an option or the environment says; None if neither does."""
    value: str | None = session.flags[key]
    return value if value is not None else os.environ.get(variable(key).name) or None


def _read_name(session: Session) -> str:
    question = Question("Profile", "--profile", profile_name, default=DEFAULT_PROFILE)
    given = given_value(session, "profile")
    if given is None and not prompt.is_interactive():
        given = DEFAULT_PROFILE
    return str(answer(session.reporter, question, given))


def _parse_domains(text: str) -> list[str]:
    from dkimctl.specs.names import parse_domain

    domains = [parse_domain(word) for word in re.split(r"[\s,]+", text.strip(" ,\t\r\n")) if word]
    if not domains:
        raise UsageError("no domain is named", hint="write a domain, such as example.com")
    return domains
