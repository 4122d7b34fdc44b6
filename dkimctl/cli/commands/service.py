"""`dkimctl service`: the service operator's side (interface 3.2)."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Annotated

import typer

from dkimctl.cli.options import DataOption, examples
from dkimctl.cli.output.streams import write
from dkimctl.cli.sandbox import open_service_store
from dkimctl.text.escaping import printable

app = typer.Typer(
    add_completion=False,
    help="Operate the embedded service: its clients and deliveries.",
    epilog=examples(
        "dkimctl service client create",
        "dkimctl service client disable CLIENT_ID",
        "dkimctl service delivery add CLIENT_ID",
    ),
)
client = typer.Typer(
    help="Create, list, disable, enable and delete clients.",
    epilog=examples("dkimctl service client create", "dkimctl service client list"),
)
delivery = typer.Typer(
    help="Deliveries that a client can cancel.",
    epilog=examples("dkimctl service delivery add CLIENT_ID"),
)
app.add_typer(client, name="client")
app.add_typer(delivery, name="delivery")

ClientArgument = Annotated[str, typer.Argument(metavar="CLIENT_ID", help="The client's ID.")]


@client.command(epilog=examples("dkimctl service client create --data service.db"))
def create(
    client_id: Annotated[
        str | None, typer.Argument(metavar="[CLIENT_ID]", help="Its ID; by default a new one.")
    ] = None,
    data: DataOption = None,
) -> None:
    """Create a client and print its ID and secret, this one time, as JSON."""
    with closing(open_service_store(data)) as store:
        from dkimctl.service.clients import create_client

        made = create_client(store, client_id)
    write([json.dumps({"client_id": made.client_id, "client_secret": made.secret}) + "\n"])


@client.command("list", epilog=examples("dkimctl service client list"))
def list_(data: DataOption = None) -> None:
    """List the clients, one a line: ID, state, time of creation."""
    with closing(open_service_store(data)) as store:
        from dkimctl.service.clients import list_clients

        found = list_clients(store)
    rows = ((one.client_id, one.state, one.created_at) for one in found)
    write("\t".join(printable(field) for field in row) + "\n" for row in rows)


@client.command(epilog=examples("dkimctl service client disable CLIENT_ID"))
def disable(client_id: ClientArgument, data: DataOption = None) -> None:
    """Disable a client: it still gets tokens, but their use is forbidden."""
    with closing(open_service_store(data)) as store:
        from dkimctl.service.clients import disable_client

        disable_client(store, client_id)


@client.command(epilog=examples("dkimctl service client enable CLIENT_ID"))
def enable(client_id: ClientArgument, data: DataOption = None) -> None:
    """Enable a disabled client again."""
    with closing(open_service_store(data)) as store:
        from dkimctl.service.clients import enable_client

        enable_client(store, client_id)


@client.command(epilog=examples("dkimctl service client delete CLIENT_ID"))
def delete(client_id: ClientArgument, data: DataOption = None) -> None:
    """Delete a client for good: it gets no more tokens, and what it registered stays taken."""
    with closing(open_service_store(data)) as store:
        from dkimctl.service.clients import delete_client

        delete_client(store, client_id)


@delivery.command(epilog=examples("dkimctl service delivery add CLIENT_ID"))
def add(client_id: ClientArgument, data: DataOption = None) -> None:
    """Add a delivery of a client and print its ID, for `dkimctl api DELETE /send/ID`."""
    with closing(open_service_store(data)) as store:
        from dkimctl.service.deliveries import add_delivery

        delivery_id = add_delivery(store, client_id)
    write([delivery_id + "\n"])
