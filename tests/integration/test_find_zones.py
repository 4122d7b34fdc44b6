"""--find-zones looks up the zone of a name in DNS."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from pathlib import Path

import dns.message
import dns.rrset
import pytest

from dkimctl.dns.messages import decode, encode
from dkimctl.dns.zones import find_zone, find_zones
from dkimctl.errors import ServiceError, UsageError
from dkimctl.text.addresses import Address
from dns_servers import Server
from needs import NO_NAMESPACE, give_up
from ports import free_port

INSIDE = """
alias._domainkey CNAME s1._domainkey.example.net.
delegated NS ns.test.
"""
ZONES = {
    ".": "ns.test. A 127.0.0.1\n",
    "com": "",
    "example.com": INSIDE,
    "delegated.example.com": "",
    "example.net": "",
}
APEX = "$TTL 60\n@ SOA ns.test. root.test. 1 2 3 4 60\n@ NS ns.test.\n"
CONFIG = """
options {{
  directory "{home}"; pid-file none; session-keyfile none; recursion no; dnssec-validation no;
  listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
}};
controls {{ }};
"""


def configure(home: Path, port: int) -> Path:
    """A named.conf with all the zones."""
    lines = [CONFIG.format(home=home, port=port)]
    for number, (zone, records) in enumerate(ZONES.items()):
        file = home / f"zone-{number}"
        file.write_text(APEX + records)
        lines.append(f'zone "{zone}" {{ type primary; file "{file}"; }};\n')
    path = home / "named.conf"
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def resolver(tmp_path_factory, needs_tool):
    """The address of a resolver: a named of ours."""
    needs_tool("named")
    home, port = tmp_path_factory.mktemp("named"), free_port()
    config = configure(home, port)
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(["named", "-g", "-n", "1", "-c", str(config)], stderr=log)
    server = Server(port)
    for _ in range(600):
        try:
            server.ask("example.com", "SOA")
            break
        except OSError:
            assert process.poll() is None, (home / "log").read_text()
            time.sleep(0.1)
    yield [Address("127.0.0.1", port)]
    process.terminate()
    process.wait(60)


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("example.com", "example.com"),
        ("s1._domainkey.example.com", "example.com"),
        ("s1._domainkey.mail.EXAMPLE.com", "example.com"),
        ("s1._domainkey.delegated.example.com", "delegated.example.com"),
        ("alias._domainkey.example.com", "example.com"),
        ("s1._domainkey.example.net", "example.net"),
    ],
)
def test_the_zone_is_the_nearest_name_above_with_an_soa_record(resolver, name, zone):
    assert find_zones([name, name], resolver) == {name: zone}


class Following:
    """A recursive resolver: it follows aliases, all of which lead into another zone."""

    async def ask(self, asked):
        response = dns.message.make_response(
            dns.message.from_wire(encode(1, asked, recursion=True))
        )
        owner = "example.com."
        if asked.name.to_text().startswith("alias."):
            owner = "example.net."
            response.answer = [
                dns.rrset.from_text(asked.name, 60, "IN", "CNAME", "s1.example.net.")
            ]
        soa = dns.rrset.from_text(owner, 60, "IN", "SOA", "ns.test. root.test. 1 2 3 4 60")
        response.authority = [soa]
        return decode(response.to_wire(), asked)


def test_the_zone_of_an_alias_is_that_of_its_owner_not_its_target():
    name = "alias._domainkey.example.com"
    assert asyncio.run(find_zone(name, Following())) == "example.com"


def test_names_without_a_zone_are_listed(resolver):
    with pytest.raises(UsageError) as caught:
        find_zones(["s1._domainkey.example.com", "s._domainkey.typo.com", "x.invalid"], resolver)
    assert caught.value.message == "DNS has no zone for s._domainkey.typo.com, x.invalid"
    assert "--zone" in caught.value.hint


def test_no_answer_is_different_from_no_zone(resolver):
    silent = [Address("127.0.0.1", free_port())]
    with pytest.raises(ServiceError) as caught:
        find_zones(["s1._domainkey.example.com"], silent)
    assert "cannot find the zone of s1._domainkey.example.com" in caught.value.message
    assert "--zone" in caught.value.hint


SPECS = """
defaults: {enable: false, key_len: 1024}
domains:
- {sign_domain: mail.example.com, selector: s1}
- {sign_domain: delegated.example.com, selector: s1}
- example.net
"""
# A separate network, in which port 53 is free and the system's resolver is our server. dig needs a
# valid resolv.conf, whatever server it asks.
ALONE = """
ip link set lo up && mount --bind sound.conf /etc/resolv.conf || exit 77
named -g -n 1 -c named.conf 2>named.log & server=$!
for n in $(seq 600); do dig +short @127.0.0.1 example.com SOA | grep -q ns && break; sleep 0.1; done
mount --bind resolv.conf /etc/resolv.conf || exit 77
"$@"; status=$?
kill $server; wait $server; exit $status
"""


@pytest.fixture
def alone(cli, needs_tool):
    """Run a command in a network where the system's resolver is ours."""
    for tool in ("named", "dig", "unshare", "ip"):
        needs_tool(tool)
    configure(cli.home, 53)
    cli.write("alone.sh", ALONE)
    cli.write("sound.conf", "nameserver 127.0.0.1\n")

    def run(
        *words: str, stdin: str = "", resolv: bytes = b"nameserver 127.0.0.1\n"
    ) -> subprocess.CompletedProcess[str]:
        (cli.home / "resolv.conf").write_bytes(resolv)
        command = ["unshare", "-rmn", "bash", "alone.sh", *cli.command(*words)]
        done = subprocess.run(
            command, input=stdin, cwd=cli.home, env=cli.environment,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        if done.returncode == 77 or done.stderr.startswith("unshare: "):
            give_up(f"{NO_NAMESPACE}: {done.stderr}")
        return done

    return run


def test_a_file_for_each_zone_that_dns_knows(cli, alone):
    words = ("--sandbox", "--format", "powerdns", "--find-zones", "--output-dir", "zones")
    done = alone("register", "-", *words, stdin=SPECS)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    files = sorted(path.name for path in (cli.home / "zones").iterdir())
    assert files == ["delegated.example.com.json", "example.com.json", "example.net.json"]
    done = alone("show-dns", "--sandbox", "--format", "nsupdate", "--find-zones")
    assert done.returncode == 0, done.stderr
    zones = [line for line in done.stdout.splitlines() if line.startswith("zone ")]
    assert zones == ["zone delegated.example.com.", "zone example.net.", "zone example.com."]


def test_verbose_logs_the_lookups(alone):
    words = ("--sandbox", "--format", "octodns", "--find-zones", "--verbose")
    done = alone("register", "-", *words, stdin="[{sign_domain: example.net, selector: s1}]")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "127.0.0.1 UDP: " in line]
    start = "dkimctl: 127.0.0.1 UDP: SOA s1._domainkey.example.net: NXDOMAIN aa, no record, zone "
    assert lines[0].startswith(f"{start}example.net, ")


