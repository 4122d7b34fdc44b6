"""What tests need of the machine: without it they are skipped, with what to install."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import which
from typing import NoReturn

import pytest

NO_NAMESPACE = "this user may not make a namespace (run as root, or allow user namespaces)"
# Debian has these, with many servers, but they are not in the PATH of an ordinary user.
_SYSTEM_DIRECTORIES = (
    "/usr/local/sbin",
    "/usr/sbin",
    "/sbin",
)
_POSTGRESQL = Path("/usr/lib/postgresql")  # one directory a version
# Programs of PyPI, and what to install for each.
_FROM_PYPI = {"moto_server": "'moto[route53,server]'", "schemathesis": "schemathesis"}
# Debian's packages, and the programs in each that tests need.
PACKAGES = {
    "bind9": ("named", "tsig-keygen"),
    "bind9-dnsutils": ("dig", "nsupdate"),
    "bind9-utils": ("dnssec-keygen", "dnssec-signzone", "named-checkzone"),
    "curl": ("curl",),
    "dbus": ("dbus-run-session", "dbus-send"),
    "faketime": ("faketime",),
    "fish": ("fish",),
    "gnome-keyring": ("gnome-keyring-daemon",),
    "iproute2": ("ip",),
    "jq": ("jq",),
    "knot": ("keymgr", "knotd"),
    "knot-dnssecutils": ("kzonecheck",),
    "knot-dnsutils": ("knsupdate",),
    "ldnsutils": ("ldns-read-zone",),
    "nodejs": ("node",),
    "nginx": ("nginx",),
    "nsd": ("nsd", "nsd-checkzone"),
    "opendkim": ("opendkim",),
    "opendkim-tools": ("opendkim-testkey",),
    "openssl": ("openssl",),
    "pdns-backend-bind": ("pdns_server",),
    "pdns-backend-sqlite3": ("pdns_server",),
    "pdns-server": ("pdns_server", "pdnsutil"),
    "postgresql": ("initdb", "postgres"),
    "prometheus": ("promtool",),
    "rspamd": ("rspamd",),
    "systemd": ("systemd-analyze",),
    "tmux": ("tmux",),
    "unbound": ("unbound",),
    "zsh": ("zsh",),
}


def extend_path() -> None:
    """Let tests, and the programs that they start, find servers as an ordinary user."""
    path = os.environ.get("PATH", "").split(os.pathsep)
    path += [directory for directory in _SYSTEM_DIRECTORIES if directory not in path]
    path += map(str, sorted(_POSTGRESQL.glob("*/bin"), reverse=True))
    os.environ["PATH"] = os.pathsep.join(path)


def program(name: str) -> str:
    """The path of a program; gives up without it."""
    return which(name) or give_up(f"{name} is not installed ({_installer(name)})")


def give_up(reason: str) -> NoReturn:
    """Skip the test; with DKIMCTL_REQUIRE_TOOLS=1, fail instead."""
    if os.environ.get("DKIMCTL_REQUIRE_TOOLS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def _installer(program: str) -> str:
    """The command that installs it."""
    if program in _FROM_PYPI:
        return f"pipx install {_FROM_PYPI[program]}"
    packages = [package for package, programs in PACKAGES.items() if program in programs]
    return f"on Debian: apt-get install {' or '.join(packages) or program}"
