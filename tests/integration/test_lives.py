"""The lives of keys in which something goes wrong: no key is removed that mail still needs.

All is real but the dates: `dkimctl` with its embedded service, two name servers that take signed
updates, delegations, a resolver, and mail that dkimpy signs each day and verifies until 13 days
later.
"""

from __future__ import annotations

import json

import pytest

from dkimctl.models import key_of
from lives import HIDDEN, ZONE, Life
from mail import name


def old(domain: str):
    return key_of(f"{domain}.{ZONE}", "s1")


def new(domain: str):
    return key_of(f"{domain}.{ZONE}", "s2")


def specs(*domains: str, selector: str = "s1", **fields: object) -> str:
    """Entries for these names in the zone, with fields in YAML."""
    fields = {"key_len": 1024} | fields
    more = "".join(f", {field}: {value}" for field, value in fields.items())
    lines = (
        f"- {{sign_domain: {domain}.{ZONE}, selector: {selector}{more}}}" for domain in domains
    )
    return "\n".join(lines)


def begin(life: Life, *domains: str, **fields: object) -> None:
    """The first keys: in DNS, and in use from 4 January on."""
    life.register(specs(*domains, start_date="2027-01-04T00:00+00:00", **fields))
    life.publish()
    life.check()


def succeed(life: Life, *domains: str, **fields: object) -> None:
    """Successors on 1 July that begin on the 4th, not published yet."""
    life.until("2027-07-01 10:00")
    fields = {"start_date": "2027-07-04T10:00+00:00", "replaces": "s1"} | fields
    life.register(specs(*domains, selector="s2", **fields))


def rotate(life: Life, *domains: str, **fields: object) -> None:
    """The same, and published; to be retired on 18 July at 10:00."""
    begin(life, *domains)
    succeed(life, *domains, **fields)
    life.publish()
    life.check()


class TestTheDayOfTheSuccessor:
    """The grace period begins when the successor has begun, is enabled, and was seen in DNS."""

    def test_registered_disabled_and_enabled_later(self, life):
        rotate(life, "a", enable="false")
        life.until("2027-09-10 09:58")
        assert life.retired() == (0, set())
        life.at_service(new("a"), enable=True)
        life.refresh(new("a"))
        life.until("2027-09-10 10:00")
        assert life.retired() == (0, set())
        assert life.needed(old("a"))
        life.until("2027-09-24 09:57")
        assert life.retired() == (0, set())
        life.until("2027-09-24 09:58")
        assert life.remove_retired() == {old("a")}
        life.until("2027-10-15 10:00")
        assert not life.mail.lost

    def test_disabled_and_enabled_again(self, life):
        rotate(life, "a")
        life.until("2027-07-17 10:00")
        life.at_service(new("a"), enable=False)
        life.refresh(new("a"))
        life.until("2027-08-30 10:00")
        assert life.retired() == (0, set())
        life.at_service(new("a"), enable=True)
        life.refresh(new("a"))
        life.until("2027-08-30 10:02")
        assert life.retired() == (0, set())
        assert life.needed(old("a"))
        life.until("2027-09-13 09:59")
        assert life.retired() == (0, set())
        life.until("2027-09-13 10:00")
        assert life.remove_retired() == {old("a")}
        life.until("2027-10-01 10:00")
        assert not life.mail.lost

    def test_published_later_than_it_begins(self, life):
        begin(life, "a", "b")
        succeed(life, "a", "b")
        life.publish(old("a").sign_domain)
        life.check(status=1)
        life.until("2027-07-10 10:00")
        life.publish(old("b").sign_domain)
        life.check()
        life.until("2027-07-18 10:00")
        assert life.remove_retired() == {old("a")}
        life.until("2027-07-24 09:59")
        assert life.retired() == (0, {old("a")})
        life.until("2027-07-24 10:00")
        assert life.remove_retired() == {old("a"), old("b")}

    def test_never_looked_at(self, life):
        begin(life, "a")
        succeed(life, "a")
        life.publish()
        life.until("2027-07-20 10:00")
        assert life.retired() == (0, set())
        life.until("2027-08-03 09:59")
        assert life.retired() == (0, set())
        life.until("2027-08-03 10:00")
        assert life.remove_retired() == {old("a")}


