"""`dkimctl init`: write a first config file and a first spec file."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import typer

from dkimctl.cli import prompt
from dkimctl.cli.commands.schema import Schema, modeline
from dkimctl.cli.init.account import given_value, missing_options, read_account, read_domains
from dkimctl.cli.init.dns import DnsAnswers
from dkimctl.cli.init.files import (
    prepare_config_directory,
    require_absent,
    require_directory,
    start_of_signing,
    write_files,
)
from dkimctl.cli.init.questions import no_terminal
from dkimctl.cli.options import ACCOUNT, App, examples
from dkimctl.cli.options.init import (
    ClassOption,
    DnsOption,
    DomainOption,
    KeyFileOption,
    NoConfigOption,
    ServerOption,
    SpecFileOption,
)
from dkimctl.cli.output.first_steps import after_init
from dkimctl.cli.output.next_steps import SPEC_FILE
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import ExitCode, UsageError
from dkimctl.settings.values import SANDBOX

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
    domain: DomainOption = None,
    output: SpecFileOption = Path(SPEC_FILE),
    no_config: NoConfigOption = False,
    dns: DnsOption = None,
    server: ServerOption = None,
    key_file: KeyFileOption = None,
    class_name: ClassOption = None,
) -> int:
    """Write a first config file and a first spec file.

    Asks for what no option says: profile, URLs, client ID, domains, and how DNS is changed. The
    config file, whose place --config chooses, has a comment for every key. Secrets are not asked
    for: `dkimctl login` does. Nothing is overwritten. With --sandbox, only the spec file is
    written.
    """
    session = open_session(ctx)
    answers = DnsAnswers(dns, server, key_file, class_name)
    is_sandbox = bool(session.flags["sandbox"]) or given_value(session, "profile") == SANDBOX
    config = None if no_config or is_sandbox else session.config_file
    if config is None and any(answers):
        option = "--sandbox" if is_sandbox else "--no-config"
        raise UsageError(f"{option} writes nothing about DNS", hint="leave out one of the two")
    _require_places(session, config, output)
    missing = missing_options(session, domain, answers, needs_account=config is not None)
    if missing and not prompt.is_interactive():
        raise no_terminal(missing)
    with prompt.interruptible("nothing was written"):
        _write(session, config, output, domain, answers)
    after_init(session.reporter, config, output, is_sandbox=is_sandbox)
    return ExitCode.OK


def _require_places(session: Session, config: Path | None, output: Path) -> None:
    """Raise UsageError if a file exists already, or cannot be written there."""
    hint = "edit it, or name other files with --config and --output"
    if config is not None and not output.exists():
        hint = "`dkimctl init --no-config` writes only the spec file; --config names another config"
    require_absent(*([] if config is None else [config]), output, hint=hint)
    require_directory(output, "--output")
    if config is not None and not _is_default_place(session):
        require_directory(config, "--config")


def _is_default_place(session: Session) -> bool:
    return not (session.flags["config"] or given_value(session, "config"))


def _write(
    session: Session,
    config: Path | None,
    output: Path,
    domain: list[str] | None,
    answers: DnsAnswers,
) -> None:
    from dkimctl.settings.first_config import first_config
    from dkimctl.specs.first_file import first_specs

    texts = {}
    if config is not None:
        texts[config] = modeline(Schema.CONFIG) + first_config(read_account(session, answers))
    domains = read_domains(session, domain)
    texts[output] = modeline(Schema.SPECS) + first_specs(domains, start_of_signing(date.today()))
    if config is not None and _is_default_place(session):
        prepare_config_directory(config)
    write_files(texts, config=config)
