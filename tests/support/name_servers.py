"""The configuration of name servers, and of a resolver."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from delegation import ROOT_ADDRESS, ROOT_HOST, Host

RESOLVER_ADDRESS = "127.0.0.1"
SECRET = base64.b64encode(b"a key for tests alone, 32 bytes.").decode()  # of the TSIG key `dkim`

_NAMED = """
options {{
  directory "{home}"; pid-file none; session-keyfile none; recursion no; dnssec-validation no;
  listen-on port {port} {{ {ipv4} }}; listen-on-v6 port {port} {{ {ipv6} }};
  serial-query-rate 1000;
  {options}
}};
controls {{ }};
key "dkim" {{ algorithm hmac-sha256; secret "{secret}"; }};
"""
_NAMED_ZONE = 'zone "{zone}" {{ file "{file}"; {kind}; }};\n'
_NAMED_NOTIFY = (
    "notify explicit; notify-delay 0; notify-source {source}; also-notify {{ {secondaries} }};"
)
# It also asks each second: a primary whose clock is moved sends its NOTIFY late, since its timers
# wait in real time for what was due first.
_NAMED_SECONDARY = (
    "type secondary; masterfile-format text; primaries {{ {primary}; }}; "
    "min-refresh-time 1; max-refresh-time 1; min-retry-time 1; max-retry-time 1"
)
_NSD = """
server:
  username: ""
  chroot: ""
  zonesdir: ""
  database: ""
  pidfile: "{home}/nsd.pid"
  xfrdfile: "{home}/xfrd.state"
  xfrdir: "{home}"
  zonelistfile: "{home}/zone.list"
  server-count: 1
  rrl-ratelimit: 0
{addresses}
  {options}
remote-control:
  control-enable: no
"""
_NSD_ZONE = 'zone:\n  name: "{zone}"\n  zonefile: "{file}"\n'
# rundir is `home` by another name: the path of its control socket may have 107 characters at most.
_KNOTD = """
server:
  rundir: /proc/self/cwd/{home.name}
{addresses}
database:
  storage: {home}
key:
  - id: dkim
    algorithm: hmac-sha256
    secret: {secret}
acl:
  - id: update
    address: 127.0.0.1
    key: dkim
    action: update
  - id: transfer
    address: 127.0.0.1
    action: transfer
zone:
"""
_KNOTD_ZONE = '  - domain: "{zone}"\n    file: "{file}"\n    acl: [update, transfer]\n'
# It gives up after two seconds, rather than 30, and says so.
_UNBOUND = """
server:
  interface: {address}
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "{home}"
  pidfile: ""
  use-syslog: no
  do-not-query-localhost: no
  root-hints: "{home}/root.hints"
  discard-timeout: 0
  infra-cache-max-rtt: 1000
  local-zone: "test." nodefault
  local-zone: "invalid." nodefault
  {validation}
  {options}
remote-control:
  control-enable: no
"""
_WORDS = {"named": ["-g", "-n", "1", "-c"], "nsd": ["-d", "-c"], "knotd": ["-c"]}


def server_command(
    program: str,
    zones: Mapping[str, Path],
    home: Path,
    need: Callable[[str], str],
    *,
    addresses: Sequence[str],
    port: int = 53,
    options: str = "",
    kind: str = "type primary",
    more: str = "",
) -> list[str]:
    """Write the configuration of a server with these zone files; returns the command to start it.

    The command is for the directory above `home`. `options` are those of the server itself (named,
    nsd), `kind` is how the zones of a named change, and `more` stands at the end.
    """
    values = {"home": home, "secret": SECRET, "options": options, "port": port}
    if program == "named":
        for name, is_v6 in (("ipv4", False), ("ipv6", True)):
            taken = [f"{each};" for each in addresses if (":" in each) is is_v6]
            values[name] = " ".join(taken) or "none;"
    else:
        word = "listen" if program == "knotd" else "ip-address"
        values["addresses"] = "\n".join(f"  {word}: {each}@{port}" for each in addresses)
    start, zone = {
        "named": (_NAMED, _NAMED_ZONE),
        "nsd": (_NSD, _NSD_ZONE),
        "knotd": (_KNOTD, _KNOTD_ZONE),
    }[program]
    file = home / f"{program}.conf"
    lines = (zone.format(zone=name or ".", file=path, kind=kind) for name, path in zones.items())
    file.write_text(start.format(**values) + "".join(lines) + more)
    return [need(program), *_WORDS[program], str(file)]


def host_command(
    host: Host, zones: Mapping[str, Path], home: Path, need: Callable[[str], str]
) -> list[str]:
    """The same for a host of a network."""
    options, kind = "", "type primary"
    if host.program == "named":
        secondaries = "".join(f"{address}; " for address in host.secondaries)
        notify = _NAMED_NOTIFY.format(source=host.addresses[0], secondaries=secondaries)
        options = notify if secondaries else "notify no;"
        if host.secondary_of:
            kind = _NAMED_SECONDARY.format(primary=host.secondary_of)
        elif host.updates:
            kind += "; allow-update { %s; }" % ('key "dkim"' if host.signed_updates else "any")
    command = server_command(
        host.program, zones, home, need, addresses=host.addresses, options=options, kind=kind
    )
    return ["env", *(f"{name}={value}" for name, value in host.environment.items()), *command]


def resolver_command(
    home: Path, need: Callable[[str], str], anchor: Path | None, options: str
) -> list[str]:
    """The command for a resolver, which validates if it gets a trust anchor."""
    hints = f". NS {ROOT_HOST}.\n{ROOT_HOST}. A {ROOT_ADDRESS}\n"
    (home / "root.hints").write_text(hints)
    validation = f'trust-anchor-file: "{anchor}"' if anchor else 'module-config: "iterator"'
    config = _UNBOUND.format(
        address=RESOLVER_ADDRESS, home=home, validation=validation, options=options
    )
    (home / "unbound.conf").write_text(config)
    return [need("unbound"), "-d", "-c", str(home / "unbound.conf")]
