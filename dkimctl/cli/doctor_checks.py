"""The checks of `doctor`, each a function that gives remarks: the set-up, then DNS.

A DkimctlError that one raises is a remark, too.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import platform
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from dkimctl import __version__
from dkimctl.addresses import Address
from dkimctl.cli.report import problem_lines
from dkimctl.cli.sandbox import INSTALL, is_installed
from dkimctl.cli.session import Session
from dkimctl.cli.timers import installed_timer
from dkimctl.client.failures import TEST_PATH, strange_answer
from dkimctl.client.http import HttpRequest
from dkimctl.credentials.store import IN_ENVIRONMENT
from dkimctl.dkim import KeyRecordError, parse_tag_list
from dkimctl.dns import messages, nameserver
from dkimctl.dns.messages import SOA, USEFUL, make_question, rcode_text
from dkimctl.dns.queries import gather
from dkimctl.dns.zones import find_zone
from dkimctl.errors import InputError, UsageError
from dkimctl.files import access_hint, path_fault
from dkimctl.formats.overview_text import Overview
from dkimctl.formats.renderer import publishable
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import Outcome, Registration, named
from dkimctl.names import MAX_NAME, Selection, is_name, parents
from dkimctl.publishing.targets import check_access, open_targets, where_led
from dkimctl.registration.outcomes import verified
from dkimctl.rotation.life import NextAction, read_keys
from dkimctl.settings.config import webhook_url
from dkimctl.settings.profile import require_account, require_ledger_account
from dkimctl.settings.values import is_reference
from dkimctl.text import counted, few, format_duration, printable

# A start date is a matter of days; but a signed DNS update is refused if clocks differ by more
# than five minutes (RFC 8945 section 10).
_NOTE_SECONDS, _WRONG_SECONDS = 30, 300
_MAX_REPORTED = 100  # domains whose DMARC records are looked up, at once
_MAX_LABELS = 7  # of a domain above (RFC 9989 section 4.10)
_MAX_ALIKE = 10  # remarks of a state about them
_MAX_ADDRESSES = 2  # of a DMARC record; receivers need not send to more
_RESOLVER_HINT = "check /etc/resolv.conf or the network settings of this machine"


class Health(StrEnum):
    """How a check ended. `UNKNOWN`: there is no answer; `NOT_CHECKED`: it was not tried."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    NOT_CHECKED = "not checked"


class Remark(NamedTuple):
    """What a check found, and what to do about it."""

    state: Health
    message: str
    hint: str = ""
    check: str = ""  # its name, if not that of the check that found it


def check_python(_session: Session) -> Iterator[Remark]:
    yield Remark(Health.OK, f"Python {platform.python_version()}, dkimctl {__version__}")


def check_libraries(_session: Session) -> Iterator[Remark]:
    def version_of(name: str) -> str | None:
        with suppress(PackageNotFoundError):
            return version(name)
        return None

    try:
        lines = requires("dkimctl") or ()
    except PackageNotFoundError:  # it runs from a copy of its source
        yield Remark(Health.UNKNOWN, "dkimctl is not installed as a package")
        return
    problems = [*filter(None, (library_problem(line, version_of) for line in lines))]
    yield from problems or [Remark(Health.OK, "all are installed, in versions that fit")]


def library_problem(line: str, version_of: Callable[[str], str | None]) -> Remark | None:
    """What is wrong with the library that a line of the metadata requires, if it does here.

    It is missing, or too old or new; of an extra, only the latter.
    """
    requirement, _, marker = line.partition(";")
    extra = re.search(r"extra == ['\"](\w+)", marker)
    is_for_developers = extra and extra[1] not in ("service", "postgres", "octodns")
    if is_for_developers or ("platform" in marker and sys.platform not in marker):
        return None
    name, _, bounds = re.split(r"(\[.*\])?(?=[<>=]|\Z)", requirement.strip(), maxsplit=1)
    hint, installed = f"run `pip install '{name}{bounds}'`", version_of(name)
    if installed is None:
        return None if extra else Remark(Health.WRONG, f"{name} is not installed", hint)

    def release(text: str) -> list[int]:  # of a version, without zeros at its end
        numbers = re.match(r"[0-9.]*[0-9]", text)
        return [*map(int, re.sub(r"(\.0+)+\Z", "", numbers[0] if numbers else "0").split("."))]

    for sign, bound in re.findall(r"(>=|<)([0-9.]+)", bounds):
        if (release(installed) < release(bound)) is (sign == ">="):
            state = Health.WARNING if extra else Health.WRONG
            return Remark(state, f"{name} {installed} does not fit {bounds}", hint)
    return None


