"""`dkimctl service export`: the private keys, for a signer of mail."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from dkimctl.cli.completion import complete_clients
from dkimctl.cli.embedded_service import open_service_store
from dkimctl.cli.options import App, DataOption, examples
from dkimctl.cli.output.streams import Reporter
from dkimctl.text.escaping import few
from dkimctl.text.grouping import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dkimctl.service.export.plan import Plan

app = App()


class Signer(StrEnum):
    """What signs mail."""

    OPENDKIM = "opendkim"
    RSPAMD = "rspamd"


@app.command(
    "export",
    epilog=examples(
        "dkimctl service export --format opendkim --output-dir /etc/opendkim/dkimctl",
        "dkimctl service export --format rspamd --output-dir /etc/rspamd/dkimctl --group _rspamd",
    ),
)
def export(
    ctx: typer.Context,
    signer: Annotated[
        Signer,
        typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(Signer)}."),
    ],
    output_dir: Annotated[
        Path,
        typer.Option("--output-dir", metavar="DIR", help="Write the files to this directory."),
    ],
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="GROUP",
            help="Let members of this group read the files, too (default: only you).",
        ),
    ] = None,
    third_party_client: Annotated[
        str | None,
        typer.Option(
            "--third-party-client",
            metavar="CLIENT_ID",
            autocompletion=complete_clients,
            help="Sign mail of domains without a key with the registration of this client that is "
            "marked `default` (default: the only client's, if there is only one).",
        ),
    ] = None,
    data: DataOption = None,
) -> None:
    """Write the private keys in effect, and the files that tell a signer to use them.

    For each domain, the enabled registration with the latest start date in the past signs. Keys of
    deleted clients are left out; those of disabled clients are not. If several clients have
    registered a domain, the first one's keys sign. The keys are not encrypted, since a signer
    cannot ask for a passphrase.

    Run it from a timer, so that start dates take effect, and send SIGUSR1 to opendkim afterwards;
    rspamd notices by itself. Files that are no longer used are kept for an hour.

    The signer must be able to read the files: run the command as the signer's user, or name its
    group. With RequireSafeKeys, opendkim only accepts keys of its own user or root, in a group
    without other members.
    """
    with closing(open_service_store(data, with_keys=True)) as store:
        from dkimctl.service.audit import operator_event, record
        from dkimctl.service.export.files import open_directory
        from dkimctl.service.export.plan import read_plan

        now = datetime.now(UTC)
        with open_directory(output_dir, signer, group) as directory:
            plan = read_plan(store, now, third_party_client)
            files = _files(signer, plan, directory.path, directory.keys)
            keys = {key.fqdn: key.private_key for key in plan.keys}
            changed = directory.write(files, keys, now)
        if changed:
            event = operator_event("export", str(output_dir.absolute()))
            with store.writing() as connection:
                record(connection, [event])
    _report(ctx.obj, plan, len(changed), third_party_client)


def _files(signer: Signer, plan: Plan, directory: Path, keys: Path) -> Mapping[str, str]:
    match signer:
        case Signer.OPENDKIM:
            from dkimctl.service.export.opendkim import opendkim_files

            return opendkim_files(plan, directory, keys)
        case Signer.RSPAMD:
            from dkimctl.service.export.rspamd import rspamd_files

            return rspamd_files(plan, directory, keys)
        case _:
            assert_never(signer)


def _report(reporter: Reporter, plan: Plan, changed: int, third_party_client: str | None) -> None:
    if plan.contested:
        reporter.warn(
            f"registered by several clients: {counted(len(plan.contested), 'domain')} "
            f"({few(plan.contested)}); the keys of the first client are used",
            hint="disable those that are wrong with `dkimctl service registration disable`",
        )
    if third_party_client is not None and not plan.third_party:
        reporter.warn(
            "the client of --third-party-client has no registration in effect that is marked "
            "`default`: mail of domains without a key is not signed"
        )
    elif plan.third_party_owners:
        reporter.warn(
            f"marked `default`, but not used for mail of domains without a key: registrations of "
            f"{few(plan.third_party_owners)}",
            hint="name the client whose key signs that mail with --third-party-client",
        )
    counts = {
        "exported": len(plan.keys),
        **plan.left_out,
        "files written": changed,
    }
    words = [f"{counted(len(plan.keys), 'key')} exported"]
    words += [f"{count} {reason}" for reason, count in plan.left_out.items()]
    words.append(f"{counted(changed, 'file')} written" if changed else "nothing has changed")
    reporter.summarize(", ".join(words), counts)
