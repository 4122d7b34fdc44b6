"""`rotate`: from an old key to its successor, and to the removal of its record."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from dkimctl.formats.renderer import Format
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DomainSpec, Outcome, Result, key_of
from dkimctl.settings.values import SANDBOX_FIXED
from documents import example
from rendering import render_text
from spec_files import load_specs

ACCOUNT = {key: SANDBOX_FIXED[key] for key in ("base_url", "client_id")}
LONGEST = 60.0  # seconds that a test takes


@pytest.fixture(autouse=True)
def one_day():
    """Begin a test after midnight, if the day would end in it."""
    now = datetime.now()
    left = datetime.combine(now.date() + timedelta(days=1), now.time().min) - now
    if left.total_seconds() < LONGEST:
        time.sleep(left.total_seconds())


def today() -> str:
    """The selector of a key of this day."""
    return f"s{datetime.now():%Y%m%d}"


def days_ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


@pytest.fixture
def ledger(cli, tmp_path):
    """Open the sandbox's ledger, with the time of some days ago."""
    cli.environment["DKIMCTL_STATE_DIR"] = str(tmp_path / "state")

    def open_(*, days: float = 0) -> Ledger:
        now = days_ago(days).timestamp()
        return Ledger.open(tmp_path / "state" / "ledger.db", **ACCOUNT, clock=lambda: now)

    return open_


@pytest.fixture
def import_(cli, ledger, make_registration):
    """Import a registration that was made some days ago."""

    def import_(sign_domain="example.com", selector="s1", *, days, **fields) -> None:
        made = days_ago(days).isoformat(timespec="seconds")
        registration = make_registration(sign_domain, selector, **{"regist_date": made} | fields)
        saved = render_text(Format.JSON, [Result(registration, Outcome.EXISTS)])
        assert cli("ledger", "import", "--sandbox", "-", stdin=saved).status == 0

    return import_


