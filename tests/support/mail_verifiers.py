"""Another verifier of mail, which asks a DNS server of ours."""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from dns_servers import Server
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
