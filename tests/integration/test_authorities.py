"""check-dns finds every authoritative server, in a network with a root server of ours."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from published import name_of, register, txt

SOA = "$TTL 60\n@ SOA ns1.test. root.test. 1 3600 600 86400 60\n"
HOSTS = {
    "ns1.test": ("127.0.0.2", "::1"),
    "ns2.test": ("127.0.0.3",),
    "ns3.test": ("127.0.0.4",),
    "dead.test": ("127.0.0.9",),
}
ZONES = {
    "example.com": ("ns1.test", "ns2.test"),
    "example.net": ("ns2.test",),
    "example.org": ("ns1.test", "dead.test"),
    "_domainkey.child.example.com": ("ns3.test",),
}
DOMAINS = (
    "right.example.com",
    "lag.example.com",
    "child.example.com",
    "alias.example.com",
    "www.example.org",
    "nowhere.invalid",
)
NAMED = """
options {{
  directory "{home}"; pid-file none; session-keyfile none; recursion no; dnssec-validation no;
  listen-on {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
}};
controls {{ }};
"""
NSD = """
server:
  username: ""
  chroot: ""
  zonesdir: ""
  database: ""
  pidfile: "{home}/{name}.pid"
  xfrdfile: "{home}/{name}.state"
  zonelistfile: "{home}/{name}.list"
  server-count: 1
  {addresses}
remote-control:
  control-enable: no
"""
KNOTD = """
server:
  rundir: {home}/knot
  listen: 127.0.0.3@53
database:
  storage: {home}/knot
zone:
"""
ALONE = """
ip link set lo up && mount --bind resolv.conf /etc/resolv.conf || exit 77
named -g -n 1 -c named.conf 2>named.log & servers=$!
nsd -d -c ns1.conf 2>ns1.log & servers="$servers $!"
nsd -d -c ns3.conf 2>ns3.log & servers="$servers $!"
mkdir -p knot; knotd -c knot.conf >knot.log 2>&1 & servers="$servers $!"
answers() { dig +short +norecurse @$1 $2 SOA | grep -q ns1; }
for n in $(seq 100); do
  answers 127.0.0.1 example.com && answers 127.0.0.2 example.com && answers 127.0.0.3 example.net &&
    answers 127.0.0.4 _domainkey.child.example.com && break
  sleep 0.1
done
[ -z "$NO_IPV6" ] || ip addr del ::1/128 dev lo
"$@"; status=$?
kill $servers; wait $servers; exit $status
"""


def zone_file(home: Path, server: str, zone: str, records: str) -> Path:
    path = home / f"{server}-{zone}"
    apex = "".join(f"@ NS {host}.\n" for host in ZONES.get(zone, ("ns1.test",)))
    path.write_text(f"$ORIGIN {zone.rstrip('.')}.\n{SOA}{apex}{records}")
    return path


@pytest.fixture
def values(cli):
    return register(cli, *DOMAINS)


@pytest.fixture
def alone(cli, needs_tool, values):
    """Run a command in that network; its server ns2 lacks one record."""
    for tool in ("named", "nsd", "knotd", "dig", "unshare", "ip"):
        needs_tool(tool)
    home = cli.home
    lines = {domain: txt(name_of(domain), value) for domain, value in values.items()}
    delegation = "_domainkey.child.example.com. NS ns3.test.\n"
    alias = f"{name_of('alias.example.com')}. CNAME key.example.net.\n"
    common = delegation + alias + lines["right.example.com"]
    hosts = "".join(
        f"{host}. {'AAAA' if ':' in address else 'A'} {address}\n"
        for host, addresses in HOSTS.items()
        for address in addresses
    )
    everywhere = {
        "example.com": common + lines["lag.example.com"],
        "example.net": txt("key.example.net", values["alias.example.com"]),
        "example.org": lines["www.example.org"],
        "_domainkey.child.example.com": lines["child.example.com"],
    }
    configure_named(home, {".": hosts, "com": "", "net": "", "org": "", **everywhere})
    configure_nsd(home, "ns1", HOSTS["ns1.test"], ["example.com", "example.org"], everywhere)
    configure_nsd(home, "ns3", HOSTS["ns3.test"], ["_domainkey.child.example.com"], everywhere)
    configure_knotd(home, {"example.com": common, "example.net": everywhere["example.net"]})
    cli.write("alone.sh", ALONE)
    cli.write("resolv.conf", "nameserver 127.0.0.1\n")

    def run(*command: str, stdin: str = "", env: dict[str, str] | None = None):
        done = subprocess.run(
            ["unshare", "-rmn", "bash", "alone.sh", *command], input=stdin, cwd=home,
            env=cli.environment | (env or {}), capture_output=True, text=True, timeout=90,
            check=False,
        )  # fmt: skip
        if done.returncode == 77 or done.stderr.startswith("unshare: "):
            pytest.skip(f"no network of its own: {done.stderr}")
        return done

    return run


def configure_named(home: Path, zones: dict[str, str]) -> None:
    lines = [NAMED.format(home=home)]
    for zone, records in zones.items():
        file = zone_file(home, "named", zone, records)
        lines.append(f'zone "{zone}" {{ type primary; file "{file}"; }};\n')
    (home / "named.conf").write_text("".join(lines))


def configure_nsd(home, name, addresses, zones, records) -> None:
    listen = "\n  ".join(f"ip-address: {address}@53" for address in addresses)
    config = NSD.format(home=home, name=name, addresses=listen)
    for zone in zones:
        file = zone_file(home, name, zone, records[zone])
        config += f'zone:\n  name: {zone}\n  zonefile: "{file}"\n'
    (home / f"{name}.conf").write_text(config)


def configure_knotd(home: Path, zones: dict[str, str]) -> None:
    config = KNOTD.format(home=home)
    for zone, records in zones.items():
        file = zone_file(home, "knotd", zone, records)
        config += f"  - domain: {zone}\n    file: {file}\n"
    (home / "knot.conf").write_text(config)


def test_all_servers_of_each_zone_are_asked_at_all_their_addresses(cli, alone):
    done = alone(*cli.command("check-dns", "--sandbox", "--format", "json"))
    items = {item["sign_domain"]: item for item in json.loads(done.stdout)["items"]}
    assert done.returncode == 4, done.stderr
    servers_of = {
        domain: (item["verdict"], [one["server"] for one in item["servers"]])
        for domain, item in items.items()
    }
    all_three = ["ns1.test (127.0.0.2)", "ns1.test (::1)", "ns2.test (127.0.0.3)"]
    assert servers_of == {
        "right.example.com": ("published", all_three),
        "lag.example.com": ("inconsistent", all_three),
        "child.example.com": ("published", ["ns3.test (127.0.0.4)"]),
        "alias.example.com": ("published", all_three),
        "www.example.org": (
            "no answer",
            ["dead.test (127.0.0.9)", "ns1.test (127.0.0.2)", "ns1.test (::1)"],
        ),
        "nowhere.invalid": ("missing", []),
    }
    assert items["alias.example.com"]["alias"] == "key.example.net"
    assert "DNS has no zone for nowhere.invalid" in items["nowhere.invalid"]["reason"]
    assert "dead.test (127.0.0.9)" in items["www.example.org"]["reason"]


def test_without_ipv6_the_other_servers_are_asked(cli, alone):
    words = ("check-dns", "--sandbox", "--format", "json", "right.example.com")
    done = alone(*cli.command(*words), env={"NO_IPV6": "1"})
    (item,) = json.loads(done.stdout)["items"]
    assert (done.returncode, item["verdict"]) == (0, "published")
    servers = [one["server"] for one in item["servers"]]
    assert servers == ["ns1.test (127.0.0.2)", "ns2.test (127.0.0.3)"]


def test_with_resolver_only_that_of_the_system_is_asked(cli, alone):
    words = ("check-dns", "--sandbox", "--format", "json", "--resolver", "lag.example.com")
    done = alone(*cli.command(*words))
    (item,) = json.loads(done.stdout)["items"]
    assert (done.returncode, item["verdict"]) == (0, "published")
    assert [one["server"] for one in item["servers"]] == ["the system's resolver"]
