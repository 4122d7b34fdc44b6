"""Name servers accept our output unchanged: zone files by $INCLUDE, updates with TSIG."""

from __future__ import annotations

import contextlib
import subprocess

import pytest

from dkimctl.formats.dns_tools import NsupdateRenderer
from dkimctl.formats.renderer import render_all
from dkimctl.models import DnsRecord, Outcome, Registration, Result
from dns_servers import (
    SECRET,
    SERVERS,
    Server,
    key_file,
    make_database,
    powerdns_schema,
    serving,
    serving_api,
)
from documents import example

SPECS = """
defaults: {enable: false}
domains:
- {sign_domain: example.com, selector: s1, key_len: 1024}
- {sign_domain: mail.example.com, selector: s.dotted, key_len: 2048}
"""
APEX = """$ORIGIN example.com.
$TTL 60
@ SOA ns.example.com. root.example.com. 1 3600 600 86400 60
@ NS ns.example.com.
ns A 127.0.0.1
kept TXT "as it was"
s1._domainkey HINFO "also" "kept"
"""


@pytest.fixture
def serve(needs_tool, tmp_path):
    """Start a server with a zone file to which `more` is added."""
    with contextlib.ExitStack() as running:

        def start(program: str, more: str = "") -> Server:
            zone = tmp_path / "example.zone"
            zone.write_text(APEX + more)
            return running.enter_context(serving(program, zone, tmp_path, needs_tool))

        yield start


@pytest.fixture
def registered(cli):
    """Two registrations in the sandbox; their records, by name."""
    done = cli("register", "--sandbox", "-", "--format", "json", stdin=SPECS)
    assert done.status == 0
    values = [item["setting_values"] for item in done.json["items"]]
    return {value["fqdn"]: value["value"].encode() for value in values}


@pytest.mark.parametrize("program", SERVERS)
@pytest.mark.parametrize("words", [(), ("--origin", "example.com")])
def test_an_included_file_is_served_unchanged(
    cli, registered, serve, needs_tool, tmp_path, program, words
):
    dkim = tmp_path / "dkim.zone"
    done = cli("show-dns", "--sandbox", "--output", dkim, "--ttl", 300, *words)
    assert (done.status, done.out) == (0, "")
    server = serve(program, f"$INCLUDE {dkim}\n")
    assert len(registered) == 2
    for name, value in registered.items():
        assert server.ask(name) == [value]
        assert dig(needs_tool("dig"), server, name) == value.decode()
    assert server.ask("kept.example.com") == [b"as it was"]


def dig(program: str, server: Server, name: str) -> str:
    """The value of a TXT record as dig shows it, with its strings joined."""
    words = [program, "@127.0.0.1", "-p", str(server.port), "+short", name, "TXT"]
    shown = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout
    assert shown.startswith('"')
    assert shown.endswith('"\n')
    return shown[1:-2].replace('" "', "")


CLIENTS = [("named", "nsupdate"), ("knotd", "knsupdate"), ("knotd", "nsupdate")]