class TestTheLookBeforeTheRemoval:
    """A key is listed only if its successor is in DNS at all authoritative servers now."""

    def test_the_successor_vanished(self, life):
        begin(life, "a", "b")
        backup = life.backup([old("a"), new("a")])
        succeed(life, "a", "b")
        life.publish()
        life.check()
        life.until("2027-07-16 10:00")
        life.restore(backup)
        life.until("2027-07-18 10:00")
        status, listed = life.retired()
        assert (status, listed) == (1, {old("b")})
        life.publish(old("a").sign_domain)
        life.check()
        life.until("2027-08-01 09:59")
        assert life.retired() == (0, {old("b")})
        life.until("2027-08-01 10:00")
        assert life.remove_retired() == {old("a"), old("b")}

    def test_without_a_look_of_its_own_a_recent_one_counts(self, life):
        rotate(life, "a")
        life.until("2027-07-17 11:00")
        life.check()
        life.until("2027-07-18 10:59")
        assert life.retired("--no-check") == (0, {old("a")})
        life.until("2027-07-18 11:01")
        done = life.cli("rotate", "--retired", "--no-check", "--format", "json")
        assert (done.status, json.loads(done.out)["items"]) == (1, [])
        assert "check first" in done.err
        assert "dkimctl check-dns" in done.err
        words = ("--no-check", "--max-age-of-check")
        assert life.retired(*words, "12h") == (1, set())
        assert life.retired(*words, "25h") == (0, {old("a")})

    def test_dns_is_silent(self, life):
        rotate(life, "a")
        life.until("2027-07-18 10:00")
        with life.down("ns1.test", "ns2.test"):
            status, listed = life.retired()
            assert (status in (1, 4), listed) == (True, set())
        assert life.remove_retired() == {old("a")}

    def test_one_of_two_servers_lost_the_successor(self, life):
        begin(life, "a")
        backup = life.backup([old("a"), new("a")])
        succeed(life, "a")
        life.publish()
        life.check()
        life.until("2027-07-18 10:00")
        life.restore(backup, at=["127.0.0.3"])
        assert life.retired() == (1, set())
        life.publish(at=["127.0.0.3"])
        assert life.retired() == (0, set())
        life.until("2027-08-01 10:00")
        assert life.remove_retired() == {old("a")}


class TestWhoSawIt:
    """Only the servers that everyone asks count."""

    def test_a_hidden_primary(self, life):
        begin(life, "a")
        succeed(life, "a")
        life.publish(at=[HIDDEN])
        life.check("--server", HIDDEN, *domains("a"))
        life.until("2027-07-18 10:00")
        assert life.retired("--no-check") == (1, set())
        assert life.retired() == (1, set())

    def test_a_resolver_with_a_view_of_its_own(self, life):
        begin(life, "a")
        succeed(life, "a")
        [value] = [item["setting_values"]["value"] for item in registered(life)[1:]]
        view = f"""local-data: '{name(new("a"))}. TXT "{value}"'"""
        life.start_resolver(view=view)
        life.check("--resolver")
        life.start_resolver()
        life.until("2027-07-18 10:00")
        assert life.retired("--no-check") == (1, set())
        assert life.retired() == (1, set())


class TestWhoseSuccessor:
    """A key is retired by the one that was made to replace it, and signs the same mail."""

    def test_a_disabled_standby_key(self, life):
        begin(life, "a", enable="false")
        life.until("2027-02-01 10:00")
        life.register(specs("a", selector="s2", start_date="2027-02-04T00:00+00:00"))
        life.publish()
        life.check()
        life.until("2027-12-01 10:00")
        assert life.retired()[1] == set()
        assert life.retired("--assume-successors")[1] == set()

    def test_two_keys_that_differ_in_default(self, life):
        begin(life, "a", "b", default="1")
        succeed(life, "a", default="0")
        later = {"start_date": "2027-07-04T10:00+00:00", "default": "0"}
        life.register(specs("b", selector="s2", **later))
        life.publish()
        life.check()
        life.until("2027-12-01 10:00")
        assert life.retired()[1] == set()
        assert life.retired("--assume-successors")[1] == set()
        assert life.needed(old("a"))
        assert life.needed(old("b"))

    def test_unknown_successors_are_assumed_only_if_asked_for(self, life):
        begin(life, "a", "b")
        succeed(life, "a")
        life.register(specs("b", selector="s2", start_date="2027-07-04T10:00+00:00"))
        life.publish()
        life.check()
        life.until("2027-07-18 09:59")
        assert life.retired("--assume-successors")[1] == set()
        life.until("2027-07-18 10:00")
        done = life.cli("rotate", "--retired", "--format", "json")
        assert [item["sign_domain"] for item in done.json["items"]] == domains("a")
        assert "--assume-successors" in done.err
        assert old("b").sign_domain in done.err
        assert life.remove_retired("--assume-successors") == {old("a"), old("b")}

    def test_one_after_the_other(self, life):
        rotate(life, "a")
        third = key_of(old("a").sign_domain, "s3")
        life.until("2027-07-10 10:00")
        later = {"start_date": "2027-07-13T10:00+00:00", "replaces": "s2"}
        life.register(specs("a", selector="s3", **later))
        life.publish()
        life.check()
        life.until("2027-07-18 09:59")
        assert life.retired() == (0, set())
        life.until("2027-07-18 10:00")
        assert life.retired() == (0, {old("a")})
        life.until("2027-07-27 09:59")
        assert life.retired() == (0, {old("a")})
        life.until("2027-07-27 10:00")
        assert life.remove_retired() == {old("a"), new("a")}
        assert not life.needed(old("a"), new("a"))
        assert life.needed(third)


