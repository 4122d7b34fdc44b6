"""The recipes of docs/dns-recipes.md without a name server; test_dns_servers has the others."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ET

import pytest

from documents import example

# Enough for more than one change batch.
SPECS = "defaults: {enable: false, key_len: 1024}\ndomains:\n" + "".join(
    f"- {{sign_domain: d{number}.example.com, selector: s1}}\n" for number in range(70)
)


@pytest.fixture
def registered(cli):
    """Registrations in the sandbox; the values of their records, by name."""
    done = cli("register", "--sandbox", "-", "--format", "json", stdin=SPECS)
    assert done.status == 0
    values = [item["setting_values"] for item in done.json["items"]]
    return {value["fqdn"]: value["value"] for value in values}


CHANGED = b"""<?xml version="1.0" encoding="UTF-8"?>
<ChangeResourceRecordSetsResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/">
<ChangeInfo><Id>/change/C1</Id><Status>PENDING</Status>
<SubmittedAt>2026-11-21T12:00:00Z</SubmittedAt></ChangeInfo>
</ChangeResourceRecordSetsResponse>"""
NAMESPACE = {"r": "https://route53.amazonaws.com/doc/2013-04-01/"}


@pytest.mark.slow
def test_aws_sends_every_batch(shell, registered, scripted_server, make_answer):
    scripted_server.answer = lambda request: make_answer(
        body=CHANGED, headers={"Content-Type": "text/xml"}
    )
    env = {
        "DKIMCTL_PROFILE": "sandbox",
        "HOSTED_ZONE_ID": "Z123",
        "AWS_ENDPOINT_URL": scripted_server.url,
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1",
    }
    shell(example("aws route53"), env)
    records = {}
    for request in scripted_server.requests:
        assert (request.method, request.path) == ("POST", "/2013-04-01/hostedzone/Z123/rrset/")
        changes = ET.fromstring(request.body).findall(".//r:Change", NAMESPACE)
        for change in changes:
            texts = [element.text for element in change.iter() if not len(element)]
            action, name, kind, ttl, value = texts
            assert (action, kind, ttl) == ("UPSERT", "TXT", "3600")
            records[name.removesuffix(".")] = "".join(re.findall(r'"([^"]*)"', value))
    assert len(scripted_server.requests) > 1
    assert records == registered


DSL = """
const fs = require("fs"), vm = require("vm"), zones = {};
const context = vm.createContext({
  require: (path) => vm.runInContext(fs.readFileSync(path, "utf8"), context),
  NewRegistrar: (name) => name,
  NewDnsProvider: (name) => name,
  DnsProvider: (name) => name,
  A: (name, address) => [name, address],
  TTL: (seconds) => ({ttl: seconds}),
  TXT: (name, value, ttl) => [name, value],
  D: (zone, ...more) => { zones[zone] = []; },
  D_EXTEND: (zone, ...records) => { zones[zone].push(...records); },
});
vm.runInContext(fs.readFileSync(0, "utf8"), context);
console.log(JSON.stringify(zones));
"""


def test_dnscontrol_adds_the_records_to_the_domain(cli, registered, needs_tool):
    words = ("--format", "dnscontrol", "--zone", "example.com", "--output", "dkim.js")
    assert cli("show-dns", "--sandbox", *words).status == 0
    script = example("NewRegistrar", "js")
    done = subprocess.run(
        [needs_tool("node"), "-e", DSL],
        input=script, cwd=cli.home, capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    records = json.loads(done.stdout)["example.com"]
    assert {f"{name}.example.com": value for name, value in records} == registered


RECIPES = (
    example("named-checkzone"),
    example("show-dns --format nsupdate --output"),
    example("knsupdate -k"),
    example("octodns-sync"),
    example("aws route53"),
    example("-X PATCH"),
    example("dkimctl token"),
)
TOOLS = ("named-checkzone", "nsupdate", "knsupdate", "octodns-sync", "aws", "curl")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_stops_where_dkimctl_fails(cli, needs_tool, tmp_path, recipe):
    """In a shell as it is by default, without `pipefail`."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        (tools / tool).write_text('#!/bin/sh\ntouch "$HOME/called"\n')
        (tools / tool).chmod(0o755)
    path = f"{tools}:{cli.environment['PATH']}"
    done = subprocess.run(
        [needs_tool("bash"), "-c", recipe], cwd=cli.home, capture_output=True, text=True,
        env=cli.environment | {"PATH": path},
    )  # fmt: skip
    assert done.returncode != 0
    assert "dkimctl: error:" in done.stderr
    assert not (cli.home / "called").exists()
