"""Where results go: --output, --output-dir and --zone."""

from __future__ import annotations

import json
import re

import pytest

SPECS = """
defaults: {enable: false, key_len: 1024}
domains:
- {sign_domain: example.com, selector: s1}
- {sign_domain: mail.example.com, selector: s1}
- {sign_domain: example.net, selector: s1}
"""
ZONES = ("--zone", "example.com", "--zone", "example.net.")


@pytest.fixture
def registered(cli):
    assert cli("register", "--sandbox", "-", "-q", stdin=SPECS).status == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format", "octodns"), "--format octodns needs the zones of your DNS"),
        (("--format", "csv", "--zone", "example.com"), "--zone has no effect with --format csv"),
        (("--format", "json", "--origin", "example.com"), "--origin has no effect"),
        (("--format", "octodns", *ZONES, "--find-zones"), "cannot be combined with"),
        (("--format", "zone", "--provider", "google"), "--provider has no effect"),
        (("--format", "zone", "--output-dir", "d"), "--output-dir needs the zones of your DNS"),
        (("--origin", "example.com", "--zone", "example.com"), "cannot be combined with --zone"),
        (("--format", "octodns", "--zone", "exa mple.com"), "in --zone"),
        (("--origin", "a..b"), "in --origin"),
        (("--output", "no/dkim.zone"), "cannot write no/dkim.zone: its directory does not exist"),
        (("--output", "."), "cannot write .: it is a directory"),
        (
            ("-o", "json"),
            "json is a file name\nhint: did you mean -f json? For a file",
        ),
        (("-o", "wide"), "did you mean --wide?"),
        (("--output", "dkim.html"), "this command has no format for .html\nhint: name a format"),
    ],
)
def test_conflicting_options_are_refused_at_once(cli, words, said):
    done = cli("show-dns", "--sandbox", *words)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert "hint" in done.err
    assert sorted(path.name for path in cli.home.iterdir() if not path.name.startswith(".")) == []


def test_register_names_the_command_for_a_format_that_needs_zones(cli):
    cli.write("specs.yaml", SPECS)
    done = cli("register", "--sandbox", "specs.yaml", "--format", "octodns")
    assert (done.status, done.out) == (2, "")
    command = "dkimctl show-dns --sandbox specs.yaml --format octodns --find-zones"
    assert f"hint: register first, then `{command}`\n" in done.err
    assert "nothing is registered" in cli("show-dns", "--sandbox").err


def test_each_zone_has_a_file(cli, registered):
    done = cli("show-dns", "--sandbox", "--format", "powerdns", *ZONES, "--output-dir", "out/put")
    assert (done.status, done.out) == (0, "")
    files = {path.name: path for path in (cli.home / "out" / "put").iterdir()}
    assert set(files) == {"example.com.json", "example.net.json"}
    assert len(json.loads(files["example.com.json"].read_text())["rrsets"]) == 2
    assert (
        "dkimctl: wrote 2 files in out/put: example.com.json (2 records), example.net.json "
        "(1 record)\n"
    ) in done.err


def test_one_zone_goes_to_stdout_or_a_file(cli, registered):
    words = ("show-dns", "--sandbox", "example.net", "--format", "zone", *ZONES)
    to_stdout = cli(*words)
    assert to_stdout.status == 0
    assert "\n$ORIGIN example.net.\n" in to_stdout.out
    assert "no records, so nothing written, for example.com\n" in to_stdout.err
    to_file = cli(*words, "--output", "net.zone")
    assert (to_file.status, to_file.out) == (0, "")
    assert (cli.home / "net.zone").read_text() == to_stdout.out
    assert "dkimctl: wrote net.zone (1 record)\n" in to_file.err


def test_nsupdate_has_one_script_or_one_for_each_zone(cli, registered):
    words = ("show-dns", "--sandbox", "--format", "nsupdate", *ZONES)
    whole = cli(*words).out
    assert whole.count("\nzone ") + whole.startswith("zone ") == 2
    assert cli(*words, "--output-dir", "scripts").status == 0
    names = ("example.com.nsupdate", "example.net.nsupdate")
    assert "".join((cli.home / "scripts" / name).read_text() for name in names) == whole


def test_zones_without_records_have_no_file_and_old_ones_stay_and_are_told(cli, registered):
    words = ("show-dns", "--sandbox", "--format", "zone", "--output-dir", "zones", *ZONES)
    assert cli(*words, "--zone", "unused.example").status == 0
    old = (cli.home / "zones" / "example.com.zone").read_text()
    cli.write("zones/notes.txt", "mine")
    cli.write("zones/sold.example.zone", "mine")
    done = cli(*words, "--zone", "unused.example", "example.net")
    assert (done.status, done.out) == (0, "")
    assert "no records, so nothing written, for example.com, unused.example\n" in done.err
    warning = "warning: this run has no records for files of earlier runs in zones: "
    assert f"{warning}example.com.zone\nhint: delete them, unless the selection" in done.err
    assert "also in zones, and not written by this run: sold.example.zone\n" in done.err
    assert "notes.txt" not in done.err
    assert (cli.home / "zones" / "example.com.zone").read_text() == old