def check_service_extra(_session: Session) -> Iterator[Remark]:
    hint = f"in the clone of dkimctl, run `{INSTALL}`"
    missing = Remark(Health.WRONG, "it is not installed", hint)
    yield Remark(Health.OK, "installed") if is_installed() else missing


def check_config(session: Session) -> Iterator[Remark]:
    path = session.config_file
    try:
        config = session.config
    except InputError as error:
        for text, hint in problem_lines(error.problems, session.reporter.most_alike):
            yield Remark(Health.WRONG, text, hint)
        return
    if not path.exists():
        yield Remark(Health.OK, f"none, and none is needed ({path})")
    elif fault := path_fault(path):
        hint = fault.hint or "keep it in a directory that only you can write to"
        yield Remark(Health.WARNING, fault.message, hint)
    else:
        profiles = ", ".join(config.profiles) or "none"
        yield Remark(Health.OK, f"{path} is valid (profiles: {profiles})")


def check_profile(session: Session) -> Iterator[Remark]:
    text = "the sandbox, which needs no account"
    if not session.profile.is_sandbox:
        _, base_url, client_id = require_account(session.profile)
        text = f"{session.profile.name}: client ID {client_id} at {base_url}"
    yield Remark(Health.OK, text)


def check_notices(session: Session) -> Iterator[Remark]:
    """Whether notices can be delivered; nothing is sent."""
    notify = session.config.notify
    if not notify.command and not notify.webhook:
        hint = f"add `notify` to {session.config_file} to get notices of problems"
        yield Remark(Health.NOTE, "none are configured", hint)
    for program in notify.command[:1]:
        hint = "correct `command` of `notify` in the config file"
        missing = Remark(Health.WRONG, f"there is no program {program}", hint)
        there = Remark(Health.OK, f"the program {program} is there")
        yield there if shutil.which(program) else missing
    if notify.webhook:
        if is_reference(notify.webhook):
            webhook_url(session.secrets.read(notify.webhook).reveal())
        hint = "`dkimctl check-dns --test-notice` sends a notice as a test"
        yield Remark(Health.OK, "a webhook is configured", hint)


def check_auth_url(session: Session) -> Iterator[Remark]:
    yield _try_url(session, f"{session.profile.auth_url}/oauth2/token")[0]


def check_base_url(session: Session) -> Iterator[Remark]:
    """Also the clock, by the time that the answer names."""
    begun = time.time()
    finding, sent_at = _try_url(session, f"{session.profile.base_url}{TEST_PATH}")
    yield finding
    yield clock_finding(sent_at, begun, time.time())._replace(check="clock")


def check_credentials(session: Session) -> Iterator[Remark]:
    credentials = session.credentials
    source = credentials.secret_source(session.stored_account)
    if source is None and credentials.get_token(session.stored_account) is None:
        yield Remark(Health.WRONG, "no secret is stored", "run `dkimctl login`")
    elif source is None:
        hint = "run `dkimctl login`, or set DKIMCTL_CLIENT_SECRET"
        yield Remark(Health.WARNING, "there is a token, but no secret to renew it", hint)
    elif source != IN_ENVIRONMENT and session.credential_store.is_plaintext_keyring:
        hint = "`dkimctl login --credential-store file` stores it where only you can read it"
        yield Remark(Health.WARNING, f"the {source} does not encrypt the secret", hint)
    else:
        yield Remark(Health.OK, f"the secret is in the {source}")


def check_token(session: Session) -> Iterator[Remark]:
    """Obtain a token, which is not stored, and see whether it may be used."""
    secret = session.credentials.get_secret(session.stored_account)
    if secret is not None:
        token = session.client.issue_token(session.account.client_id, secret).access_token
        what = "the service issues a token, and accepts it"
    else:
        token = session.token_provider.token()
        what = "the service accepts the token"
    session.client.request(token, "GET", TEST_PATH)
    yield Remark(Health.OK, what)


def clock_finding(sent_at: float | None, begun: float, ended: float) -> Remark:
    """The clock against the time of an answer, in whole seconds, between these two local times."""
    if sent_at is None:
        return Remark(Health.UNKNOWN, "the service does not say what time it is")
    seconds, word = max((begun - (sent_at + 1), "ahead of"), (sent_at - ended, "behind"))
    text = f"{format_duration(seconds)} {word} the service's"
    if seconds <= _NOTE_SECONDS:
        return Remark(Health.OK, text if seconds > 1 else "as that of the service")
    state = Health.WRONG if seconds > _WRONG_SECONDS else Health.NOTE
    return Remark(state, text, "set the clock of this machine, such as by NTP")


