"""What `publish` says on stderr: the totals, what needs attention, and what comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dkimctl.cli.options.publishing import PublishOptions
from dkimctl.cli.output import next_steps
from dkimctl.cli.output.failed_changes import report_failures
from dkimctl.cli.output.streams import AlikeWarnings, Reporter
from dkimctl.models.registration import named
from dkimctl.publishing.plan import CHANGING, PlanItem, Step
from dkimctl.text.escaping import few, printable
from dkimctl.text.grouping import without_names

_ORDER = {step: number for number, step in enumerate(Step)}
# What the summary calls a change that is planned, and one that was made; "created" alone is a word
# of registering.
_WORDS = {
    Step.CREATE: ("to create", "created in DNS"),
    Step.REPLACE: ("to replace", "replaced in DNS"),
}
_OTHER_WORDS = {
    Step.BLOCKED: "blocked",
    Step.UNCOVERED: "without a DNS target",
    Step.UNREAD: "not read",
}


class PublicationSummary:
    """Reports the items of a plan; `words` are the selection as it was typed.

    `gives_reasons`: of what is blocked, since no table does.
    """

    def __init__(
        self,
        reporter: Reporter,
        options: PublishOptions,
        words: Sequence[str],
        *,
        gives_reasons: bool,
    ) -> None:
        self._reporter = reporter
        self._options = options
        self._words = words
        self._gives_reasons = gives_reasons

    def report(self, items: Sequence[PlanItem]) -> None:
        """Report the totals, and what needs attention."""
        in_order = sorted(items, key=lambda item: _ORDER[item.step])
        counts = Counter(map(self._word, in_order))
        text = ", ".join(f"{word} {count}" for word, count in counts.items())
        self._reporter.summarize(text or "nothing to do", counts)
        report_failures(self._reporter, (item for item in items if item.error is not None))
        if blocked := [item for item in items if item.step is Step.BLOCKED]:
            self._warn_blocked(blocked)
        if uncovered := [item for item in items if item.step is Step.UNCOVERED]:
            self._reporter.warn(
                f"in no zone of a DNS target: {_names(uncovered)}",
                hint="add the zone to `dns` in the config file, or change it by hand: "
                f"{self._by_hand(uncovered)}",
                code=Step.UNCOVERED,
            )

    def name_command(self) -> None:
        """Say how to make the changes of a plan."""
        command = next_steps.publish(self._words, *self._flags(), by_target=True)
        self._reporter.note(f"dkimctl: nothing was changed; next: {command}")

    def name_next(self) -> None:
        """Say what comes after the changes."""
        if self._options.wait is None:
            wait = next_steps.wait_for(self._words)
            self._reporter.note(f"dkimctl: next, check that all servers have them: {wait}")

    def _word(self, item: PlanItem) -> str:
        if item.step is Step.KEEP:
            return "already in DNS"
        if item.step not in CHANGING:
            return _OTHER_WORDS[item.step]
        if item.error is not None:
            return "failed in DNS"
        return _WORDS[item.step][item.is_applied]

    def _warn_blocked(self, items: Sequence[PlanItem]) -> None:
        if self._gives_reasons:
            warnings = AlikeWarnings(self._reporter)
            for item in items:
                kind = f"blocked: {without_names(item.reason, *item.key)}"
                warnings.warn(f"{item.fqdn} is blocked: {item.reason}", kind=kind, code=item.step)
            warnings.close()
        self._reporter.warn(
            f"blocked by what is in DNS: {_names(items)}",
            hint=self._how_to_unblock(items),
            code=Step.BLOCKED,
        )

    def _how_to_unblock(self, items: Sequence[PlanItem]) -> str:
        states = [item.change.before for item in items if item.change]
        advice = []
        if any(one.alias for one in states):
            advice.append("remove the CNAME or DNAME")
        if delegated := dict.fromkeys(printable(one.delegated) for one in states if one.delegated):
            advice.append(f"for {few([*delegated])}, add a DNS target that has that zone")
        if any("--replace" in item.reason for item in items):
            replace = next_steps.publish(self._words, *self._flags(), "--replace", by_target=True)
            advice.append(f"{replace} replaces TXT records of others")
        return "; ".join(advice)

    def _flags(self) -> list[str]:
        """The options that decide what is changed."""
        return ["--replace"] if self._options.replace else []

    def _by_hand(self, items: Sequence[PlanItem]) -> str:
        domains = (item.registration.sign_domain for item in items)
        return next_steps.publish(next_steps.select_domains(domains, self._words))


def _names(items: Sequence[PlanItem]) -> str:
    return f"{len(items)} ({few([named(item.registration) for item in items])})"
