"""Name servers on loopback that take updates of example.com with a TSIG key, and what they have."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import dns.query
import dns.rdatatype
import dns.zone

from dkimctl.addresses import Address
from dkimctl.models import DnsRecord, Registration, Secret
from dkimctl.publishing.plan import Action, Change, NameState
from dkimctl.publishing.rfc2136 import Rfc2136Target
from dkimctl.publishing.tsig_key import TsigKey
from dns_servers import PDNS, SECRET, Server, make_database, powerdns_schema, running, serving
from ports import free_port

UPDATED = ("named", "knotd", "pdns_server")

# Records that no change may touch, in forms that are easily lost.
ZONE = r"""$ORIGIN example.com.
$TTL 60
@ SOA ns.example.com. root.example.com. 1 3600 600 86400 60
@ NS ns.example.com.
@ MX 10 mail.example.com.
@ TXT "v=spf1 -all"
@ CAA 0 issue "ca.example.net"
ns A 127.0.0.1
mail 7 A 127.0.0.2
kept TXT "as it" " was"
kept TXT "another; with \"quotes\" and \\ and \255"
_domainkey TXT "o=-"
other._domainkey 5 TXT "v=DKIM1; p=other"
s1._domainkey HINFO "also" "kept"
s1._domainkey.alias CNAME key.example.net.
sub NS ns.sub
ns.sub A 127.0.0.3
"""

KEY = "v=DKIM1; k=rsa; p=" + 392 * "A"  # as long as a key of 2048 bits
NAMES = [f"s1._domainkey.d{number}.example.com" for number in range(5)]
# More of the zone, at the second and third of these names.
OLD = """
s1._domainkey.d1 300 TXT "v=DKIM1; " "p=old"
s1._domainkey.d1 300 TXT "a second record"
s1._domainkey.d2 TXT "v=DKIM1; p=retired"
s1._domainkey.d2 HINFO "stays" "here"
"""

# Wildcards, and what they meet.
WILD = r"""
* 300 MX 10 mail.example.net.
* 300 A 192.0.2.2
* 300 A 192.0.2.1
* 300 TXT "v=spf1 \" ; \\ \226 -all" "second"
own A 192.0.2.9
*.own HTTPS 1 . alpn=h2
same A 192.0.2.1
copied A 192.0.2.1
*.copied A 192.0.2.1
text TXT "only this"
signed A 192.0.2.9
old._domainkey.signed TXT "v=DKIM1; p="
*.wild 60 CNAME web.example.net.
x.empty._sub.wild HINFO "makes" "these exist"
"""
# Signing domains that lose nothing with their first key, and those that lose a wildcard's answers.
WHOLE = ("own", "same", "copied", "text", "signed", "kept", "wild", "empty._sub.wild", "x.sub")
SHADOWED = ("shop", "b.a", "a.wild", "x.kept.text.new", "a.own")

EMPTY = NameState()

Need = Callable[[str], str]
ZoneRecord = tuple[str, str, int, bytes]


@contextlib.contextmanager
def serving_updates(
    program: str,
    directory: Path,
    need: Need,
    zone: str = ZONE,
    *,
    more: str = "",
    key: str = "dkim",
) -> Iterator[Server]:
    """A server that lets the key `dkim` change example.com; see `dns_servers.serving`.

    PowerDNS lets `key` do so.
    """
    directory.mkdir(exist_ok=True)
    file = directory / "example.zone"
    file.write_text(zone)
    if program != "pdns_server":
        with serving(program, file, directory, need, more=more) as server:
            yield server
        return
    port = free_port()
    config = PDNS.format(host="127.0.0.1", port=port, directory=directory)
    config += f"dnsupdate=yes\n{more}"
    make_database(powerdns_schema(need), directory, config)
    for words in (
        ("load-zone", "example.com", str(file)),
        ("rectify-zone", "example.com"),
        ("set-kind", "example.com", "primary"),
        ("import-tsig-key", "dkim", "hmac-sha256", SECRET),
        ("set-meta", "example.com", "TSIG-ALLOW-DNSUPDATE", key),
    ):
        command = [need("pdnsutil"), f"--config-dir={directory}", *words]
        subprocess.run(command, check=True, capture_output=True)
    command = [need("pdns_server"), f"--config-dir={directory}"]
    with running(command, directory / "pdns.log", port) as server:
        yield server


def open_target(
    port: int,
    *,
    key: str = "dkim",
    algorithm: str = "hmac-sha256",
    secret: str = SECRET,
    **options: object,
) -> Rfc2136Target:
    """The target for a server on loopback; without `key`, unsigned."""
    tsig_key = TsigKey(key, algorithm, Secret(secret))
    read_key = (lambda: tsig_key) if key else None
    return Rfc2136Target("test", Address("127.0.0.1", port), 3600, read_key, **options)


def change(name: str, value: str | None, before: NameState = EMPTY) -> Change:
    """What a plan has for the name of a record and what is there before."""
    action = Action.REPLACE if before.values else Action.CREATE
    if value is None:
        action = Action.REMOVE
    selector, _, domain = name.partition("._domainkey.")
    record = DnsRecord(name, "TXT", value or "")
    registration = Registration(domain, selector, record=record)
    return Change(registration, action, before, value, 3600)


def transfer(server: Server) -> set[ZoneRecord]:
    """All records of example.com but the SOA record: name, type, TTL and data on the wire."""
    zone = dns.zone.Zone("example.com", relativize=False)
    dns.query.inbound_xfr(server.host, zone, port=server.port, timeout=10)
    return {
        (str(name).lower(), dns.rdatatype.to_text(data.rdtype), ttl, data.to_wire())
        for name, ttl, data in zone.iterate_rdatas()
        if data.rdtype != dns.rdatatype.SOA
    }


def serial(server: Server) -> int:
    """The serial number of the zone."""
    soa = server.ask("example.com", "SOA")[0]
    return soa.serial
