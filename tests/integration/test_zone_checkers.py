"""Zone file checkers find no errors in our output."""

from __future__ import annotations

import subprocess

import pytest

SPECS = """
defaults: {enable: false}
domains:
- {sign_domain: example.com, selector: s1, key_len: 1024}
- {sign_domain: example.com, selector: "2026.dotted-one", key_len: 2048}
- {sign_domain: mail.example.com, selector: S3, key_len: 2048}
- {sign_domain: bücher.example.com, selector: s1, key_len: 2048}
"""
APEX = "@ 60 IN SOA ns.example.com. root.example.com. 1 2 3 4 5\n@ 60 IN NS ns.example.com.\n"
APEX += "ns.example.com. 60 IN A 127.0.0.1\n"
CHECKERS = {
    "named-checkzone": ["named-checkzone", "-i", "none", "example.com", "{file}"],
    "kzonecheck": ["kzonecheck", "-o", "example.com.", "{file}"],
    "nsd-checkzone": ["nsd-checkzone", "example.com", "{file}"],
    "ldns-read-zone": ["ldns-read-zone", "{file}"],
}


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("words", [(), ("--origin", "example.com")])
def test_a_zone_with_our_lines_is_accepted(cli, needs_tool, checker, words):
    needs_tool(checker)
    assert cli("register", "--sandbox", "-", "-q", stdin=SPECS).status == 0
    lines = cli("show-dns", "--sandbox", *words).out
    cli.write("example.zone", "$ORIGIN example.com.\n" + APEX + lines)
    command = [word.format(file="example.zone") for word in CHECKERS[checker]]
    done = subprocess.run(command, cwd=cli.home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    # The checker detects errors.
    cli.write("example.zone", "$ORIGIN example.com.\n" + APEX + lines.replace("TXT", "TXTT", 1))
    done = subprocess.run(command, cwd=cli.home, capture_output=True, text=True, check=False)
    assert done.returncode != 0


def test_domains_outside_the_origin_are_listed_and_nothing_is_written(cli):
    assert cli("register", "--sandbox", "-", "-q", stdin=SPECS).status == 0
    done = cli("show-dns", "--sandbox", "--origin", "mail.example.com", "--output", "out.zone")
    assert (done.status, done.out) == (2, "")
    for name in ("s1._domainkey.example.com", "2026.dotted-one._domainkey.example.com"):
        assert name in done.err
    assert "s3._domainkey.mail" not in done.err.lower()
    assert not (cli.home / "out.zone").exists()


def test_register_sends_nothing_if_a_domain_is_outside_the_zones(cli):
    words = ("register", "--sandbox", "-", "--format", "octodns", "--zone", "mail.example.com")
    done = cli(*words, stdin=SPECS)
    assert (done.status, done.out) == (2, "")
    assert "s1._domainkey.example.com" in done.err
    assert "nothing is registered" in cli("show-dns", "--sandbox").err
