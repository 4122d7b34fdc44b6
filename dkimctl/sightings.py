"""What the ledger is to keep of a look at DNS: since when records are published."""

from __future__ import annotations

from collections.abc import Container

from dkimctl.publication import Check, Verdict


class Sightings:
    """What is seen otherwise than it was `known`: (signing domain, selector), in lower case.

    Where DNS does not tell, all stays as it was.
    """

    def __init__(self, known: Container[tuple[str, str | None]]) -> None:
        self._known = known
        self.published: list[tuple[str, str | None]] = []
        self.gone: list[tuple[str, str | None]] = []

    @property
    def is_new(self) -> bool:
        return bool(self.published or self.gone)

    def see(self, check: Check) -> None:
        pair = check.sign_domain.lower(), check.selector.lower()
        verdict = check.finding.verdict
        if verdict is Verdict.PUBLISHED and pair not in self._known:
            self.published.append(pair)
        elif verdict not in (Verdict.PUBLISHED, Verdict.NO_ANSWER) and pair in self._known:
            self.gone.append(pair)
