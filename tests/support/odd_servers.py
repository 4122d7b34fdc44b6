"""Name servers with odd behaviour, in front of a real one.

    python odd_servers.py UPSTREAM ADDRESS=BEHAVIOUR…

Each address gets a server on port 53 that hands the answers of the server at UPSTREAM on, in its
own way; see BEHAVIOURS.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

_RESPONSE, _AUTHORITATIVE, _TRUNCATED = 0x80, 0x04, 0x02  # in the third byte of a message
_FORMERR, _NXDOMAIN, _NOTIMP, _REFUSED = 1, 3, 4, 5
_HEADER = 12  # bytes
_DO = 0x80  # in the flags of an OPT record (RFC 3225)
_PORT = 53

Ask = Callable[[bytes], Awaitable[bytes]]


class Behaviour(NamedTuple):
    """What a server makes of a query: its answers over UDP and TCP, None for closed TCP.

    Each gets the query and a function that asks upstream; b"" is silence.
    """

    udp: Callable[[bytes, Ask], Awaitable[bytes]]
    tcp: Callable[[bytes, Ask], Awaitable[bytes]] | None


def _question(query: bytes) -> bytes:
    return query[_HEADER : query.index(b"\0", _HEADER) + 5].lower()


def _is_txt(query: bytes) -> bool:
    return _question(query).endswith(b"\0\x10\0\1")


def _failure(query: bytes, rcode: int) -> bytes:
    """An answer without records and without EDNS."""
    question = query[_HEADER : _HEADER + len(_question(query))]
    flags = bytes((_RESPONSE | query[2] & 1, rcode))
    return query[:2] + flags + b"\0\1" + bytes(6) + question


async def _as_is(query: bytes, ask: Ask) -> bytes:
    return await ask(query)


async def _silent(query: bytes, ask: Ask) -> bytes:
    return b""


async def _truncated(query: bytes, ask: Ask) -> bytes:
    answer = _failure(query, 0)
    return answer[:2] + bytes((answer[2] | _TRUNCATED,)) + answer[3:]


async def _not_authoritative(query: bytes, ask: Ask) -> bytes:
    answer = await ask(query)
    return answer[:2] + bytes((answer[2] & ~_AUTHORITATIVE,)) + answer[3:]


async def _refused(query: bytes, ask: Ask) -> bytes:
    return _failure(query, _REFUSED)


def _without_edns(rcode: int | None) -> Behaviour:
    """Answers EDNS with an RCODE, or not at all; and nothing with EDNS itself."""

    async def answer(query: bytes, ask: Ask) -> bytes:
        if query[10:12] != b"\0\0":
            return b"" if rcode is None else _failure(query, rcode)
        return await ask(query)

    return Behaviour(answer, answer)


async def _signed_truncated(query: bytes, ask: Ask) -> bytes:
    """TXT records with signatures do not fit; the OPT record asks for them (DO)."""
    opt = query.find(b"\0\0\x29", _HEADER + len(_question(query)))
    is_signed = opt > 0 and query[opt + 7] & _DO
    return await (_truncated if is_signed and _is_txt(query) else _as_is)(query, ask)


async def _only_txt(query: bytes, ask: Ask) -> bytes:
    return await ask(query) if _is_txt(query) else _failure(query, _NOTIMP)


def _lossy() -> Behaviour:
    """Loses the first datagram of each question."""
    seen = set[bytes]()

    async def answer(query: bytes, ask: Ask) -> bytes:
        if _question(query) not in seen:
            seen.add(_question(query))
            return b""
        return await ask(query)

    return Behaviour(answer, _as_is)


def _flapping() -> Behaviour:
    """Denies a name every second time that it is asked for its TXT records, from the first on."""
    asked = Counter[bytes]()

    async def answer(query: bytes, ask: Ask) -> bytes:
        if not _is_txt(query):
            return await ask(query)
        asked[_question(query)] += 1
        denial = _failure(query, _NXDOMAIN)
        denial = denial[:2] + bytes((denial[2] | _AUTHORITATIVE,)) + denial[3:]
        return denial if asked[_question(query)] % 2 else await ask(query)

    return Behaviour(answer, answer)


BEHAVIOURS: dict[str, Behaviour] = {
    "silent": Behaviour(_silent, None),
    "tcp-only": Behaviour(_silent, _as_is),
    "udp-only": Behaviour(_as_is, None),
    "truncating": Behaviour(_truncated, _as_is),
    "truncating-udp-only": Behaviour(_truncated, None),
    "signed-udp-only": Behaviour(_signed_truncated, None),
    "not-authoritative": Behaviour(_not_authoritative, _not_authoritative),
    "refused": Behaviour(_refused, _refused),
    "edns-formerr": _without_edns(_FORMERR),
    "edns-silent": _without_edns(None),
    "only-txt": Behaviour(_only_txt, _only_txt),
    "lossy": _lossy(),
    "flapping": _flapping(),
}


class _Udp(asyncio.DatagramProtocol):
    def __init__(self, behaviour: Behaviour, ask: Ask) -> None:
        self._behaviour = behaviour
        self._ask = ask
        self._tasks = set[asyncio.Task[None]]()

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: object) -> None:
        task = asyncio.ensure_future(self._answer(data, addr))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, query: bytes, client: object) -> None:
        if answer := await self._behaviour.udp(query, self._ask):
            self._transport.sendto(answer, client)


async def _read(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(2)))


async def _serve_tcp(behaviour: Behaviour, address: str, ask: Ask) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert behaviour.tcp is not None
        try:
            while answer := await behaviour.tcp(await _read(reader), ask):
                writer.write(len(answer).to_bytes(2) + answer)
        except (OSError, EOFError):
            pass
        finally:
            writer.close()

    await asyncio.start_server(serve, address, _PORT)


async def main(upstream: str, *servers: str) -> None:
    async def ask(query: bytes) -> bytes:
        """Over TCP, so that no answer is too large."""
        reader, writer = await asyncio.open_connection(upstream, _PORT)
        try:
            writer.write(len(query).to_bytes(2) + query)
            return await _read(reader)
        finally:
            writer.close()

    loop = asyncio.get_running_loop()
    for server in servers:
        address, _, name = server.partition("=")
        behaviour = BEHAVIOURS[name]
        if behaviour.tcp is not None:
            await _serve_tcp(behaviour, address, ask)
        await loop.create_datagram_endpoint(
            lambda behaviour=behaviour: _Udp(behaviour, ask), local_addr=(address, _PORT)
        )
    print("ready", flush=True)  # noqa: T201
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
