"""Put records into DNS by dynamic updates (RFC 2136), signed with TSIG (RFC 8945)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from dkimctl.dns.messages import NOERROR
from dkimctl.errors import DkimctlError, DnsRefused
from dkimctl.publishing.changes import Applied, Change, NameState
from dkimctl.publishing.dns_server.connection import Timeouts
from dkimctl.publishing.dns_server.server import Server, UnknownResult
from dkimctl.publishing.dns_server.states import read_states
from dkimctl.publishing.dns_server.updater import Updater
from dkimctl.publishing.dns_server.updates import make_probe
from dkimctl.publishing.dns_server.zones import find_zones
from dkimctl.publishing.targets import Access
from dkimctl.publishing.tsig_key import TsigKey
from dkimctl.text.addresses import Address

_TIMEOUTS = Timeouts()


class Rfc2136Target:
    """The zones of one DNS server. Without a key, messages are not signed.

    `clock` gives seconds since the epoch, which are part of a signature.
    """

    def __init__(
        self,
        label: str,
        server: Address,
        ttl: int,
        key: TsigKey | None = None,
        *,
        timeouts: Timeouts = _TIMEOUTS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.label = label
        self.ttl = ttl
        self._server = Server(server, key, timeouts, clock)

    def find_zones(self, names: Sequence[str]) -> Mapping[str, str | None]:
        """See Target. A delegated name is in the zone that delegates it."""
        return find_zones(self._server, names)

    def read(self, zone: str, names: Sequence[str]) -> Mapping[str, NameState]:
        """See Target."""
        return read_states(self._server, zone, names)

    def apply(self, zone: str, changes: Sequence[Change]) -> Iterator[Applied]:
        """See Target. One message is in flight at a time."""
        return Updater(self._server, zone).run(changes)

    def check_access(self, zone: str, names: Sequence[str]) -> Access:
        """See Target. The update deletes a value that the name does not have."""
        states = self.read(zone, names)
        own = [name for name in names if not states[name].delegated]
        if not own:
            return Access(True, None, "none of the names is in the zone itself")
        probe = make_probe(zone, own[0], f"dkimctl access check {secrets.token_hex(16)}")
        try:
            rcode = self._server.update(probe, zone)
            if rcode != NOERROR:
                raise self._server.errors.of_update(rcode, zone)
        except DnsRefused as error:
            return Access(True, False, error.message, error.hint)
        except DkimctlError as error:
            return Access(True, None, error.message, error.hint)
        except UnknownResult as unknown:
            return Access(True, None, unknown.error.message, unknown.error.hint)
        return Access(True, True)
