"""The checks of `doctor`, each a function that returns findings: the set-up, then DNS."""

from __future__ import annotations

import asyncio
import itertools
import operator
import os
import platform
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from importlib.util import find_spec
from typing import Any, NamedTuple

from dkimctl import __version__
from dkimctl.addresses import Address
from dkimctl.cli.report import problem_lines
from dkimctl.cli.sandbox import INSTALL, is_installed
from dkimctl.cli.selected import read_selection
from dkimctl.cli.session import Session
from dkimctl.client.failures import TEST_PATH, strange_answer
from dkimctl.credentials.sources import IN_ENVIRONMENT
from dkimctl.dns.messages import SOA, USEFUL, Answer, make_question, rcode_text
from dkimctl.dns.nameserver import (
    NoAnswer,
    RecursiveResolver,
    Server,
    Timeouts,
    system_nameservers,
    validated,
)
from dkimctl.dns.zones import find_zone
from dkimctl.errors import DkimctlError, InputError, LedgerError, TokenRejected, UsageError
from dkimctl.files import path_fault
from dkimctl.formats.renderer import publishable
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import Outcome, Registration, named
from dkimctl.publishing.targets import check_access, open_targets
from dkimctl.registration.outcomes import verified
from dkimctl.rotation.life import read_keys
from dkimctl.settings.config import webhook_url
from dkimctl.settings.profile import require_account, require_ledger_account
from dkimctl.settings.values import parse_reference
from dkimctl.text import counted, few, format_duration, printable

_OLDEST_PYTHON = (3, 11)
_REQUIREMENT = r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;\s*(.*))?"
_BOUND = r"(<=|>=|<|>|==)\s*([0-9.]+)"
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "==": operator.eq,
}  # fmt: skip
# A start date is a matter of days; but a signed DNS update is refused if clocks differ by more
# than five minutes (RFC 8945 section 10).
_NOTE_SECONDS, _WRONG_SECONDS = 30, 300
_TIMEOUTS = Timeouts(udp=(1.0, 2.0), tcp=3.0)  # of the resolvers
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

    check: str
    state: Health
    message: str
    hint: str = ""


def wrong(check: str, error: DkimctlError) -> Remark:
    return Remark(check, Health.WRONG, error.message, error.hint)


class Requirement(NamedTuple):
    """A library, the bounds of its version, and the extra that needs it; "" for none."""

    name: str
    bounds: str
    extra: str


def check_python(_session: Session) -> Iterator[Remark]:
    running = f"Python {platform.python_version()}, dkimctl {__version__}"
    if sys.version_info < _OLDEST_PYTHON:
        oldest = ".".join(map(str, _OLDEST_PYTHON))
        yield Remark("python", Health.WRONG, running, f"install Python {oldest} or later")
    else:
        yield Remark("python", Health.OK, running)
    if find_spec("click"):
        yield Remark(
            "python",
            Health.NOTE,
            "click is installed as well, which makes commands that send requests 45 ms slower",
            "to avoid that, install dkimctl in an environment of its own, such as with pipx",
        )


def check_libraries(_session: Session) -> Iterator[Remark]:
    from importlib.metadata import PackageNotFoundError, requires, version

    try:
        lines = requires("dkimctl") or []
    except PackageNotFoundError:
        yield Remark("libraries", Health.UNKNOWN, "dkimctl is not installed as a package")
        return
    requirements = [*filter(None, map(parse_requirement, lines))]
    installed: dict[str, str | None] = {}
    for name in [requirement.name for requirement in requirements]:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            installed[name] = None
    problems = [*library_problems(requirements, installed)]
    yield from problems
    if not problems:
        count = len(installed) - [*installed.values()].count(None)
        yield Remark("libraries", Health.OK, f"{count} installed, in versions that fit")


