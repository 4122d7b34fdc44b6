"""`dkimctl verify`, with real name servers, and beside another verifier."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import dkim
import httpx
import pytest

from damaged_mail import CASES, MAIL
from delegation import Host, Security, Zone
from dns_servers import Server, serving
from documents import example
from network import running
from ports import free_port
from processes import daemon
from published import APEX, name_of, private_keys, published, register, txt
from signers import safe_place

TWO = ("example.com", "mail.example.com")


_RSPAMD = """
options {{
  pidfile = "{home}/rspamd.pid";
  control_socket = "{home}/control.sock";
  filters = "dkim";
  dns {{ nameserver = "{dns}"; timeout = 2s; }}
}}
logging {{ type = "file"; filename = "{home}/rspamd.log"; level = "info"; }}
worker "normal" {{ bind_socket = "127.0.0.1:{port}"; count = 1; }}
lua = "/usr/share/rspamd/rules/rspamd.lua";
dkim {{ check_local = true; trusted_only = false; }}
"""
_MESSAGE = b"From: a@example.com\r\nSubject: none\r\n\r\nnothing\r\n"
Verify = Callable[[bytes], str]


@contextlib.contextmanager
def running_rspamd(need: Callable[[str], str], home: Path, dns: Server) -> Iterator[Verify]:
    """Whether rspamd accepts the only signature of a mail: "pass" or "fail"."""
    port = free_port()
    (home / "rspamd.conf").write_text(
        _RSPAMD.format(port=port, home=home, dns=f"{dns.host}:{dns.port}")
    )
    words = [need("rspamd"), "-f", "-c", str(home / "rspamd.conf")]
    words += [f"--var={name}={home}" for name in ("DBDIR", "RUNDIR", "LOCAL_CONFDIR")]
    if os.geteuid() == 0:
        entry = pwd.getpwnam("_rspamd")
        os.chown(home, entry.pw_uid, entry.pw_gid)
        words += ["-u", "_rspamd", "-g", "_rspamd"]

    def verify(mail: bytes) -> str:
        headers = {"IP": "192.0.2.9", "From": "joe@example.com"}
        with httpx.Client(trust_env=False) as client:
            url = f"http://127.0.0.1:{port}/checkv2"
            answer = client.post(url, content=mail, headers=headers).json()
        symbols = {name for name in answer["symbols"] if name.startswith("R_DKIM")}
        return "pass" if symbols == {"R_DKIM_ALLOW"} else "fail"

    with daemon(words, home / "signer.log", lambda: verify(_MESSAGE)):
        yield verify


@pytest.fixture
def serve(needs_tool, tmp_path):
    """Serve these records of example.com by BIND."""

    def serve(records: str):
        zone = tmp_path / "zone"
        zone.write_text(APEX + records)
        return serving("named", zone, tmp_path, needs_tool)

    return serve


@pytest.fixture
def verify(cli):
    """Run verify; gives the ended command, and the mails."""

    def verify(server, *words, stdin=b""):
        options = ("--sandbox", "--server", server, "--format", "json")
        done = cli("verify", *options, *words, stdin=stdin)
        assert done.json["count"] == len(done.json["items"])
        return done, done.json["items"]

    return verify


def sign(cli, *domains: str, mail: bytes = MAIL) -> bytes:
    """The mail, signed by dkimpy with the keys that the sandbox has."""
    keys: Mapping[tuple[str, str], bytes] = private_keys(cli.home)
    for domain in domains:
        mail = dkim.sign(mail, b"s1", domain.encode(), keys[domain, "s1"]) + mail
    return mail


def test_mail_of_two_registered_domains(cli, serve, verify):
    values = register(cli, *TWO)
    (cli.home / "mail.eml").write_bytes(sign(cli, *TWO))
    with serve(published(values)) as server:
        done, [mail] = verify(server, "mail.eml")
        assert (done.status, mail["verdict"], mail["from_domains"]) == (0, "pass", ["example.com"])
        for one in mail["signatures"]:
            assert (one["verdict"], one["registered"], one["in_dns"]) == ("pass", True, "published")
            assert (one["key_len"], one["registered_key_len"]) == (2048, 2048)
            assert one["stage"] == "disabled"
        table = cli("verify", "--sandbox", "--server", server, "mail.eml")
        assert table.status == 0
        assert "Aligned with From, as DMARC asks: example.com (strict)." in table.out
        assert table.err.strip() == "dkimctl: pass 2"


def test_what_is_wrong_with_the_key_in_dns_is_said(cli, serve, verify):
    values = register(cli, *TWO)
    records = txt("s1._domainkey.example.com", values["mail.example.com"])
    with serve(records) as server:
        done, [mail] = verify(server, "-", stdin=sign(cli, *TWO))
    found = {one["sign_domain"]: one for one in mail["signatures"]}
    assert done.status == 1
    assert found["example.com"]["in_dns"] == "mismatch"
    assert found["mail.example.com"]["in_dns"] == "missing"
    assert mail["file"] == "<stdin>"
    for one in mail["signatures"]:
        assert one["verdict"] == "fail"
        assert "it is valid with the registered key: DNS is at fault" in one["notes"]


def test_no_answer_is_4_and_no_is_1(cli, serve, verify):
    register(cli, *TWO)
    (cli.home / "mail.eml").write_bytes(sign(cli, *TWO))
    (cli.home / "none.eml").write_bytes(MAIL)
    nobody = f"127.0.0.1:{free_port()}"
    done, [mail] = verify(nobody, "mail.eml")
    assert (done.status, mail["verdict"]) == (4, "unknown")
    assert {one["verdict"] for one in mail["signatures"]} == {"unknown"}
    done, mails = verify(nobody, "mail.eml", "none.eml")
    assert (done.status, mails[1]["missing"]) == (1, ["example.com"])


def test_files_that_are_no_mail(cli):
    cli.write("text", "no mail")
    (cli.home / "large.eml").write_bytes(MAIL + bytes(50 << 20))
    for words, said in (
        (["text"], "text is not a mail: line 1 is not a header field"),
        (["nothing.eml"], "no such file: nothing.eml"),
        (["large.eml"], "large.eml is larger than 50 MiB"),
        (["."], ". is a directory"),
        ([], "MAIL"),
    ):
        done = cli("verify", "--server", "127.0.0.1", *words)
        assert (done.status, done.out) == (2, "")
        assert said in done.err
        assert "\nhint: " in done.err
    done = cli("verify", "--server", f"127.0.0.1:{free_port()}", "-", "text", stdin=MAIL)
    assert (done.status, "<stdin>: from example.com" in done.out) == (2, True)


def test_without_an_account_mail_is_verified(cli, serve):
    values = register(cli, "example.com")
    with serve(published(values)) as server:
        done = cli("verify", "--server", server, "-", stdin=sign(cli, "example.com"))
    assert (done.status, "not registered" in done.out) == (0, True)
    assert "no account is set up" in done.err
    assert cli("verify", "--profile", "nobody", "-", stdin=MAIL).status == 2


def test_without_dkimpy_the_error_says_how_to_install_it(cli):
    cli.at_start("import sys\nsys.modules['dkim'] = None\n")
    done = cli("verify", "--sandbox", "-", stdin=MAIL)
    assert (done.status, "pip install dkimpy" in done.err) == (2, True)


def test_text_of_the_mail_cannot_act_on_the_terminal(cli):
    evil = b"\x1b]0;evil\x07\x1b[2J\xe2\x80\xae"
    tags = b"DKIM-Signature: v=1; a=%b; d=%b; s=%b; h=from; bh=AA==; b=AA==\r\n"
    mail = tags % (b"rsa-sha256", evil, b"s1") + tags % (evil, b"a.example", evil) + MAIL
    for words in ((), ("--format", "json")):
        done = cli("verify", "--server", "127.0.0.1:1", "-", *words, stdin=mail)
        assert done.status == 1
        assert all(char.isprintable() or char == "\n" for char in done.out + done.err)


def test_another_verifier_agrees(cli, serve, verify, needs_tool):
    records = "".join(
        txt(f"{case.name}._domainkey.example.com", *values)
        for case in CASES
        if (values := case.values())
    )
    mails = {case.name: case.received() for case in CASES}
    for case in CASES:
        (cli.home / case.name).write_bytes(mails[case.name])
    with serve(records) as server, safe_place() as place:
        _, items = verify(server, *mails)
        with running_rspamd(needs_tool, place, server) as ask:
            said = {case: ask(mail) for case, mail in mails.items()}
    found = {item["file"]: item["verdict"] for item in items}
    wrong = [
        f"{case.name}: {found[case.name]}, rspamd: {said[case.name]}"
        for case in CASES
        if found[case.name] != said[case.name] and "rspamd" not in case.because
    ]
    assert not wrong, "\n".join(wrong)


def test_the_commands_of_the_page(cli, serve, shell):
    values = register(cli, "example.com")
    (cli.home / "mail.eml").write_bytes(sign(cli, "example.com"))
    with serve(published(values)) as server:
        _, json_, server_ = example("dkimctl verify mail.eml").splitlines()
        at_server = f" --sandbox --server {server}"
        shell(json_.replace("dkimctl verify", f"dkimctl verify{at_server}"), {})
        assert json.loads((cli.home / "verified.json").read_text())["count"] == 1
        done = shell(f"{server_.replace('192.0.2.1', str(server))} --sandbox", {})
        assert "pass" in done.stdout


def test_the_resolver_tells_the_key_and_all_servers_what_is_in_dns(cli, needs_tool, tmp_path):
    """A server that lags, an alias, a signed zone that is expired, and servers that are dead."""
    domains = ("example.com", "alias.example.com", "expired.test", "dead.test")
    values = register(cli, *domains)
    alias = "s1._domainkey.alias.example.com. CNAME key.example.com.\n"
    alias += txt("key.example.com", values["alias.example.com"])
    hosts = [
        Host("ns1.test", ("127.0.0.2",), "nsd"),
        Host("ns2.test", ("127.0.0.3",), "knotd", records={"example.com": alias}),
        Host("ns9.test", ("127.0.0.9",), program=""),
    ]
    record = txt(name_of("example.com"), values["example.com"])
    expired = txt(name_of("expired.test"), values["expired.test"])
    zones = [
        Zone("example.com", ("ns1.test", "ns2.test"), alias + record),
        Zone("expired.test", ("ns1.test",), expired, security=Security.EXPIRED),
        Zone("dead.test", ("ns9.test",), ""),
    ]
    (cli.home / "mail.eml").write_bytes(sign(cli, *domains))
    (directory := tmp_path / "network").mkdir()
    with running(directory, needs_tool, hosts=hosts, zones=zones) as network:
        done = network.inside(cli)("verify", "--sandbox", "--format", "json", "mail.eml")
    assert done.status in (1, 4), done.err
    [mail] = done.json["items"]
    found = {one["sign_domain"]: one for one in mail["signatures"]}
    assert (found["alias.example.com"]["verdict"], found["alias.example.com"]["in_dns"]) == (
        "pass", "published",
    )  # fmt: skip
    assert found["example.com"]["in_dns"] == "inconsistent"
    assert found["example.com"]["verdict"] in ("pass", "fail"), "which server is asked is chance"
    assert (found["expired.test"]["verdict"], found["expired.test"]["in_dns"]) == (
        "unknown", "bogus",
    )  # fmt: skip
    assert "cannot validate" in found["expired.test"]["reason"]
    assert (found["dead.test"]["verdict"], found["dead.test"]["in_dns"]) == (
        "unknown", "no answer",
    )  # fmt: skip