class TestLateSuccessors:
    """A successor never begins to sign before it can be in DNS."""

    def test_specs_that_were_left_lying(self, life):
        begin(life, "a", "b")
        life.until("2027-07-01 10:00")
        late = life.cli("rotate", "--key-len", "1024").out
        life.until("2027-07-04 10:00")
        refused = life.register(late, status=2)
        assert "dkimctl rotate" in refused.err
        assert len(registered(life)) == 2
        life.register(life.cli("rotate", "--key-len", "1024").out)
        life.publish()
        life.check()
        life.until("2027-07-20 10:00")
        assert life.retired() == (0, set())
        life.until("2027-07-22 10:00")
        assert life.remove_retired() == {old("a"), old("b")}
        assert not life.mail.lost


def test_no_attribute_changes_in_a_rotation(life):
    config = "profiles: {sandbox: {defaults: {default: 1, enable: false}}}\n"
    life.cli.environment["DKIMCTL_CONFIG"] = str(life.cli.home / life.cli.write("c.yaml", config))
    begin(life, "a", default="0", enable="true")
    life.until("2027-07-01 10:00")
    life.register(life.cli("rotate").out)
    life.publish()
    life.check()
    before, after = registered(life)
    assert [before[field] for field in ("default", "enable")] == [0, True]
    assert [after[field] for field in ("default", "enable")] == [0, True]
    life.until("2027-07-18 10:00")
    assert life.remove_retired() == {old("a")}
    assert not life.mail.lost


class TestForgetting:
    """What is published is remembered, and what is retired is not published again."""

    @pytest.fixture
    def retired(self, life):
        """A saved result of a key that is due."""
        rotate(life, "a")
        life.until("2027-07-18 10:00")
        done = life.cli("rotate", "--retired", "--format", "json")
        return life.cli.write("retired.json", done.out)

    def test_a_key_that_is_still_published(self, life, retired):
        refused = life.cli("ledger", "forget", "*")
        assert (refused.status, refused.out) == (1, "")
        assert f"{old('a').sign_domain} (selector s1)" in refused.err
        assert len(registered(life)) == 2
        # Deleted, but that was not seen.
        life.remove_retired()
        assert life.cli("ledger", "forget", "*").status == 1
        gone = life.check("--from", retired, "--expect-absent")
        assert gone.status == 0
        forgotten = life.cli("ledger", "forget", "*", "--format", "json")
        assert [item["selector"] for item in forgotten.json["items"]] == ["s1"]
        assert len(registered(life)) == 1

    def test_between_the_deletion_and_forgetting(self, life, retired):
        life.remove_retired()
        done = life.cli("check-dns")
        assert done.status == 0
        assert "SIGNING" not in (done.out + done.err).upper()
        items = life.check().json["items"]
        assert sorted(item["verdict"] for item in items) == ["published", "retired"]
        assert {item["urgency"] for item in items} == {""}


def domains(*names: str) -> list[str]:
    return [f"{name}.{ZONE}" for name in names]


def registered(life: Life) -> list[dict]:
    """What the ledger has."""
    return life.cli("show-dns", "--format", "json").json["items"]
