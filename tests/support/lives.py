"""The life of keys: an operator's commands and changes to DNS, day by day, and mail meanwhile."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from commands import Done
from dated import DatedCli
from delegation import Host, Zone
from dkimctl.models import RegistrationKey, key_of
from mail import Answers, Mail, name
from network import Network, ask, running

ZONE = "example.org"
PRIMARY = "127.0.0.2"
SERVERS = (PRIMARY, "127.0.0.3")  # those of the zone
HIDDEN = "127.0.0.4"  # a server that has the zone, and is in no delegation
HOSTS = [
    Host("ns1.test", (PRIMARY,), "named", updates=True),
    Host("ns2.test", ("127.0.0.3",), "named", updates=True),
    Host("hidden.test", (HIDDEN,), "named", updates=True, also=(ZONE,)),
]
ZONES = [
    Zone(ZONE, ("ns1.test", "ns2.test")),
    Zone("example.com", ("ns1.test",), 'kept TXT "as it was"\n'),
]
_RESOLVER = "cache-max-ttl: 0\n  cache-max-negative-ttl: 0"  # it remembers nothing
_MORNING = timedelta(hours=9)  # when mail is sent


@contextlib.contextmanager
def hosting(directory: Path, need) -> Iterator[Network]:
    """The network of ZONES."""
    with running(
        directory, need, hosts=HOSTS, zones=ZONES, validates=False, resolver_options=_RESOLVER
    ) as network:
        yield network


class Life:
    """What happens to the domains of one ledger. `cli` runs commands at the present time.

    `removed` has the records that the tool listed and the operator removed, and when.
    """

    def __init__(self, cli: DatedCli, network: Network) -> None:
        self.cli = cli
        self.mail = Mail(cli.home / ".local/share/dkimctl/sandbox.db")
        self.removed: dict[RegistrationKey, datetime] = {}
        self.network = network
        self._answers: Answers | None = None  # of the resolver; None: not known

    @property
    def now(self) -> datetime:
        return self.cli.now.replace(tzinfo=UTC)

    def until(self, time: str | datetime) -> None:
        """Let time pass; mail is sent each morning, and read."""
        then = datetime.fromisoformat(time) if isinstance(time, str) else time.replace(tzinfo=None)
        while (morning := _next_morning(self.cli.now)) <= then:
            self.cli.now = morning
            self.mail.send(self.now)
            self._read_mail()
        self.cli.now = then

    def register(self, specs: str, *words: str, status: int = 0) -> Done:
        done = self.cli("register", "-", *words, stdin=specs)
        assert done.status == status, done
        return done

    def publish(self, *selection: str, at: Sequence[str] = SERVERS) -> None:
        """Publish what is registered."""
        done = self.cli("show-dns", *selection, "--format", "nsupdate")
        assert done.status == 0, done
        self.update(done.out, at=at)

    def check(self, *words: str, status: int = 0) -> Done:
        done = self.cli("check-dns", *words, "--format", "json")
        assert done.status == status, done
        return done

    def retired(self, *words: str) -> tuple[int, set[RegistrationKey]]:
        """The exit status of `rotate --retired`, and what it lists."""
        done = self.cli("rotate", "--retired", *words, "--format", "json")
        items = json.loads(done.out)["items"] if done.out else []
        return done.status, {key_of(item["sign_domain"], item["selector"]) for item in items}

    def remove_retired(self, *words: str) -> set[RegistrationKey]:
        """Remove the records that the tool lists, and judge whether that was right."""
        done = self.cli("rotate", "--retired", *words, "--format", "nsupdate")
        found = re.findall(r"update delete (\S+)\._domainkey\.(\S+)\. IN TXT\n", done.out)
        listed = {key_of(domain, selector) for selector, domain in found}
        if "--no-check" not in words:
            self._require_published_successors(listed)
        self.update(done.out)
        self.removed |= dict.fromkeys(listed, self.now)
        self._read_mail()
        return listed

    def harmed(self) -> list[str]:
        """The messages that were lost because the tool had the operator remove their key."""
        return sorted(
            f"{name(message.key)} sent {message.sent:%F}, removed {removed:%F}"
            for message, lost in self.mail.lost.items()
            if (removed := self.removed.get(message.key)) and message.sent <= removed <= lost
        )

    def needed(self, *keys: RegistrationKey) -> bool:
        """Whether recent mail needs any of these keys."""
        answers = dict(self._present_answers())
        before = self.mail.unverifiable(answers)
        answers |= dict.fromkeys(map(name, keys), ())  # as if their records were removed
        return len(self.mail.unverifiable(answers)) > len(before)

    def at_service(self, *keys: RegistrationKey, enable: bool) -> None:
        """Enable or disable keys at the service; the ledger doesn't know of it yet."""
        with contextlib.closing(sqlite3.connect(self.mail.store)) as connection, connection:
            connection.executemany(
                f"UPDATE registrations SET enable = {int(enable)} "
                "WHERE sign_domain = ? AND selector = ?",
                keys,
            )

    def refresh(self, *keys: RegistrationKey) -> None:
        """Tell the ledger what the service has."""
        entries = [
            f"- {{sign_domain: {key.sign_domain}, selector: {key.selector}}}" for key in keys
        ]
        self.register("\n".join(entries), "--refresh")

    def update(self, script: str, *, at: Sequence[str] = SERVERS) -> None:
        """Have servers take the updates of a script for nsupdate."""
        if not script:
            return
        whole = "".join(f"server {server}\n{script}" for server in at)
        done = self.network.run("nsupdate", "-k", str(self.network.key_file), stdin=whole)
        assert (done.returncode, done.stderr) == (0, ""), whole
        self.dns_changed()

    def dns_changed(self) -> None:
        """Take note that somebody has changed DNS."""
        self._answers = None

    def backup(self, keys: Iterable[RegistrationKey], server: str = PRIMARY) -> Answers:
        """What a server has now, for `restore`."""
        return ask(self.network, list(map(name, keys)), f"@{server}")

    def values(self, key: RegistrationKey) -> Sequence[bytes]:
        """The TXT values of a key's record."""
        return ask(self.network, [name(key)])[name(key)]

    def restore(self, backup: Answers, *, at: Sequence[str] = SERVERS) -> None:
        """Put the zone back to what it was."""
        script = ""
        for owner, values in backup.items():
            script += f"update delete {owner}. TXT\n"
            script += "".join(f"update add {owner}. 60 TXT {_quoted(value)}\n" for value in values)
        if script:
            self.update(f"{script}send\n", at=at)

    def clear(self) -> None:
        """Leave no records for the next life."""
        names = [name(key.key) for key in self.mail.signing_keys()]
        ours = [one for one in names if one.endswith(f".{ZONE}")]
        self.restore(dict.fromkeys(ours, ()), at=[*SERVERS, HIDDEN])
        self.restore(dict.fromkeys({*names} - {*ours}, ()), at=[PRIMARY])

    @contextlib.contextmanager
    def down(self, *hosts: str) -> Iterator[None]:
        """Servers of these names don't run, until the block ends."""
        for host in hosts:
            self.network.stop(host)
        try:
            self.dns_changed()
            yield
        finally:
            for host in hosts:
                self.network.start_host(host)
            self.start_resolver()  # the old one remembers for long that they were down
            self.dns_changed()

    def start_resolver(self, *, view: str = "") -> None:
        """Start the resolver anew; `view` is a line of its configuration."""
        self.network.start_resolver(f"{_RESOLVER}\n  {view}", validates=False)

    def _require_published_successors(self, listed: set[RegistrationKey]) -> None:
        """Each of the keys must leave one behind that begins later, and that both servers have."""
        domains = {key.sign_domain for key in listed}
        keys = [key for key in self.mail.signing_keys() if key.key.sign_domain in domains]
        answers = [self.backup([key.key for key in keys], server) for server in SERVERS]
        for old in (key for key in keys if key.key in listed):
            assert any(
                key.enabled
                and all(
                    old.begins(is_literal) < key.begins(is_literal) for is_literal in (True, False)
                )
                and key.start <= self.now
                and (key.key.sign_domain, key.default) == (old.key.sign_domain, old.default)
                and all(answer[name(key.key)] for answer in answers)
                for key in keys
            ), (old.key, self.now)

    def _read_mail(self) -> None:
        self.mail.receive(self.now, self._present_answers())

    def _present_answers(self) -> Answers:
        names = self.mail.recent_names()
        if self._answers is None or not names <= self._answers.keys():
            self._answers = ask(self.network, sorted(names))
        return self._answers


def _next_morning(now: datetime) -> datetime:
    day = now.replace(hour=0, minute=0, second=0)
    morning = day + _MORNING
    return morning if morning > now else morning + timedelta(days=1)


def _quoted(value: bytes) -> str:
    return " ".join(f'"{value[at : at + 255].decode()}"' for at in range(0, len(value), 255))