def check_service_extra(_session: Session) -> Iterator[Remark]:
    if is_installed():
        yield Remark("embedded service", Health.OK, "installed")
    else:
        hint = f"run `{INSTALL}`"
        yield Remark("embedded service", Health.WRONG, "it is not installed", hint)


def parse_requirement(line: str) -> Requirement | None:
    """A line of the metadata; None if it does not apply to users, or to this platform."""
    match = re.fullmatch(_REQUIREMENT, line.strip())
    if not match:
        return None
    name, bounds, marker = match[1], match[2], match[3] or ""
    extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
    if extra and extra[1] not in ("service", "postgres", "octodns"):  # extras
        return None
    if "sys_platform" in marker and ("== " in marker) is not (sys.platform == "win32"):
        return None
    return Requirement(name, bounds, extra[1] if extra else "")


def library_problems(
    requirements: list[Requirement], installed: Mapping[str, str | None]
) -> Iterator[Remark]:
    """Those that are missing, or too old or new; of an extra, only the latter."""
    for name, bounds, extra in requirements:
        version = installed[name]
        hint = f"run `pip install '{name}{bounds}'`"
        if version is None and not extra:
            yield Remark("libraries", Health.WRONG, f"{name} is not installed", hint)
        elif version is not None and not (
            all(
                _COMPARISONS[sign](_release(version), _release(bound))
                for sign, bound in re.findall(_BOUND, bounds)
            )
        ):
            state = Health.WARNING if extra else Health.WRONG
            yield Remark("libraries", state, f"{name} {version} does not fit {bounds}", hint)


def _release(text: str) -> list[int]:
    """The release of a version, such as [2, 0, 30], to compare it: without zeros at its end."""
    match = re.match(r"[0-9]+(\.[0-9]+)*", text)
    numbers = [int(part) for part in match[0].split(".")] if match else []
    while numbers[-1:] == [0]:
        numbers.pop()
    return numbers


def check_config(session: Session) -> Iterator[Remark]:
    check, path = "config file", session.config_file
    try:
        config = session.config
    except InputError as error:
        for text, hint in problem_lines(error.problems, lists_all=session.reporter.lists_all):
            yield Remark(check, Health.WRONG, text, hint)
        return
    if not path.exists():
        yield Remark(check, Health.OK, f"none, and none is needed ({path})")
    elif fault := path_fault(path):
        hint = fault.hint or "keep it in a directory that only you can write to"
        yield Remark(check, Health.WARNING, fault.message, hint)
    else:
        profiles = ", ".join(config.profiles) or "none"
        yield Remark(check, Health.OK, f"{path} is valid (profiles: {profiles})")


def check_profile(session: Session) -> Iterator[Remark]:
    profile = session.profile
    if profile.is_sandbox:
        yield Remark("profile", Health.OK, "the sandbox, which needs no account")
        return
    _, base_url, client_id = require_account(profile)
    text = f"{profile.name}: client ID {client_id} at {base_url}"
    yield Remark("profile", Health.OK, text)


def check_notices(session: Session) -> Iterator[Remark]:
    """Whether notices can be delivered; nothing is sent."""
    check, notify = "notices", session.config.notify
    if not notify.command and not notify.webhook:
        text = "nobody is told of problems"
        hint = f"write `notify` into {session.config_file} to be told"
        yield Remark(check, Health.NOTE, text, hint)
    if notify.command:
        program = notify.command[0]
        if shutil.which(program):
            yield Remark(check, Health.OK, f"the program {program} is there")
        else:
            hint = "correct `command` of `notify` in the config file"
            yield Remark(check, Health.WRONG, f"there is no program {program}", hint)
    if notify.webhook:
        reference = parse_reference(notify.webhook)
        try:
            if reference is not None:
                webhook_url(session.secrets.read(reference).reveal())
        except DkimctlError as error:
            yield wrong(check, error)
        else:
            hint = "`dkimctl check-dns --test-notice` sends a notice as a test"
            yield Remark(check, Health.OK, "a webhook is configured", hint)


