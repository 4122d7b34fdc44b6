"""Providers of octoDNS change our records at real servers, and nothing else changes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable

import httpx
import pytest

from dkimctl.errors import DnsRefused, NegativeAnswer, ServiceError
from dkimctl.models import Secret
from dkimctl.publishing.octodns import OctodnsTarget
from dkimctl.publishing.plan import NameState
from dns_servers import SECRET, WRONG_SECRET, Server, powerdns_schema, serving_api
from documents import example
from ports import free_port
from update_servers import (
    KEY,
    NAMES,
    OLD,
    SHADOWED,
    WHOLE,
    WILD,
    ZONE,
    change,
    open_target,
    serial,
    transfer,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # providers use old names

ALIAS = "s1._domainkey.alias.example.com"
WANTED = {NAMES[0]: KEY, NAMES[1]: KEY, NAMES[2]: None}


@pytest.fixture
def running():
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def powerdns(running, needs_tool, tmp_path) -> tuple[Server, httpx.Client]:
    """PowerDNS with the zone, and its API."""
    schema = powerdns_schema(needs_tool)
    server, api = running.enter_context(serving_api(schema, tmp_path, needs_tool))
    zone = {"name": "example.com.", "kind": "Native", "nameservers": [], "zone": ZONE + OLD}
    assert api.post("/zones", json=zone).status_code == 201
    return server, api


def by_api(port: int, secret: str = SECRET) -> OctodnsTarget:
    settings = {"host": "127.0.0.1", "port": port, "api_key": Secret(secret)}
    return OctodnsTarget("octodns_powerdns.PowerDnsProvider", lambda: settings, 3600)


def publish(target, wanted: dict[str, str | None]) -> dict[str, object]:
    """What a plan and its application do."""
    assert set(target.find_zones(list(wanted)).values()) == {"example.com"}
    states = target.read("example.com", list(wanted))
    changes = [
        change(name, value, states[name])
        for name, value in wanted.items()
        if states[name].values != (() if value is None else (value,))
    ]
    return {one.fqdn: one.error for one in target.apply("example.com", changes)}


def foreign(server: Server) -> set[object]:
    ours = {(f"{name}.", "TXT") for name in WANTED}
    return {one for one in transfer(server) if one[:2] not in ours}


def require_published_once(server: Server, target) -> None:
    before = foreign(server)
    assert publish(target, WANTED) == dict.fromkeys(WANTED)
    assert [server.ask(name) for name in WANTED] == [[KEY.encode()], [KEY.encode()], []]
    published = serial(server)
    assert publish(target, WANTED) == {}
    assert serial(server) == published
    assert foreign(server) == before


def require_refused(server: Server, target, kind: type[Exception]) -> None:
    before = transfer(server)
    with pytest.raises(kind) as raised:
        target.read("example.com", NAMES)
    errors = [one.error for one in target.apply("example.com", [change(NAMES[0], KEY)])]
    assert [(type(error), str(error)) for error in errors] == [(kind, str(raised.value))]
    with pytest.raises(kind):
        target.check_access("example.com", NAMES)
    assert transfer(server) == before
    for secret in (SECRET, WRONG_SECRET):
        assert secret not in repr(raised.value) + raised.value.hint


def require_alias_untouched(server: Server, target) -> None:
    before = transfer(server)
    assert target.read("example.com", [ALIAS]) == {ALIAS: NameState(alias="key.example.net")}
    (applied,) = target.apply("example.com", [change(ALIAS, KEY)])
    assert isinstance(applied.error, NegativeAnswer)
    assert transfer(server) == before


def test_powerdns_by_its_api(powerdns, capfd):
    server, api = powerdns
    target = by_api(api.base_url.port)
    require_alias_untouched(server, target)
    assert target.check_access("example.com", NAMES)[:2] == (True, None)
    require_published_once(server, target)
    require_refused(server, by_api(api.base_url.port, WRONG_SECRET), DnsRefused)
    assert capfd.readouterr().err == ""


def test_what_a_key_takes_from_a_wildcard_is_what_the_server_would_tell(powerdns):
    server, api = powerdns
    zone = {"name": "wild.test.", "kind": "Native", "nameservers": []}
    zone["zone"] = ZONE.replace("example.com", "wild.test") + WILD
    assert api.post("/zones", json=zone).status_code == 201
    names = [f"s1._domainkey.{domain}.wild.test" for domain in (*WHOLE, *SHADOWED)]
    target = by_api(api.base_url.port)
    target.read("wild.test", names)
    by_content = target.find_shadowed("wild.test", names)
    by_answers = open_target(server.port, key="").find_shadowed("wild.test", names)
    assert {name.split(".", 2)[2].removesuffix(".wild.test") for name in by_content} == {*SHADOWED}
    for name, lines in by_answers.items():
        for mine, theirs in zip(by_content[name], lines, strict=True):
            # octoDNS joins strings, and quotes less.
            assert mine.partition(" TXT ")[0] == theirs.partition(" TXT ")[0].replace('"', "")


CONFIG = example("provider: octodns\n", "yaml")
SPECS = """
defaults: {key_len: 1024, start_date: 2036-01-01T00:00+00:00}
domains:
- {sign_domain: d0.example.com, selector: s1}
- {sign_domain: alias.example.com, selector: s1}
"""


def test_the_commands_with_the_config_of_the_page(powerdns, cli):
    server, api = powerdns
    config = CONFIG.replace("192.0.2.1", "127.0.0.1").replace("8081", str(api.base_url.port))
    cli.write("config.yaml", config + "    profiles: [sandbox]\n")
    cli.write("domains.yaml", SPECS)
    env = {
        "DKIMCTL_PROFILE": "sandbox",
        "DKIMCTL_CONFIG": "config.yaml",
        "POWERDNS_API_KEY": SECRET,
        "NO_PROXY": "127.0.0.1",
    }
    before = foreign(server)
    assert cli("register", "domains.yaml", env=env).status == 0
    assert cli("publish", "--check-access", env=env).status == 0
    planned = cli("publish", "--dry-run", env=env)
    assert planned.status == 1
    assert "create" in planned.out
    assert "blocked" in planned.out
    done = cli("publish", "--yes", env=env)
    assert "created in DNS 1, blocked 1" in done.err
    assert "root NS" not in done.err
    assert server.ask(NAMES[0])
    again = cli("publish", "--dry-run", env=env)
    assert "create" not in again.out
    assert foreign(server) == before
    wrong = cli("publish", "--dry-run", env=env | {"POWERDNS_API_KEY": WRONG_SECRET})
    assert wrong.status == 3
    assert "unauthorized" in wrong.out + wrong.err
    assert WRONG_SECRET not in wrong.out + wrong.err


def test_a_zone_that_powerdns_does_not_have_is_not_made(powerdns):
    _, api = powerdns
    target = by_api(api.base_url.port)
    name = "s1._domainkey.example.net"
    assert target.find_zones([name]) == {name: None}
    (applied,) = target.apply("example.net", [change(name, KEY)])
    assert isinstance(applied.error, NegativeAnswer)
    assert [zone["name"] for zone in api.get("/zones").json()] == ["example.com."]


def test_without_a_server_the_zone_cannot_be_read():
    with pytest.raises(ServiceError, match=r"cannot read the zone example\.com"):
        by_api(free_port()).read("example.com", NAMES)


FOREIGN = {
    ("kept.example.com.", "TXT"): ['"as it" " was"', '"another; value"'],
    ("mail.example.com.", "A"): ["127.0.0.2"],
    ("s2._domainkey.example.com.", "TXT"): ['"v=DKIM1; p=other"'],
    (f"{NAMES[1]}.", "TXT"): ['"v=DKIM1; " "p=old"'],
    # As octodns-route53 writes it: to delete, moto wants the same text.
    (f"{NAMES[2]}.", "TXT"): [r'"v=DKIM1\; p=retired"'],
    (f"{ALIAS}.", "CNAME"): ["key.example.net."],
}


@pytest.fixture
def moto(running, needs_tool, tmp_path, monkeypatch):
    """Start moto, with Route 53 at the address that boto3 takes from the environment."""
    program = needs_tool("moto_server")

    def start(**variables: str) -> None:
        port = free_port()
        none = str(tmp_path / "none")
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": none,
            "AWS_SHARED_CREDENTIALS_FILE": none,
            "NO_PROXY": "127.0.0.1",
        }.items():
            monkeypatch.setenv(name, value)
        log = tmp_path / f"moto-{port}.log"
        with log.open("wb") as output:
            words = [program, "-H", "127.0.0.1", "-p", str(port)]
            process = subprocess.Popen(
                words, stdout=output, stderr=output, env=os.environ | variables
            )
        running.callback(process.wait, 60)
        running.callback(process.terminate)
        for _ in range(300):
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"http://127.0.0.1:{port}/moto-api/", trust_env=False)
                return
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)

    return start


def by_route53() -> OctodnsTarget:
    settings = {
        "access_key_id": "AKIAEXAMPLE",
        "secret_access_key": Secret(SECRET),
        "client_max_attempts": 1,
    }
    return OctodnsTarget("octodns_route53.Route53Provider", lambda: settings, 3600)


def make_route53_zone() -> Callable[[], dict[tuple[str, str], object]]:
    """Make the zone; returns a function that reads it."""
    import boto3

    dns = boto3.Session("none", "none").client("route53")
    zone = dns.create_hosted_zone(Name="example.com.", CallerReference="1")["HostedZone"]["Id"]
    for (name, kind), values in FOREIGN.items():
        records = [{"Value": value} for value in values]
        rrset = {"Name": name, "Type": kind, "TTL": 60, "ResourceRecords": records}
        batch = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": rrset}]}
        dns.change_resource_record_sets(HostedZoneId=zone, ChangeBatch=batch)

    def contents() -> dict[tuple[str, str], object]:
        found = dns.list_resource_record_sets(HostedZoneId=zone)["ResourceRecordSets"]
        return {(one["Name"], one["Type"]): (one["TTL"], one["ResourceRecords"]) for one in found}

    return contents


def test_route53(moto, capfd):
    moto()
    contents = make_route53_zone()
    target = by_route53()
    before = contents()
    assert target.read("example.com", [ALIAS]) == {ALIAS: NameState(alias="key.example.net")}
    assert publish(target, WANTED) == dict.fromkeys(WANTED)
    published = NameState((KEY,), 3600)
    assert target.read("example.com", list(WANTED)) == {
        NAMES[0]: published, NAMES[1]: published, NAMES[2]: NameState(),
    }  # fmt: skip
    assert publish(target, WANTED) == {}
    ours = {(f"{name}.", "TXT") for name in WANTED}
    after = contents()
    assert {one: after[one] for one in after.keys() - ours} == {
        one: before[one] for one in before.keys() - ours
    }
    (applied,) = target.apply("example.com", [change(ALIAS, KEY)])
    assert isinstance(applied.error, NegativeAnswer)
    assert contents() == after
    assert capfd.readouterr().err == ""


def test_a_key_that_route53_does_not_know_is_refused(moto):
    moto(INITIAL_NO_AUTH_ACTION_COUNT="0")
    target = by_route53()
    with pytest.raises(DnsRefused) as raised:
        target.read("example.com", NAMES)
    (applied,) = target.apply("example.com", [change(NAMES[0], KEY)])
    assert str(applied.error) == str(raised.value)
    assert SECRET not in str(raised.value)
