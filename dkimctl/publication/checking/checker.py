"""Check registrations against DNS, many at the same time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Self

from dkimctl.models.registration import Registration
from dkimctl.publication.checking.asking import RegistrationCheck
from dkimctl.publication.checking.sources import Source
from dkimctl.publication.verdicts import Check

_AT_ONCE = 64  # registrations that are asked for with care; each takes some sockets
_CHUNK = 2048  # registrations whose checks are held until all of them are done


class Checker:
    """Asks the servers that `source` finds. `expect_absent`: the records are to be gone.

    `done` hears of each check as it is made. Not for use within an event loop.
    """

    def __init__(
        self,
        source: Source,
        *,
        expect_absent: bool = False,
        done: Callable[[Check], None] = lambda check: None,
    ) -> None:
        self._source = source
        self._inquiry = RegistrationCheck(source, expect_absent=expect_absent)
        self._done = done
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    def check(self, registrations: Iterable[Registration]) -> Iterator[Check]:
        """What DNS says of each, in their order. Each has a sound record (dkim.judge)."""
        remaining = iter(registrations)
        while chunk := list(itertools.islice(remaining, _CHUNK)):
            yield from self._runner.run(self._check(chunk))

    def check_again(self, registrations: Iterable[Registration]) -> Iterator[Check]:
        """The same, with nothing remembered of the servers."""
        self._source.forget()
        return self.check(registrations)

    async def _check(self, registrations: Sequence[Registration]) -> list[Check]:
        checks: dict[int, Check] = {}
        places = await self._inquiry.find(registrations)
        remaining = enumerate(zip(registrations, places, strict=True))

        async def work() -> None:
            for number, (registration, place) in remaining:
                checks[number] = check = await self._inquiry.check(registration, place)
                self._done(check)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(_AT_ONCE, len(registrations))):
                group.create_task(work())
        return [checks[number] for number in range(len(registrations))]
