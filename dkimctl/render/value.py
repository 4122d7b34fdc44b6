"""Value: the bare TXT value, to paste into a form."""

from __future__ import annotations

from collections.abc import Iterable

from dkimctl.models.registration import DnsRecord, Result
from dkimctl.render.records import publishable
from dkimctl.render.renderer import Renderer
from dkimctl.text.escaping import printable


class ValueRenderer(Renderer[Result]):
    """The value of the one publishable record; of several, lines of FQDN, tab, value."""

    def __init__(self) -> None:
        self._first: DnsRecord | None = None  # until there is a second
        self._has_several = False

    def add(self, result: Result) -> str:
        record = publishable(result)
        if record is None:
            return ""
        if self._has_several:
            return _line(record)
        first, self._first = self._first, record
        if first is None:
            return ""
        self._has_several = True
        return _line(first) + _line(record)

    def end(self) -> Iterable[str]:
        if self._first is not None and not self._has_several:
            yield f"{printable(self._first.value)}\n"


def _line(record: DnsRecord) -> str:
    return f"{printable(record.fqdn)}\t{printable(record.value)}\n"