def _try_url(session: Session, url: str) -> tuple[Remark, float | None]:
    """Whether something answers there, and the time that it says it is."""
    with session.open_http(url, longest=10.0) as http:
        response = http.send(HttpRequest("GET", url, None))
    base = url.removesuffix(TEST_PATH).removesuffix("/oauth2/token")
    remark = Remark(Health.OK, f"{base} answers{' over TLS' if url.startswith('https:') else ''}")
    if strange := strange_answer(response.status, response.body):
        hint = "try again later, and check the URL: `dkimctl status` shows it"
        remark = Remark(Health.WARNING, f"{base} {strange}", hint)
    return remark, response.sent_at


def open_ledger(session: Session) -> Ledger:
    """The profile's ledger, for the thread of a check. Raises LedgerError."""
    base_url, client_id = require_ledger_account(session.profile)
    place = session.find_ledger_place()
    return Ledger.open_existing(place, base_url=base_url, client_id=client_id)


def check_ledger(session: Session) -> Iterator[Remark]:
    if isinstance(path := session.find_ledger_place(), Path):
        # The file or, if it is not there, the directory in which it is created.
        place = next((place for place in (path, *path.parents) if place.exists()), path)
        directory = path.parent if path.exists() else place
        if not (os.access(place, os.W_OK) and os.access(directory, os.W_OK)):
            hint = f"make {path.parent} writable for you, or name another in DKIMCTL_STATE_DIR"
            yield Remark(Health.WRONG, f"you cannot write to {path}", access_hint(path, hint))
        if not path.exists():
            yield Remark(Health.OK, f"none yet; the first `register` creates {path}")
            return
    with open_ledger(session) as ledger:
        ledger.verify()
        domains = ledger.count_domains(*require_ledger_account(session.profile))
        yield Remark(Health.OK, f"{path} is intact ({counted(domains, 'domain')})")
        if intents := ledger.intents():
            text = f"{counted(len(intents), 'request')} got no answer"
            hint = "register the same file again; `dkimctl list --stage unanswered` shows them"
            yield Remark(Health.WARNING, text, hint)
        if ledger.quarantined is not None:
            text = f"a damaged ledger was quarantined: {ledger.quarantined}"
            hint = "this one may be incomplete: once it is complete, move that file away"
            yield Remark(Health.WARNING, text, hint)
        ledger.require_disk_space(1000)  # registrations


def check_keys(session: Session) -> Iterator[Remark]:
    """Whether a key signs, or soon will, without DNS; and whether `rotate run` is overdue."""
    now = datetime.now(UTC)
    with open_ledger(session) as ledger:
        keys = Overview(read_keys(ledger, Selection(), session.config.rotation, now), now)
    if urgent := [*map(named, keys.urgent)]:
        text = f"urgent: {counted(len(urgent), 'key')} ({few(urgent)})"
        yield Remark(Health.WRONG, text, "`dkimctl overview` says why, and what to do")
    else:
        yield Remark(Health.OK, "nothing is urgent")
    if undecided := [named(key) for key in keys.undecided if key.action is NextAction.DECIDE]:
        text = f"to decide: {counted(len(undecided), 'key')} ({few(undecided)})"
        yield Remark(Health.WARNING, text, "`dkimctl list --sort-by due` says why")
    for text in keys.limits:
        yield Remark(Health.WARNING, text)
    timer = installed_timer(session.profile.name, session.state_dir)
    state, text = (Health.OK if timer else Health.NOTE), "nothing is overdue"
    hint = "" if timer else "`dkimctl timer` installs one"
    if overdue := [key.due for key in keys.overdue if key.due]:
        state = Health.WRONG
        text = f"overdue since {min(overdue):%Y-%m-%d}: {counted(len(overdue), 'key')}"
        hint = hint or "`dkimctl timer` says how to see the output of its runs"
    yield Remark(state, f"{text}; {timer or 'no timer is installed'}", hint, check="timer")


def check_resolver(session: Session) -> Iterator[Remark]:
    domain = None  # whose zone is looked up; one of the sandbox may be made up
    with suppress(UsageError):  # what is wrong with the account or the ledger is said elsewhere
        if not session.profile.is_sandbox:
            domain = next((each.sign_domain for each in _registered(session, 1)), None)
    yield from asyncio.run(resolver_remarks(nameserver.system_nameservers(), domain))


