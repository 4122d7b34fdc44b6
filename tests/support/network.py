"""A network of its own: a root, delegations, name servers, and a resolver that recurses from there.

    with running(tmp_path, needs_tool, hosts=[…], zones=[…]) as network:
        done, items = network.check_dns(cli)
        network.run("dig", "+short", "example.com", "SOA")

It is a network namespace of Linux, in which each server has port 53 at a loopback address of its
own, and /etc/resolv.conf names the resolver (unbound).
"""

from __future__ import annotations

import contextlib
import copy
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import dns.rdata

from commands import Done
from delegation import ROOT_HOST, Host, Security, Tree, Zone
from dns_servers import key_file
from mail import Answers
from name_servers import RESOLVER_ADDRESS, host_command, resolver_command
from needs import NO_NAMESPACE, give_up
from processes import Cli

_LIMIT = 60.0  # seconds, for busy machines
_PREPARE = "ip link set lo up && mount --bind resolv.conf /etc/resolv.conf"


class Record(NamedTuple):
    """A record that dig shows: its name in lower case without trailing dot, and its data."""

    name: str
    rdtype: str
    data: str


class _Process(NamedTuple):
    pid: int  # within the network
    log: Path


@contextlib.contextmanager
def running(
    directory: Path,
    need: Callable[[str], str],
    *,
    hosts: Sequence[Host],
    zones: Sequence[Zone],
    validates: bool = True,
    resolver_options: str = "",
) -> Iterator[Network]:
    """A network with these hosts and zones, until the block ends.

    With `validates`, the resolver validates signed zones, if there are any; `resolver_options` are
    lines of unbound.conf. Skips the test where this user may not make a namespace; `need` is
    conftest's needs_tool.
    """
    network = Network(directory, need)
    try:
        network.begin(hosts, zones)
        network.start_resolver(resolver_options, validates=validates)
        yield network
    finally:
        network.close()


