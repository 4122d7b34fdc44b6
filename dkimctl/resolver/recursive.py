"""The resolvers that this machine is set up with, which ask other servers on its behalf."""

from __future__ import annotations

from collections.abc import Sequence

from dkimctl.resolver.addresses import Address
from dkimctl.resolver.messages import USEFUL, Answer, Question, rcode_name
from dkimctl.resolver.server import NoAnswer, Server


class RecursiveResolver:
    """Asks resolvers, the next where one gives no useful answer. Otherwise it is like a Server."""

    label = host = "the system's resolver"

    def __init__(self, nameservers: Sequence[Address], max_in_flight: int) -> None:
        self._servers = [
            Server(host, port, max_in_flight=max_in_flight, recursion=True)
            for host, port in nameservers
        ]

    async def ask(self, asked: Question) -> Answer:
        """What DNS says, to the best of their knowledge. Raises NoAnswer where none tells."""
        reason = "this machine is set up with no DNS resolver"
        for server in self._servers:
            try:
                answer = await server.ask(asked)
            except NoAnswer as error:
                reason = f"the resolver {server.label}: {error}"
                continue
            if answer.rcode in USEFUL:
                return answer
            reason = f"the resolver {server.label} answers {rcode_name(answer)}"
        raise NoAnswer(reason)

    async def prepare(self, questions: Sequence[Question]) -> None:
        """Ask the first of them many questions in one go; see Server.prepare."""
        for server in self._servers[:1]:
            await server.prepare(questions)

    def reset_failures(self) -> None:
        """Ask those again which have been silent."""
        for server in self._servers:
            server.reset_failures()