async def resolver_remarks(nameservers: Sequence[Address], domain: str | None) -> list[Remark]:
    """What each resolver answers over UDP and TCP, and whether they find the zone of a domain."""
    question = nameserver.validated(make_question(".", SOA))  # what every resolver can look up
    failures, remarks = list[str](), list[Remark]()
    timeouts = nameserver.Timeouts(udp=(1.0, 2.0), tcp=3.0)
    for address in nameservers:
        server = nameserver.Server(address.host, address.port, recursion=True, timeouts=timeouts)
        try:
            answer = await server.ask(question)
            if answer.rcode not in USEFUL:
                raise nameserver.NoAnswer(f"it answers {rcode_text(answer.rcode)}")
        except nameserver.NoAnswer as error:
            failures.append(f"{address}: {error}")
            continue
        remarks.append(Remark(Health.OK, f"{address} answers"))
        try:
            if (rcode := (await server.ask_over_tcp(question)).rcode) not in USEFUL:
                raise nameserver.NoAnswer(f"it answers {rcode_text(rcode)}")
        except nameserver.NoAnswer as error:
            text = f"{address}: over TCP, {error}, so large answers are lost"
            remarks.append(Remark(Health.WARNING, text, "open TCP port 53 to it"))
        if not answer.is_validated:
            text = f"{address} does not validate DNSSEC"
            hint = "`dkimctl check-dns` then does not see signatures that have expired"
            remarks.append(Remark(Health.NOTE, text, hint))
    if remarks and domain is not None:
        name, hint = printable(domain), "check that the domain is registered and delegated"
        try:
            zone = await find_zone(domain, nameserver.RecursiveResolver(nameservers, 1))
            missing = Remark(Health.WARNING, f"DNS has no zone of {name}", hint)
            in_zone = Remark(Health.OK, f"{name} is in the zone {printable(zone or '')}")
            remarks.append(missing if zone is None else in_zone)
        except nameserver.NoAnswer as error:
            text = f"no zone of {name} is found: {error}"
            remarks.append(Remark(Health.WRONG, text, _RESOLVER_HINT))
    state = Health.WARNING if remarks else Health.WRONG
    return [*(Remark(state, text, _RESOLVER_HINT) for text in failures), *remarks]


def check_ipv6(_session: Session) -> Iterator[Remark]:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            # A root server (F): connecting a UDP socket to it sends nothing, but needs a route.
            sock.connect(("2001:500:2f::f", 53))
        yield Remark(Health.OK, "there is a route")
    except OSError:
        text = "there is no route: name servers that have only IPv6 addresses cannot be asked"
        yield Remark(Health.NOTE, text)


def check_targets(session: Session) -> Iterator[Remark]:
    """What `publish --check-access` tries, of some registrations."""
    if not session.has_dns_targets:
        yield Remark(Health.OK, "none: DNS is changed by hand")
        return
    targets = open_targets(session.config, session.profile.name, session.secrets)
    registered = where_led(_registered(session, 20), session.config.pool_of)
    zones, uncovered = check_access(registered, targets, tries_named=True)
    for zone in zones:
        access, where = zone.access, printable(zone.target)
        if zone.zone:
            where += f", zone {printable(zone.zone)}"
        if access.readable and access.writable:
            yield Remark(Health.OK, f"{where}: can be read and written")
            continue
        reason = f": {access.reason}" if access.reason else ""
        state = Health.WRONG if False in (access.readable, access.writable) else Health.UNKNOWN
        yield Remark(state, f"{where}{reason}", access.hint)
    if uncovered:
        names = few([registration.sign_domain for registration in uncovered])
        hint = "add their zones to `dns` in the config file"
        yield Remark(Health.WARNING, f"no target has the zone of {names}", hint)


def check_reports(session: Session) -> Iterator[Remark]:
    """Whether DMARC reports about the domains that are signed reach somebody."""
    with open_ledger(session) as ledger:
        domains = [*dict.fromkeys(each.sign_domain for each in ledger.ours() if each.signs)]
    yield from asyncio.run(report_remarks(nameserver.system_nameservers(), domains))


async def report_remarks(nameservers: Sequence[Address], domains: Sequence[str]) -> list[Remark]:
    """Where DMARC reports about the first of these domains go (RFC 9989, RFC 9990)."""
    resolver = nameserver.RecursiveResolver(nameservers, _MAX_REPORTED)
    groups: dict[_ReportTarget, dict[str, str]] = {}
    looked = domains[:_MAX_REPORTED]
    results = await gather(_report_targets(domain, resolver) for domain in looked)
    for domain, targets in zip(looked, results, strict=True):
        for target, record in targets:
            groups.setdefault(target, {})[domain] = record
    remarks = [Remark(Health.OK, f"looked at {len(looked)} of {counted(len(domains), 'domain')}")]
    for (state, before, after, hint), records in groups.items():
        text = f"{before} about {counted(len(records), 'domain')} ({few([*records])}){after}"
        if (alike := sum(remark.state is state for remark in remarks)) < _MAX_ALIKE:
            remarks.append(Remark(state, text, hint + few([*filter(None, records.values())])))
        elif alike == _MAX_ALIKE:
            remarks.append(Remark(state, "… and more like these"))
    return remarks