class Network:
    """A running network; see `running`. `key_file` signs updates, as in `nsupdate -k`."""

    def __init__(self, directory: Path, need: Callable[[str], str]) -> None:
        self._directory = directory
        self._need = need
        self._signer = Signer(directory, need)
        self._processes: dict[str, _Process] = {}
        self._resolver: list[str] = []
        self.key_file = key_file(directory / "update.key")
        self._name_resolver()
        need("ip")
        # The shell is the init process of the namespace: when it ends, all others do.
        self._shell = subprocess.Popen(
            [need("unshare"), "-rmnpf", "--kill-child", need("bash")], cwd=directory, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def begin(self, hosts: Sequence[Host], zones: Sequence[Zone]) -> None:
        """Set it up, without a resolver."""
        done = self._tell(f"({_PREPARE}) 2>&1 | tr '\\n' ' '; echo $PIPESTATUS")
        if done != "0":
            give_up(f"{NO_NAMESPACE}: {done}")
        self._tree = Tree(hosts, zones)
        self._write_zones()
        for host in self._tree.hosts.values():
            for address in host.addresses:
                length, option = (128, "nodad") if ":" in address else (8, "")
                self._tell(f"ip addr replace {address}/{length} dev lo {option} 2>&1; echo added")
            if host.program:
                self._start_host(host)
        self._wait_until_served()

    def start_resolver(self, options: str = "", *, validates: bool = True) -> None:
        """Start the resolver, with an empty cache."""
        anchor = self._signer.trust_anchor() if validates and self._tree.signed() else None
        self._resolver = resolver_command(self._directory, self._need, anchor, options)
        self.restart_resolver()

    @contextlib.contextmanager
    def without_nameservers(self) -> Iterator[None]:
        """Meanwhile, /etc/resolv.conf is empty."""
        (self._directory / "resolv.conf").write_text("")
        try:
            yield
        finally:
            self._name_resolver()

    def close(self) -> None:
        """End everything that runs in it."""
        self._shell.communicate(timeout=_LIMIT)

    def _name_resolver(self) -> None:
        (self._directory / "resolv.conf").write_text(f"nameserver {RESOLVER_ADDRESS}\n")

    def prefix(self, directory: Path) -> list[str]:
        """What to put before a command to run it in the network, with this working directory."""
        enter = [self._need("nsenter"), "-t", str(self._shell.pid), "-U", "-m", "-n"]
        return [*enter, "--preserve-credentials", "env", f"--chdir={directory}"]

    def run(
        self, *command: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the network."""
        return subprocess.run(
            [*self.prefix(self._directory), *command], input=stdin, env=env,
            capture_output=True, text=True, timeout=2 * _LIMIT, check=False,
        )  # fmt: skip

    def inside(self, cli: Cli) -> Cli:
        """The same command line, run in the network."""
        inside = copy.copy(cli)
        inside.prefix = self.prefix(cli.home)
        return inside

    def check_dns(self, cli: Cli, *words: str) -> tuple[Done, dict[str, Any]]:
        """Run check-dns in the network; gives the ended command, and its items by domain."""
        done = self.inside(cli)("check-dns", "--sandbox", "--format", "json", *words)
        return done, {item["sign_domain"]: item for item in done.json["items"]}

    def start(self, name: str, *command: str) -> None:
        """Run a server, such as a scripted one, until the network ends or `stop`."""
        log = self._directory / f"{name}.log"
        line = f"{shlex.join(command)} </dev/null >{shlex.quote(str(log))} 2>&1 & echo $!"
        self._processes[name] = _Process(int(self._tell(line)), log)

    def stop(self, name: str) -> None:
        """End a server that was started, a host, or the "resolver"."""
        pid = self._processes.pop(name).pid
        self._tell(f"kill {pid}; wait {pid}; echo ended")

    def start_host(self, name: str) -> None:
        """Start a host again that was stopped."""
        self._start_host(self._tree.hosts[name])
        self._wait_until_served()

    def restart_resolver(self) -> None:
        """Empty its cache."""
        if "resolver" in self._processes:
            self.stop("resolver")
        self.start("resolver", *self._resolver)
        self.wait_for("dig", "+tries=1", "+time=1", "+short", ".", "NS", shows=ROOT_HOST)

    def wait_for(self, *command: str, shows: str, times: int = 1) -> None:
        """Run a command until it shows a text, at least `times` times."""
        deadline = time.monotonic() + _LIMIT
        while (shown := self.run(*command).stdout).count(shows) < times:
            self._assert_alive()
            if time.monotonic() > deadline:
                logs = (f"{name}:\n{one.log.read_text()}" for name, one in self._processes.items())
                raise AssertionError("\n".join((shlex.join(command), shown, *logs)))
            time.sleep(0.02)

    def _start_host(self, host: Host) -> None:
        files = {zone.name: self._file(zone, host) for zone in self._tree.zones_of(host)}
        home = self._directory / host.name
        self.start(host.name, *host_command(host, files, home, self._need))

    def _write_zones(self) -> None:
        """Write the zone files of all hosts."""
        signed = [self._tree.zones[name] for name in self._tree.signed()]
        ds = {zone.name: self._signer.make_key(zone) for zone in signed}
        for host in self._tree.hosts.values():
            (self._directory / host.name).mkdir()
            for zone in self._tree.zones_of(host):
                file = self._file(zone, host)
                file.write_text(self._tree.zone_file(zone, host, ds))
                if zone in signed:
                    self._signer.sign(zone, file)

    def _file(self, zone: Zone, host: Host) -> Path:
        return self._directory / host.name / f"{zone.name or 'root'}.zone"

    def _wait_until_served(self) -> None:
        """Wait until each server that runs has all its zones."""
        questions = [
            f"@{host.addresses[0]} +short +norecurse +tries=1 +time=1 {zone.name}. SOA\n"
            for host in self._tree.hosts.values()
            if host.name in self._processes
            for zone in self._tree.zones_of(host)
        ]
        (self._directory / "questions").write_text("".join(questions))
        self.wait_for(self._need("dig"), "-f", "questions", shows=" 3600 ", times=len(questions))

    def _assert_alive(self) -> None:
        for name, (pid, log) in self._processes.items():
            assert self._tell(f"kill -0 {pid} 2>&1; echo $?") == "0", f"{name}: {log.read_text()}"

    def _tell(self, line: str) -> str:
        """Have the shell run a line that prints one line; returns that."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._shell.stdin.write(line + "\n")
            self._shell.stdin.flush()
        return self._shell.stdout.readline().strip()


_VALIDITY = {
    Security.SECURE: ("-s", "now-3600", "-e", "now+864000"),
    Security.WRONG_DS: ("-s", "now-3600", "-e", "now+864000"),
    Security.EXPIRED: ("-s", "now-864000", "-e", "now-86400"),
}


class Signer:
    """Signs zone files by BIND's tools, rightly or not, with a key each in `directory`."""

    def __init__(self, directory: Path, need: Callable[[str], str]) -> None:
        self._directory = directory
        self._need = need
        self._keys: dict[str, Path] = {}  # the public key, by zone

    def make_key(self, zone: Zone) -> str:
        """Make the key of a zone; gives the line with its DS record, for the zone above."""
        key = self._keys[zone.name] = self._make_key(zone.name)
        if zone.security is Security.WRONG_DS:
            key = self._make_key(zone.name)
        return self._run("dnssec-dsfromkey", "-2", key.name)

    def trust_anchor(self) -> Path:
        """The file with the DNSKEY record of the root."""
        return self._keys[""]

    def sign(self, zone: Zone, file: Path) -> None:
        """Sign the zone file in place."""
        keys = self._keys[zone.name].name
        validity = _VALIDITY[zone.security]
        origin = f"{zone.name}."
        words = ("-P", "-z", "-o", origin, *validity, "-f", str(file), str(file), keys)
        file.write_text(file.read_text() + self._keys[zone.name].read_text())
        self._run("dnssec-signzone", *words)

    def _make_key(self, zone: str) -> Path:
        words = ("-q", "-a", "ECDSAP256SHA256", "-f", "KSK", "-n", "ZONE", f"{zone}.")
        return self._directory / f"{self._run('dnssec-keygen', *words).strip()}.key"

    def _run(self, program: str, *words: str) -> str:
        done = subprocess.run(
            [self._need(program), *words], cwd=self._directory, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def ask(network: Network, names: Sequence[str], *words: str) -> Answers:
    """The TXT values of names, from the resolver, or another server (`@` and its address)."""
    if not names:
        return {}
    records = _dig(network, *words, *" ".join(f"{name} TXT" for name in names).split())
    values = txt_values(records)
    aliases = {owner: data for owner, rdtype, data in records if rdtype == "CNAME"}

    def end_of(name: str) -> str:
        while name in aliases:
            name = _plain(aliases[name])
        return name

    return {name: values.get(end_of(name), ()) for name in names}


def transfer(network: Network, zones: Sequence[str], server: str) -> list[Record]:
    """All records that a server has in these zones."""
    records = _dig(network, f"@{server}", *" ".join(f"{zone} AXFR" for zone in zones).split())
    # A transfer begins and ends with the SOA record.
    apexes = sum(record.rdtype == "SOA" for record in records)
    assert apexes == 2 * len(zones), records
    return records


def txt_values(records: Iterable[Record]) -> Answers:
    """The TXT values of these records, by name."""
    answers: dict[str, tuple[bytes, ...]] = {}
    for owner, rdtype, data in records:
        if rdtype == "TXT":
            answers[owner] = (*answers.get(owner, ()), _value(data))
    return answers


def _dig(network: Network, *words: str) -> list[Record]:
    done = network.run("dig", "+noall", "+answer", *words)
    assert done.returncode == 0, done.stdout
    lines = (line.split(None, 4) for line in done.stdout.splitlines())
    return [Record(_plain(owner), rdtype, data) for owner, _, _, rdtype, data in lines]


def _plain(name: str) -> str:
    return name.rstrip(".").lower()


@lru_cache(maxsize=1 << 14)
def _value(text: str) -> bytes:
    return b"".join(dns.rdata.from_text("IN", "TXT", text).strings)
