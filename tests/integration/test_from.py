"""`show-dns --from`: records from a file, without ledger, token or network."""

from __future__ import annotations

import json
import sys

import pytest

from processes import Cli

SPECS = """
defaults: {enable: false, key_len: 1024}
domains:
- {sign_domain: example.com, selector: s1}
- {sign_domain: mail.example.com, selector: s1}
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """The JSON that `register` prints, with another home."""
    register = Cli(tmp_path_factory.mktemp("elsewhere"))
    done = register("register", "--sandbox", "-", "--format", "json", stdin=SPECS)
    assert done.status == 0
    return done.out


@pytest.fixture
def saved(cli, result):
    """A saved result, in a home without state; returns its items."""
    cli.write("records.json", result)
    return json.loads(result)["items"]


def response(*items: object) -> str:
    return json.dumps({"items": items, "count": len(items), "total": len(items)})


def values(text: str) -> list[str]:
    return [line.partition("\t")[2] for line in text.splitlines()]


def test_a_saved_result_gives_the_same_records_without_state(cli, saved):
    done = cli("show-dns", "--from", "records.json", "--format", "value")
    assert (done.status, done.err) == (0, "dkimctl: 2 records\n")
    assert values(done.out) == [item["setting_values"]["value"] for item in saved]
    assert [path.name for path in cli.home.iterdir()] == ["records.json"]
    again = cli("show-dns", "--from", "-", "--format", "json", stdin=done.out and response(*saved))
    assert again.json["items"] == saved


def test_a_raw_response_is_accepted_and_can_be_selected_from(cli, saved):
    raw = [{key: value for key, value in item.items() if key != "outcome"} for item in saved]
    cli.write("response.json", response(*raw))
    done = cli("show-dns", "mail.example.com", "--from", "response.json", "--format", "value")
    assert (done.status, done.out) == (0, saved[1]["setting_values"]["value"] + "\n")
    none = cli("show-dns", "other.example", "--from", "response.json")
    assert (none.status, none.out) == (1, "")
    assert "nothing in response.json matches other.example" in none.err


def changed(item, **fields):
    values = item["setting_values"] | fields.pop("setting_values", {})
    return item | {"setting_values": values} | fields


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"setting_values": {"fqdn": "www.example.com"}}, "the FQDN is www.example.com"),
        ({"setting_values": {"type": "CNAME"}}, "the record type is CNAME"),
        ({"setting_values": {"value": "v=spf1 -all"}}, "not a DKIM key record"),
        ({"setting_values": {"value": 'v=DKIM1; p=AA"\n@ A 192.0.2.1'}}, "printable ASCII"),
        (
            {"setting_values": {"value": "v=DKIM1; p=" + "A" * 70_000}},
            "it has 70011 characters, more than 4096",
        ),
        ({"key_len": 2048}, "the key has 1024 bits, not 2048"),
        ({"selector": 's1 IN A 192.0.2.1\n"'}, "the FQDN is"),
        ({"result": {"code": 400, "message": "no"}}, "no"),
        ({"result": {"code": 500, "message": "later"}}, "500: later"),
        ({"result": None, "outcome": "unknown"}, "no answer when it was saved"),
        ({"result": {"code": "409"}, "setting_values": {"value": None}}, "another client"),
        ({"sign_domain": 17}, "items[0].sign_domain"),
    ],
)
@pytest.mark.parametrize("fmt", ["zone", "nsupdate", "value", "octodns"])
def test_unusable_items_are_reported_and_the_rest_is_rendered(cli, saved, fmt, fields, reason):
    zones = ("--zone", "example.com") if fmt == "octodns" else ()
    bad = response(changed(saved[0], **fields), saved[1])
    good = cli("show-dns", "--from", "-", "--format", fmt, *zones, stdin=response(saved[1]))
    done = cli("show-dns", "--from", "-", "--format", fmt, *zones, stdin=bad)
    assert (done.status, done.out) == (1, good.out)
    assert "mail" in good.out or fmt == "value"
    assert reason in done.err


def test_only_the_first_of_two_records_for_a_name_is_rendered(cli, saved):
    other = changed(saved[0], setting_values={"value": saved[1]["setting_values"]["value"]})
    done = cli("show-dns", "--from", "-", "--format", "value", stdin=response(saved[0], other))
    assert (done.status, done.out) == (1, saved[0]["setting_values"]["value"] + "\n")
    assert "another item has another record for s1._domainkey.example.com" in done.err


def test_an_empty_result_shows_nothing(cli):
    done = cli("show-dns", "--from", "-", "--format", "zone", stdin=response())
    assert (done.status, done.out) == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_records_that_cannot_be_written_are_an_error(cli, saved):
    done = cli("show-dns", "--from", "records.json", "--format", "value", "--output", "/dev/full")
    assert (done.status, "No space left on device" in done.err) == (4, True)
