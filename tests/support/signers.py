"""Running signers of mail, which use what `dkimctl service export` has written."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import dkim
import httpx

from milter import added_headers
from ports import free_port
from processes import daemon

_MESSAGE = (
    "From: sender@{domain}\r\nTo: someone@example.net\r\nSubject: signed\r\n"
    "Date: Mon, 06 Jan 2027 10:00:00 +0000\r\nMessage-ID: <1@{domain}>\r\n\r\nVerify this.\r\n"
)
_NOBODY = "nobody.invalid"
_SECONDS = 60  # rspamd may take 20 to start, on a busy machine
# Of these, only the last line is for the export.
_OPENDKIM = """
Mode s
Socket inet:{port}@127.0.0.1
Background no
Syslog no
Include {export}/opendkim.conf
"""
# Without the other modules. Debian's file for this one includes what operators write.
_RSPAMD = """
options {{
  pidfile = "{home}/rspamd.pid";
  control_socket = "{home}/control.sock";
  filters = "dkim";
  dns {{ nameserver = "127.0.0.1:9"; timeout = 0.1s; }}
  map_watch_interval = 1s;
}}
logging {{ type = "file"; filename = "{home}/rspamd.log"; level = "info"; }}
worker "normal" {{ bind_socket = "127.0.0.1:{port}"; count = 1; }}
modules {{ path = "/usr/share/rspamd/plugins/dkim_signing.lua"; }}
lua = "/usr/share/rspamd/rules/rspamd.lua";
.include "/etc/rspamd/modules.d/dkim_signing.conf"
"""
_RSPAMD_LOCAL = '.include(priority=1,duplicate=merge) "{export}/dkim_signing.conf"\n'


class Signature(NamedTuple):
    """The domain (d=) and selector (s=) of a signed `message`."""

    domain: str
    selector: str
    message: bytes

    @property
    def key(self) -> str:
        return f"{self.selector}._domainkey.{self.domain}"

    def verifies(self, ask: Callable[[str], Sequence[object]]) -> bool:
        """Whether dkimpy verifies it; `ask` gives the TXT values of a name."""

        def answer(name: bytes, timeout: int = 5) -> object:
            values = ask(name.decode())
            return values[0] if values else None

        return bool(dkim.verify(self.message, dnsfunc=answer))


class Signer(Protocol):
    """A running signer."""

    def sign(self, domain: str) -> Signature | None:
        """Sign a message from this domain; None if it is not signed."""

    def reload(self) -> None:
        """What the operator does after an export."""


class Opendkim:
    def __init__(self, port: int) -> None:
        self._port, self.pid = port, 0

    def sign(self, domain: str) -> Signature | None:
        message = _MESSAGE.format(domain=domain).encode()
        decision, added = added_headers(self._port, message, f"sender@{domain}")
        assert decision in b"ac", decision
        values = [value for name, value in added if name == b"DKIM-Signature"]
        return _signature(values[0].replace(b"\n", b"\r\n"), message) if values else None

    def reload(self) -> None:
        os.kill(self.pid, signal.SIGUSR1)


class Rspamd:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def sign(self, domain: str) -> Signature | None:
        message = _MESSAGE.format(domain=domain).encode()
        headers = {"IP": "127.0.0.1", "From": f"sender@{domain}"}
        with httpx.Client(trust_env=False) as client:
            answer = client.post(f"{self._url}/checkv2", content=message, headers=headers).json()
        value = answer.get("dkim-signature")
        return _signature(value.encode(), message) if value else None

    def reload(self) -> None:
        """It notices by itself."""


@contextlib.contextmanager
def safe_place() -> Iterator[Path]:
    """A directory above which nobody else can write, as opendkim demands: not in /tmp."""
    above = Path("/var/lib") if os.geteuid() == 0 else Path.home()
    with tempfile.TemporaryDirectory(dir=above, prefix="dkimctl-test-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


def group_options(user: str) -> list[str]:
    """The options of an export that a signer with a `user` of its own can read."""
    return ["--group", user] if _has_own_user(user) else []


@contextlib.contextmanager
def running_opendkim(need: Callable[[str], str], home: Path, export: Path) -> Iterator[Signer]:
    """Run opendkim with the export; as its own user, if we are root."""
    port = free_port()
    config = _OPENDKIM.format(port=port, export=export)
    if _has_own_user("opendkim"):
        config += "UserID opendkim\n"
    (home / "opendkim.conf").write_text(config)
    words = [need("opendkim"), "-f", "-x", str(home / "opendkim.conf")]
    signer = Opendkim(port)
    with daemon(words, home / "signer.log", lambda: [signer.sign(_NOBODY)]) as process:
        signer.pid = process.pid
        yield signer


@contextlib.contextmanager
def running_rspamd(need: Callable[[str], str], home: Path, export: Path) -> Iterator[Signer]:
    """Run rspamd with the export; as its own user, if we are root."""
    port = free_port()
    own = home / "rspamd"
    (own / "local.d").mkdir(parents=True)
    (own / "local.d" / "dkim_signing.conf").write_text(_RSPAMD_LOCAL.format(export=export))
    (home / "rspamd.conf").write_text(_RSPAMD.format(port=port, home=own))
    words = [need("rspamd"), "-f", "-c", str(home / "rspamd.conf")]
    words += [f"--var={name}={own}" for name in ("DBDIR", "RUNDIR", "LOCAL_CONFDIR")]
    if _has_own_user("_rspamd"):
        entry = pwd.getpwnam("_rspamd")
        os.chown(own, entry.pw_uid, entry.pw_gid)
        words += ["-u", "_rspamd", "-g", "_rspamd"]
    elif os.geteuid() == 0:
        words.append("-i")
    signer = Rspamd(port)
    with daemon(words, home / "signer.log", lambda: [signer.sign(_NOBODY)]):
        yield signer


def eventually(signer: Signer, domain: str, key: str | None) -> Signature | None:
    """Wait until mail of the domain is signed with this key, or not at all for None."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        signature = signer.sign(domain)
        if (signature.key if signature else None) == key:
            return signature
        time.sleep(0.1)
    raise AssertionError(f"{domain}: {signature}, not {key}")


def _has_own_user(user: str) -> bool:
    try:
        return os.geteuid() == 0 and bool(pwd.getpwnam(user))
    except KeyError:
        return False


def _signature(value: bytes, message: bytes) -> Signature:
    tags = dict(re.findall(r"\b([ds])=([^;\s]+)", value.decode()))
    return Signature(tags["d"], tags["s"], b"DKIM-Signature: " + value + b"\r\n" + message)