def check_auth_url(session: Session) -> Iterator[Remark]:
    finding, _ = _try_url(session, "auth URL", f"{session.profile.auth_url}/oauth2/token")
    yield finding


def check_base_url(session: Session) -> Iterator[Remark]:
    """Also the clock, by the time that the answer names."""
    begun = time.time()
    url = f"{session.profile.base_url}{TEST_PATH}"
    finding, sent_at = _try_url(session, "base URL", url)
    yield finding
    yield clock_finding(sent_at, begun, time.time())


def check_credentials(session: Session) -> Iterator[Remark]:
    check, credentials = "credentials", session.credentials
    source = credentials.secret_source(session.stored_account)
    if source is None and credentials.get_token(session.stored_account) is None:
        yield Remark(check, Health.WRONG, "no secret is stored", "run `dkimctl login`")
    elif source is None:
        hint = "run `dkimctl login`, or set DKIMCTL_CLIENT_SECRET"
        yield Remark(check, Health.WARNING, "there is a token, but no secret to renew it", hint)
    elif source != IN_ENVIRONMENT and session.credential_store.is_plaintext_keyring:
        hint = "`dkimctl login --credential-store file` stores it where only you can read it"
        yield Remark(check, Health.WARNING, f"the {source} does not encrypt the secret", hint)
    else:
        yield Remark(check, Health.OK, f"the secret is in the {source}")


def check_token(session: Session) -> Iterator[Remark]:
    """Obtain a token, which is not stored, and see whether it may be used."""
    secret = session.credentials.get_secret(session.stored_account)
    if secret is not None:
        token = session.client.issue_token(session.account.client_id, secret).access_token
        what = "the service issues a token, and accepts it"
    else:
        token = session.token_provider.token()
        what = "the service accepts the token"
    try:
        session.client.request(token, "GET", TEST_PATH)
    except TokenRejected as error:
        yield Remark("token", Health.WRONG, error.message, error.hint)
    else:
        yield Remark("token", Health.OK, what)


def clock_finding(sent_at: float | None, begun: float, ended: float) -> Remark:
    """The clock against the time of an answer, in whole seconds, between these two local times."""
    if sent_at is None:
        return Remark("clock", Health.UNKNOWN, "the service does not say what time it is")
    ahead, behind = begun - (sent_at + 1), sent_at - ended
    seconds, word = max((ahead, "ahead of"), (behind, "behind"))
    if seconds <= 1:
        return Remark("clock", Health.OK, "as that of the service")
    text = f"{format_duration(seconds)} {word} the service's"
    hint = "set the clock of this machine, such as by NTP"
    if seconds > _NOTE_SECONDS:
        state = Health.WRONG if seconds > _WRONG_SECONDS else Health.NOTE
        return Remark("clock", state, text, hint)
    return Remark("clock", Health.OK, text)


def _try_url(session: Session, check: str, url: str) -> tuple[Remark, float | None]:
    """Whether something answers there, and the time that it says it is."""
    from dkimctl.client.http import HttpRequest

    with session.open_http(url, longest=10.0) as http:
        response = http.send(HttpRequest("GET", url, None))
    base = url.removesuffix(TEST_PATH).removesuffix("/oauth2/token")
    if strange := strange_answer(response.status, response.body):
        text = f"{base} answered {strange} to a test request, as if it were not the service"
        finding = Remark(check, Health.WARNING, text, "check the URL: `dkimctl status` shows it")
    elif response.status >= 500:
        text = f"{base} answered {response.status} to a test request"
        finding = Remark(check, Health.WARNING, text, "try again later")
    else:
        secure = " over TLS" if url.startswith("https:") else ""
        finding = Remark(check, Health.OK, f"{base} answers{secure}")
    return finding, response.sent_at


