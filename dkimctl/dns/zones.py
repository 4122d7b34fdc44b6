"""The zones that names are in, and the servers that resolvers may ask about them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import dns.name
from dns.rdataclass import IN
from dns.rdatatype import RdataType

from dkimctl.dns import messages, nameserver
from dkimctl.dns.messages import NS, SOA, Answer, Question, make_question, to_text
from dkimctl.dns.nameserver import ErrorAnswer, NameServer, NoAnswer, RecursiveResolver, Server
from dkimctl.errors import ServiceError, UsageError
from dkimctl.text import listed, printable

_K = TypeVar("_K")
_T = TypeVar("_T")

MAX_IN_FLIGHT = 32  # questions to one resolver, which others use as well
_MAX_BURSTS = 64  # servers that are asked at a time, so that there are sockets for them
_MAX_SILENT = 3  # servers that do not answer, of those above a name without SOA record
_TOP_LABELS = 2  # of a top-level domain: the root is a label, too
_ALTERNATIVE = "name your zones with --zone"


def find_zones(names: Iterable[str]) -> dict[str, str]:
    """The zone of each name. Raises ServiceError without an answer, UsageError without a zone."""
    resolver = RecursiveResolver(nameserver.system_nameservers(), MAX_IN_FLIGHT)

    async def find(name: str) -> tuple[str, str | None]:
        try:
            return name, await find_zone(name, resolver)
        except NoAnswer as error:
            raise ServiceError(
                f"cannot find the zone of {printable(name)}: {error}",
                hint=f"check the DNS resolver of this machine, or {_ALTERNATIVE}",
            ) from None

    async def find_all() -> list[tuple[str, str | None]]:
        # Not a TaskGroup: its ExceptionGroup hides the error, and Python 3.11.2 wraps even what
        # `except*` raises. The first error ends the rest.
        return await asyncio.gather(*map(find, dict.fromkeys(names)))

    zones = asyncio.run(find_all())
    if missing := [printable(name) for name, zone in zones if zone is None]:
        hint = f"check the domain names, or {_ALTERNATIVE}"
        raise UsageError(f"DNS has no zone for {listed(missing)}", hint=hint)
    return {name: zone for name, zone in zones if zone is not None}


async def find_zone(name: str, resolver: RecursiveResolver) -> str | None:
    """The closest name with an SOA record; None if DNS has no such name. Raises NoAnswer."""
    if len(dns.name.from_text(name)) <= _TOP_LABELS:  # as the target of an alias
        return None
    return _zone_of(*await _find_apex(name, resolver))


def _zone_of(apex: dns.name.Name, answer: Answer | None) -> str | None:
    """The zone of a name with this apex, if the name exists according to the answer for it.

    Top-level domains that have records of others themselves, as private ones do, answer for those.
    """
    is_own = len(apex) > _TOP_LABELS
    exists = answer is not None and answer.rcode == messages.NOERROR and not answer.alias
    return to_text(apex) if is_own or (exists and apex != dns.name.root) else None


async def _find_apex(
    name: str, resolver: RecursiveResolver, *, over_errors: bool = False
) -> tuple[dns.name.Name, Answer | None]:
    """The closest name with an SOA record, and what is answered for the name itself.

    `over_errors`: goes on above names for which the resolver gets an error. Raises NoAnswer.
    """
    candidate = dns.name.from_text(name)
    answers: list[Answer | None] = []
    while True:
        answer = None
        try:
            answer = await look_up(resolver, make_question(candidate, SOA))
        except ErrorAnswer:
            if not over_errors or len(candidate) <= _TOP_LABELS:
                raise
        answers.append(answer)
        if answer and answer.message is None and answer.zone:
            return dns.name.from_text(answer.zone), answers[0]
        message = answer.message if answer else None
        for rrset in (*message.answer, *message.authority) if message else ():
            # The SOA of an alias's target is not that of its zone.
            if rrset.rdtype == SOA and candidate.is_subdomain(rrset.name):
                return rrset.name, answers[0]
        if candidate == dns.name.root:
            raise NoAnswer(
                "the resolver finds no zone for this name, not even the root: does this machine "
                "reach DNS on the Internet?"
            )
        candidate = candidate.parent()


async def look_up(resolver: RecursiveResolver, question: Question) -> Answer:
    """The answer. Raises NoAnswer, which names the question."""
    try:
        return await resolver.ask(question)
    except NoAnswer as error:
        raise type(error)(f"{question}: {error}") from None


class Zone(NamedTuple):
    """A zone and its authoritative servers."""

    name: str  # without trailing dot
    servers: Sequence[NameServer]
    unknown_delegation: str = ""  # why it is not known which servers the zone above names
    is_secure: bool = False  # the resolver validates it with DNSSEC, or gives no NS records of it
    bogus: str = ""  # why the resolver cannot, but should


_Addresses = Mapping[str, Sequence[str] | NoAnswer]  # by host


class _Above(NamedTuple):
    """What the servers of the zone above say of a zone."""

    #: The hosts that they name, each with the addresses they have for it (glue).
    hosts: dict[str, set[str]]
    named_by: dict[str, list[str]]  # the servers that name a host, by label
    answering: dict[str, Server]  # those that answer for the zone themselves, by label


class ZoneServers:
    """Finds the authoritative servers of zones, one for each address, and caches what it found."""

    def __init__(self, resolver: RecursiveResolver, make_server: Callable[[str], Server]) -> None:
        self.resolver = resolver
        self._make_server = make_server
        self._servers: dict[str, Server] = {}  # by address
        self._found: dict[Any, asyncio.Task[Any]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None  # that of the semaphore
        self._semaphore = asyncio.Semaphore(_MAX_BURSTS)

    @property
    def _slots(self) -> asyncio.Semaphore:
        """Limits how many servers are asked at a time, in one event loop after the other."""
        if self._loop is not (loop := asyncio.get_running_loop()):
            self._loop, self._semaphore = loop, asyncio.Semaphore(_MAX_BURSTS)
        return self._semaphore

    async def zone_with(self, name: str) -> Zone | None:
        """The zone that a name is in; None if DNS has none. Raises NoAnswer."""
        zone = await self._once(self._find_name, name)
        return None if zone is None else await self.zone(zone)

    async def zone(self, name: str) -> Zone:
        """The zone with this name. Raises NoAnswer if DNS gives no server with an address."""
        return await self._once(self._find_zone, name)

    async def prefetch(self, names: Iterable[str]) -> None:
        """Find the zones of names, and ask each server above them for all of those in one burst."""
        questions: dict[Server, dict[Question, None]] = {}

        async def collect(name: str) -> None:
            with contextlib.suppress(NoAnswer):
                zone = await self._once(self._find_name, name)
                if zone is not None and (self._find_zone, zone) not in self._found:
                    _, servers = await self._servers_above(zone)
                    for server in servers.values():
                        questions.setdefault(server, {})[make_question(zone, NS)] = None

        await asyncio.gather(*map(collect, names))

        async def burst(server: Server) -> None:
            async with self._slots:
                await server.prefetch(list(questions[server]))

        await asyncio.gather(*map(burst, questions))

    def forget(self) -> None:
        """Empty the caches, and ask servers again that did not answer."""
        self._found.clear()
        for server in self._servers.values():
            server.reset()
        self.resolver.reset()

    async def _once(self, find: Callable[[str], Awaitable[_T]], name: str) -> _T:
        result: _T = await once(self._found, (find, name), lambda _: find(name))
        return result

    async def _ask(self, server: Server, question: Question) -> Answer:
        async with self._slots:
            return await server.ask(question)

    async def _find_name(self, name: str) -> str | None:
        """The zone of a name, by its SOA record or, if its servers give none, by its delegation.

        They may answer with an error, or with an alias (CNAME) at the apex.
        """
        if len(dns.name.from_text(name)) <= _TOP_LABELS:
            return None
        apex, answer = await _find_apex(name, self.resolver, over_errors=True)
        if answer is not None and not (answer.alias and len(apex) <= _TOP_LABELS):
            return _zone_of(apex, answer)
        failures: list[NoAnswer] = []
        for server in (await self._once(self._find_servers, to_text(apex))).values():
            try:
                answer = await self._ask(server, make_question(name, NS))
            except NoAnswer as error:
                failures.append(error)
                if len(failures) == _MAX_SILENT:
                    break
                continue
            # Not to the zone itself, or to what is above it, as lame servers refer.
            if below := answer.delegated:
                if dns.name.from_text(below).is_subdomain(apex) and below != to_text(apex):
                    return below
            elif answer.is_authoritative:
                return _zone_of(apex, answer._replace(alias=""))
        raise failures[-1] if failures else NoAnswer(f"no server of {to_text(apex)} knows {name}")

    async def _find_apex(self, name: str) -> dns.name.Name:
        return (await _find_apex(name, self.resolver))[0]

    async def _find_zone(self, name: str) -> Zone:
        answer = failure = None
        try:
            answer = await look_up(self.resolver, make_question(name, NS))
        except ErrorAnswer as error:  # of its servers; the delegation names them, too
            failure = error
        # An alias at the apex would lead to the NS records of another zone.
        hosts = hosts_in(answer) if answer and not answer.alias else []
        above, unknown = _Above({}, {}, {}), ""
        try:
            above = await self._ask_above(name)
        except NoAnswer as error:
            unknown = f"the delegation of {name} is not known: {error}"
        without_glue = [host for host, glue in above.hosts.items() if not glue]
        addresses = await self._find_addresses([*hosts, *without_glue])
        own = {host: addresses[host] for host in hosts}
        delegated = {host: [*glue] or addresses[host] for host, glue in above.hosts.items()}
        servers = list(self._name_servers(own, delegated, above))
        if not servers:
            raise failure or NoAnswer(f"DNS names no server with an address for the zone {name}")
        if answer is None:
            return Zone(name, servers, unknown, is_secure=True)
        return Zone(name, servers, unknown, answer.is_validated, answer.bogus)

    def _name_servers(
        self, own: _Addresses, delegated: _Addresses, above: _Above
    ) -> Iterator[NameServer]:
        """A server for each host whose addresses are not known, and the server at each address."""

        def side(hosts: Sequence[str], *, is_own: bool) -> str:
            if is_own:
                is_only_own = delegated and delegated.keys().isdisjoint(hosts)
                return ", only in the zone's own NS records" if is_only_own else ""
            namers = sorted({label for host in hosts for label in above.named_by.get(host, ())})
            is_by_all = {*namers} == {*chain.from_iterable(above.named_by.values())}
            return f", only {'in the delegation' if is_by_all else f'named by {listed(namers)}'}"

        for host, addresses in {**delegated, **own}.items():
            if isinstance(addresses, NoAnswer):
                reason = NoAnswer(f"its address is not known: {addresses}")
                label = host + side([host], is_own=host in own)
                yield NameServer(label, frozenset((host,)), reason)
        own_hosts, delegated_hosts = _by_address(own), _by_address(delegated)
        for address in own_hosts | delegated_hosts:
            hosts = sorted(own_hosts.get(address, set()) | delegated_hosts.get(address, set()))
            label, named = f"{', '.join(hosts)} ({address})", frozenset(hosts)
            only = side(hosts, is_own=address in own_hosts)
            yield NameServer(label + only, named, self._server(address), not only)
        servers = {self._server(address) for address in own_hosts | delegated_hosts}
        for label, server in above.answering.items():
            if server not in servers:
                host, marked = label.partition(" ")[0], f"{label}, a server of the zone above"
                yield NameServer(marked, frozenset((host,)), server, is_regular=False)

    def _server(self, address: str) -> Server:
        if address not in self._servers:
            self._servers[address] = self._make_server(address)
        return self._servers[address]

    async def _find_addresses(self, hosts: Iterable[str]) -> dict[str, Sequence[str] | NoAnswer]:
        """The addresses of each host, empty if there is no such host; or why they are not known."""
        unique = list(dict.fromkeys(hosts))
        finding = (self._once(self._find_addresses_of, host) for host in unique)
        return dict(zip(unique, await asyncio.gather(*finding), strict=True))

    async def _find_addresses_of(self, host: str) -> Sequence[str] | NoAnswer:
        addresses: list[str] = []
        try:
            for rdtype in (messages.A, messages.AAAA):
                answer = await look_up(self.resolver, make_question(host, rdtype))
                addresses += [data.address for data in answer.data(rdtype)]
        except NoAnswer as error:
            return addresses or error  # some resolvers fail on AAAA alone: then there is no IPv6
        return addresses

    async def _ask_above(self, zone: str) -> _Above:
        """What each server of the zone above says of a zone (RFC 1034 section 4.3.2).

        A server that refers to it does so for every name in it. One that answers with authority has
        the zone, or an old copy of it or of the zone above: it answers for the names itself, so it
        is asked for each. Raises NoAnswer if none of them knows of the zone: then only resolvers
        here do, perhaps from an old answer.
        """
        apex, servers = await self._servers_above(zone)
        question = make_question(zone, NS)
        asking = (self._ask(server, question) for server in servers.values())
        results = await asyncio.gather(*asking, return_exceptions=True)
        above, is_known, failure = _Above({}, {}, {}), False, ""
        for (label, server), answer in zip(servers.items(), results, strict=True):
            named: Mapping[str, Iterable[str]] = {}
            wrong = ""
            if isinstance(answer, NoAnswer):
                wrong = str(answer)
            elif isinstance(answer, BaseException):
                raise answer
            elif answer.rcode not in messages.USEFUL:
                wrong = f"it answers {messages.rcode_text(answer.rcode)}"
            elif answer.delegated == zone:
                named = _delegation(answer, zone, apex)
            elif not answer.is_authoritative:
                wrong = "it is not authoritative (lame)"
            else:
                named = {} if answer.alias else dict.fromkeys(hosts_in(answer), ())
                above.answering[label] = server
                if not named and answer.zone != zone:
                    wrong = "it does not delegate the zone"
            if wrong:
                failure = f"{label}: {question}: {wrong}"
            is_known = is_known or not wrong
            for host, glue in named.items():
                above.hosts.setdefault(host, set()).update(glue)
                above.named_by.setdefault(host, []).append(label)
        if not is_known:
            raise NoAnswer(failure)
        return above

    async def _servers_above(self, zone: str) -> tuple[dns.name.Name, Mapping[str, Server]]:
        apex = await self._once(self._find_apex, messages.name_above(zone))
        return apex, await self._once(self._find_servers, to_text(apex))

    async def _find_servers(self, zone: str) -> Mapping[str, Server]:
        """The servers of a zone that delegates others, by label."""
        answer = await look_up(self.resolver, make_question(zone, NS))
        servers = {
            f"{host} ({address})": self._server(address)
            for host, addresses in (await self._find_addresses(hosts_in(answer))).items()
            if not isinstance(addresses, NoAnswer)
            for address in addresses
        }
        if not servers:
            raise NoAnswer(f"DNS names no server with an address for the zone {zone}")
        return servers


def _delegation(referral: Answer, zone: str, apex: dns.name.Name) -> Mapping[str, Iterable[str]]:
    """The hosts in a referral; glue for those that are not below the apex is not believed."""
    message = referral.message
    if message is None:
        return {}
    records = message.get_rrset(message.authority, dns.name.from_text(zone), IN, RdataType.NS) or ()
    return {
        to_text(host): [
            data.address
            for rdtype in (RdataType.A, RdataType.AAAA)
            for data in message.get_rrset(message.additional, host, IN, rdtype) or ()
            if host.is_subdomain(apex)
        ]
        for host in sorted(data.target for data in records)
    }


def hosts_in(answer: Answer) -> list[str]:
    """The hosts in its NS records, sorted."""
    return sorted({to_text(data.target) for data in answer.data(NS)})


def _by_address(addresses: _Addresses) -> dict[str, set[str]]:
    """The hosts at each address."""
    hosts: dict[str, set[str]] = {}
    for host, of_host in addresses.items():
        for address in () if isinstance(of_host, NoAnswer) else of_host:
            hosts.setdefault(address, set()).add(host)
    return hosts


async def once(
    tasks: dict[_K, asyncio.Task[_T]], key: _K, find: Callable[[_K], Awaitable[_T]]
) -> _T:
    """What `find` gives for the key, called once for it even at the same time."""
    if key not in tasks:
        tasks[key] = asyncio.ensure_future(find(key))
    return await asyncio.shield(tasks[key])
