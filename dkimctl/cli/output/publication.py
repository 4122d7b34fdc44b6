"""Show a plan to publish, and what became of it: on stdout in a format, on stderr the summary."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from dkimctl.cli.options.publishing import PublishOptions
from dkimctl.cli.output import next_steps
from dkimctl.cli.output.destination import table_layout, write_chunks
from dkimctl.cli.output.results import LONG_TABLE, worst
from dkimctl.cli.output.streams import AlikeWarnings, Reporter
from dkimctl.errors import DkimctlError, ExitCode, OutputError
from dkimctl.models.registration import named
from dkimctl.publishing.plan import CHANGING, PlanItem, Step
from dkimctl.render.changes import open_changes
from dkimctl.render.renderer import PublicationFormat, render_all
from dkimctl.text.escaping import few, printable
from dkimctl.text.grouping import MAX_ALIKE, counted, without_names

_ORDER = {step: number for number, step in enumerate(Step)}
# What the summary calls a change that is planned, and one that was made; "created" alone is a word
# of registering.
_WORDS = {
    Step.CREATE: ("to create", "created in DNS"),
    Step.REPLACE: ("to replace", "replaced in DNS"),
    Step.REMOVE: ("to remove", "removed from DNS"),
}
_OTHER_WORDS = {
    Step.KEEP: "already in DNS",
    Step.BLOCKED: "blocked",
    Step.UNCOVERED: "without a DNS target",
    Step.UNREAD: "not read",
}


class PublicationView:
    """Shows the items of a plan as `options` say; `words` are the selection as it was typed.

    If it `is_shown` not, warnings have what the table would.
    """

    def __init__(
        self,
        reporter: Reporter,
        options: PublishOptions,
        words: Sequence[str],
        *,
        is_shown: bool = True,
    ) -> None:
        self.words = words
        self.is_shown = is_shown
        self._reporter = reporter
        self._options = options

    def show_plan(self, items: Sequence[PlanItem]) -> ExitCode:
        """Show what would be changed; returns the exit code of --dry-run."""
        codes = [self.write(items), self.report(items)]
        if any(item.step in CHANGING for item in items):
            codes.append(ExitCode.NO)
            command = next_steps.publish(self.words, *self._flags(), by_target=True)
            self._reporter.note(f"dkimctl: nothing was changed; next: {command}")
        return worst(codes)

    def write(self, items: Sequence[PlanItem]) -> ExitCode:
        """Write the items to stdout, or to the file; reports why it cannot."""
        if not self.is_shown:
            return ExitCode.OK
        fmt, output, lists_all = self._options.fmt, self._options.output, self._reporter.verbose
        is_long = output is None and sys.stdout.isatty() and len(items) > LONG_TABLE
        is_cut = not lists_all and (fmt is PublicationFormat.MARKDOWN or is_long)
        layout = table_layout(self._reporter, output)._replace(
            only_attention=is_cut,
            shown_by="--verbose",
            most_alike=MAX_ALIKE if is_cut else None,
        )
        chunks = render_all(open_changes(fmt, layout, shows_kept=lists_all), items)
        try:
            write_chunks(chunks, output, is_paged=fmt is PublicationFormat.TABLE)
        except OutputError as error:
            self._reporter.error(error)
            return error.exit_code
        return ExitCode.OK

    def report(self, items: Sequence[PlanItem]) -> ExitCode:
        """Report the totals, what failed, and what needs attention; returns the exit code."""
        in_order = sorted(items, key=lambda item: _ORDER[item.step])
        counts = Counter(map(_word, in_order))
        text = ", ".join(f"{word} {count}" for word, count in counts.items())
        self._reporter.summarize(text or "nothing to do", counts)
        self._report_failures(item for item in items if item.error is not None)
        if blocked := [item for item in items if item.step is Step.BLOCKED]:
            self._warn_blocked(blocked)
        if uncovered := [item for item in items if item.step is Step.UNCOVERED]:
            domains = (item.registration.sign_domain for item in uncovered)
            by_hand = next_steps.publish(next_steps.select_domains(domains, self.words))
            self._reporter.warn(
                f"in no zone of a DNS target: {_names(uncovered)}",
                hint=f"add the zone to `dns` in the config file, or change it by hand: {by_hand}",
                code=Step.UNCOVERED,
            )
        return worst(map(_status_of, items))

    def name_next(self, items: Iterable[PlanItem]) -> None:
        """Say what comes after the changes, if any were made."""
        if self._options.wait is None and any(item.is_applied for item in items):
            wait = next_steps.wait_for(self.words)
            self._reporter.note(f"dkimctl: next, check that all servers have them: {wait}")

    def _report_failures(self, items: Iterable[PlanItem]) -> None:
        """One error for the items of a zone that failed alike; with --verbose of all zones."""
        groups: dict[tuple[str, str, str], list[PlanItem]] = {}
        for item in items:
            kind = without_names(item.reason, *item.key)
            groups.setdefault((item.target, item.zone, kind), []).append(item)
        alike = list(groups.values())
        shown = alike if self._reporter.lists_all else alike[:MAX_ALIKE]
        for group in shown:
            self._reporter.error(_error_of(group))
        if left := len(alike) - len(shown):
            self._reporter.error(DkimctlError(f"and {left:,} more (--verbose lists all)"))

    def _warn_blocked(self, items: Sequence[PlanItem]) -> None:
        if not self.is_shown:  # no table gives the reasons
            warnings = AlikeWarnings(self._reporter)
            for item in items:
                kind = f"blocked: {without_names(item.reason, *item.key)}"
                warnings.warn(f"{item.fqdn} is blocked: {item.reason}", kind=kind, code=item.step)
            warnings.close()
        states = [item.change.before for item in items if item.change]
        advice = []
        if any(one.alias for one in states):
            advice.append("remove the CNAME or DNAME")
        if delegated := dict.fromkeys(printable(one.delegated) for one in states if one.delegated):
            advice.append(f"for {few([*delegated])}, add a DNS target that has that zone")
        if any("--replace" in item.reason for item in items):
            replace = next_steps.publish(self.words, *self._flags(), "--replace", by_target=True)
            advice.append(f"{replace} replaces TXT records of others")
        self._reporter.warn(
            f"blocked by what is in DNS: {_names(items)}",
            hint="; ".join(advice),
            code=Step.BLOCKED,
        )

    def _flags(self) -> list[str]:
        """The options that decide what is changed."""
        return ["--replace"] if self._options.replace else []


def _word(item: PlanItem) -> str:
    if item.step not in CHANGING:
        return _OTHER_WORDS[item.step]
    return "failed in DNS" if item.error is not None else _WORDS[item.step][item.is_applied]


def _names(items: Sequence[PlanItem]) -> str:
    return f"{len(items)} ({few([named(item.registration) for item in items])})"


def _error_of(group: list[PlanItem]) -> DkimctlError:
    """One error for items that failed alike in a zone."""
    first, *more = group
    message = first.reason
    if more:
        if any(item.reason != message for item in more):
            message = without_names(message, *first.key)
        names = few([item.fqdn for item in group])
        message = f"{counted(len(group), 'record')} ({names}): {message}"
    elif first.fqdn not in message:
        message = f"{first.fqdn}: {message}"
    error = DkimctlError(message, hint=first.error.hint if first.error else "")
    error.code = first.error.code if first.error else error.code
    return error


def _status_of(item: PlanItem) -> ExitCode:
    if item.error is not None:
        return item.error.exit_code
    return ExitCode.NO if item.step in (Step.BLOCKED, Step.UNCOVERED) else ExitCode.OK
