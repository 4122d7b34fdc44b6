"""The commands of docs/publish.md, in a network with a name server that takes updates."""

from __future__ import annotations

import re
import subprocess

import pytest

from dkimctl.publishing.tsig_key import read_tsig_key
from dns_servers import key_file, serving
from documents import PAGES, example
from lives import PRIMARY
from published import APEX, register

CONFIG = example('zones: [example.com, "*.example.net"]', "yaml")
SPECS = """
defaults: {key_len: 1024, start_date: 2036-01-01T00:00+00:00}
domains:
- {sign_domain: docs.example.com, selector: s1}
"""
ENV = {"DKIMCTL_PROFILE": "sandbox", "DKIMCTL_CONFIG": "config.yaml"}


@pytest.fixture
def ready(cli, hosted):
    """A config file and a spec file, in a network."""
    network, _ = hosted
    cli.prefix = network.prefix(cli.home)
    cli.write("config.yaml", CONFIG.replace("192.0.2.1", PRIMARY) + "    profiles: [sandbox]\n")
    cli.write("domains.yaml", SPECS)
    (cli.home / "tsig.key").write_text(network.key_file.read_text())
    (cli.home / "tsig.key").chmod(0o600)
    return cli


def test_the_way_from_access_to_a_published_record(ready, shell):
    assert ready("register", "domains.yaml", env=ENV).status == 0
    access = shell(example("publish --check-access\n"), ENV)
    assert "yes   yes" in access.stdout
    quiet = shell(example("publish --check-access --quiet"), ENV)
    assert (quiet.stdout, quiet.stderr) == ("", "")
    plan = shell("! " + example("dkimctl publish --dry-run\n"), ENV)
    assert "create  s1._domainkey.docs.example.com" in plan.stdout
    shell(example("publish --dry-run --output plan.md"), ENV)
    assert "s1._domainkey.docs.example.com" in (ready.home / "plan.md").read_text()
    done = shell(example("publish --yes --wait"), ENV)
    assert "dkimctl: published 1" in done.stderr


def test_register_publish(ready, shell):
    ready.write("domains.yaml", SPECS.replace("docs", "docs2"))
    done = shell(example("register --publish domains.yaml"), ENV)
    lines = [line for line in done.stderr.splitlines() if line.endswith(" 1")]
    assert [line.removeprefix("dkimctl: ") for line in lines] == [
        "created 1", "created in DNS 1", "published 1",
    ]  # fmt: skip


@pytest.mark.parametrize("program", ["tsig-keygen", "keymgr"])
def test_the_keys_of_servers_can_be_read(cli, shell, needs_tool, program):
    blocks = {"tsig-keygen": example("tsig-keygen dkim"), "keymgr": example("keymgr -t dkim")}
    needs_tool(program)
    shell(blocks[program], {})
    key = read_tsig_key(str(cli.home / "tsig.key"))
    assert (key.name.rstrip("."), key.algorithm.rstrip(".")) == ("dkim", "hmac-sha256")


def test_the_policy_for_bind_lets_the_key_change_the_records_and_no_others(
    cli, tmp_path, needs_tool
):
    (policy,) = re.findall(r"update-policy .*};", PAGES["publish.md"])
    register(cli, "example.com", more="start_date: 2036-01-01T00:00+00:00")
    zone = tmp_path / "example.zone"
    zone.write_text(APEX)
    key = key_file(cli.home / "tsig.key")
    with serving("named", zone, tmp_path, needs_tool, updates=policy[:-1]) as server:
        more = "    profiles: [sandbox]\n"
        cli.write("config.yaml", CONFIG.replace("192.0.2.1", str(server)) + more)
        access = cli("publish", "--check-access", env=ENV)
        assert (access.status, "yes   yes" in access.out) == (0, True), access
        done = cli("publish", "--yes", env=ENV)
        assert done.status == 0, done
        script = (
            f"server 127.0.0.1 {server.port}\nupdate add www.example.com 60 A 192.0.2.1\nsend\n"
        )
        words = [needs_tool("nsupdate"), "-k", str(key)]
        other = subprocess.run(words, input=script, capture_output=True, text=True, check=False)
        assert "REFUSED" in other.stderr
