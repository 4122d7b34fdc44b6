"""BIND takes our output as it is: master files by $INCLUDE, updates by nsupdate with TSIG."""

from __future__ import annotations

import base64
import contextlib
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import pytest

SPECS = """
defaults: {enable: false}
domains:
- {sign_domain: example.com, selector: s1, key_len: 1024}
- {sign_domain: mail.example.com, selector: s.dotted, key_len: 2048}
"""
APEX = """$TTL 60
@ SOA ns.example.com. root.example.com. 1 3600 600 86400 60
@ NS ns.example.com.
ns A 127.0.0.1
kept TXT "as it was"
s1._domainkey HINFO "also" "kept"
"""
SECRET = base64.b64encode(b"a key for tests alone, 32 bytes.").decode()
CONFIG = """
options {{
  directory "{directory}"; pid-file none; session-keyfile none; recursion no;
  listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
}};
controls {{ }};
key "dkim" {{ algorithm hmac-sha256; secret "{secret}"; }};
zone "example.com" {{ type primary; file "{file}"; allow-update {{ key "dkim"; }}; }};
"""


def key_file(path: Path, secret: str = SECRET) -> Path:
    path.write_text(f'key "dkim" {{ algorithm hmac-sha256; secret "{secret}"; }};\n')
    return path


@dataclass
class Server:
    port: int

    def ask(self, name: str, kind: str = "TXT") -> list[bytes]:
        """The values of a name, asked over TCP."""
        query = dns.message.make_query(name, kind)
        answer = dns.query.tcp(query, "127.0.0.1", port=self.port, timeout=5)
        rdatas = [rdata for rrset in answer.answer for rdata in rrset]
        return [b"".join(rdata.strings) if kind == "TXT" else rdata for rdata in rdatas]

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        for _ in range(100):
            with contextlib.suppress(OSError):
                self.ask("example.com", "SOA")
                return
            assert process.poll() is None, "the server has ended"
            time.sleep(0.1)
        raise AssertionError("the server does not answer")


@pytest.fixture
def serve(needs_tool, tmp_path):
    """Start named with a master file for example.com; gives the server."""
    named = needs_tool("named")
    started = []

    def start(zone: Path) -> Server:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        config = tmp_path / "named.conf"
        config.write_text(CONFIG.format(directory=tmp_path, port=port, secret=SECRET, file=zone))
        process = subprocess.Popen(
            [named, "-g", "-n", "1", "-c", str(config)], stderr=subprocess.DEVNULL
        )
        started.append(process)
        server = Server(port)
        server.wait(process)
        return server

    yield start
    for process in started:
        process.terminate()
        process.wait(10)


@pytest.fixture
def registered(cli):
    """Two registrations in the sandbox; their records, by name."""
    done = cli("register", "--sandbox", "-", "--format", "json", stdin=SPECS)
    assert done.status == 0
    values = [item["setting_values"] for item in done.json["items"]]
    return {value["fqdn"]: value["value"].encode() for value in values}


@pytest.fixture
def update(cli, needs_tool, tmp_path):
    """Pipe our output into nsupdate."""
    nsupdate = needs_tool("nsupdate")

    def run(server: Server, *words: str, secret: str = SECRET) -> subprocess.CompletedProcess[str]:
        script = cli("show-dns", "--sandbox", "--format", "nsupdate", *words)
        assert script.status == 0
        return subprocess.run(
            [nsupdate, "-k", str(key_file(tmp_path / "key", secret))],
            input=f"server 127.0.0.1 {server.port}\n{script.out}",
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    return run


def master_file(path: Path, *more: str) -> Path:
    path.write_text("$ORIGIN example.com.\n" + APEX + "".join(more))
    return path


@pytest.mark.parametrize("words", [(), ("--origin", "example.com")])
def test_an_included_file_is_served_as_it_was_registered(cli, registered, serve, tmp_path, words):
    dkim = tmp_path / "dkim.zone"
    done = cli("show-dns", "--sandbox", "--output", dkim, "--ttl", 300, *words)
    assert (done.status, done.out) == (0, "")
    server = serve(master_file(tmp_path / "example.zone", f"$INCLUDE {dkim}\n"))
    assert len(registered) == 2
    for name, value in registered.items():
        assert server.ask(name) == [value]
    assert server.ask("kept.example.com") == [b"as it was"]


@pytest.mark.parametrize("words", [(), ("--zone", "example.com")])
def test_nsupdate_sets_just_these_and_again_changes_nothing(
    registered, serve, update, tmp_path, words
):
    stale = 's1._domainkey TXT "v=DKIM1; p=old"\ns1._domainkey TXT "another"\n'
    server = serve(master_file(tmp_path / "example.zone", stale))
    for _ in range(2):
        done = update(server, *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        for name, value in registered.items():
            assert server.ask(name) == [value]
        assert server.ask("kept.example.com") == [b"as it was"]
        assert len(server.ask("s1._domainkey.example.com", "HINFO")) == 1


def test_a_wrong_tsig_key_leaves_dns_as_it_was_and_the_exit_code_tells(
    registered, serve, update, tmp_path
):
    server = serve(master_file(tmp_path / "example.zone"))
    wrong = base64.b64encode(b"another key, which is not theirs").decode()
    assert update(server, "--zone", "example.com", secret=wrong).returncode != 0
    assert server.ask("s1._domainkey.example.com") == []
