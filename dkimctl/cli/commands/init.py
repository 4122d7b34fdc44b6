"""`dkimctl init`: write a first config file and a first spec file."""

import difflib
import functools
import os
import re
from collections.abc import Mapping
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from dkimctl.addresses import parse_server
from dkimctl.cli import next_steps, terminal
from dkimctl.cli.logins import QUESTIONS, answer, no_terminal
from dkimctl.cli.options import App, option, read_new_file, read_output
from dkimctl.cli.sandbox import INSTALL, is_installed
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import ExitCode, OutputError, UsageError, naming, os_errors_as
from dkimctl.files import create_files, directory_fault, prepare_directory, refuse
from dkimctl.formats.pages import environment
from dkimctl.handoff.providers import octodns_providers
from dkimctl.ledger.ledger import Ledger
from dkimctl.names import parse_domain
from dkimctl.publishing.tsig_key import read_tsig_key
from dkimctl.settings import profile as profiles
from dkimctl.settings.config import DnsTarget, check_class
from dkimctl.settings.values import (
    CHECKS,
    SANDBOX,
    file_path,
    is_reference,
    parse_value,
    profile_name,
)
from dkimctl.specs.entries import first_defaults
from dkimctl.strict_yaml import yaml_scalar
from dkimctl.text import install_beside, listed, printable, quoted

app = App()

_dns_option = functools.partial(option, rich_help_panel="How DNS is changed")
_NO_FILE = "none"
# The first line, by which yaml-language-server finds the schema of a file.
_SCHEMAS = "https://raw.githubusercontent.com/dkimctl/dkimctl/main/dkimctl"
_MODELINE = f"# yaml-language-server: $schema={_SCHEMAS}/{{}}/schema.json\n"
# How DNS is changed, beside the providers that are known by name.
DnsMethod = StrEnum("DnsMethod", ["HAND", "RFC2136", "OCTODNS"])
# The options about DNS: the method that each belongs to.
_METHODS = {
    "--server": DnsMethod.RFC2136,
    "--key-file": DnsMethod.RFC2136,
    "--class": DnsMethod.OCTODNS,
}


@app.command(
    "dkimctl init",
    "dkimctl init --sandbox --domain example.com",
    "dkimctl init --domain example.com --output more.yaml",
    "dkimctl init --dns rfc2136 --server 192.0.2.1 --key-file tsig.key",
    "dkimctl init --dns cloudflare",
)
def init(
    ctx: typer.Context,
    domain: Annotated[list[str] | None, option("--domain DOMAIN",
        "A signing domain; repeatable.")] = None,
    output: Annotated[Path, option("--output -o FILE",
        "Spec file to write.", parser=read_output)] = Path(next_steps.SPEC_FILE),
    dns: Annotated[str | None, _dns_option("--dns METHOD",
        "hand (default), rfc2136, a provider, such as cloudflare, or octodns for any other.",
        autocompletion=lambda: [*DnsMethod, *octodns_providers()])] = None,
    server: Annotated[str | None, _dns_option("--server HOST[:PORT]",
        "The primary server, for dynamic updates.")] = None,
    key_file: Annotated[str | None, _dns_option("--key-file FILE",
        "File of the TSIG key that signs them.")] = None,
    class_name: Annotated[str | None, _dns_option("--class CLASS",
        "Class of the octoDNS provider.")] = None,
) -> int:  # fmt: skip
    """Write a first config file and a first spec file.

    Asks for what neither options nor a login give: profile, URLs, client ID, domains, and how DNS
    is changed. The config file, whose place --config chooses, has a comment for every key. Secrets
    are not asked for: `dkimctl login` does. A file that exists stays as it is. With --sandbox, only
    the spec file is written.
    """
    session = open_session(ctx)
    if not isinstance(output, Path):
        raise UsageError("in --output: init writes to files only", hint="write --output FILE")
    is_sandbox = bool(session.flags["sandbox"]) or _given_value(session, "profile") == SANDBOX
    config = None if is_sandbox else session.config_file
    values = {"--server": server, "--key-file": key_file, "--class": class_name}
    given = {name: value for name, value in values.items() if value is not None}
    files = [file for file in (config, output) if file is not None]
    there = [file for file in files if os.path.lexists(file)]
    if (dns or given) and (is_sandbox or config in there):
        why = "--sandbox writes only a spec file" if is_sandbox else f"{config} is there already"
        hint = "leave it out" if is_sandbox else "write `dns` into it, or name another --config"
        raise UsageError(f"nothing is written about DNS: {why}", hint=hint)
    if domain and output in there:
        hint = "add the domains to it, or name another file with --output"
        raise UsageError(f"--domain has no effect: {output} is there already", hint=hint)
    if dns is not None:
        with naming("--dns"):
            dns = _parse_method(dns)
    elif given:
        dns = _METHODS[next(iter(given))]
    config = None if config in there else config
    if config is not None and _given_value(session, "config"):
        with naming("--config"):
            read_new_file(str(config))
    account = _known_account(session, config)
    if not terminal.is_interactive():
        # The options that would have to answer what nothing else does.
        has_domains = bool(domain) or output in there or _has_domains(session, account)
        asked = {profiles.option(key).name: account[key] for key in QUESTIONS if config is not None}
        asked |= {"--domain": has_domains or None}
        asked |= {"--server": server} if dns == DnsMethod.RFC2136 else {}
        asked |= {"--class": class_name} if dns == DnsMethod.OCTODNS else {}
        if missing := [name for name, value in asked.items() if value is None]:
            raise no_terminal(missing)
    note = session.reporter.note
    for file in there:
        note(f"dkimctl: {file} is there already and stays as it is")
    with terminal.interruptible("nothing was written"):
        texts, answers = {}, account
        if config is not None:
            answers = _read_answers(session, dns, given)
            texts[config] = _MODELINE.format("settings") + first_config(answers)
        has_domains = _has_domains(session, answers)
        if output not in there and (domain or not has_domains):
            label = "Domains (such as example.com mail.example.com)"
            domains = [
                name
                for words in ([None] if domain is None else domain)
                for name in answer(session, label, "--domain", _parse_domains, words)
            ]
            texts[output] = _MODELINE.format("specs") + _filled(
                "domains.yaml", domains=list(dict.fromkeys(domains)), **first_defaults()
            )
        if not texts:
            more = "" if output in there else "; `dkimctl init --domain DOMAIN` writes a spec file"
            note(f"dkimctl: there is nothing to write{more}")
            return ExitCode.NO
        _write(session, config, texts)
    note(f"dkimctl: wrote {' and '.join(map(str, texts))}")
    names = ("register --dry-run", "register") if output in texts or not has_domains else ()
    steps = [next_steps.command(name, [output]) for name in names]
    if answers.get("target") is not None and has_domains:
        steps.insert(0, "`dkimctl publish --check-access`")
    _show_next(session, answers, steps)
    return ExitCode.OK