class TestList:
    LIST = ("list", "--sandbox")

    @pytest.fixture
    def see(self, ledger):
        """Note that a record was published some days ago, and is now."""

        def see(selector: str, *, days: float) -> None:
            for ago in (days, 0):
                with ledger(days=ago) as opened:
                    opened.note_looks({key_of("example.com", selector): "published"})

        return see

    def test_it_shows_the_stages_of_keys_and_what_is_due(self, cli, import_, ledger, see):
        import_(days=200)
        import_(selector="s2", days=20)
        with ledger() as opened:
            opened.note_replacements({key_of("example.com", "s2"): "s1"})
        see("s1", days=199)
        see("s2", days=10)
        items = cli(*self.LIST, "--format", "json", "--sort-by", "due").json["items"]
        assert [(item["selector"], item["stage"], item["next"]) for item in items] == [
            ("s1", "grace period", "remove"),
            ("s2", "signing", "register successor"),
        ]
        due = datetime.fromisoformat(items[0]["due"])
        assert timedelta() <= due - days_ago(-4) + timedelta(minutes=1) < timedelta(minutes=2)
        assert (items[0]["removable_at"], items[1]["removable_at"]) == (items[0]["due"], None)
        overview = cli("overview", "--sandbox")
        assert overview.status == 0
        assert re.search(r"s1 +[.o#]+~+\|", overview.out)
        written = cli(*self.LIST, "--format", "csv", "--output", "keys.csv", "example.com")
        assert (written.status, written.out) == (0, "")
        assert len((cli.home / "keys.csv").read_text().splitlines()) == 3

    def test_keys_are_chosen_by_stage_and_state(self, cli, import_, see):
        import_(days=20)
        import_(selector="s2", days=10)
        import_("example.net", days=-5, enable=True)
        see("s1", days=10)

        def chosen(*words: str) -> list[str]:
            items = cli(*self.LIST, "--format", "json", *words).json["items"]
            return [f"{item['selector']} {item['sign_domain']}" for item in items]

        assert chosen("--state", "published") == ["s1 example.com"]
        assert chosen("--state", "Unchecked", "--state", "published", "--sort-by", "age") == [
            "s1 example.net", "s2 example.com", "s1 example.com",
        ]  # fmt: skip
        assert chosen("--stage", "registered") == ["s1 example.net"]
        assert chosen("--stage", "grace-period") == []
        assert "no key matches" in cli(*self.LIST, "--stage", "taken").err
        for words, known in (("--stage", "signing"), ("--state", "no-answer")):
            wrong = cli(*self.LIST, words, "wrong")
            assert wrong.status == 2
            assert f'in {words}: unknown value "wrong"' in wrong.err
            assert known in wrong.err

    def test_a_key_that_signs_and_is_not_published_is_urgent(self, cli, import_):
        import_(days=1)
        for words in ((), ("--quiet",)):
            done = cli("overview", "--sandbox", *words)
            assert (done.status, "signing now without DNS  1 key" in done.out) == (1, True)
        assert (
            "next: `dkimctl show-dns --sandbox example.com --format"
            in cli("overview", "--sandbox").err
        )
        assert cli("overview", "--sandbox", "--html", "page.html").status == 1
        assert "example.com" in (cli.home / "page.html").read_text()
        wide = cli(*self.LIST, "--wide")
        assert wide.status == 0
        assert "URGENT: it was never seen published: run `dkimctl check-dns --sandbox`" in wide.out

    def test_what_is_overdue_is_told_since_no_timer_may_run(self, cli, import_, see):
        import_(days=188)
        see("s1", days=187)
        done = cli("overview", "--sandbox", "--quiet")
        assert done.status == 1
        assert "overdue  register successor  1 key  example.com (s1)" in done.out
        assert "warning: overdue, since 20" in done.err
        assert "`dkimctl timer --sandbox` installs a timer" in done.err
        cli.write("config.yaml", "rotation: [{max_age: 190d, domains: ['*.com']}]\n")
        done = cli("overview", "--sandbox", "--quiet", "--config", "config.yaml")
        assert (done.status, done.out, done.err) == (0, "", "")

    def test_policies_are_listed_and_their_owners_and_what_they_cannot_keep(
        self, cli, import_, ledger, see, make_registration
    ):
        """Of keys that a freeze keeps from being replaced in time, too many keys, and removals."""
        begin, end = days_ago(10).date(), days_ago(-20).date()
        cli.write(
            "config.yaml",
            f"""
rotation:
- {{domains: ['*.shops.example'], max_age: 30d, lead: 2d, limit: 1, owner: '[red]shops=\u202e'}}
- {{domains: [example.com, example.net], freeze: [{begin}/{end}], key_len: 1024}}
""",
        )
        config = ("--config", "config.yaml")
        import_(days=179)
        see("s1", days=178)
        import_("example.net", days=200)
        import_("example.net", "s2", days=60)
        import_("other.example", days=1)
        made = days_ago(1).isoformat(timespec="seconds")
        with ledger(days=30) as opened:
            opened.note_replacements({key_of("example.net", "s2"): "s1"})
            opened.note_looks({key_of("example.net", "s2"): "published"})
        with ledger() as opened:
            opened.record([
                make_registration(f"{number}.shops.example", "s1", regist_date=made)
                for number in range(29)
            ])  # fmt: skip

        rows = cli(*self.LIST, "--policy", *config).out.splitlines()
        assert rows[0].split() == [
            "DOMAIN", "POLICY", "MAX_AGE", "LEAD", "GRACE", "LIMIT", "KEY_LEN", "SELECTORS",
            "FREEZE", "OWNER",
        ]  # fmt: skip
        [shop] = (row.split() for row in rows if row.startswith("7.shops.example"))
        assert shop[1:6] == ["1", "30d", "2d", "14d", "1"]
        assert shop[-1] == r"[red]shops=\u202e"
        json_ = cli(*self.LIST, "--policy", "--format", "json", "*e*.com", "o*", *config).json
        assert [(item["policy"], item["key_len"], item["freeze"]) for item in json_["items"]] == [
            (2, 1024, f"{begin}/{end}"), (None, None, None)
        ]  # fmt: skip

        assert "OWNER" in cli(*self.LIST, *config).out
        assert "OWNER" not in cli(*self.LIST).out
        items = cli(*self.LIST, "--format", "json", "--all", *config).json["items"]
        [old] = (item for item in items if item["sign_domain"] == "example.com")
        assert (old["next"], old["owner"]) == ("decide", None)
        assert f"nothing is registered before {end + timedelta(days=1)} (freeze)" in old["note"]
        low = "`limit: 1` a day is too low for 29 keys (*.shops.example)"
        for command in ("overview", "doctor"):
            done = cli(command, "--sandbox", *config)
            assert low in done.out + done.err
            assert "write `limit: 2`" in done.out + done.err
        assert "to decide: 1 key (example.com (selector s1))" in done.out
        retired = cli("rotate", "--sandbox", "--retired", "--no-check", *config)
        assert "not listed before a freeze ends: 1 (example.net (selector s1))" in retired.err
        assert "s1" not in retired.out

    def test_what_cannot_be_shown(self, cli, import_, see):
        for command in ("list", "overview"):
            done = cli(command, "--sandbox")
            assert (done.status, done.out) == (1, "")
            assert "nothing is registered" in done.err
        import_(days=1)
        see("s1", days=1)
        some = cli(*self.LIST, "example.com", "example.net")
        assert some.status == 1
        assert "example.net is not registered" in some.err


