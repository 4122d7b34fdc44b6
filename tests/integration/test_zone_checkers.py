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


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_zone_that_includes_its_file_is_accepted(cli, needs_tool, checker):
    needs_tool(checker)
    assert cli("register", "--sandbox", "-", "-q", stdin=SPECS).status == 0
    done = cli("show-dns", "--sandbox", "--zone", "example.com", "--output-dir", ".")
    assert done.status == 0, done.err
    include = "$INCLUDE example.com.zone\n"
    if checker == "ldns-read-zone":  # it has no $INCLUDE
        include = (cli.home / "example.com.zone").read_text()
    # With a name that is outside of the zone if the file changes the origin for what follows.
    after = 'after 60 IN TXT "x"\n'
    cli.write("whole.zone", "$ORIGIN example.com.\n" + APEX + include + after)
    command = [word.format(file="whole.zone") for word in CHECKERS[checker]]
    done = subprocess.run(command, cwd=cli.home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_bind_reads_the_file_of_each_zone(cli, needs_tool):
    needs_tool("named-checkzone")
    assert cli("register", "--sandbox", "-", "-q", stdin=SPECS).status == 0
    zones = ("example.com", "mail.example.com")
    words = [word for zone in zones for word in ("--zone", zone)]
    assert cli("show-dns", "--sandbox", *words, "--output-dir", "dkim").status == 0
    found = {}
    for zone in zones:
        cli.write(f"{zone}.zone", f"$ORIGIN {zone}.\n@ 60 SOA ns root 1 2 3 4 5\n@ 60 NS ns\n"
                  f"ns 60 A 127.0.0.1\n$INCLUDE dkim/{zone}.zone\n")  # fmt: skip
        command = ["named-checkzone", "-i", "none", "-D", zone, f"{zone}.zone"]
        done = subprocess.run(command, cwd=cli.home, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        found[zone] = sorted(
            line.split()[0] for line in done.stdout.splitlines() if "DKIM1" in line
        )
    assert found == {
        "example.com": [
            "2026.dotted-one._domainkey.example.com.",
            "s1._domainkey.example.com.",
            "s1._domainkey.xn--bcher-kva.example.com.",
        ],
        "mail.example.com": ["s3._domainkey.mail.example.com."],
    }


@pytest.mark.parametrize(("option", "to"), [("--zone", "--output-dir"), ("--origin", "--output")])
def test_domains_outside_are_listed_and_nothing_is_written(cli, option, to):
    assert cli("register", "--sandbox", "-", "-q", stdin=SPECS).status == 0
    done = cli("show-dns", "--sandbox", option, "mail.example.com", to, "out")
    assert (done.status, done.out) == (2, "")
    for name in ("s1._domainkey.example.com", "2026.dotted-one._domainkey.example.com"):
        assert name in done.err
    assert "s3._domainkey.mail" not in done.err.lower()
    assert "hint: " in done.err
    assert not (cli.home / "out").exists()
