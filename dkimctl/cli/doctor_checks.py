"""The checks of `doctor`, each a function that returns findings; doctor_dns.py has those of DNS."""

from __future__ import annotations

import operator
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from importlib.util import find_spec
from typing import Any, NamedTuple

from dkimctl import __version__
from dkimctl.cli.commands.login import TEST_PATH, strange_answer
from dkimctl.cli.report import problem_lines
from dkimctl.cli.sandbox import INSTALL, is_installed
from dkimctl.cli.session import Session
from dkimctl.credentials.sources import IN_ENVIRONMENT
from dkimctl.errors import DkimctlError, InputError, LedgerError, TokenRejected
from dkimctl.files import path_fault
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import named
from dkimctl.settings.config import webhook_url
from dkimctl.settings.profile import require_account, require_ledger_account
from dkimctl.settings.values import parse_reference
from dkimctl.text import counted, few, format_duration

_OLDEST_PYTHON = (3, 11)
_REQUIREMENT = r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;\s*(.*))?"
_BOUND = r"(<=|>=|<|>|==)\s*([0-9.]+)"
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "==": operator.eq,
}  # fmt: skip
# A start date is a matter of days; but a signed DNS update is refused if clocks differ by more
# than five minutes (RFC 8945 section 10).
_NOTE_SECONDS, _WRONG_SECONDS = 30, 300


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
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("dkimctl") or []
    except PackageNotFoundError:
        yield Remark("libraries", Health.UNKNOWN, "dkimctl is not installed as a package")
        return
    requirements = [*filter(None, map(parse_requirement, lines))]
    installed = {
        requirement.name: _installed_version(requirement.name) for requirement in requirements
    }
    problems = [*library_problems(requirements, installed)]
    yield from problems
    if not problems:
        count = sum(version is not None for version in installed.values())
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


def _installed_version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


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
    if seconds > _WRONG_SECONDS:
        return Remark("clock", Health.WRONG, text, hint)
    if seconds > _NOTE_SECONDS:
        return Remark("clock", Health.NOTE, text, hint)
    return Remark("clock", Health.OK, text)


def _try_url(session: Session, check: str, url: str) -> tuple[Remark, float | None]:
    """Whether something answers there, and the time that it says it is."""
    from dkimctl.client.http import HttpRequest

    with session.open_http(url, longest=10.0) as http:
        response = http.send(HttpRequest("GET", url, None))
    base = url.removesuffix(TEST_PATH).removesuffix("/oauth2/token")
    if strange := strange_answer(response):
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
    from dkimctl.cli.selected import read_selection
    from dkimctl.rotation.life import read_keys

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
