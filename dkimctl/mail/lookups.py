"""Look up key records as receivers do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dkimctl.dns.messages import MAX_ALIASES, TXT, Question, make_question, make_txt_question
from dkimctl.dns.nameserver import NameServer, NoAnswer
from dkimctl.dns.queries import QueryRunner, Source, gather, texts


class Lookup(NamedTuple):
    """The TXT values at a name; `failure`: why they are not known, or ""."""

    values: tuple[str, ...] = ()
    failure: str = ""


class KeyLookups:
    """Asks the servers of `source`, which are given or resolvers."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._queries = QueryRunner(source)

    async def find(self, names: Iterable[str]) -> dict[str, Lookup]:
        """What is at each of the names, whose labels are plain (dkim.is_name)."""
        distinct = list(dict.fromkeys(names))
        found = await gather(map(self._find, distinct))
        return dict(zip(distinct, found, strict=True))

    async def _find(self, name: str) -> Lookup:
        try:
            zone = await self._source.zone_with(name)
            question = make_txt_question(name)
            found = await gather(self._ask(server, question) for server in zone.servers)
        except NoAnswer as error:
            return Lookup(failure=str(error))
        known = {one for one in found if not one.failure}
        if len(known) > 1:
            return Lookup(failure="the servers have different records")
        return known.pop() if known else Lookup(failure=found[0].failure)

    async def _ask(self, server: NameServer, question: Question) -> Lookup:
        """What a server has at a name, or where its aliases lead."""
        for _ in range(MAX_ALIASES):
            (response,) = await self._queries.ask([server], question)
            answer = response.answer
            if answer is None:
                return Lookup(failure=f"{server.label}: {response.failure}")
            if answer.bogus:
                return Lookup(failure=answer.bogus)
            if answer.values or not answer.alias:
                return Lookup(tuple(sorted(texts(answer))))
            question = make_question(answer.alias, TXT)
        return Lookup(failure=f"more than {MAX_ALIASES} aliases (CNAME) in a row")
