"""Where results go: --output, --output-dir and --zone."""

from __future__ import annotations

import json

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
        (("--format", "zone", "--zone", "example.com"), "--zone has no effect with --format zone"),
        (("--format", "json", "--origin", "example.com"), "--origin has no effect"),
        (("--format", "octodns"), "--find-zones"),
        (("--format", "zone", "--find-zones"), "--find-zones has no effect with --format zone"),
        (("--format", "octodns", *ZONES, "--find-zones"), "cannot be combined with"),
        (("--format", "zone", "--provider", "google"), "--provider has no effect"),
        (("--format", "zone", "--output-dir", "d"), "--output-dir has no effect"),
        (
            ("--format", "octodns", *ZONES, "--output", "f", "--output-dir", "d"),
            "cannot be combined with",
        ),
        (("--format", "octodns", "--zone", "exa mple.com"), "in --zone"),
        (("--origin", "a..b"), "in --origin"),
    ],
)
@pytest.mark.parametrize("command", [("show-dns",), ("register", "-")])
def test_conflicting_options_are_refused_at_once(cli, command, words, said):
    done = cli(*command, "--sandbox", *words, stdin=SPECS)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert "hint" in done.err
    assert "nothing is registered" in cli("show-dns", "--sandbox").err
    assert sorted(path.name for path in cli.home.iterdir() if not path.name.startswith(".")) == []


def test_each_zone_has_a_file(cli, registered):
    done = cli("show-dns", "--sandbox", "--format", "powerdns", *ZONES, "--output-dir", "out/put")
    assert (done.status, done.out) == (0, "")
    files = {path.name: path for path in (cli.home / "out" / "put").iterdir()}
    assert set(files) == {"example.com.json", "example.net.json"}
    assert len(json.loads(files["example.com.json"].read_text())["rrsets"]) == 2


@pytest.mark.parametrize("command", [("show-dns",), ("register", "-")])
def test_several_zones_cannot_share_stdout(cli, registered, command):
    done = cli(*command, "--sandbox", "--format", "powerdns", *ZONES, stdin=SPECS)
    assert (done.status, done.out) == (2, "")
    assert "a file for each of 2 zones: example.com, example.net" in done.err
    assert "--output-dir" in done.err


def test_several_batches_of_one_zone_cannot_share_stdout(cli):
    entries = "".join(f"- {{sign_domain: d{n}.example.com, selector: s1}}\n" for n in range(70))
    specs = "defaults: {enable: false, key_len: 1024}\ndomains:\n" + entries
    words = ("--sandbox", "--format", "route53", "--zone", "example.com")
    done = cli("register", "-", *words, stdin=specs)
    assert (done.status, done.out) == (4, "")
    assert "the result is 2 files (example.com.json, example.com.2.json), which need a" in done.err
    assert cli("show-dns", *words, "--output-dir", "batches").status == 0
    assert len(list((cli.home / "batches").iterdir())) == 2


def test_register_writes_the_same_to_a_file_as_to_stdout(cli):
    words = ("register", "--sandbox", "-", "--output", "dkim.zone")
    done = cli(*words, stdin=SPECS)
    assert (done.status, done.out) == (0, "")
    written = (cli.home / "dkim.zone").read_text()
    assert written.count(" IN TXT ") == 3
    again = cli(*words[:-2], stdin=SPECS)
    assert [line for line in again.out.splitlines() if " TXT " in line] == [
        line for line in written.splitlines() if " TXT " in line
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("--output", "plain/dkim.zone"),
        ("--format", "octodns", *ZONES, "--output-dir", "plain/zones"),
        ("--format", "octodns", *ZONES, "--output-dir", "plain"),
        ("--format", "csv", "--output", "."),
        ("--format", "csv", "--output", "/dev/full"),
    ],
)
def test_an_unwritable_output_loses_no_registration(cli, words):
    cli.write("plain", "a file, and no directory")
    done = cli("register", "--sandbox", "--batch-size", 1, "-", *words, stdin=SPECS)
    assert (done.status, done.out) == (4, "")
    assert "dkimctl: error: cannot " in done.err
    assert "created 3" in done.err
    assert cli("show-dns", "--sandbox").out.count(" IN TXT ") == 3


def test_a_device_is_written_directly(cli, registered):
    piped = cli("show-dns", "--sandbox", "--output", "/dev/stdout")
    assert (piped.status, piped.out) == (0, cli("show-dns", "--sandbox").out)


def test_a_zone_below_the_selectors_needs_known_selectors(cli):
    words = ("--sandbox", "--format", "octodns", "--zone", "s._domainkey.example.com")
    done = cli("register", "-", *words, stdin="- example.com\n")
    assert (done.status, done.out) == (2, "")
    assert "nothing is registered" in cli("show-dns", "--sandbox").err
