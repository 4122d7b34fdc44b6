"""`dkimctl list`: one line for each key."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from dkimctl.cli.options import LEDGER, App, KeyFormatOption, OutputOption, examples
from dkimctl.cli.output.destination import require_writable
from dkimctl.cli.output.key_list import show_keys
from dkimctl.cli.selection import SelectionArgument, read_selection, require_empty, warn_unmatched
from dkimctl.cli.session import open_session
from dkimctl.errors import UsageError, naming
from dkimctl.render.renderer import KeyFormat

app = App()

SortOption = Annotated[
    str | None,
    typer.Option("--sort-by", metavar="FIELD", help="Sort by a field, such as due."),
]
FilterOption = Annotated[
    list[str] | None,
    typer.Option("--filter", metavar="FILTER", help="Show only such keys, as in state=missing."),
]


@app.command(
    "list",
    epilog=examples(
        "dkimctl list",
        "dkimctl list --filter bits=1024 --filter enabled=yes",
        "dkimctl list '*.example.com' --filter state!=published",
        "dkimctl list --filter due=2027-03 --sort-by due",
        "dkimctl list --filter 'age>180d' --format csv --output old.csv",
    ),
    shows=LEDGER,
)
def list_keys(
    ctx: typer.Context,
    selection: SelectionArgument = None,
    filters: FilterOption = None,
    sort_by: SortOption = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Sort the other way round.")] = False,
    all_: Annotated[
        bool, typer.Option("--all", "-a", help="Show keys that were removed, too.")
    ] = False,
    wide: Annotated[
        bool, typer.Option("--wide", "-w", help="Add what comes next, and the FQDN.")
    ] = False,
    fmt: KeyFormatOption = None,
    output: OutputOption = None,
) -> int:
    """List the keys that are registered, one line each.

    STATE is what the last check of DNS found, which was SEEN so long ago. Nothing is sent: this is
    what the ledger knows.

    The fields are domain, selector, bits, age, start, enabled, state, seen, stage, next and due. A
    filter compares one with =, !=, <, <=, > or >=; the value may be several with commas, a date
    such as 2027-03, or a time such as 30d. Of several filters, all have to hold.
    """
    from dkimctl.rotation.key_fields import names_field, read_filter, sorted_by
    from dkimctl.rotation.key_list import read_keys

    session = open_session(ctx)
    if wide and fmt not in (None, KeyFormat.TABLE):
        raise UsageError(f"--wide has no effect with --format {fmt}", hint="leave out one of them")
    if output is not None:
        require_writable(output)
    now = datetime.now(UTC)
    with naming("--filter"):
        tests = [read_filter(text, now) for text in filters or ()]
    shows_removed = all_ or any(names_field(text, "stage") for text in filters or ())
    selected = read_selection(session, selection)
    ledger = session.open_ledger(for_writing=False)
    registered = read_keys(ledger, selected, session.config.rotation, now)
    if not registered:
        require_empty(session, selected)
    keys = [key for key in registered if shows_removed or not key.is_removed]
    keys = [key for key in keys if all(test(key) for test in tests)]
    if sort_by is not None or reverse:
        with naming("--sort-by"):
            keys = sorted_by(keys, sort_by or "domain", reverse=reverse)
    show_keys(session, keys, fmt, output, now=now, is_wide=wide)
    return warn_unmatched(session, selected)