def test_what_could_be_written_before_an_error_is_told(cli, registered):
    (cli.home / "zones" / "example.net.zone").mkdir(parents=True)
    done = cli("show-dns", "--sandbox", *ZONES, "--output-dir", "zones")
    assert (done.status, done.out) == (4, "")
    assert "wrote 1 of 2 files in zones: example.com.zone (2 records)\n" in done.err
    assert "error: cannot write zones/example.net.zone" in done.err


def test_several_zones_cannot_share_stdout(cli, registered):
    done = cli("show-dns", "--sandbox", "--format", "powerdns", *ZONES)
    assert (done.status, done.out) == (2, "")
    assert "a file for each of 2 zones: example.com, example.net" in done.err
    assert "--output-dir" in done.err


def test_several_batches_of_one_zone_cannot_share_stdout(cli):
    entries = "".join(f"- {{sign_domain: d{n}.example.com, selector: s1}}\n" for n in range(70))
    specs = "defaults: {enable: false, key_len: 1024}\ndomains:\n" + entries
    words = ("--sandbox", "--format", "route53", "--zone", "example.com")
    assert cli("register", "-", "--sandbox", stdin=specs).status == 0
    done = cli("show-dns", *words)
    assert (done.status, done.out) == (4, "")
    assert "the result is 2 files (example.com.json, example.com.2.json), which need a" in done.err
    assert cli("show-dns", *words, "--output-dir", "out").status == 0
    assert len(list((cli.home / "out").iterdir())) == 2
    done = cli("show-dns", *words, "--output-dir", "out", "d1.example.com")
    assert "no records for files of earlier runs in out: example.com.2.json\n" in done.err


def test_a_full_disk_loses_no_registration(cli):
    words = ("--batch-size", 1, "--output", "/dev/full")
    done = cli("register", "--sandbox", "-", *words, stdin=SPECS)
    assert (done.status, done.out) == (4, "")
    assert "dkimctl: error: cannot " in done.err
    assert "created 3" in done.err
    assert cli("show-dns", "--sandbox").out.count(" IN TXT ") == 3


@pytest.mark.parametrize(
    "words",
    [
        ("show-dns",),
        ("register", "-"),
        ("rotate",),
        ("rotate", "--retired", "--no-check"),
        ("check-dns", "--format", "json", "--server", "127.0.0.1:9"),
    ],
)
def test_a_dash_is_stdout(cli, registered, words):
    to_stdout = cli(*words, "--sandbox", stdin=SPECS)
    with_dash = cli(*words, "--sandbox", "--output", "-", stdin=SPECS)
    assert with_dash == to_stdout
    assert with_dash.out
    assert not (cli.home / "-").exists()


@pytest.mark.parametrize("name", ["./-", "./json", "db.example.com", "zone.txt"])
def test_any_file_may_be_named(cli, registered, name):
    done = cli("show-dns", "--sandbox", "--output", name)
    assert (done.status, done.out) == (0, "")
    assert (cli.home / name).read_text().count(" IN TXT ") == 3


@pytest.mark.parametrize(
    ("command", "file", "words"),
    [
        ("show-dns", "x.JSON", "json"),
        ("show-dns", "x.jsonl", "jsonl"),
        ("register -", "x.zone", "zone"),
        ("register -", "x.nsupdate", "nsupdate"),
        ("register --dry-run -", "x.md", "markdown"),
        ("list", "x.csv", "csv"),
        ("check-dns --server 127.0.0.1:9", "x.prom", "prometheus"),
        ("verify -", "x.json", "json"),
        ("rotate --retired --no-check", "x.json", "json"),
        ("rotate run --dry-run", "x.json", "json"),
        ("handoff --zone example.com --zone example.net", "x.htm", "html"),
        ("list", "x.json", "table"),
        ("rotate --older-than 0d", "x.json", ""),  # YAML, which JSON is
    ],
)
def test_the_suffix_of_the_file_is_the_format_unless_one_is_named(
    cli, registered, command, file, words
):
    command = [*command.split(), "--sandbox"]
    stdin = "From: a@b\n\nx" if "verify" in command else SPECS
    named = cli(*command, *(["--format", words] if words else []), stdin=stdin)
    more = ["--format", "table"] if words == "table" else []
    done = cli(*command, *more, "--output", file, stdin=stdin)
    assert (done.status, done.out) == (named.status, "")
    times = r"[0-9]{4}-[0-9T:-]{9,}Z?|[0-9.]+e?[+0-9]*$|[0-9]+ s +"
    without_times = re.compile(times, re.MULTILINE)
    text = (cli.home / file).read_text()
    assert named.out
    assert without_times.sub("", text) == without_times.sub("", named.out)


def test_a_device_is_written_directly(cli, registered):
    piped = cli("show-dns", "--sandbox", "--output", "/dev/stdout")
    assert (piped.status, piped.out) == (0, cli("show-dns", "--sandbox").out)
