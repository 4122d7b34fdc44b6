"""A system that goes on signing with the old key: reports tell, and the key stays until it stops.

opendkim signs mail each day, with what it was given last; a receiver verifies it by DNS, and sends
a report the next day. `dkimctl` reads the reports, then does what is due.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from delegation import Zone
from machines import OURS, Domains, Machines, MovingClock, starting
from processes import Cli
from signers import Signature, eventually, group_options, running_opendkim, safe_place

A = "d00.test"
DOMAIN = Domains(
    [A], [Zone(A, OURS)], 1, timedelta(),
    config="rotation: {max_age: 30d, lead: 4d, grace: 5d}\n",
)  # fmt: skip
BEGIN = datetime(2027, 1, 1, 6, tzinfo=UTC)
NETWORKS = {"main": "192.0.2.0/24", "forgotten": "198.51.100.0/24"}
_ADDRESSES = {"main": "192.0.2.25", "forgotten": "198.51.100.7"}
_ON_ITS_WAY = timedelta(days=5)  # how long servers try to deliver (RFC 5321 section 4.5.4.1)
_REPORT = """<?xml version="1.0"?>
<feedback><report_metadata><org_name>receiver.example</org_name><report_id>{end}</report_id>
<date_range><begin>{begin}</begin><end>{end}</end></date_range></report_metadata>
<policy_published><domain>{domain}</domain><p>none</p></policy_published>
{rows}</feedback>
"""
_ROW = """<record><row><source_ip>{address}</source_ip><count>{count}</count></row>
<identifiers><header_from>{domain}</header_from></identifiers><auth_results><dkim>
<domain>{domain}</domain><selector>{selector}</selector><result>{result}</result></dkim>
</auth_results></record>
"""


class World:
    """The machines, two signers and a receiver."""

    def __init__(self, machines: Machines, clock: MovingClock, home: Path) -> None:
        self.machines = machines
        self.now = BEGIN
        self.signers = {}
        self.lost: list[tuple[datetime, str]] = []
        self._clock = clock
        self._cli = Cli(home)  # the operator's, beside the service: outside the network
        self._cli.prefix = ["env", *(f"{name}={text}" for name, text in clock.environment.items())]
        self._mail: list[tuple[datetime, str, Signature]] = []
        self._counts = Counter[tuple[str, str, str]]()  # of the day
        self._reports = home / "reports"
        self._reports.mkdir()

    def export(self, place: Path) -> None:
        words = ["--output-dir", place, "--data", "service.db", *group_options("opendkim")]
        done = self._cli("service", "export", "--format", "opendkim", *words)
        assert done.status == 0, done.err

    def correct(self, name: str, place: Path, selector: str) -> None:
        """The operator has a signer use the key that is in effect."""
        self.export(place)
        self.signers[name].reload()
        eventually(self.signers[name], A, f"{selector}._domainkey.{A}")

    def until(self, day: int) -> None:
        """The morning of this day, with the report about yesterday's mail."""
        yesterday = self.now
        self.now = BEGIN + timedelta(days=day, hours=1)
        self._clock.move(self.now)
        if self._counts:
            begin = int(yesterday.replace(hour=0).timestamp())
            rows = "".join(
                _ROW.format(address=_ADDRESSES[name], count=count, domain=A, selector=selector,
                            result=result)
                for (name, selector, result), count in self._counts.items()
            )  # fmt: skip
            text = _REPORT.format(begin=begin, end=begin + 86399, domain=A, rows=rows)
            (self._reports / f"{day}.xml").write_text(text)
            self._counts.clear()
        done = self.machines.dkimctl("reports", self._reports.name)
        assert done.status == 0, done

    def send(self) -> None:
        """Each signer signs a letter; the receiver verifies it, and those that are on their way."""
        self._mail = [mail for mail in self._mail if self.now - mail[0] <= _ON_ITS_WAY]
        for name, signer in self.signers.items():
            signature = signer.sign(A)
            assert signature is not None
            self._mail.append((self.now, name, signature))
        keys = {signature.key for *_, signature in self._mail}
        resolver = self.machines.look([*keys], keys).resolver
        for sent, name, signature in self._mail:
            is_good = signature.verifies(lambda key: resolver[key.rstrip(".")])
            if sent == self.now:
                self._counts[name, signature.selector, "pass" if is_good else "fail"] += 1
            if not is_good:
                self.lost.append((sent, signature.key))

    def fail(self, count: int, selector: str) -> None:
        """Letters of today that the receiver could not verify."""
        self._counts["forgotten", selector, "fail"] += count

    def run(self) -> tuple[int, list[tuple[str, str, str]], str]:
        """What a run did: its exit status, steps, and the reason of the last one."""
        done = self.machines.dkimctl("rotate", "run", "--wait", "10s", "--format", "json")
        self.last, self.err = json.loads(done.out), done.err
        items = self.last["items"]
        steps = [(item["selector"], item["step"], item["state"]) for item in items]
        return done.status, steps, items[-1]["reason"] if items else ""

    def notices(self) -> dict[str, list[tuple[str, str]]]:
        """What people were told since the last time."""
        told: dict[str, list[tuple[str, str]]] = {}
        for text in self.machines.take_notices():
            document = json.loads(text)
            for kind in ("new", "over"):
                for item in document[kind]:
                    told.setdefault(kind, []).append((item["subject"], item["problem"]))
        return told


