"""The resolvers that this machine uses."""

from __future__ import annotations

from collections.abc import Sequence

from dkimctl.dns.messages import USEFUL, Answer, Question, rcode_name
from dkimctl.dns.nameserver import NoAnswer, Server
from dkimctl.dns.validation import ask_validated, validated
from dkimctl.errors import ServiceError, UsageError
from dkimctl.text.addresses import Address, parse_address
from dkimctl.text.escaping import printable


def system_nameservers() -> list[Address]:
    """The resolvers that this machine is configured with. Raises ServiceError if none."""
    import dns.exception
    import dns.resolver

    try:
        resolver = dns.resolver.Resolver()
        return [parse_address(str(server)) for server in resolver.nameservers]
    except (dns.exception.DNSException, OSError, ValueError, UsageError) as error:
        raise ServiceError(
            f"no usable DNS resolver is configured on this machine: {printable(str(error))}",
            hint="check /etc/resolv.conf or the network settings, or name the servers or zones "
            "yourself (check-dns: --server IP; DNS output: --zone ZONE)",
        ) from None


class RecursiveResolver:
    """Asks several resolvers, each if the one before gave no useful answer."""

    def __init__(self, nameservers: Sequence[Address], max_in_flight: int) -> None:
        self._servers = [
            Server(
                address.host, address.port, max_in_flight=max_in_flight, recursion=True,
                needs_udp=False,
            )
            for address in nameservers
        ]  # fmt: skip

    async def ask(self, question: Question) -> Answer:
        """The first useful answer. Raises NoAnswer if there is none."""
        reason = "no DNS resolver is configured on this machine"
        for server in self._servers:
            try:
                answer = await ask_validated(server, question)
            except NoAnswer as error:
                reason = f"the resolver {server.address}: {error}"
                continue
            if answer.rcode in USEFUL:
                return answer
            reason = f"the resolver {server.address}: it answers {rcode_name(answer)}"
        raise NoAnswer(reason)

    async def prefetch(self, questions: Sequence[Question]) -> None:
        """Ask the first resolver many questions in one burst; see Server.prefetch."""
        for server in self._servers[:1]:
            await server.prefetch(list(map(validated, questions)))

    def reset_failures(self) -> None:
        """Ask resolvers again that did not answer."""
        for server in self._servers:
            server.reset_failures()