# What is to say before and after the domains that it is about, and the hint.
_ReportTarget = tuple[Health, str, str, str]


async def _report_targets(
    domain: str, resolver: nameserver.RecursiveResolver
) -> list[tuple[_ReportTarget, str]]:
    """Each address that gets reports about a domain, and the name of the record that is missing."""
    try:
        policies = await _policies(domain, resolver)
        place = domain if domain in policies else [domain, *policies][-1]
        uris = re.split(r"\s*,\s*", policies.get(place, {}).get("rua", ""))
        mail = [uri for uri in uris if uri.lower().startswith("mailto:")]  # others get no reports
        targets = [await _report_target(place, uri, resolver) for uri in mail[:_MAX_ADDRESSES]]
        hint = 'write `"v=DMARC1; p=none; rua=mailto:ADDRESS"`, or add the rua, at '
        nowhere = Health.NOTE, "no rua: receivers send no reports", "", hint
        return targets or [(nowhere, f"_dmarc.{place}")]
    except KeyRecordError as error:
        after = f" may not come, since receivers may ignore a DMARC record: {error}"
        return [((Health.WARNING, "reports", after, "correct the DMARC record"), "")]
    except nameserver.NoAnswer as error:
        unknown = Health.UNKNOWN, "no answer", f": {printable(str(error))}", _RESOLVER_HINT
        return [(unknown, "")]


async def _report_target(
    place: str, uri: str, resolver: nameserver.RecursiveResolver
) -> tuple[_ReportTarget, str]:
    address = unquote(re.split("[?!]", uri)[0][len("mailto:") :])  # without a limit of size
    host, fault, record = address.rpartition("@")[2].lower(), "", ""
    if "@" not in address or not is_name(host):
        fault = "it is not an email address"
    else:
        data: list[object] = []
        for rdtype in (messages.MX, messages.A, messages.AAAA):
            answer = await resolver.ask(make_question(host, rdtype))
            if data := answer.data(rdtype):
                break
        # Within one organization, no permission is needed (RFC 9990 section 4).
        tops = {[name, *await _policies(name, resolver)][-1] for name in (place, host)}
        permission = f"{place}._report._dmarc.{host}"
        if all(str(getattr(each, "exchange", "")) == "." for each in data):  # RFC 7505
            fault = f"{host} takes no mail, by its MX and address records"
        elif len(tops) > 1 and not await _dmarc_records(permission, resolver):
            fault, record = f"{host} does not say that it takes those of others", permission
    address = printable(address[:MAX_NAME])
    if not fault:
        return (Health.OK, "reports", f" go to {address}", ""), ""
    hint = 'its owner has to write `"v=DMARC1"` at ' if record else "correct the DMARC record"
    return (Health.WARNING, "reports", f" do not reach {address}: {fault}", hint), record


async def _policies(
    domain: str, resolver: nameserver.RecursiveResolver
) -> dict[str, dict[str, str]]:
    """The tags of the DMARC records of a domain and of those above, up to its organization's."""
    policies: dict[str, dict[str, str]] = {}
    for name in parents(domain):
        if "." in name and (name == domain or name.count(".") < _MAX_LABELS):
            for record in await _dmarc_records(f"_dmarc.{name}", resolver):
                if name in policies:
                    raise KeyRecordError(f"there are several at _dmarc.{name}")
                policies[name] = parse_tag_list(record)
    return policies


async def _dmarc_records(name: str, resolver: nameserver.RecursiveResolver) -> list[str]:
    if len(name) > MAX_NAME:
        return []
    texts = (await resolver.ask(messages.make_txt_question(name))).texts
    return [text for text in texts if re.match(r"v\s*=\s*DMARC1\s*(;|\Z)", text)]


def _registered(session: Session, most: int) -> list[Registration]:
    """Some registrations whose records may be published."""
    with open_ledger(session) as ledger:
        sound = (each for each in ledger.ours()
                 if each.signs and publishable(verified(each, Outcome.EXISTS)))  # fmt: skip
        return list(itertools.islice(sound, most))
