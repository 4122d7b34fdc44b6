"""Other verifiers of mail, which ask a DNS server of ours."""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from dns_servers import Server
from milter import added_headers
from ports import free_port
from signers import running_verifier

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
_OPENDKIM = """
Mode v
Socket inet:{port}@127.0.0.1
Background no
Syslog no
InternalHosts {home}/nobody
ResolverConfiguration {home}/unbound.conf
AuthservID test
AlwaysAddARHeader yes
"""
_UNBOUND = """
server:
  do-not-query-localhost: no
  module-config: "iterator"
  use-caps-for-id: no
stub-zone:
  name: "example.com"
  stub-addr: {host}@{port}
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

    with running_verifier(words, home, lambda: verify(_MESSAGE)):
        yield verify


@contextlib.contextmanager
def running_opendkim(need: Callable[[str], str], home: Path, dns: Server) -> Iterator[Verify]:
    """Whether opendkim accepts the only signature of a mail: "pass" or "fail"."""
    port = free_port()
    config = _OPENDKIM.format(port=port, home=home)
    if os.geteuid() == 0:
        config += "UserID opendkim\n"
    (home / "nobody").write_text("192.0.2.1\n")
    (home / "unbound.conf").write_text(_UNBOUND.format(host=dns.host, port=dns.port))
    (home / "opendkim.conf").write_text(config)

    def verify(mail: bytes) -> str:
        _, added = added_headers(port, mail, "joe@example.com")
        results = [value for name, value in added if name == b"Authentication-Results"]
        return "pass" if any(b"dkim=pass" in value for value in results) else "fail"

    words = [need("opendkim"), "-f", "-x", str(home / "opendkim.conf")]
    with running_verifier(words, home, lambda: verify(_MESSAGE)):
        yield verify