def _known_account(session: Session, config: Path | None) -> dict[str, Any]:
    """What is known of the account before any question; None for what is not."""
    if config is None:
        known = session.resolve_settings(may_be_new=True).profile
        return {key: getattr(known, key) for key in QUESTIONS}
    name = _given_value(session, "profile") or profiles.read_used_profile(session.state_dir)
    login = session.logins.get(name or profiles.DEFAULT_PROFILE, {})
    given = {key: _given_value(session, key) for key in QUESTIONS}
    return {key: login.get(key) if text is None else text for key, text in given.items()}


def _has_domains(session: Session, account: Mapping[str, Any]) -> bool:
    """Whether the ledger has domains of an account, which may be incomplete."""
    ids = {key: account[key] for key in ("base_url", "client_id")}
    if not all(ids.values()):
        return False
    with Ledger.open_existing(session.ledger_file, **ids) as ledger:
        return bool(ledger.count_domains(**ids))


def _show_next(session: Session, answers: Mapping[str, Any], steps: list[str]) -> None:
    """Say what is missing yet, and which commands come next."""
    note = session.reporter.note
    if session.profile.is_sandbox and not is_installed():
        note(f"dkimctl: next, for the embedded service, in the clone of dkimctl: `{INSTALL}`")
    if not answers.get("has_keyring", True):
        file = session.state_dir / "credentials.json"
        note(
            "dkimctl: this machine has no keyring, so the config file has `credential_store: file`:"
            f" the secret will be in {file}, which only you can read"
        )
    if (target := answers.get("target")) is not None and target.class_name:
        # What the provider still needs: packages, and variables that are not set.
        module = target.class_name.partition(".")[0]
        missing = [each.replace("_", "-") for each in ("octodns", module) if not find_spec(each)]
        texts = [install_beside(*missing)] if missing else []
        references = filter(is_reference, map(str, target.settings.values()))
        names = [text.removeprefix("env/") for text in references]
        if unset := [name for name in names if not os.environ.get(name)]:
            texts.append(f"set {listed(unset)} in the environment")
        if texts:
            note(f"dkimctl: for {target.class_name}: {', and '.join(texts)}")
    if not (session.profile.is_sandbox or session.is_logged_in):
        steps = ["`dkimctl login`", *steps]
    if steps:
        note(f"dkimctl: next: {', then '.join(steps)}")


