"""Customers, who delegate to the operator, once, what the keys of their domains need.

Their zones are at a server of their own, which takes no updates. Most have a CNAME record for each
selector, which leads into the operator's zone; some delegate _domainkey to the operator. Two have
few selectors at first, and add more: SOON once it is told that one is left, LATE some days after
it has come too late.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta

from delegation import Zone
from machines import OURS, THEIRS, Domains, Machines
from years import POLICY, Years

AGENCY = "dkim.agency.test"
SOON, LATE = "soon.few.test", "late.few.test"
COUNT = 24  # selectors of a customer
_KEY = "._domainkey."
_TARGET = f"{{selector}}.{{domain}}.{AGENCY}"
_POOL = "  - {{domains: ['{}'], selectors: 'a{{n}}', count: {}, {}}}\n"


class Customers:
    """So many of them, of which SOON and LATE have `few` selectors; their zones are `names`."""

    def __init__(self, count: int, few: tuple[int, int], groups: int) -> None:
        direct = [f"d{number:03}.direct.test" for number in range(1 + count // 100)]
        names = [f"c{number:03}.customers.test" for number in range(count - len(direct) - 2)]
        names = [LATE, direct[0], SOON, *names, *direct[1:]]
        zones = [Zone(name, [THEIRS]) for name in names]
        zones += [  # which the customers delegate
            Zone(f"_domainkey.{name}", OURS[:1], delegated_to=()) for name in direct
        ]
        zones.append(Zone(AGENCY, OURS[:1]))
        self._counts = {SOON: few[0], LATE: few[1]}
        self.domains = Domains(
            names, zones, -(-count // groups), timedelta(days=168) / groups, selector="",
            config=self._config(), prepare=self._delegate, home_of=home_of,
            ttl=1, resolver_ttl=86400,
        )  # fmt: skip

    def live(self, years: Years, runs: int, days: int = 1) -> None:
        """Time passes; SOON and LATE act when they are told to."""
        years.judge.late = {LATE}
        for _ in range(runs):
            years.troubled = {name for name in self._counts if self._left(years, name) < 2}
            two = sorted(name for name in self._counts if self._left(years, name) == 2)
            done = years.live(1, days)
            told = re.findall(r"2 selectors are left in the pool of (.*)", done.err)
            if done.status >= 0 and told != [", ".join(two)] * bool(two):
                years.judge.report(years.now, f"two selectors are left to {two}: {done.err}")
            self._judge_selectors(years)
            self._extend_pools(years)

    def judge(self, years: Years) -> None:
        """What list says of the pools, and what the customers' server has now."""
        years.kills = False
        self.live(years, 1)
        listed = json.loads(years.machines.dkimctl("list", "--format", "json").out)["items"]
        of_newest = [key for key in listed if key["selectors_left"] is not None]
        left = {key["sign_domain"]: key["selectors_left"] for key in of_newest}
        assert left == {name: self._left(years, name) for name in self.domains.names}
        assert years.machines.their_zones() == self._zones

    def _delegate(self, machines: Machines) -> None:
        """Before there is any key."""
        names = self.domains.names
        assert self._states(machines, *names) == {"missing"}
        self._zones = machines.their_zones()
        self._hand_off(machines, *names)

    def _hand_off(self, machines: Machines, *names: str) -> None:
        """The customers do what the sheets say."""
        assert machines.their_zones() == self._zones
        done = machines.dkimctl("handoff", *names, "--delegate", "--format", "zone")
        assert done.status == 0, done
        sheets: dict[str, str] = {}
        for line in done.out.splitlines():
            if found := re.match(r"\S*_domainkey\.(\S+)\. ", line):
                sheets[found[1]] = f"{sheets.get(found[1], '')}{line}\n"
        machines.add_to_their_zones(sheets)
        assert self._states(machines, *names) == {"published"}
        self._zones = machines.their_zones()

    def _states(self, machines: Machines, *names: str) -> set[str]:
        """What check-dns finds of the delegations of these domains."""
        done = machines.dkimctl("check-dns", "--delegation", *names, "--format", "json")
        return {item["verdict"] for item in json.loads(done.out)["items"]}

    def _judge_selectors(self, years: Years) -> None:
        """Each key has the next one of its pool."""
        for domain in self.domains.names:
            used = [key.key.selector for key in years.judge.keys_of(domain)]
            is_next = used == [f"a{number}" for number in range(1, 1 + len(used))]
            if not is_next or self._left(years, domain) < 0:
                years.judge.report(years.now, f"the keys of {domain} have the selectors {used}")

    def _extend_pools(self, years: Years) -> None:
        """SOON does so when it is told to, LATE some days after its key has become too old."""
        newest = years.judge.keys_of(LATE)[-1]
        is_late = newest.made + POLICY.max_age + timedelta(days=3) < years.now
        is_due = {SOON: SOON in years.troubled, LATE: is_late and not self._left(years, LATE)}
        for name in (name for name in is_due if is_due[name]):
            self._counts[name] = COUNT
            years.machines.configure(self._config())
            self._hand_off(years.machines, name)

    def _left(self, years: Years, domain: str) -> int:
        """The selectors that are left in a pool."""
        return self._counts.get(domain, COUNT) - len(years.judge.keys_of(domain))

    def _config(self) -> str:
        pools = [(name, count, f"target: '{_TARGET}'") for name, count in self._counts.items()]
        pools.append(("*.customers.test", COUNT, f"target: '{_TARGET}'"))
        pools.append(("*.direct.test", COUNT, f"ns: [{OURS[0]}]"))
        return "delegation:\n" + "".join(_POOL.format(*pool) for pool in pools)


def home_of(name: str) -> str:
    """Where our server has the record of a key."""
    selector, _, domain = name.partition(_KEY)
    return name if domain.endswith(".direct.test") else f"{selector}.{domain}.{AGENCY}"
