"""The rules that docs/security.md has for a key let it change DKIM records, and nothing else."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from configs import read_config
from dkimctl.credentials.keyring_store import KeyringStore, ReferencedSecrets
from dkimctl.publishing.plan import Access, Target
from dkimctl.publishing.targets import open_targets
from dkimctl.publishing.tsig_key import read_tsig_key
from dns_servers import SECRET, Server, serving
from documents import example
from update_servers import change, serving_updates

pytestmark = pytest.mark.slow

Need = Callable[[str], str]

ZONE = """$ORIGIN example.com.
$TTL 60
@ SOA ns.example.com. root.example.com. 1 3600 600 86400 60
@ NS ns.example.com.
ns A 127.0.0.1
s0._domainkey TXT "v=DKIM1; p=old"
"""
# A zone beside that of the document, whose name the test servers already have.
KNOT = """
acl:
  - id: read
    address: 127.0.0.1
    action: query
{acl}
zone:
  - domain: {zone}
    file: {file}
    acl: dkimctl
"""
ALLOWED = ("s1._domainkey.{}", "a.b._domainkey.news.{}", "s0._domainkey.{}")
REFUSED = (
    ("{}.", "TXT", 'add {}. 60 TXT "v=spf1 -all"'),
    ("_domainkey.{}.", "TXT", 'add _domainkey.{}. 60 TXT "o=-"'),
    ("s2._domainkey.{}.", "CNAME", "add s2._domainkey.{}. 60 CNAME example.net."),
    ("ns.{}.", "A", "del ns.{}. A"),
    ("ns.{}.", "A", "add ns.{}. 60 A 127.0.0.2"),
)


class Restricted(NamedTuple):
    """A server that restricts a key by the rules of the document."""

    server: Server
    zone: str
    key_file: Path

    def target(self) -> Target:
        """What a config file beside the key file has for it."""
        config = self.key_file.with_name("config.yaml")
        config.write_text(
            f"dns: [{{provider: rfc2136, server: '{self.server}', key_file: tsig.key}}]"
        )
        secrets = ReferencedSecrets({}, KeyringStore())
        return open_targets(read_config(config), "default", secrets)[0]

    def update(self, line: str, need: Need) -> None:
        """Try a change, which a line of an nsupdate script says; PowerDNS tells no refusal."""
        key = read_tsig_key(str(self.key_file))
        command = [need("nsupdate"), "-y", f"{key.algorithm}:{key.name}:{key.secret.reveal()}"]
        script = f"server {self.server.host} {self.server.port}\nzone {self.zone}.\n{line}\nsend\n"
        done = subprocess.run(command, input=script, capture_output=True, text=True)
        assert done.returncode == 0 or re.search("REFUSED|NOTAUTH", done.stderr), done.stderr


def write_key(path: Path, command: list[str], need: Need) -> Path:
    """Write a key file with the server's own tool."""
    path.touch(0o600)
    with path.open("wb") as file:
        subprocess.run([need(command[0]), *command[1:]], stdout=file, check=True)
    return path


@contextlib.contextmanager
def named(directory: Path, need: Need) -> Iterator[Restricted]:
    zone = "example.org"
    (directory / "example.org.zone").write_text(ZONE.replace("example.com", zone))
    key = write_key(directory / "tsig.key", ["tsig-keygen", "dkimctl"], need)
    more = key.read_text() + example("update-policy", "text").replace("example.com", zone)
    with serving("named", _other(directory), directory, need, more=more) as server:
        yield Restricted(server, zone, key)


@contextlib.contextmanager
def knotd(directory: Path, need: Need) -> Iterator[Restricted]:
    zone = "example.org"
    file = directory / "example.org.zone"
    file.write_text(ZONE.replace("example.com", zone))
    key = write_key(directory / "tsig.key", ["keymgr", "-t", "dkimctl"], need)
    acl = example("update-owner-match", "yaml").removeprefix("acl:\n")
    more = key.read_text() + KNOT.format(acl=acl, zone=zone, file=file)
    with serving("knotd", _other(directory), directory, need, more=more) as server:
        yield Restricted(server, zone, key)


@contextlib.contextmanager
def pdns_server(directory: Path, need: Need) -> Iterator[Restricted]:
    key = directory / "tsig.key"
    key.touch(0o600)
    key.write_text(f"hmac-sha256:dkim:{SECRET}\n")
    script = directory / "policy.lua"
    script.write_text(example("updatepolicy", "lua").replace('"dkimctl."', '"dkim."'))
    more = f"lua-dnsupdate-policy-script={script}\n"
    with serving_updates("pdns_server", directory, need, ZONE, more=more) as server:
        yield Restricted(server, "example.com", key)


def _other(directory: Path) -> Path:
    """The zone that the server has besides."""
    path = directory / "example.zone"
    path.write_text(ZONE)
    return path


@pytest.mark.parametrize("serve", [named, knotd, pdns_server])
def test_a_key_can_change_dkim_records_alone(tmp_path, needs_tool, serve):
    with serve(tmp_path, needs_tool) as restricted:
        target, zone = restricted.target(), restricted.zone
        names = [name.format(zone) for name in ALLOWED]
        assert target.find_zones(names) == dict.fromkeys(names, zone)
        assert target.check_access(zone, names) == Access(True, True)
        states = target.read(zone, names)
        changes = [change(name, "v=DKIM1; p=new", states[name]) for name in names]
        assert [applied.error for applied in target.apply(zone, changes)] == [None] * 3
        assert restricted.server.ask(names[0]) == [b"v=DKIM1; p=new"]
        for name, kind, line in REFUSED:
            before = restricted.server.ask(name.format(zone), kind)
            restricted.update(line.format(zone), needs_tool)
            assert restricted.server.ask(name.format(zone), kind) == before, line


@pytest.mark.parametrize("serve", [named, knotd])
def test_a_key_cannot_change_another_domain_of_the_zone(tmp_path, needs_tool, serve):
    with serve(tmp_path, needs_tool) as restricted:
        name = f"s1._domainkey.other.{restricted.zone}"
        target = restricted.target()
        access = target.check_access(restricted.zone, [name])
        assert (access.readable, access.writable) == (True, False)
        (applied,) = target.apply(restricted.zone, [change(name, "v=DKIM1; p=new")])
        assert applied.error.exit_code == 3
        assert restricted.server.ask(name) == []