def open_ledger(session: Session) -> Ledger:
    """The profile's ledger, for the thread of a check, which closes it. Raises LedgerError."""
    base_url, client_id = require_ledger_account(session.profile)
    return Ledger.open_existing(session.ledger_file, base_url=base_url, client_id=client_id)


def check_ledger(session: Session) -> Iterator[Remark]:
    check, path = "ledger", session.ledger_file
    place = path  # or, if it is not there, the directory in which it is created
    while not place.exists() and place != place.parent:
        place = place.parent
    directory = path.parent if path.exists() else place
    if not (os.access(place, os.W_OK) and os.access(directory, os.W_OK)):
        hint = f"make {path.parent} writable for you, or name another in DKIMCTL_STATE_DIR"
        yield Remark(check, Health.WRONG, f"you cannot write to {path}", hint)
    if not path.exists():
        yield Remark(check, Health.OK, f"none yet; the first `register` creates {path}")
        return
    with open_ledger(session) as ledger:
        ledger.verify()
        domains = ledger.count_domains(*require_ledger_account(session.profile))
        yield Remark(check, Health.OK, f"{path} is sound ({counted(domains, 'domain')})")
        if intents := ledger.intents():
            text = f"{counted(len(intents), 'request')} got no answer"
            hint = "register the same file again; `dkimctl list --stage unanswered` shows them"
            yield Remark(check, Health.WARNING, text, hint)
        if ledger.quarantined is not None:
            text = f"a damaged ledger was quarantined: {ledger.quarantined}"
            hint = "this one may know less: when it does not, move that file away"
            yield Remark(check, Health.WARNING, text, hint)
        try:
            ledger.require_disk_space(1000)  # for which there should be space on the disk
        except LedgerError as error:
            yield wrong(check, error)


def check_keys(session: Session) -> Iterator[Remark]:
    """Whether a key signs, or soon will, without DNS; and whether `rotate run` is overdue."""
    rotation, now = session.config.rotation, datetime.now(UTC)
    with open_ledger(session) as ledger:
        statuses = [*read_keys(ledger, read_selection(session, None), rotation, now)]
    urgent = [named(status) for status in statuses if status.urgency]
    if urgent:
        text = f"urgent: {counted(len(urgent), 'key')} ({few(urgent)})"
        hint = "`dkimctl overview` says why, and what to do"
        yield Remark("keys", Health.WRONG, text, hint)
    else:
        yield Remark("keys", Health.OK, "nothing is urgent")
    overdue = [status for status in statuses if status.is_overdue(now - rotation.lead)]
    if not overdue:
        yield Remark("timer", Health.OK, "nothing is overdue")
        return
    since = min(status.due for status in overdue if status.due is not None)
    text = f"overdue since {since:%Y-%m-%d}: {counted(len(overdue), 'key')}"
    hint = "run `dkimctl rotate run` once a day, from a timer"
    yield Remark("timer", Health.WRONG, text, hint)


async def try_resolver(address: Address) -> tuple[str, list[Remark]]:
    """Ask it for the root's SOA record, over UDP and over TCP; why nothing useful came, or ""."""
    question = validated(make_question(".", SOA))  # what every resolver can look up
    server = Server(address.host, address.port, recursion=True, timeouts=_TIMEOUTS)
    try:
        answer = await server.ask(question)
    except NoAnswer as error:
        return str(error), []
    if failure := _failure(answer):
        return failure, []
    remarks = [Remark("resolver", Health.OK, f"{address} answers")]
    try:
        tcp_failure = _failure(await server.ask_over_tcp(question))
    except NoAnswer:
        tcp_failure = "it does not answer"
    if tcp_failure:
        text = f"{address}: over TCP, {tcp_failure}, so large answers are lost"
        remarks.append(Remark("resolver", Health.WARNING, text, "open TCP port 53 to it"))
    if not answer.is_validated:
        text = f"{address} does not validate DNSSEC"
        hint = "`dkimctl check-dns` then does not see signatures that have expired"
        remarks.append(Remark("resolver", Health.NOTE, text, hint))
    return "", remarks