def first_config(answers: dict[str, Any]) -> str:
    """The text of a config file with these answers, and every other key in a comment."""
    # Named only if it is another: hints then name it in each command.
    used = None if answers["profile"] == profiles.DEFAULT_PROFILE else answers["profile"]
    missing = {"credential_store": None, "has_keyring": True, "target": None}
    return _filled("config.yaml", default_profile=used, **(missing | answers))


def _filled(template: str, **values: object) -> str:
    templates = environment("dkimctl.cli")
    templates.filters["scalar"] = yaml_scalar
    templates.filters["commented"] = lambda text: "".join(
        f"# {line}" for line in text.splitlines(keepends=True)
    )
    return f"{templates.get_template(template).render(values)}\n"


def _given_value(session: Session, key: str) -> str | None:
    """What an option or the environment says; None if neither does."""
    value: str | None = session.flags[key]
    return value if value is not None else os.environ.get(profiles.variable(key).name) or None


def _read_answers(session: Session, method: str | None, given: Mapping[str, str]) -> dict[str, Any]:
    """What the first config file says, without the client secret. Raises UsageError."""
    ask = functools.partial(answer, session)
    explain = session.reporter.note if terminal.is_interactive() else lambda text: None
    name = _given_value(session, "profile")
    if name is None:
        explain(
            "dkimctl: a profile is one account of the service, under a name of your choice; Enter "
            "takes what is in brackets"
        )
    used = profiles.read_used_profile(session.state_dir) or profiles.DEFAULT_PROFILE
    answers = {"profile": ask("Profile", "--profile", profile_name, name, used)}
    login = session.logins.get(answers["profile"], {})
    for key, label in QUESTIONS.items():
        given_value, name = _given_value(session, key), profiles.option(key).name
        default = login.get(key, "")
        text = label.partition(" (")[0] if default else label
        answers[key] = ask(text, name, CHECKS[key], given_value, default)
    if (store := session.flags["credential_store"]) is not None:
        answers["credential_store"] = parse_value("credential_store", store, "--credential-store")
    elif login:
        answers["credential_store"] = login["credential_store"]
    elif not (os.environ.get("DKIMCTL_CLIENT_SECRET") or session.keyring.is_there):
        answers |= {"credential_store": "file", "has_keyring": False}
    if method is None:
        explain(
            "dkimctl: records go into DNS by hand (hand), by dynamic updates of your own server "
            f"(rfc2136), at a provider ({', '.join(octodns_providers())}), or at another that "
            "octoDNS has (octodns)"
        )
        method = ask("How DNS is changed", "--dns", _parse_method, None, DnsMethod.HAND)
    for unused in given:
        if _METHODS[unused] != method:
            raise UsageError(f"{unused} has no effect with --dns {method}", hint=f"remove {unused}")
    if method == DnsMethod.RFC2136:
        label, server = "Primary server (such as 192.0.2.1)", given.get("--server")
        server = ask(label, "--server", lambda text: str(parse_server(text)), server)
        file = given.get("--key-file") or None
        file = ask("TSIG key file", "--key-file", _parse_key_file, file, _NO_FILE)
        answers["target"] = DnsTarget(method, server=server, key_file=file)
    elif method == DnsMethod.OCTODNS:
        label = "Class of the octoDNS provider (such as octodns_route53.Route53Provider)"
        class_name = ask(label, "--class", check_class, given.get("--class"))
        answers["target"] = DnsTarget(method, class_name=class_name)
    elif provider := octodns_providers().get(method):
        answers["target"] = DnsTarget(
            DnsMethod.OCTODNS, class_name=provider.octodns, settings=provider.settings
        )
    return answers


def _parse_method(text: str) -> str:
    """A DnsMethod, or the key of a provider. Raises UsageError."""
    names = [*map(str, DnsMethod), *octodns_providers()]
    if (name := text.lower()) in names:
        return name
    near = [f"did you mean {each}? " for each in difflib.get_close_matches(name, names, 1)]
    hint = f"{''.join(near)}known by name: {', '.join(names)}; octodns takes any provider of "
    hint += "https://github.com/octodns/octodns#providers, by the class that its page names"
    raise UsageError(f"unknown DNS provider {quoted(text)}", hint=hint)


def _write(session: Session, config: Path | None, texts: dict[Path, str]) -> None:
    """Write all files or none. Raises DkimctlError."""
    if config is not None and not _given_value(session, "config"):
        hint = "name another file with --config FILE"
        with os_errors_as(UsageError, f"cannot create {printable(str(config.parent))}", hint=hint):
            prepare_directory(config.parent)  # for the user alone
            refuse(directory_fault(config.parent), UsageError, hint=hint)
    what = f"cannot write {' and '.join(printable(str(file)) for file in texts)}"
    hint = "check the permissions and the space there; nothing was written"
    with os_errors_as(OutputError, what, hint=hint):
        create_files(texts, private=[] if config is None else [config])


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