def test_many_lookups_are_announced_and_need_no_ledger(cli, alone):
    one = "- {sign_domain: d0.example.com, selector: s1, enable: false, key_len: 1024}"
    done = cli("register", "--sandbox", "-", "--format", "json", stdin=one)
    (item,) = done.json["items"]
    items = [json.loads(json.dumps(item).replace("d0.", f"d{n}.")) for n in range(100)]
    cli.write("saved.json", json.dumps({"items": items}))
    done = alone("show-dns", "--from", "saved.json", "--format", "octodns", "--find-zones")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("type: TXT\n") == 100
    assert "looking up the zones of 100 names in DNS" in done.stderr


@pytest.mark.parametrize("resolv", [b"", b"nameserver nonsense\n", b"nameserver \xff\xfe\n"])
def test_a_machine_without_a_usable_resolver_is_an_error(alone, resolv):
    words = ("register", "-", "--sandbox", "--format", "octodns", "--find-zones")
    done = alone(*words, stdin="[example.com]", resolv=resolv)
    assert (done.returncode, done.stdout) == (4, "")
    assert "no usable DNS resolver" in done.stderr
    assert "--zone" in done.stderr
    assert "defect" not in done.stderr


def test_a_domain_without_a_zone_stops_the_registration(cli, alone):
    words = ("--sandbox", "--format", "octodns", "--find-zones", "--output-dir", "zones")
    done = alone("register", "-", *words, stdin="[typo.com, example.net]")
    assert (done.returncode, done.stdout) == (2, "")
    assert "DNS has no zone for _domainkey.typo.com" in done.stderr
    assert "nothing is registered" in cli("show-dns", "--sandbox").err