async def find_zone_of(domain: str, nameservers: Sequence[Address]) -> Remark:
    """Whether the resolvers find the zone of a registered domain."""
    name = printable(domain)
    try:
        zone = await find_zone(domain, RecursiveResolver(nameservers, 1))
    except NoAnswer as error:
        return Remark(
            "resolver", Health.WRONG, f"no zone of {name} is found: {error}", _RESOLVER_HINT
        )
    if zone is None:
        hint = "check that the domain is registered and delegated"
        return Remark("resolver", Health.WARNING, f"DNS has no zone of {name}", hint)
    return Remark("resolver", Health.OK, f"{name} is in the zone {printable(zone)}")


def _failure(answer: Answer) -> str:
    return "" if answer.rcode in USEFUL else f"it answers {rcode_text(answer.rcode)}"


def check_resolver(session: Session) -> Iterator[Remark]:
    domain = None
    with suppress(UsageError):  # what is wrong with the account or the ledger is said elsewhere
        if not session.profile.is_sandbox:  # where domains may be made up
            domain = next(
                (registration.key.sign_domain for registration in _registered(session, 1)), None
            )
    yield from resolver_findings(system_nameservers(), domain)


def resolver_findings(nameservers: Sequence[Address], domain: str | None) -> Iterator[Remark]:
    """What each resolver answers, and whether they find the zone of a domain."""
    reports = [(address, *asyncio.run(try_resolver(address))) for address in nameservers]
    works = any(not failure for _, failure, _ in reports)
    for address, failure, remarks in reports:
        if failure:
            state = Health.WARNING if works else Health.WRONG
            yield Remark("resolver", state, f"{address}: {failure}", _RESOLVER_HINT)
        yield from remarks
    if works and domain is not None:
        yield asyncio.run(find_zone_of(domain, nameservers))


def check_ipv6(_session: Session) -> Iterator[Remark]:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            # A root server (F): connecting a UDP socket to it sends nothing, but needs a route.
            sock.connect(("2001:500:2f::f", 53))
    except OSError:
        text = "there is no route: name servers that have only IPv6 addresses cannot be asked"
        yield Remark("IPv6", Health.NOTE, text)
    else:
        yield Remark("IPv6", Health.OK, "there is a route")


def check_targets(session: Session) -> Iterator[Remark]:
    """What `publish --check-access` tries, of some registrations."""
    if not session.has_dns_targets:
        yield Remark("DNS targets", Health.OK, "none: DNS is changed by hand")
        return
    targets = open_targets(session.config, session.profile.name, session.secrets)
    registrations = _registered(session, 20)  # registrations whose zones are tried
    report = check_access(registrations, targets, tries_named=True)
    for zone in report.zones:
        access, where = zone.access, zone.target
        if zone.zone:
            where = f"{printable(zone.target)}, zone {printable(zone.zone)}"
        known = (access.readable, access.writable)
        if all(known):
            yield Remark("DNS targets", Health.OK, f"{where}: can be read and written")
        else:
            reason = f": {access.reason}" if access.reason else ""
            state = Health.WRONG if False in known else Health.UNKNOWN
            yield Remark("DNS targets", state, f"{where}{reason}", access.hint)
    if report.uncovered:
        names = few([registration.sign_domain for registration in report.uncovered])
        hint = "add their zones to `dns` in the config file"
        yield Remark("DNS targets", Health.WARNING, f"no target has the zone of {names}", hint)


def _registered(session: Session, most: int) -> list[Registration]:
    """Some registrations whose records may be published."""
    with open_ledger(session) as ledger:
        signing = (registration for registration in ledger.ours() if registration.signs)
        sound = (
            registration
            for registration in signing
            if publishable(verified(registration, Outcome.EXISTS))
        )
        return list(itertools.islice(sound, most))