class TestSuccessors:
    def test_due_keys_get_one_successor(self, cli, import_, ledger):
        import_(days=181, default=1)
        import_("example.net", days=172)
        import_("example.org", days=400, enable=False)
        specs = cli("rotate", "--sandbox")
        assert specs.status == 0
        assert "dkimctl: due: 1; signing with the new keys starts at 20" in specs.err
        assert "`dkimctl register --sandbox FILE`" in specs.err
        assert specs.out.startswith("# Successors of keys that are due")
        [spec] = load_specs(specs.out.encode(), "x")
        start = datetime.fromisoformat(spec.start_date)
        assert timedelta() <= start - days_ago(-3) < timedelta(minutes=1)
        assert spec == DomainSpec("example.com", today(), 2048, spec.start_date, 1, True, "s1")
        registered = cli("register", "--sandbox", "-", "--format", "json", stdin=specs.out)
        assert registered.status == 0
        assert [item["outcome"] for item in registered.json["items"]] == ["created"]
        assert registered.err.count("warn") == 0, "such as of 1024 bits, or of a start at once"
        again = cli("rotate", "--sandbox", "--older-than", "0d", "example.com")
        assert again.out.endswith("\n[]\n")
        assert "nothing is due" in again.err
        nothing = cli("register", "--sandbox", "-", stdin=again.out)
        assert (nothing.status, nothing.out) == (0, "")

    def test_the_options_apply_to_the_selected_domains(self, cli, import_):
        for domain in ("a.example", "b.example", "c.example.net"):
            import_(domain, days=40)
        words = ("--older-than", "30d", "--start-in", "36h", "--selector", "k{domain}-%Y",
                 "--key-len", "1024", "--output", "new.yaml")  # fmt: skip
        done = cli("rotate", "--sandbox", "*.example", "c.example", *words)
        assert (done.status, done.out) == (1, "")
        assert "c.example is not registered" in done.err
        first, second = load_specs((cli.home / "new.yaml").read_bytes(), "x")
        assert (first.sign_domain, second.sign_domain) == ("a.example", "b.example")
        assert first.key_len == second.key_len == 1024
        assert first.selector != second.selector
        assert first.selector.endswith(f"-{today()[1:5]}")
        start = datetime.fromisoformat(first.start_date)
        assert timedelta() <= start - days_ago(-1.5) < timedelta(minutes=1)

    def test_a_spec_file_selects_domains_of_which_all_keys_count(self, cli, import_):
        import_(days=300)
        import_(selector="s2", days=100)
        import_("example.net", days=300)
        old = cli.write("old.yaml", "- {sign_domain: example.com, selector: s1}\n")
        assert cli("rotate", "--sandbox", old).out.endswith("\n[]\n")
        assert f"selector: {today()}" in cli("rotate", "--sandbox", old, "--older-than", "99d").out

    def test_the_config_file_says_how_old_a_key_may_be(self, cli, import_):
        (cli.home / "config.yaml").write_text("rotation: {max_age: 90d}\n")
        cli.environment["DKIMCTL_CONFIG"] = str(cli.home / "config.yaml")
        import_(days=100)
        due = cli("rotate", "--sandbox").out
        assert due.startswith("# Successors of keys that are due")
        assert f"selector: {today()}" in due
        assert cli("rotate", "--sandbox", "--older-than", "101d").out.endswith("\n[]\n")

    def test_a_selector_in_use_or_in_flight_is_not_reused(self, cli, import_, ledger):
        import_(days=300)
        import_(selector=today().upper(), days=299)
        with ledger() as opened:
            opened.commit(begun=[[DomainSpec("example.com", f"{today()}-2")]])
        done = cli("rotate", "--sandbox")
        assert f"selector: {today()}-3\n" in done.out
        assert "was never answered: example.com" in done.err

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--older-than", "soon"), "in --older-than: invalid duration"),
            (("--older-than", ""), "in --older-than: invalid duration"),
            (("--start-in", "0d"), "in --start-in: invalid duration"),
            (("--selector", "a b"), "in --selector"),
            (("--selector", "x" * 64), "in --selector"),
            (("--key-len", "4096"), "--key-len"),
            (("--format", "json"), "--format has no effect without --retired"),
            (("--zone", "example.com"), "--zone has no effect without --retired"),
            (("--no-check",), "--no-check has no effect without --retired"),
            (("--assume-successors",), "--assume-successors has no effect without --retired"),
            (("--retired", "--key-len", "1024"), "--key-len has no effect with --retired"),
            (
                ("--retired", "--no-check", "--max-age-of-check", "soon"),
                "in --max-age-of-check: invalid duration",
            ),
            (("--retired", "--older-than", "1d"), "--older-than has no effect with --retired"),
            (("--retired", "--zone", "example.com"), "--zone has no effect with this format"),
            (("--retired", "--format", "nsupdate", "--zone", "a b"), "in --zone"),
            (("exa mple.com",), "exa mple.com"),
            (("no-such-file.yaml",), "no-such-file.yaml"),
        ],
    )
    def test_usage_errors_are_2(self, cli, import_, words, said):
        import_(days=300)
        done = cli("rotate", "--sandbox", *words)
        assert (done.status, done.out) == (2, "")
        assert said in (done.err if "json" not in words else json.dumps(json.loads(done.err)))

    @pytest.mark.parametrize("words", [(), ("--retired",)])
    def test_nothing_registered_or_nothing_matching_is_1(self, cli, import_, words):
        empty = cli("rotate", "--sandbox", *words)
        assert (empty.status, empty.out) == (1, "")
        assert "nothing is registered in the profile sandbox" in empty.err
        import_(days=300)
        absent = cli("rotate", "--sandbox", "*.absent.example", *words)
        assert (absent.status, absent.out) == (1, "")
        assert "that matches *.absent.example" in absent.err

    def test_rotate_needs_no_token_network_or_ledger(self, cli):
        elsewhere = {"DKIMCTL_BASE_URL": "http://127.0.0.1:1", "DKIMCTL_CLIENT_ID": "me"}
        assert cli("rotate", env=elsewhere).status == 1
        assert not list(cli.home.rglob("ledger.db"))