@pytest.fixture
def update(cli, needs_tool, tmp_path):
    """Pipe our output, or a `script`, into a client for updates."""

    def run(client: str, server: Server, *words: str, script: str = ""):
        if not script:
            done = cli("show-dns", "--sandbox", "--format", "nsupdate", *words)
            assert done.status == 0
            script = done.out
        key = ["-k", str(key_file(tmp_path / "key"))]
        if client == "knsupdate":
            key = ["-y", f"hmac-sha256:dkim:{SECRET}"]
        return subprocess.run(
            [needs_tool(client), *key],
            input=f"server 127.0.0.1 {server.port}\n{script}",
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    return run


# knsupdate does not look up the zone of a name.
UPDATES = [
    *((program, client, ("--zone", "example.com")) for program, client in CLIENTS),
    *((program, "nsupdate", ()) for program in ("named", "knotd")),
]


@pytest.mark.parametrize(("program", "client", "words"), UPDATES)
def test_updates_set_and_delete_only_these_names_and_are_idempotent(
    registered, serve, update, program, client, words
):
    stale = 's1._domainkey TXT "v=DKIM1; p=old"\ns1._domainkey TXT "another"\n'
    server = serve(program, stale)
    for _ in range(2):
        done = update(client, server, *words)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
        for name, value in registered.items():
            assert server.ask(name) == [value]
        assert server.ask("kept.example.com") == [b"as it was"]
        assert len(server.ask("s1._domainkey.example.com", "HINFO")) == 1
    (name, value), (kept, other) = registered.items()
    script = "".join(
        render_all(NsupdateRenderer(words[1:], ttl=None), results({name: value.decode()}))
    )
    done = update(client, server, script=script)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert (server.ask(name), server.ask(kept)) == ([], [other])
    assert server.ask("kept.example.com") == [b"as it was"]
    assert len(server.ask("s1._domainkey.example.com", "HINFO")) == 1


@pytest.mark.parametrize("ttl", [60, None])
@pytest.mark.parametrize(("program", "client"), CLIENTS)
def test_an_update_of_an_alias_fails(serve, update, program, client, ttl):
    """Without the prerequisite, servers ignore it, and report success."""
    server = serve(program, "s1._domainkey.alias CNAME key\n")
    ours, alias = "s1._domainkey.example.com", "s1._domainkey.alias.example.com"
    values = {ours: "v=DKIM1; p=", alias: "v=DKIM1; p="}
    script = "".join(render_all(NsupdateRenderer([], ttl), results(values)))
    if client == "knsupdate":
        script = f"zone example.com.\n{script}"
    done = update(client, server, script=script)
    assert done.returncode != 0
    assert "YXRRSET" in done.stdout + done.stderr
    assert server.ask(ours) == ([] if ttl is None else [b"v=DKIM1; p="])  # an update of its own


def results(values: dict[str, str]) -> list[Result]:
    """Results with these records, by name."""
    return [
        Result(
            Registration("example.com", "s1", record=DnsRecord(name, "TXT", value)), Outcome.EXISTS
        )
        for name, value in values.items()
    ]


def values_of(sizes: list[int]) -> dict[str, str]:
    return {
        f"s{n}._domainkey.a{n}.example.com": f"v=DKIM1; p=MII{n}; n=".ljust(size, "x")
        for n, size in enumerate(sizes)
    }


@pytest.mark.parametrize("sizes", [[4096] * 40, [30] * 1500, [*range(30, 4096, 50)]])
@pytest.mark.parametrize(("program", "client"), CLIENTS)
def test_updates_are_as_large_as_a_dns_message_may_be(serve, update, program, client, sizes):
    server, values = serve(program), values_of(sizes)
    script = "".join(render_all(NsupdateRenderer(["example.com"], 60), results(values)))
    done = update(client, server, script=script)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert {name: server.ask(name) for name in list(values)[::9]} == {
        name: [value.encode()] for name, value in list(values.items())[::9]
    }
    script = "".join(render_all(NsupdateRenderer(["example.com"], ttl=None), results(values)))
    assert update(client, server, script=script).returncode == 0
    assert [server.ask(name) for name in list(values)[::9]] == [[]] * len(list(values)[::9])


UPDATE_RECIPES = {
    "nsupdate": example("show-dns --format nsupdate --output"),
    "knsupdate": example("knsupdate -k"),
}


@pytest.mark.parametrize(("program", "client"), [("named", "nsupdate"), ("knotd", "knsupdate")])
def test_the_update_recipes_work(registered, serve, shell, needs_tool, tmp_path, program, client):
    needs_tool(client)
    server = serve(program)
    (knot_key := tmp_path / "knot.key").write_text(f"hmac-sha256:dkim:{SECRET}\n")
    env = {
        "DKIMCTL_PROFILE": "sandbox",
        "PRIMARY": f"127.0.0.1 {server.port}",
        "KEY_FILE": str(knot_key if client == "knsupdate" else key_file(tmp_path / "key")),
    }
    shell(UPDATE_RECIPES[client], env)
    for name, value in registered.items():
        assert server.ask(name) == [value]


POWERDNS_ZONE = {
    "name": "example.com.",
    "kind": "Native",
    "nameservers": ["ns.example.com."],
    "rrsets": [
        {
            "name": "kept.example.com.", "type": "TXT", "ttl": 60,
            "records": [{"content": '"as it was"', "disabled": False}],
        }
    ],
}  # fmt: skip


@pytest.fixture
def schema(needs_tool):
    return powerdns_schema(needs_tool)


@pytest.fixture
def powerdns(needs_tool, schema, tmp_path):
    """A PowerDNS with our zone, which has a record of its own, and a client of its API."""
    with serving_api(schema, tmp_path, needs_tool) as (server, api):
        assert api.post("/zones", json=POWERDNS_ZONE).status_code == 201
        yield server, api


def test_pdnsutil_loads_our_lines_and_finds_no_errors(
    cli, registered, needs_tool, schema, tmp_path
):
    make_database(schema, tmp_path)
    lines = cli("show-dns", "--sandbox", "--origin", "example.com").out

    def pdnsutil(*words: str) -> subprocess.CompletedProcess[str]:
        command = [needs_tool("pdnsutil"), f"--config-dir={tmp_path}", *words]
        return subprocess.run(command, cwd=cli.home, capture_output=True, text=True, check=False)

    zone = cli.write("example.zone", APEX + lines)
    for words in (("load-zone", "example.com", str(zone)), ("check-zone", "example.com")):
        done = pdnsutil(*words)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "0 errors, 0 warnings" in done.stdout
    listed = pdnsutil("list-zone", "example.com").stdout
    for value in registered.values():
        assert value.decode() in listed.replace('" "', "")
    # The verification can fail.
    zone = cli.write("example.zone", APEX + lines.replace(" TXT ", " TXTT "))
    assert pdnsutil("load-zone", "example.net", str(zone)).returncode != 0


def test_powerdns_accepts_the_patch_body_which_is_idempotent(
    cli, shell, registered, needs_tool, powerdns
):
    needs_tool("curl")
    server, api = powerdns
    cli.write("api-key.txt", f"X-API-Key: {SECRET}\n")
    env = {
        "DKIMCTL_PROFILE": "sandbox",
        "POWERDNS_URL": f"http://127.0.0.1:{api.base_url.port}",
        "NO_PROXY": "127.0.0.1",
    }
    recipe = example("-X PATCH")
    for _ in range(2):
        assert shell(recipe, env).stdout == ""
        for name, value in registered.items():
            assert server.ask(name) == [value]
        assert server.ask("kept.example.com") == [b"as it was"]


OWN = """
"": {type: NS, value: ns.example.com.}
kept: {ttl: 60, type: TXT, value: as it was}
"""


def test_octodns_pushes_our_file_and_then_plans_no_change(cli, shell, registered, powerdns):
    server, api = powerdns
    cli.write("octodns.yaml", example("providers:\n", "yaml"))
    (cli.home / "zones").mkdir()
    cli.write("zones/example.com.yaml", OWN)
    env = {
        "DKIMCTL_PROFILE": "sandbox",
        "POWERDNS_HOST": "127.0.0.1",
        "POWERDNS_PORT": str(api.base_url.port),
        "POWERDNS_API_KEY": SECRET,
        "NO_PROXY": "127.0.0.1",
    }
    recipe = example("octodns-sync")
    assert "Creates=2" in shell(recipe, env).stderr
    for name, value in registered.items():
        assert server.ask(name) == [value]
    assert server.ask("kept.example.com") == [b"as it was"]
    assert "No changes were planned" in shell(recipe, env).stderr