@pytest.fixture
def world(tmp_path, needs_tool) -> Iterator[tuple[World, Path]]:
    clock = MovingClock(tmp_path / "clock", needs_tool)
    clock.move(BEGIN)
    with (
        safe_place() as place,
        starting(tmp_path, clock, needs_tool, DOMAIN) as machines,
        contextlib.ExitStack() as stack,
    ):
        world = World(machines, clock, tmp_path / "home")
        specs = f"- {{sign_domain: {A}, selector: s1}}\n"
        assert machines.dkimctl("register", "-", stdin=specs).status == 0
        assert world.run()[:2] == (0, [("s1", "publish", "done")])
        for name in _ADDRESSES:
            home = place / name
            home.mkdir()
            world.export(home / "export")
            signer = running_opendkim(needs_tool, home, home / "export")
            world.signers[name] = stack.enter_context(signer)
        yield world, place


def test_a_key_that_a_forgotten_system_signs_with_stays_until_that_is_corrected(world):
    """Its successor begins on the 30th day; it would be removed on the 35th; the 39th is late.

    The main signer is corrected in the evening of the 34th day, the other one on the 40th.
    """
    world, place = world
    dkimctl = world.machines.dkimctl
    for day in (25, 26):
        world.until(day)
        _, steps, _ = world.run()
        world.send()
    [new] = {selector for selector, step, _ in steps if step == "register"}
    seen, reasons, retired, told = {}, {}, {}, {}
    for day in (30, 33, 34, 35, 36, 38, 39, 40, 43, 45, 46, 47):
        world.until(day)
        if day in (34, 38, 39, 46):
            done = dkimctl("rotate", "--retired", "--format", "json")
            retired[day] = done.status, json.loads(done.out)["count"]
        if day == 39:
            no_look = dkimctl("rotate", "--retired", "--no-check", "--format", "json")
            assert (no_look.status, json.loads(no_look.out)["items"]) == (1, [])
            why = (
                f"{A} (selector s1) is not listed: still signing: mail passed with it on 2027-02-08"
            )
            for each in (done, no_look):
                assert f"{why}; from {NETWORKS['forgotten']}, {NETWORKS['main']}" in each.err
            run = ("rotate", "run", "--dry-run", "--format", "json")
            for words, state in ((), "blocked"), (["--despite-reports"], "due"):
                planned = json.loads(dkimctl(*run, *words).out)["items"]
                assert [(each["selector"], each["state"]) for each in planned] == [("s1", state)]
            forgotten = dkimctl("ledger", "forget", A)
            assert forgotten.status == 1
            assert "s1) is not retired: still signing" in forgotten.err
            published = dkimctl("publish", "--yes", "--format", "json")
            kept = {
                (item["selector"], item["action"]) for item in json.loads(published.out)["items"]
            }
            assert (published.status, kept) == (0, {("s1", "keep"), (new, "keep")})
        status, steps, reasons[day] = world.run()
        seen[day] = status, *[state for _, _, state in steps]
        told[day] = world.notices()
        world.send()
        if day == 34:
            world.correct("main", place / "main" / "export", new)
        elif day == 40:
            world.correct("forgotten", place / "forgotten" / "export", new)
    assert world.lost == []
    assert seen == {
        **dict.fromkeys((30, 33), (0,)),
        **dict.fromkeys((34, 35), (1, "blocked")),  # mail passes with it alone
        **dict.fromkeys((36, 38), (0, "waiting")),
        **dict.fromkeys((39, 40, 43, 45), (1, "blocked")),
        46: (0, "done"),
        47: (0,),
    }
    assert f"and none in the last 5 days with {new}" in reasons[35]
    assert reasons[45] == (
        f"still signing: mail passed with it on 2027-02-10; from {NETWORKS['forgotten']}"
    )
    assert retired == {34: (0, 0), 38: (0, 0), 39: (1, 0), 46: (0, 1)}
    problem = (f"rotation of {A}", "remove: blocked")
    assert {day: each for day, each in told.items() if each} == {
        34: {"new": [problem]}, 46: {"over": [problem]},
    }  # fmt: skip

    world.fail(30, "s1")  # from a backup
    world.until(48)
    assert world.run()[:2] == (0, [])
    [failing] = world.last["failing"]
    assert failing == {
        "sign_domain": A, "selector": "s1", "passed": 0, "failed": 30,
        "networks": [NETWORKS["forgotten"]], "is_removed": True,
    }  # fmt: skip
    text = "30 of 30 messages in the last 7 days, from 198.51.100.0/24"
    assert f"mail with the removed key {A} (selector s1) fails: {text}" in world.err
    assert world.notices() == {"new": [(f"rotation of {A}", "mail with s1 fails")]}

    world.until(68)
    done = dkimctl("rotate", "run", "--dry-run", "--format", "table")
    assert f"dkimctl: no reports for 1 domain in the last 14 days ({A})\n" in done.err
