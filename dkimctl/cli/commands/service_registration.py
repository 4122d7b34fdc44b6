"""`dkimctl service registration`: the operator's side of registrations (interface 3.3)."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from dkimctl.cli import prompt
from dkimctl.cli.completion import complete_clients
from dkimctl.cli.embedded_service import open_service_store
from dkimctl.cli.options import App, DataOption, TableOrJson, TableOrJsonOption, YesOption, examples
from dkimctl.cli.output.service_lists import json_list
from dkimctl.cli.output.streams import Reporter, write
from dkimctl.errors import ExitCode, UsageError
from dkimctl.text.escaping import printable

if TYPE_CHECKING:
    from dkimctl.service.database.location import Location
    from dkimctl.service.registrations import Registration

app = App(
    help="List, enable, disable and delete registrations.",
    epilog=examples(
        "dkimctl service registration list --domain example.com",
        "dkimctl service registration disable example.com s1",
    ),
)

DomainArgument = Annotated[str, typer.Argument(metavar="DOMAIN", help="Signing domain.")]
SelectorArgument = Annotated[str, typer.Argument(metavar="SELECTOR", help="Its selector.")]


@app.command(
    "list",
    epilog=examples(
        "dkimctl service registration list",
        "dkimctl service registration list --client CLIENT_ID --format json",
    ),
)
def list_(
    client: Annotated[
        str | None,
        typer.Option(
            "--client",
            metavar="CLIENT_ID",
            help="List those of this client.",
            autocompletion=complete_clients,
        ),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option("--domain", metavar="DOMAIN", help="List those of this signing domain."),
    ] = None,
    fmt: TableOrJsonOption = TableOrJson.TABLE,
    data: DataOption = None,
) -> None:
    """List the registrations, one per line.

    Domain, selector, client ID, key length, start date, `default`, enabled or disabled, time of
    the registration. As JSON with the value of the DNS record as well.
    """
    with closing(open_service_store(data)) as store:
        from dkimctl.service.registration_management import list_registrations

        registrations = list_registrations(store, client, domain)
        if fmt is TableOrJson.JSON:
            write(json_list("registrations", (one._asdict() for one in registrations)))
        else:
            write(map(_line, registrations))


@app.command(epilog=examples("dkimctl service registration enable example.com s1"))
def enable(
    ctx: typer.Context,
    domain: DomainArgument,
    selector: SelectorArgument,
    data: DataOption = None,
) -> None:
    """Enable a disabled registration."""
    _set_enabled(ctx.obj, domain, selector, data, is_enabled=True)


@app.command(epilog=examples("dkimctl service registration disable example.com s1"))
def disable(
    ctx: typer.Context,
    domain: DomainArgument,
    selector: SelectorArgument,
    data: DataOption = None,
) -> None:
    """Disable a registration: `service export` then leaves its key out."""
    _set_enabled(ctx.obj, domain, selector, data, is_enabled=False)


@app.command(
    epilog=examples(
        "dkimctl service registration delete example.com s1",
        "dkimctl service registration delete example.com s1 --yes",
    )
)
def delete(
    ctx: typer.Context,
    domain: DomainArgument,
    selector: SelectorArgument,
    yes: YesOption = False,
    data: DataOption = None,
) -> int:
    """Delete a registration and its private key. Asks first.

    Domain and selector can be registered again then, with a new key.
    """
    with closing(open_service_store(data)) as store:
        from dkimctl.service.registration_management import (
            delete_registration,
            read_name,
            require_registration,
        )

        name = read_name(domain, selector)
        require_registration(store, name)
        if not (yes or _ask(name.sign_domain, name.selector)):
            ctx.obj.note("dkimctl: nothing was deleted")
            return ExitCode.NO
        delete_registration(store, name)
    _note_export(ctx.obj)
    return ExitCode.OK


def _ask(domain: str, selector: str) -> bool:
    message = f"there is no terminal to ask whether to delete the selector {selector} of {domain}"
    return prompt.may_delete(
        f"Delete the selector {selector} of {domain}, with its private key?",
        refusal=UsageError(message, hint="add --yes"),
    )


def _set_enabled(
    reporter: Reporter, domain: str, selector: str, data: Location | None, *, is_enabled: bool
) -> None:
    with closing(open_service_store(data)) as store:
        from dkimctl.service.registration_management import read_name, set_enabled

        set_enabled(store, read_name(domain, selector), is_enabled)
    _note_export(reporter)


def _note_export(reporter: Reporter) -> None:
    reporter.note("dkimctl: signers learn of it from the next `dkimctl service export`")


def _line(registration: Registration) -> str:
    fields = (
        registration.sign_domain,
        registration.selector,
        registration.client_id,
        str(registration.key_len),
        registration.start_date,
        str(registration.default),
        "enabled" if registration.enable else "disabled",
        registration.regist_date,
    )
    return "\t".join(map(printable, fields)) + "\n"
