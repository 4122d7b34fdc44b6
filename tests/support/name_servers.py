"""The configuration of name servers with many zones, and of a resolver, for a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from delegation import ROOT_ADDRESS, ROOT_HOST, Host
from dns_servers import SECRET

RESOLVER_ADDRESS = "127.0.0.1"

_NAMED = """
options {{
  directory "{home}"; pid-file none; session-keyfile none; recursion no; dnssec-validation no;
  listen-on {{ {ipv4} }}; listen-on-v6 {{ {ipv6} }}; serial-query-rate 1000;
  {notify}
}};
controls {{ }};
key "dkim" {{ algorithm hmac-sha256; secret "{secret}"; }};
"""
_NAMED_NOTIFY = (
    "notify explicit; notify-delay 0; notify-source {source}; also-notify {{ {secondaries} }};"
)
# It also asks each second: a primary whose clock is moved sends its NOTIFY late, since its timers
# wait in real time for what was due first.
_NAMED_SECONDARY = (
    "type secondary; masterfile-format text; primaries {{ {primary}; }}; "
    "min-refresh-time 1; max-refresh-time 1; min-retry-time 1; max-retry-time 1;"
)
_NAMED_ZONE = 'zone "{zone}" {{ file "{file}"; {kind} }};\n'
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
remote-control:
  control-enable: no
"""
_NSD_ZONE = 'zone:\n  name: "{zone}"\n  zonefile: "{file}"\n'
# rundir is `home` again: the path of its control socket may have 107 characters at most.
_KNOTD = """
server:
  rundir: /proc/self/cwd/{home.name}
{addresses}
database:
  storage: {home}
zone:
"""
_KNOTD_ZONE = '  - domain: "{zone}"\n    file: "{file}"\n'
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


def configure(
    host: Host, zones: Mapping[str, Path], home: Path, need: Callable[[str], str]
) -> list[str]:
    """Write the configuration of a host with these zone files; returns the command to start it.

    The command is for the directory above `home`.
    """
    write = {"named": _named, "nsd": _nsd, "knotd": _knotd}[host.program]
    file = home / f"{host.program}.conf"
    file.write_text(write(host, zones, home))
    options = {"named": ["-g", "-n", "1"], "nsd": ["-d"], "knotd": []}[host.program]
    settings = [f"{name}={value}" for name, value in host.environment.items()]
    return ["env", *settings, need(host.program), *options, "-c", str(file)]


def configure_resolver(
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


def _named(host: Host, zones: Mapping[str, Path], home: Path) -> str:
    ipv4 = "".join(f"{address}; " for address in host.addresses if ":" not in address)
    ipv6 = "".join(f"{address}; " for address in host.addresses if ":" in address)
    secondaries = "".join(f"{address}; " for address in host.secondaries)
    notify = _NAMED_NOTIFY.format(source=host.addresses[0], secondaries=secondaries)
    config = _NAMED.format(
        home=home, secret=SECRET, ipv4=ipv4 or "none;", ipv6=ipv6 or "none;",
        notify=notify if secondaries else "notify no;",
    )  # fmt: skip
    return config + "".join(
        _NAMED_ZONE.format(zone=zone or ".", file=file, kind=_kind(host))
        for zone, file in zones.items()
    )


def _kind(host: Host) -> str:
    """How the zones of a named change."""
    if host.secondary_of:
        return _NAMED_SECONDARY.format(primary=host.secondary_of)
    return "type primary;" + (' allow-update { key "dkim"; };' if host.updates else "")


def _nsd(host: Host, zones: Mapping[str, Path], home: Path) -> str:
    addresses = "".join(f"  ip-address: {address}@53\n" for address in host.addresses)
    return _NSD.format(home=home, addresses=addresses) + "".join(
        _NSD_ZONE.format(zone=zone or ".", file=file) for zone, file in zones.items()
    )


def _knotd(host: Host, zones: Mapping[str, Path], home: Path) -> str:
    addresses = "".join(f"  listen: {address}@53\n" for address in host.addresses)
    return _KNOTD.format(home=home, addresses=addresses) + "".join(
        _KNOTD_ZONE.format(zone=zone or ".", file=file) for zone, file in zones.items()
    )
