"""What replaces the commands and options that this release no longer has: one line each.

A row is used only where the command line is refused, so that one for something that still exists
does no harm. The next release drops the table.
"""

from __future__ import annotations

# By command, without `dkimctl`. The last word may be an argument, such as in `schema output`.
COMMANDS = {
    "service backup": 'copy the data with `sqlite3 FILE ".backup COPY"`, or with `pg_dump`',
    "service restore": "copy the backup to where the data was, or use `pg_restore`",
    "service audit": "the log of `dkimctl serve` names client and operation of each request",
    "rotate status": "`dkimctl list` has the columns NEXT and DUE, `dkimctl overview` the timeline",
    "schema output": "docs/ci.md describes the JSON that commands print",
}
# By command and option.
OPTIONS = {
    ("serve", "--faults"): "put a proxy that injects faults between the client and the service",
    ("serve", "--key-pool"): "leave it out: keys are made when a request needs them",
    ("serve", "--log-format"): "leave it out: the log has one line for each request",
    ("serve", "--metrics-from"): "write --metrics-bind ADDRESS, where /metrics answers alone",
    ("publish", "--retired"): "run `dkimctl rotate run`, which removes the retired records",
    ("publish", "--assume-successors"): "it is an option of `dkimctl rotate --retired`",
    ("list", "--filter"): "write --stage or --state, or use jq on the output of --format json",
}


def replacement(path: str, word: str) -> str:
    """What replaces an option or subcommand of the command `path`; "" if it is not of the table."""
    command = " ".join(path.split()[1:])
    text = OPTIONS.get((command, word)) or COMMANDS.get(f"{command} {word}".strip())
    return f"it was removed: {text}" if text else ""
