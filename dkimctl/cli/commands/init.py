"""`dkimctl init`: write a first config file and a first spec file."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from dkimctl.addresses import parse_server
from dkimctl.cli import next_steps, terminal
from dkimctl.cli.commands.login import QUESTIONS
from dkimctl.cli.commands.schema import Schema, modeline
from dkimctl.cli.next_steps import SPEC_FILE
from dkimctl.cli.options import ACCOUNT, App, examples, read_output
from dkimctl.cli.report import Reporter
from dkimctl.cli.sandbox import INSTALL, is_installed
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import ExitCode, OutputError, UsageError, naming
from dkimctl.files import create_files, directory_fault, prepare_directory, refuse
from dkimctl.formats.pages import environment
from dkimctl.names import parse_domain
from dkimctl.publishing.tsig_key import read_tsig_key
from dkimctl.settings.config import DnsTarget, check_class
from dkimctl.settings.profile import DEFAULT_PROFILE, option, variable
from dkimctl.settings.values import CHECKS, SANDBOX, Check, file_path, profile_name
from dkimctl.strict_yaml import yaml_scalar
from dkimctl.text import listed, printable

app = App()

_dns_option = functools.partial(typer.Option, rich_help_panel="How DNS is changed")
_NO_FILE = "none"


class DnsMethod(StrEnum):
    """How DNS is changed."""

    HAND = "hand"
    RFC2136 = "rfc2136"
    OCTODNS = "octodns"


class _DnsAnswers(NamedTuple):
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


def _read_file_name(text: str) -> Path:
    """What --output names. Raises UsageError for stdout: several files are written."""
    file = read_output(text)
    if file is None:
        raise UsageError("in --output: init writes to files only", hint="write --output FILE")
    return file


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
        _dns_option(metavar="METHOD", help=f"{', '.join(DnsMethod)} (default: hand)."),
    ] = None,
    server: Annotated[
        str | None,
        _dns_option(metavar="HOST[:PORT]", help="The primary server, for dynamic updates."),
    ] = None,
    key_file: Annotated[
        str | None, _dns_option(metavar="FILE", help="File of the TSIG key that signs them.")
    ] = None,
    class_name: Annotated[
        str | None,
        _dns_option("--class", metavar="CLASS", help="Class of the octoDNS provider."),
    ] = None,
) -> int:
    """Write a first config file and a first spec file.

    Asks for what no option says: profile, URLs, client ID, domains, and how DNS is changed. The
    config file, whose place --config chooses, has a comment for every key. Secrets are not asked
    for: `dkimctl login` does. Nothing is overwritten. With --sandbox, only the spec file is
    written.
    """
    session = open_session(ctx)
    answers = _DnsAnswers(dns, server, key_file, class_name)
    is_sandbox = bool(session.flags["sandbox"]) or _given_value(session, "profile") == SANDBOX
    config = None if no_config or is_sandbox else session.config_file
    if config is None and any(answers):
        name = "--sandbox" if is_sandbox else "--no-config"
        raise UsageError(f"{name} writes nothing about DNS", hint="leave out one of the two")
    _require_places(session, config, output)
    if not terminal.is_interactive():
        # The options that would have to answer what nothing else does.
        needed = {
            option(key).name: config is not None and _given_value(session, key) is None
            for key in QUESTIONS
        } | {
            "--domain": domain is None,
            "--server": answers.method is DnsMethod.RFC2136 and answers.server is None,
            "--class": answers.method is DnsMethod.OCTODNS and answers.class_name is None,
        }
        if missing := [name for name, is_missing in needed.items() if is_missing]:
            raise _no_terminal(missing)
    with terminal.interruptible("nothing was written"):
        _write(session, config, output, domain, answers)
    _after_init(session.reporter, config, output, is_sandbox=is_sandbox)
    return ExitCode.OK


def _require_places(session: Session, config: Path | None, output: Path) -> None:
    """Raise UsageError if a file exists already, also as a link, or cannot be written there."""
    files = [file for file in (config, output) if file is not None]
    if existing := [printable(str(file)) for file in files if os.path.lexists(file)]:
        verb = "exists" if len(existing) == 1 else "exist"
        hint = "edit it, or name other files with --config and --output"
        if config is not None and not output.exists():
            hint = "`dkimctl init --no-config` writes only the spec file; --config names another "
            hint += "config"
        raise UsageError(f"{listed(existing)} already {verb}; nothing was written", hint=hint)
    named = [(output, "--output")]
    if config is not None and not _is_default_place(session):
        named.append((config, "--config"))
    for file, name in named:
        if not file.parent.is_dir():
            raise UsageError(
                f"the directory {printable(str(file.parent))} does not exist",
                hint=f"create it, or name another file with {name}",
            )


def _is_default_place(session: Session) -> bool:
    return not (session.flags["config"] or _given_value(session, "config"))


def _write(
    session: Session, config: Path | None, output: Path, given: list[str] | None, dns: _DnsAnswers
) -> None:
    """Ask for what is missing, and write all files or none. Raises DkimctlError."""
    texts = {}
    if config is not None:
        texts[config] = modeline(Schema.CONFIG) + first_config(_read_account(session, dns))
    label = "Domains (such as example.com mail.example.com)"
    words = [None] if given is None else given
    domains = [
        domain
        for word in words
        for domain in _answer(session, label, "--domain", _parse_domains, word)
    ]
    specs = first_specs(list(dict.fromkeys(domains)), date.today())
    texts[output] = modeline(Schema.SPECS) + specs
    if config is not None and _is_default_place(session):
        hint = "name another file with --config FILE"
        try:
            prepare_directory(config.parent)  # for the user alone
            fault = directory_fault(config.parent)
        except OSError as error:
            raise UsageError(
                f"cannot create {printable(str(config.parent))}: {error.strerror or error}",
                hint=hint,
            ) from None
        refuse(fault, UsageError, hint=hint)
    try:
        create_files(texts, private=[] if config is None else [config])
    except OSError as error:
        files = " and ".join(printable(str(file)) for file in texts)
        raise OutputError(
            f"cannot write {files}: {error.strerror or 'a file is there by now'}",
            hint="check the permissions and the space there; nothing was written",
        ) from None


def _read_account(session: Session, dns: _DnsAnswers) -> FirstConfig:
    """What the first config file says, without the client secret. Raises UsageError."""
    name = _given_value(session, "profile")
    if name is None and not terminal.is_interactive():
        name = DEFAULT_PROFILE
    name = _answer(session, "Profile", "--profile", profile_name, name, default=DEFAULT_PROFILE)
    values = {
        key: _answer(
            session,
            f"{label} (such as {example})",
            option(key).name,
            CHECKS[key],
            _given_value(session, key),
        )
        for key, (label, example) in QUESTIONS.items()
    }
    store = session.flags["credential_store"]
    if store is not None:
        with naming("--credential-store"):
            CHECKS["credential_store"](store)
    target = _read_target(session, dns)
    return FirstConfig(str(name), **values, credential_store=store, target=target)


def _read_target(session: Session, dns: _DnsAnswers) -> DnsTarget | None:
    """The first DNS target; None: by hand. Raises UsageError."""
    method = dns.method
    if method is None:
        label = "How DNS is changed: hand, rfc2136 (dynamic updates) or octodns"
        given = None if terminal.is_interactive() else DnsMethod.HAND
        method = _answer(session, label, "--dns", _parse_method, given, default=DnsMethod.HAND)
    options = {
        "--server": (DnsMethod.RFC2136, dns.server),
        "--key-file": (DnsMethod.RFC2136, dns.key_file),
        "--class": (DnsMethod.OCTODNS, dns.class_name),
    }
    for name, (of_method, value) in options.items():
        if value is not None and of_method is not method:
            raise UsageError(f"{name} has no effect with --dns {method}", hint=f"remove {name}")
    if method is DnsMethod.RFC2136:
        label = "Primary server (such as 192.0.2.1)"
        server = _answer(session, label, "--server", lambda it: str(parse_server(it)), dns.server)
        key_file = dns.key_file
        if not key_file and not terminal.is_interactive():
            key_file = _NO_FILE
        key_file = _answer(
            session, "TSIG key file", "--key-file", _parse_key_file, key_file, default=_NO_FILE
        )
        return DnsTarget(method, server=server, key_file=str(key_file))
    if method is DnsMethod.OCTODNS:
        label = "Class of the octoDNS provider (such as octodns_route53.Route53Provider)"
        class_name = _answer(session, label, "--class", check_class, dns.class_name)
        return DnsTarget(method, class_name=class_name)
    return None


def _given_value(session: Session, key: str) -> str | None:
    """What an option or the environment says; None if neither does."""
    value: str | None = session.flags[key]
    return value if value is not None else os.environ.get(variable(key).name) or None


def _answer(
    session: Session, label: str, name: str, check: Check, given: str | None, default: str = ""
) -> Any:
    """The value of what was given, or of an answer; the option `name` gives it. Raises UsageError.

    `check` converts a valid answer.
    """
    if given is not None:
        with naming(name):
            return check(given)
    if not terminal.is_interactive():
        raise _no_terminal([name])
    short = re.split(r" \(|:", label, maxsplit=1)[0]
    try:
        text = terminal.ask(
            label,
            check,
            lambda error: session.reporter.warn(f"{short}: {error.message}", hint=error.hint),
            default=default,
        )
    except UsageError as error:
        hint = f"give it as an option: {name}"
        raise UsageError(f"{short}: {error.message}", hint=hint) from None
    return check(text)


def _no_terminal(options: Sequence[str]) -> UsageError:
    words = " and ".join(filter(None, (", ".join(options[:-1]), options[-1])))
    return UsageError(
        f"there is no terminal to ask on, and no {words}",
        hint=f"give {words}, or run it on a terminal",
    )


def _parse_method(text: str) -> DnsMethod:
    for method in DnsMethod:
        if text.lower() == method:
            return method
    raise UsageError("unknown method", hint="write hand, rfc2136 or octodns")


def _parse_key_file(text: str) -> str:
    """The absolute path of a key that can be used; "" for none."""
    if text == _NO_FILE:
        return ""
    path = str(Path(file_path(text)).absolute())
    if re.search("[\ud800-\udfff]", path):  # a byte that is not UTF-8, as the config file is
        raise UsageError("the file name is not UTF-8", hint="rename the file")
    read_tsig_key(path)
    return path


def _parse_domains(text: str) -> list[str]:
    domains = [parse_domain(word) for word in re.split(r"[\s,]+", text.strip(" ,\t\r\n")) if word]
    if not domains:
        raise UsageError("no domain is named", hint="write a domain, such as example.com")
    return domains


def _after_init(reporter: Reporter, config: Path | None, specs: Path, *, is_sandbox: bool) -> None:
    """Say which files are there now, and name the commands that come next."""
    written = [str(file) for file in (config, specs) if file is not None]
    reporter.note(f"dkimctl: wrote {' and '.join(written)}")
    if is_sandbox and not is_installed():
        reporter.note(f"dkimctl: next, for the embedded service: `{INSTALL}`")
    steps = [
        next_steps.command("register --dry-run", [specs]),
        next_steps.command("register", [specs]),
    ]
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
    # A week: longer than the time in which a key without a record counts as urgent. With the offset
    # that the local zone has then.
    start = datetime.combine(today + timedelta(days=7), time()).astimezone()
    return _filled("domains.yaml", domains=domains, start_date=start.isoformat(timespec="minutes"))


def _filled(template: str, **values: object) -> str:
    templates = environment("dkimctl.cli")
    templates.filters["scalar"] = yaml_scalar
    templates.filters["commented"] = lambda text: "".join(
        f"# {line}" for line in text.splitlines(keepends=True)
    )
    return f"{templates.get_template(template).render(values)}\n"
