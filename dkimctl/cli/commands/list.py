"""`dkimctl list`: one line for each key."""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any

import typer

from dkimctl.cli.options import App, KeyFormatOption, OutputOption, option
from dkimctl.cli.output import read_format, table_layout, write_chunks
from dkimctl.cli.selected import SelectionArgument, read_selection, require_empty, warn_unmatched
from dkimctl.cli.session import open_session
from dkimctl.dns.verdicts import Verdict
from dkimctl.errors import UsageError
from dkimctl.formats.keys import MAIL_COLUMNS, render_keys, render_policies
from dkimctl.formats.renderer import KeyFormat
from dkimctl.formats.table import UNLIMITED
from dkimctl.rotation.life import NOT_CHECKED, Key, KeyStage, due_first, read_keys
from dkimctl.text import quoted

app = App()

_STATES = (*(verdict for verdict in Verdict if verdict is not Verdict.RETIRED), NOT_CHECKED)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
# A key of which it is not known comes last; one that was never looked at was seen very long ago.
_SORT_VALUES: Mapping[str, Callable[[Key], Any]] = {
    "domain": lambda key: key.sign_domain,
    "bits": lambda key: key.key_len,
    "age": lambda key: key.age,
    "start": lambda key: key.starts_at,
    "seen": lambda key: None if key.state is None else key.looked_at or _LONG_AGO,
    "due": due_first,
}


def _choice(declaration: str, choices: Collection[str], help_: str) -> Any:
    """An option that takes one of these words, in which a space is typed as a hyphen."""
    name, typed = declaration.split(maxsplit=1)[0], [word.replace(" ", "-") for word in choices]

    def read(text: str) -> str:
        word = text.lower().replace("-", " ")
        if word not in choices:
            message = f"in {name}: unknown value {quoted(text)}"
            raise UsageError(message, hint=f"write one of: {', '.join(typed)}")
        return word

    text = f"{help_}: {', '.join(typed)}."
    return option(declaration, text, parser=read, autocompletion=lambda: typed)


@app.command(
    "dkimctl list",
    "dkimctl list --sort-by due",
    "dkimctl list '*.example.com' --state missing --state mismatch",
    "dkimctl list --stage signing --sort-by age --reverse",
    "dkimctl list --policy",
    "dkimctl list --output keys.csv",
)
def list_keys(
    ctx: typer.Context,
    selection: SelectionArgument = None,
    stages: Annotated[list[str] | None, _choice("--stage STAGE",
        [*KeyStage], "Show only keys at this stage")] = None,
    states: Annotated[list[str] | None, _choice("--state STATE",
        _STATES, "Show only keys whose record is in this state")] = None,
    sort_by: Annotated[str | None, _choice("--sort-by FIELD",
        _SORT_VALUES, "Sort by this field (default: domain)")] = None,
    reverse: Annotated[bool, option("--reverse", "Sort the other way round.")] = False,
    all_: Annotated[bool, option("--all -a", "Also show removed keys.")] = False,
    wide: Annotated[bool, option("--wide -w", "Show all columns, and the FQDN.")] = False,
    policy: Annotated[bool, option("--policy",
        "Instead, list the domains, and the entry of `rotation` of each.")] = False,
    fmt: KeyFormatOption = None,
    output: OutputOption = None,
) -> int:  # fmt: skip
    """List the registered keys, and what comes next for each.

    STATE is what the last check of DNS found, SEEN how long ago that was. NEXT is the next action,
    DUE its date, LEFT how many selectors are left in the pool of a delegated domain. By DMARC
    reports, --wide has the last day on which mail PASSED, and of the last 7 days the messages
    (MAIL) and the share that FAILED. Nothing is sent: all of it comes from the ledger.

    Sorted by due, urgent keys come first, then those that wait for you, then what is due first.
    """
    session = open_session(ctx)
    reporter = session.reporter
    fmt = read_format(KeyFormat, fmt, output) or KeyFormat.TABLE
    if wide and fmt is not KeyFormat.TABLE:
        raise UsageError(f"--wide has no effect with --format {fmt}", hint="leave out one of them")
    now = datetime.now(UTC)
    selected = read_selection(session, selection)
    ledger = session.open_ledger(for_writing=False)
    every = read_keys(ledger, selected, session.config.rotation, now)
    first = next(every, None)
    if first is None:
        require_empty(session, selected)
    keys: Iterable[Key] = (
        key
        for key in chain([first] if first else [], every)
        if (all_ or stages or not key.is_removed)
        and (not stages or key.stage in stages)
        and (not states or key.state in states)
    )
    if sort_by or reverse:
        value_of = _SORT_VALUES[sort_by or "domain"]
        unsorted = [*keys]
        known = [key for key in unsorted if value_of(key) is not None]
        unknown = [key for key in unsorted if value_of(key) is None]
        keys = [*sorted(known, key=value_of, reverse=reverse), *unknown]

    layout = table_layout(reporter, output)._replace(wide=wide)
    is_piped = output is not None or not sys.stdout.isatty()
    if is_piped:  # one line a key, for other programs
        layout = layout._replace(width=UNLIMITED)
    if policy:
        domains = dict.fromkeys(key.sign_domain for key in keys)
        chunks = render_policies(domains, session.config.rotation, fmt, layout)
        write_chunks(chunks, output, is_paged=fmt is KeyFormat.TABLE)
        return warn_unmatched(session, selected)
    counts: Counter[str] = Counter()
    complete = lru_cache(reporter.complete)  # many keys have the same note

    def counted() -> Iterator[Key]:
        for key in keys:
            counts[str(key.state or key.stage)] += 1
            yield key._replace(note=complete(key.note)) if key.note else key

    has_owners = any(entry.owner for entry in session.config.rotation.entries)
    shown = {"LEFT": session.config.delegation, "OWNER": has_owners}
    if not (wide or is_piped) or first is None or first.mail is None:
        shown |= dict.fromkeys(MAIL_COLUMNS, False)
    without = [name for name, is_shown in shown.items() if not is_shown]
    chunks = render_keys(counted(), fmt, layout, now, notes=wide or not is_piped, without=without)
    write_chunks(chunks, output, is_paged=fmt is KeyFormat.TABLE)
    text = ", ".join(f"{state} {count}" for state, count in counts.most_common())
    reporter.summarize(text or "no key matches", counts)
    return warn_unmatched(session, selected)