NO_CHECK = ("rotate", "--sandbox", "--retired", "--no-check")


class TestRetired:
    @pytest.fixture
    def pair(self, import_, ledger):
        """A domain with a successor of 15 days ago, and one whose successor was never seen."""
        for domain in ("example.com", "mail.example.net"):
            import_(domain, "s1", days=200)
            import_(domain, "s2", days=18, start_date=days_ago(15).isoformat(timespec="minutes"))
        with ledger(days=15) as opened:
            opened.note_replacements(
                {key_of(domain, "s2"): "s1" for domain in ("example.com", "mail.example.net")}
            )
            opened.note_looks({key_of("example.com", one): "published" for one in ("s1", "s2")})
        with ledger() as opened:
            opened.note_looks({key_of("example.com", one): "published" for one in ("s1", "s2")})

    def test_in_a_pipe_the_output_is_a_saved_result(self, cli, pair):
        done = cli(*NO_CHECK, "example.com")
        assert done.status == 0
        [item] = done.json["items"]
        assert (item["sign_domain"], item["selector"]) == ("example.com", "s1")
        assert item["outcome"] == "retired"
        assert "retired: 1" in done.err
        assert "(s=)" in done.err
        assert "--format nsupdate --output remove.txt && nsupdate -k KEYFILE remove.txt" in done.err
        assert "check-dns --sandbox --from retired.json --expect-absent" in done.err
        assert "dkimctl ledger forget --sandbox example.com --output" in done.err
        again = cli("show-dns", "--from", "-", "--format", "json", stdin=done.out)
        assert (again.status, again.json) == (0, done.json)
        for name in ("remove.txt", "retired.json", "forgotten.json"):
            cli.write(name, "no hint writes over it")
        files = re.findall(r"--output ([\w.-]+)", cli(*NO_CHECK, "example.com").err)
        assert files == ["remove-2.txt", "retired-2.json", "forgotten-2.json"]

    def test_who_deletes_it_is_said(self, cli, pair):
        cli.write("x.yaml", "dns: [{provider: rfc2136, server: 127.0.0.1, profiles: [sandbox]}]\n")
        words = (*NO_CHECK, "example.com", "--config", "x.yaml")
        assert "next, to delete: `dkimctl rotate run --sandbox --config x.yaml`" in cli(*words).err
        cli.at_start("from dkimctl.cli import session; session.installed_timer = lambda *_: 'cron'")
        assert "dkimctl: the timer deletes them\n" in cli(*words).err

    def test_a_generated_zone_is_without_what_was_forgotten(self, cli, pair, shell):
        shell(example("forget '*' --still-published"), {"DKIMCTL_PROFILE": "sandbox"})
        saved = json.loads((cli.home / "forgotten.json").read_text())["items"]
        assert [(one["sign_domain"], one["selector"]) for one in saved] == [("example.com", "s1")]
        zone = (cli.home / "example.com.zone").read_text()
        assert "s2._domainkey.example.com." in zone
        assert "s1._domainkey.example.com." not in zone
        assert "s1._domainkey.mail.example.net." in zone

    def test_the_table_gives_the_reason(self, cli, pair):
        done = cli(*NO_CHECK, "--format", "table")
        assert "its successor s2 started on" in done.out
        assert "mail.example.net" not in done.out

    def test_what_cannot_be_written_is_not_looked_at(self, cli, pair):
        done = cli("rotate", "--sandbox", "--retired", "--output", "no/such.json")
        assert (done.status, "due" in done.err) == (2, False)
        assert "its directory does not exist" in done.err

    def test_one_that_is_due_is_not_listed_but_told_with_the_command(self, cli, pair):
        done = cli(*NO_CHECK)
        assert (done.status, done.json["count"]) == (1, 1)
        assert "mail.example.net (selector s1) is due, but check first: its successor" in done.err
        assert "never seen published" in done.err
        assert "dkimctl check-dns --sandbox mail.example.net" in done.err

    def test_where_it_is_not_known_which_key_replaces_which(self, cli, import_, ledger):
        import_("example.org", "s1", days=200)
        import_("example.org", "s2", days=30)
        for days in (30, 0):
            with ledger(days=days) as opened:
                opened.note_looks({key_of("example.org", "s2"): "published"})
        done = cli(*NO_CHECK)
        assert (done.status, done.json["count"]) == (0, 0)
        assert "not listed: 1 (example.org); the ledger does not record which" in done.err
        assert "--assume-successors" in done.err
        assert cli(*NO_CHECK, "--assume-successors").json["count"] == 1
        with ledger() as opened:
            opened.note_looks({key_of("example.org", "s1"): "missing"})
        assert cli("ledger", "forget", "--sandbox", "*").status == 1
        done = cli("ledger", "forget", "--sandbox", "*", "--assume-successors")
        assert (done.status, done.json["count"]) == (0, 1)

    def test_deletions_for_nsupdate(self, cli, pair):
        words = (*NO_CHECK, "example.com", "--format", "nsupdate")
        done = cli(*words)
        name = "s1._domainkey.example.com."
        script = f"prereq nxrrset {name} CNAME\nupdate delete {name} IN TXT\nsend\n"
        assert (done.status, done.out) == (0, script)
        zoned = cli(*words, "--zone", "example.com", "--zone", "example.net.")
        assert zoned.out == f"zone example.com.\n{done.out}"
        outside = cli(*words, "--zone", "example.org")
        assert (outside.status, outside.out) == (2, "")
        assert "not in the zone example.org: s1._domainkey.example.com" in outside.err

    def test_an_unusable_record_is_listed_but_not_scripted(self, cli, pair, ledger):
        with ledger() as opened:
            [old] = [one for one in opened.of_domain("example.com") if one.selector == "s1"]
            opened.record([old._replace(key_len=1024)])
        words = (*NO_CHECK, "example.com")
        assert cli(*words).json["items"][0]["outcome"] == "unusable"
        done = cli(*words, "--format", "nsupdate")
        assert (done.status, done.out) == (0, "")
        assert "unusable: example.com (selector s1)" in done.err

    def test_without_retired_keys_the_result_is_empty(self, cli, import_):
        import_(days=200)
        done = cli("rotate", "--sandbox", "--retired", "example.com")
        assert (done.status, done.json) == (0, {"items": [], "count": 0, "total": 0})
        assert "nothing is retired" in done.err
        script = cli("rotate", "--sandbox", "--retired", "example.com", "--format", "nsupdate")
        assert (script.status, script.out) == (0, "")

    def test_records_of_retired_keys_are_not_published_again(self, cli, pair):
        retired = cli.write("retired.json", cli(*NO_CHECK, "example.com").out)
        for fmt in ("nsupdate", "zone", "value", "octodns --zone example.com"):
            done = cli("show-dns", "--from", retired, "--format", *fmt.split())
            assert (done.status, done.out) == (1, "")
            assert "retired keys, which must not be published again: 1 (example.com" in done.err
            assert "dkimctl rotate --retired --format nsupdate" in done.err
        for fmt in ("table", "json", "jsonl", "csv"):
            done = cli("show-dns", "--from", retired, "--format", fmt)
            assert (done.status, "retired" in done.out) == (0, True), fmt
