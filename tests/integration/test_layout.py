"""Where results go: --output, --output-dir, and the zones that are named."""

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
        (("--format", "octodns"), "octodns is written for a zone, and none is named"),
        (("--format", "zone", "--zone", "example.com"), "--zone means nothing with --format zone"),
        (("--format", "json", "--origin", "example.com"), "--origin means nothing"),
        (("--format", "zone", "--provider", "google"), "--provider means nothing"),
        (("--format", "zone", "--output-dir", "d"), "--output-dir means nothing"),
        (
            ("--format", "octodns", *ZONES, "--output", "f", "--output-dir", "d"),
            "do not go together",
        ),
        (("--format", "octodns", "--zone", "exa mple.com"), "in --zone"),
        (("--origin", "a..b"), "in --origin"),
    ],
)
@pytest.mark.parametrize("command", [("show-dns",), ("register", "-")])
def test_what_does_not_go_together_is_said_before_anything_happens(cli, command, words, said):
    done = cli(*command, "--sandbox", *words, stdin=SPECS)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert "hint" in done.err
    assert "nothing is registered" in cli("show-dns", "--sandbox").err
    assert sorted(path.name for path in cli.home.iterdir() if not path.name.startswith(".")) == []


def test_a_file_for_each_zone(cli, registered):
    done = cli("show-dns", "--sandbox", "--format", "powerdns", *ZONES, "--output-dir", "out/put")
    assert (done.status, done.out) == (0, "")
    files = {path.name: path for path in (cli.home / "out" / "put").iterdir()}
    assert set(files) == {"example.com.json", "example.net.json"}
    assert len(json.loads(files["example.com.json"].read_text())["rrsets"]) == 2


@pytest.mark.parametrize("command", [("show-dns",), ("register", "-")])
def test_several_zones_do_not_fit_on_stdout(cli, registered, command):
    done = cli(*command, "--sandbox", "--format", "powerdns", *ZONES, stdin=SPECS)
    assert (done.status, done.out) == (2, "")
    assert "a file for each of 2 zones: example.com, example.net" in done.err
    assert "--output-dir" in done.err


def test_several_batches_of_one_zone_do_not_fit_on_stdout_either(cli):
    entries = "".join(f"- {{sign_domain: d{n}.example.com, selector: s1}}\n" for n in range(70))
    specs = "defaults: {enable: false, key_len: 1024}\ndomains:\n" + entries
    words = ("--sandbox", "--format", "route53", "--zone", "example.com")
    done = cli("register", "-", *words, stdin=specs)
    assert (done.status, done.out) == (4, "")
    assert "the result is 2 files (example.com.json, example.com.2.json)" in done.err
    assert cli("show-dns", *words, "--output-dir", "batches").status == 0
    assert len(list((cli.home / "batches").iterdir())) == 2


def test_register_writes_into_a_file_what_it_would_print(cli):
    words = ("register", "--sandbox", "-", "--output", "dkim.zone")
    done = cli(*words, stdin=SPECS)
    assert (done.status, done.out) == (0, "")
    written = (cli.home / "dkim.zone").read_text()
    assert written.count(" IN TXT ") == 3
    again = cli(*words[:-2], stdin=SPECS)
    assert [line for line in again.out.splitlines() if " TXT " in line] == [
        line for line in written.splitlines() if " TXT " in line
    ]


def test_a_file_that_cannot_be_written_costs_no_registration(cli):
    done = cli("register", "--sandbox", "-", "--output", "no/such/file", stdin=SPECS)
    assert done.status == 4
    assert "cannot write no/such/file" in done.err
    assert "created 3" in done.err
    assert cli("show-dns", "--sandbox").out.count(" IN TXT ") == 3
    missing = cli("show-dns", "--sandbox", "--format", "octodns", *ZONES, "--output-dir", "f/g")
    assert missing.status == 0
    (cli.home / "f" / "plain").write_text("")
    words = ("show-dns", "--sandbox", "--format", "octodns", *ZONES, "--output-dir", "f/plain")
    assert "cannot make the directory f/plain" in cli(*words).err
