"""`dkimctl init`: write a first config file and a first spec file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from dkimctl.cli import terminal
from dkimctl.cli.commands.schema import Schema, modeline
from dkimctl.cli.embedded_service import INSTALL, is_installed
from dkimctl.cli.options import ACCOUNT, App, examples, read_output
from dkimctl.cli.output import next_steps
from dkimctl.cli.output.next_steps import SPEC_FILE
from dkimctl.cli.output.streams import Reporter
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import ExitCode, OutputError, UsageError, naming
from dkimctl.render.html.page import environment
from dkimctl.settings.config import DnsTarget, check_class
from dkimctl.settings.profile import DEFAULT_PROFILE, option, variable
from dkimctl.settings.values import CHECKS, SANDBOX, Check, file_path, profile_name
from dkimctl.strict_yaml import yaml_scalar
from dkimctl.system.directories import prepare_directory
from dkimctl.system.files import create_files
from dkimctl.system.ownership import directory_fault, refuse
from dkimctl.text.addresses import parse_server
from dkimctl.text.escaping import printable
from dkimctl.text.grouping import listed

_DNS_PANEL = "How DNS is changed"
_ACCOUNT = {
    "auth_url": "Auth URL (such as https://auth.example.com)",
    "base_url": "Base URL (such as https://api.example.com)",
    "client_id": "Client ID (such as 0a1b2c3d)",
}
_DOMAINS = "Domains (such as example.com mail.example.com)"
_NO_FILE = "none"
_METHOD = "How DNS is changed: hand, rfc2136 (dynamic updates) or octodns"
_SERVER = "Primary server (such as 192.0.2.1)"
_CLASS = "Class of the octoDNS provider (such as octodns_route53.Route53Provider)"
# Until signing starts: longer than the time in which a key without a record counts as urgent.
_LEAD = timedelta(days=7)


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


def _read_target(reporter: Reporter, dns: DnsAnswers) -> DnsTarget | None:
    """The first DNS target; None: by hand. Raises UsageError."""
    method = dns.method
    if method is None:
        question = Question(_METHOD, "--dns", _parse_method, default=DnsMethod.HAND)
        given = None if terminal.is_interactive() else DnsMethod.HAND
        method = _answer(reporter, question, given)
    _refuse_others(dns, method)
    if method is DnsMethod.RFC2136:
        server = Question(_SERVER, "--server", _parse_server)
        key = Question("TSIG key file", "--key-file", _parse_key_file, default=_NO_FILE)
        return DnsTarget(
            method,
            server=_answer(reporter, server, dns.server),
            key_file=_answer(reporter, key, _key_file_given(dns)),
        )
    if method is DnsMethod.OCTODNS:
        question = Question(_CLASS, "--class", check_class)
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
    return dns.key_file if dns.key_file or terminal.is_interactive() else _NO_FILE


def _parse_method(text: str) -> DnsMethod:
    for method in DnsMethod:
        if text.lower() == method:
            return method
    raise UsageError("unknown method", hint="write hand, rfc2136 or octodns")


def _parse_server(text: str) -> str:
    return str(parse_server(text))


def _parse_key_file(text: str) -> str:
    """The absolute path of a key that can be used; "" for none."""
    from dkimctl.publishing.tsig_key import read_tsig_key

    if text == _NO_FILE:
        return ""
    path = str(Path(file_path(text)).absolute())
    if re.search("[\ud800-\udfff]", path):  # a byte that is not UTF-8, as the config file is
        raise UsageError("the file name is not UTF-8", hint="rename the file")
    read_tsig_key(path)
    return path


class Question(NamedTuple):
    """`option` is the one that answers it; `check` converts a valid answer."""

    label: str
    option: str
    check: Check
    default: str = ""


def _answer(reporter: Reporter, question: Question, given: str | None) -> Any:
    """The value of what was given, or of an answer. Raises UsageError."""
    if given is not None:
        with naming(question.option):
            return question.check(given)
    if not terminal.is_interactive():
        raise _no_terminal([question.option])
    label = re.split(r" \(|:", question.label, maxsplit=1)[0]
    try:
        text = terminal.ask(
            question.label,
            question.check,
            lambda error: reporter.warn(f"{label}: {error.message}", hint=error.hint),
            default=question.default,
        )
    except UsageError as error:
        hint = f"give it as an option: {question.option}"
        raise UsageError(f"{label}: {error.message}", hint=hint) from None
    return question.check(text)


def _no_terminal(options: Sequence[str]) -> UsageError:
    words = " and ".join(filter(None, (", ".join(options[:-1]), options[-1])))
    return UsageError(
        f"there is no terminal to ask on, and no {words}",
        hint=f"give {words}, or run it on a terminal",
    )


def _read_file_name(text: str) -> Path:
    """What --output names. Raises UsageError for stdout: several files are written."""
    file = read_output(text)
    if file is None:
        raise UsageError("in --output: init writes to files only", hint="write --output FILE")
    return file


app = App()


@app.command(
    epilog=examples(
        "dkimctl init",
        "dkimctl init --sandbox --domain example.com",
        "dkimctl init --no-config --domain example.com --output more.yaml",
        "dkimctl init --dns rfc2136 --server 192.0.2.1 --key-file tsig.key",
    ),
    shows=ACCOUNT,
)
def init(
    ctx: typer.Context,
    domain: Annotated[
        list[str] | None, typer.Option(metavar="DOMAIN", help="A signing domain; repeatable.")
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", parser=_read_file_name, help="Spec file to write."
        ),
    ] = Path(SPEC_FILE),
    no_config: Annotated[
        bool, typer.Option("--no-config", help="Write only the spec file.")
    ] = False,
    dns: Annotated[
        DnsMethod | None,
        typer.Option(
            metavar="METHOD",
            help=f"{', '.join(DnsMethod)} (default: hand).",
            rich_help_panel=_DNS_PANEL,
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="HOST[:PORT]",
            help="The primary server, for dynamic updates.",
            rich_help_panel=_DNS_PANEL,
        ),
    ] = None,
    key_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File of the TSIG key that signs them.",
            rich_help_panel=_DNS_PANEL,
        ),
    ] = None,
    class_name: Annotated[
        str | None,
        typer.Option(
            "--class",
            metavar="CLASS",
            help="Class of the octoDNS provider.",
            rich_help_panel=_DNS_PANEL,
        ),
    ] = None,
) -> int:
    """Write a first config file and a first spec file.

    Asks for what no option says: profile, URLs, client ID, domains, and how DNS is changed. The
    config file, whose place --config chooses, has a comment for every key. Secrets are not asked
    for: `dkimctl login` does. Nothing is overwritten. With --sandbox, only the spec file is
    written.
    """
    session = open_session(ctx)
    answers = DnsAnswers(dns, server, key_file, class_name)
    is_sandbox = bool(session.flags["sandbox"]) or _given_value(session, "profile") == SANDBOX
    config = None if no_config or is_sandbox else session.config_file
    if config is None and any(answers):
        option = "--sandbox" if is_sandbox else "--no-config"
        raise UsageError(f"{option} writes nothing about DNS", hint="leave out one of the two")
    _require_places(session, config, output)
    missing = _missing_options(session, domain, answers, needs_account=config is not None)
    if missing and not terminal.is_interactive():
        raise _no_terminal(missing)
    with terminal.interruptible("nothing was written"):
        _write(session, config, output, domain, answers)
    _after_init(session.reporter, config, output, is_sandbox=is_sandbox)
    return ExitCode.OK


def _require_places(session: Session, config: Path | None, output: Path) -> None:
    """Raise UsageError if a file exists already, or cannot be written there."""
    hint = "edit it, or name other files with --config and --output"
    if config is not None and not output.exists():
        hint = "`dkimctl init --no-config` writes only the spec file; --config names another config"
    _require_absent(*([] if config is None else [config]), output, hint=hint)
    _require_directory(output, "--output")
    if config is not None and not _is_default_place(session):
        _require_directory(config, "--config")


def _is_default_place(session: Session) -> bool:
    return not (session.flags["config"] or _given_value(session, "config"))


def _write(
    session: Session,
    config: Path | None,
    output: Path,
    domain: list[str] | None,
    answers: DnsAnswers,
) -> None:
    texts = {}
    if config is not None:
        texts[config] = modeline(Schema.CONFIG) + first_config(_read_account(session, answers))
    domains = _read_domains(session, domain)
    texts[output] = modeline(Schema.SPECS) + first_specs(domains, date.today())
    if config is not None and _is_default_place(session):
        _prepare_config_directory(config)
    _write_files(texts, config=config)


def _read_domains(session: Session, given: Sequence[str] | None) -> list[str]:
    """The signing domains of the first spec file, as A-labels. Raises UsageError."""
    question = Question(_DOMAINS, "--domain", _parse_domains)
    if given is None:
        named: list[str] = _answer(session.reporter, question, None)
    else:
        named = [one for word in given for one in _answer(session.reporter, question, word)]
    return list(dict.fromkeys(named))


def _read_account(session: Session, dns: DnsAnswers) -> FirstConfig:
    """What the first config file says, without the client secret. Raises UsageError."""
    reporter = session.reporter
    name = _read_name(session)
    values = {}
    for key, label in _ACCOUNT.items():
        question = Question(label, option(key).name, CHECKS[key])
        values[key] = _answer(reporter, question, _given_value(session, key))
    store = session.flags["credential_store"]
    if store is not None:
        with naming("--credential-store"):
            CHECKS["credential_store"](store)
    return FirstConfig(name, **values, credential_store=store, target=_read_target(reporter, dns))


def _missing_options(
    session: Session, domains: Sequence[str] | None, dns: DnsAnswers, *, needs_account: bool
) -> list[str]:
    """The options that would have to answer what nothing else does."""
    keys = [key for key in _ACCOUNT if needs_account and _given_value(session, key) is None]
    domain = ["--domain"] if domains is None else []
    return [*(option(key).name for key in keys), *domain, *dns.missing()]


def _given_value(session: Session, key: str) -> str | None:
    """What an option or the environment says; None if neither does."""
    value: str | None = session.flags[key]
    return value if value is not None else os.environ.get(variable(key).name) or None


def _read_name(session: Session) -> str:
    question = Question("Profile", "--profile", profile_name, default=DEFAULT_PROFILE)
    given = _given_value(session, "profile")
    if given is None and not terminal.is_interactive():
        given = DEFAULT_PROFILE
    return str(_answer(session.reporter, question, given))


def _parse_domains(text: str) -> list[str]:
    from dkimctl.specs.names import parse_domain

    domains = [parse_domain(word) for word in re.split(r"[\s,]+", text.strip(" ,\t\r\n")) if word]
    if not domains:
        raise UsageError("no domain is named", hint="write a domain, such as example.com")
    return domains


def _require_absent(*files: Path, hint: str) -> None:
    """Raise UsageError that names the files that exist, also as links."""
    if existing := [printable(str(file)) for file in files if os.path.lexists(file)]:
        verb = "exists" if len(existing) == 1 else "exist"
        raise UsageError(f"{listed(existing)} already {verb}; nothing was written", hint=hint)


def _require_directory(file: Path, option: str) -> None:
    """Raise UsageError unless the directory of a file that the user names exists."""
    if not file.parent.is_dir():
        raise UsageError(
            f"the directory {printable(str(file.parent))} does not exist",
            hint=f"create it, or name another file with {option}",
        )


def _prepare_config_directory(file: Path) -> None:
    """Create the directory of the config file in its default place, for the user alone.

    Raises UsageError if other users could change what is in it.
    """
    try:
        prepare_directory(file.parent)
        fault = directory_fault(file.parent)
    except OSError as error:
        raise UsageError(
            f"cannot create {printable(str(file.parent))}: {error.strerror or error}",
            hint="name another file with --config FILE",
        ) from None
    refuse(fault, UsageError, hint="name another file with --config FILE")


def _write_files(texts: Mapping[Path, str], *, config: Path | None) -> None:
    """Write all files or none; only the user can read the `config`. Raises DkimctlError."""
    try:
        create_files(texts, private=[] if config is None else [config])
    except OSError as error:
        files = " and ".join(printable(str(file)) for file in texts)
        raise OutputError(
            f"cannot write {files}: {error.strerror or 'a file is there by now'}",
            hint="check the permissions and the space there; nothing was written",
        ) from None


def _after_init(reporter: Reporter, config: Path | None, specs: Path, *, is_sandbox: bool) -> None:
    """Say which files are there now, and name the commands that come next."""
    written = [str(file) for file in (config, specs) if file is not None]
    reporter.note(f"dkimctl: wrote {' and '.join(written)}")
    if is_sandbox and not is_installed():
        reporter.note(f"dkimctl: next, for the embedded service: `{INSTALL}`")
    steps = [next_steps.plan_file(specs), next_steps.register_file(specs)]
    if config is not None and not os.environ.get("DKIMCTL_CLIENT_SECRET"):
        steps.insert(0, "`dkimctl login`")
    reporter.note(f"dkimctl: next: {', then '.join(steps)}")


class FirstConfig(NamedTuple):
    """What the user has answered. Without a `target`, DNS is changed by hand."""

    profile: str
    auth_url: str
    base_url: str
    client_id: str
    credential_store: str | None = None
    target: DnsTarget | None = None


def first_config(config: FirstConfig) -> str:
    """The text of a config file with these answers, and every other key in a comment."""
    # Named only if it is another: hints then name it in each command.
    used = None if config.profile == DEFAULT_PROFILE else config.profile
    return _filled("config.yaml", default_profile=used, **config._asdict())


def first_specs(domains: Sequence[str], today: date) -> str:
    """The text of a spec file for these domains; signing starts at midnight in a week."""
    # With the offset that the local zone has then.
    start = datetime.combine(today + _LEAD, time()).astimezone()
    return _filled("domains.yaml", domains=domains, start_date=start.isoformat(timespec="minutes"))


def _filled(template: str, **values: object) -> str:
    templates = environment("dkimctl.cli")
    templates.filters["scalar"] = yaml_scalar
    templates.filters["commented"] = lambda text: "".join(
        f"# {line}" for line in text.splitlines(keepends=True)
    )
    return f"{templates.get_template(template).render(values)}\n"
