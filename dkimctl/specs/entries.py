"""The entries of one or more spec files, and what they may not repeat."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

from dkimctl.dkim import MAX_NAME
from dkimctl.models.registration import DomainSpec, RegistrationKey, key_of
from dkimctl.specs.names import is_a_label, key_name_length
from dkimctl.strict_yaml.nodes import Node
from dkimctl.text.escaping import printable, quoted

_MAX_ENTRIES = 250_000  # to check and plan them takes up to 8 s and 350 MB
_MAX_A_LABELS = 3_000_000  # characters; to check them takes 5 s
_SPLIT = "split the file into several, and register one after the other"


class Report(Protocol):
    """What takes the problems of a file, such as a Document."""

    def problem(self, node: Node, message: str, hint: str) -> None: ...
    def stop(self, node: Node, message: str, hint: str) -> NoReturn: ...


class Entries:
    """Collects entries in `specs`. Call `begin` before those of each file, and `end` after them."""

    def __init__(self) -> None:
        self.specs: list[DomainSpec] = []
        self._count = 0  # also of those that are wrong
        self._a_labels = 0  # characters
        self._starts: list[int] = []  # the position in `specs` of each file's first entry
        self._files: list[str] = []
        self._lines: list[int] = []  # of `specs`
        # Positions in `specs`: of each domain's first entry, and of all where there are several.
        self._first: dict[str, int] = {}
        self._repeated: dict[str, dict[RegistrationKey, int]] = {}

    def begin(self, file: str) -> None:
        self._starts.append(len(self.specs))
        self._files.append(file)

    def end(self, defaults: Mapping[str, Any]) -> None:
        """Apply `defaults` to the entries of the file."""
        if not defaults:
            return
        template = DomainSpec("", **defaults)
        for position in range(self._starts[-1], len(self.specs)):
            # In place: a second list takes as much memory.
            self.specs[position] = DomainSpec._make(
                [b if a is None else a for a, b in zip(self.specs[position], template, strict=True)]
            )

    def require_room(self, report: Report, node: Node) -> None:
        """Count one more entry, and stop if there are too many."""
        self._count += 1
        if self._count > _MAX_ENTRIES:
            report.stop(node, f"more than {_MAX_ENTRIES:,} entries", _SPLIT)

    def add(self, report: Report, node: Node, fields: Mapping[str, Any]) -> None:
        """Add the entry at `node`. A field is None if its problem has been reported."""
        if "sign_domain" not in fields:
            report.problem(node, "an entry needs a sign_domain", "add the signing domain")
        elif None not in (fields["sign_domain"], fields.get("selector", "")):
            spec = DomainSpec(**fields)
            if spec.replaces is not None:
                _check_replaces(report, node, spec)
            self._add(report, node, spec)

    def _add(self, report: Report, node: Node, spec: DomainSpec) -> None:
        octets = key_name_length(spec.sign_domain, spec.selector)
        if octets > MAX_NAME:
            message = f"SELECTOR._domainkey.DOMAIN has {octets} octets, more than {MAX_NAME}"
            hint = f"a DNS name has at most {MAX_NAME} octets: use a shorter selector or domain"
            report.problem(node, message, hint)
        if "xn--" in spec.sign_domain:
            self._count_a_labels(report, node, spec.sign_domain)
        position = len(self.specs)
        self.specs.append(spec)
        self._lines.append(node.start_mark.line + 1)
        if self._first.setdefault(spec.sign_domain, position) != position:
            self._check_repeated(report, node, position)

    def _count_a_labels(self, report: Report, node: Node, domain: str) -> None:
        self._a_labels += sum(map(len, filter(is_a_label, domain.split("."))))
        if self._a_labels > _MAX_A_LABELS:
            message = f"more than {_MAX_A_LABELS:,} characters of internationalized labels (xn--)"
            report.stop(node, message, _SPLIT)

    def _check_repeated(self, report: Report, node: Node, position: int) -> None:
        """Report an entry that repeats an earlier one, or makes it ambiguous."""
        spec = self.specs[position]
        first = self._first[spec.sign_domain]
        positions = self._repeated.setdefault(spec.sign_domain, {self.specs[first].key: first})
        if spec.key in positions:
            _report_repeated(report, node, spec, self._place(positions[spec.key]))
            return
        other = first if spec.selector is None else positions.get(key_of(spec.sign_domain, None))
        if other is not None:
            message = (
                f"{quoted(spec.sign_domain)} has entries with and without a selector "
                f"({self._place(other)})"
            )
            report.problem(node, message, "give every entry of the domain a selector")
        positions[spec.key] = position

    def _place(self, position: int) -> str:
        """The line of an entry, and its file if that is another one."""
        file = bisect(self._starts, position) - 1
        line = f"line {self._lines[position]}"
        is_same = file == len(self._files) - 1
        return line if is_same else f"{line} of {printable(self._files[file])}"


def _check_replaces(report: Report, node: Node, spec: DomainSpec) -> None:
    if spec.selector is None:
        message = "an entry with replaces: needs a selector of its own"
        report.problem(node, message, "add the selector of the new key")
    elif key_of(spec.sign_domain, spec.replaces) == spec.key:
        message = f"the selector {quoted(spec.selector)} cannot replace itself"
        report.problem(node, message, "write the selector of the old key at replaces:")


def _report_repeated(report: Report, node: Node, spec: DomainSpec, place: str) -> None:
    name, hint = quoted(spec.sign_domain), "remove one of the two"
    if spec.selector:
        name += f" with selector {quoted(spec.selector)}"
    else:
        hint += ", or give each its own selector"
    report.problem(node, f"{name} is already on {place}", hint)
