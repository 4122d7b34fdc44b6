"""Formats for DNS tools, read by what those tools are made of."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import dns.name
import dns.rdata
import dns.zonefile
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.models.registration import DnsRecord, Outcome, Result
from dkimctl.render.formats import open_renderer
from dkimctl.render.nsupdate import NsupdateDeletionRenderer
from dkimctl.render.renderer import PER_ZONE, Format, Provider, ZoneFile, render_all

# What a sound record may hold (RFC 6376: printable ASCII), of up to 4,096 bits and more.
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=900)
LABELS = st.from_regex(r"[a-z0-9]([a-z0-9_-]{0,20}[a-z0-9])?", fullmatch=True)
SELECTORS = st.lists(LABELS, min_size=1, max_size=3).map(".".join)
LONGEST = "as long as a name can be"


def fqdn_of(selector: str, below: str) -> str:
    """A key record's name in example.com, of 253 octets where it is to be the longest."""
    if below == LONGEST:
        left, below = 253 - len(f"{selector}._domainkey.example.com"), ""
        while left:
            length = left - 1 if left <= 64 else min(63, left - 3)
            below += f"{'x' * length}."
            left -= length + 1
    return f"{selector}._domainkey.{below}example.com"


RECORDS = st.lists(
    st.tuples(SELECTORS, st.sampled_from(("", "mail.", "xn--mnchen-3ya.", LONGEST)), VALUES),
    min_size=1,
    max_size=5,
    unique_by=lambda found: found[:2],
).map(
    lambda found: [
        DnsRecord(fqdn_of(selector, below), "TXT", value) for selector, below, value in found
    ]
)


def test_the_longest_name_has_253_octets() -> None:
    for selector in ("s", "s" * 60, ".".join(["s" * 63] * 3)[:180]):
        assert len(fqdn_of(selector, LONGEST)) == 253


@pytest.fixture(scope="module")
def results(result) -> Callable[[Sequence[DnsRecord]], list[Result]]:
    return lambda records: [
        result(sign_domain=record.fqdn.partition("._domainkey.")[2], record=record)
        for record in records
    ]


def octodns_can_hold(record: DnsRecord) -> bool:
    """Whether its files have a form for it: it counts the final dot of a name among the 253
    octets. No tag list begins with a quote (RFC 6376).
    """
    value = record.value
    has_form = not value.startswith('"') and "\\;" not in value and '" "' not in value
    return has_form and len(record.fqdn) < 253


def files_of(
    fmt: Format, results: Sequence[Result], zones: Sequence[str], **options: object
) -> list[ZoneFile]:
    renderer = open_renderer(fmt, zones=zones, **options)
    for result in results:
        renderer.add(result)
    return list(renderer.files())


def file_of(fmt: Format, results: Sequence[Result], **options: object) -> str:
    [(_, chunks)] = files_of(fmt, results, ["example.com"], **options)
    return "".join(chunks)


def deletions_of(results: Sequence[Result], zones: Sequence[str] = ()) -> str:
    return "".join(render_all(NsupdateDeletionRenderer(zones), results))


def pairs(records: Sequence[DnsRecord]) -> set[tuple[str, str]]:
    return {(record.fqdn, record.value) for record in records}


def txt(presentation: str) -> str:
    """The value of a TXT record's data, as dnspython reads it."""
    rdata = dns.rdata.from_text("IN", "TXT", presentation)
    assert max(map(len, rdata.strings)) <= 255
    return b"".join(rdata.strings).decode()


def test_csv_has_a_line_for_each_registration_and_values_only_of_sound_ones(every_outcome) -> None:
    lines = "".join(render_all(open_renderer(Format.CSV), every_outcome)).splitlines()
    assert len(lines) == 1 + len(every_outcome)
    rows = list(csv.DictReader(lines))
    for row, result in zip(rows, every_outcome, strict=True):
        assert row["sign_domain"] == result.registration.sign_domain
        assert row["outcome"] == result.outcome
        sound = result.outcome in (Outcome.CREATED, Outcome.EXISTS, Outcome.DIFFERS)
        assert row["value"] == (result.registration.record.value if sound else "")


@given(message=st.text(st.characters(), max_size=30))
def test_csv_holds_no_formula_no_line_break_and_nothing_a_terminal_acts_on(
    result, message: str
) -> None:
    text = "".join(render_all(open_renderer(Format.CSV), [result(message=message)]))
    assert text.count("\n") == 2
    assert all(char.isprintable() or char in "\n\u00a0\u3000" for char in text)
    [row] = csv.DictReader(io.StringIO(text))
    assert not row["message"].startswith(("=", "+", "-", "@"))


@given(records=RECORDS)
@pytest.mark.parametrize("zones", [[], ["example.com"]])
def test_nsupdate_replaces_the_txt_set_of_just_these_names(results, zones, records) -> None:
    renderer = open_renderer(Format.NSUPDATE, ttl=60, zones=zones)
    lines = "".join(render_all(renderer, results(records))).splitlines()
    added = []
    for line in lines:
        if line.startswith("update add "):
            [rrset] = dns.zonefile.read_rrsets(line.removeprefix("update add "), rdclass=None)
            [rdata] = rrset
            assert rrset.ttl == 60
            added.append((rrset.name.to_text(omit_final_dot=True), b"".join(rdata.strings)))
        elif line.startswith("update delete "):
            _, _, name, *types = line.split(" ")
            assert types == ["IN", "TXT"]
            assert name.removesuffix(".") in {record.fqdn for record in records}
        else:
            assert line in ("send", "zone example.com.")
    assert added == [(record.fqdn, record.value.encode()) for record in records]
    assert lines.count("send") == (1 if zones else len(records))
    assert lines.count("zone example.com.") == len(zones)
    assert lines[-1] == "send"


@given(records=RECORDS)
@pytest.mark.parametrize("zones", [[], ["example.com"]])
def test_deletions_remove_the_txt_set_of_just_these_names(results, zones, records) -> None:
    lines = deletions_of(results(records), zones).splitlines()
    names = [line.split(" ")[2] for line in lines if line.startswith("update")]
    assert [dns.name.from_text(name).to_text(omit_final_dot=True) for name in names] == [
        record.fqdn for record in records
    ]
    for line in lines:
        other = line in ("send", "zone example.com.")
        assert other or re.fullmatch(r"update delete \S+\. IN TXT", line)
    assert lines.count("send") == (1 if zones else len(records))
    assert lines.count("zone example.com.") == len(zones)
    assert lines[-1] == "send"


def test_only_sound_records_are_deleted_and_each_in_its_zone(every_outcome, result) -> None:
    text = deletions_of(every_outcome)
    sound = ("created", "exists", "differs")
    assert text == "".join(
        f"update delete s1._domainkey.{name}.example. IN TXT\nsend\n" for name in sound
    )
    with pytest.raises(UsageError, match="created"):
        deletions_of(every_outcome, ["example.net"])
    assert deletions_of([]) == ""


def test_an_update_holds_no_more_than_a_message_does(result) -> None:
    many = [
        result(record=DnsRecord(f"s{n}._domainkey.example.com", "TXT", "v=DKIM1; p=" + "A" * 800))
        for n in range(120)
    ]
    renderer = open_renderer(Format.NSUPDATE, zones=["example.com"])
    text = "".join(render_all(renderer, many))
    updates = text.split("send\n")[:-1]
    assert [update.count("update add") for update in updates] == [50, 50, 20]
    assert all(update.startswith("zone example.com.\n") for update in updates)


@settings(deadline=None, max_examples=60)
@given(records=RECORDS.filter(lambda found: all(map(octodns_can_hold, found))))
def test_octodns_loads_it_strictly_and_has_the_very_values(results, records) -> None:
    from octodns.provider.yaml import YamlProvider
    from octodns.zone import Zone

    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "example.com.yaml").write_text(file_of(Format.OCTODNS, results(records)))
        zone = Zone("example.com.", [])
        provider = YamlProvider("config", directory, escaped_semicolons=True, enforce_order=True)
        provider.populate(zone, lenient=False)
    found = {(record.fqdn.removesuffix("."), *record.values) for record in zone.records}
    assert {name for name, _ in found} == {record.fqdn for record in records}
    assert {(name, value.replace("\\;", ";")) for name, value in found} == pairs(records)
    assert all(record.ttl == 3600 for record in zone.records)


@given(records=RECORDS)
def test_powerdns_replaces_the_rrset_of_each_name(results, records) -> None:
    rrsets = json.loads(file_of(Format.POWERDNS, results(records), ttl=60))["rrsets"]
    found = set()
    for rrset in rrsets:
        assert rrset["changetype"] == "REPLACE"
        assert (rrset["type"], rrset["ttl"]) == ("TXT", 60)
        [record] = rrset["records"]
        found.add((rrset["name"].removesuffix("."), txt(record["content"])))
    assert found == pairs(records)


@pytest.fixture(scope="module")
def route53_model():
    """Validates the parameters of a ChangeResourceRecordSets as the AWS CLI does."""
    from botocore.loaders import Loader
    from botocore.model import ServiceModel
    from botocore.validate import ParamValidator

    model = ServiceModel(Loader().load_service_model("route53", "service-2"), "route53")
    shape = model.operation_model("ChangeResourceRecordSets").input_shape
    return lambda batch: (
        ParamValidator()
        .validate({"HostedZoneId": "Z123", "ChangeBatch": batch}, shape)
        .generate_report()
    )


@given(records=RECORDS)
def test_route53_batches_are_what_the_api_takes(results, route53_model, records) -> None:
    batch = json.loads(file_of(Format.ROUTE53, results(records)))
    assert route53_model(batch) == ""
    assert route53_model({"Changes": [{"Action": "UPSERT"}]}) != ""  # it can say no
    found = set()
    for change in batch["Changes"]:
        assert change["Action"] == "UPSERT"
        rrset = change["ResourceRecordSet"]
        [value] = rrset["ResourceRecords"]
        found.add((rrset["Name"].removesuffix("."), txt(value["Value"])))
    assert found == pairs(records)


@pytest.mark.parametrize(("length", "count"), [(20, 1100), (400, 90), (3900, 9)])
def test_route53_batches_keep_within_the_limits_of_the_api(result, length, count) -> None:
    many = [
        result(record=DnsRecord(f"s{n}._domainkey.example.com", "TXT", "p=" + "A" * length))
        for n in range(count)
    ]
    files = files_of(Format.ROUTE53, many, ["example.com"])
    assert [name for name, _ in files[:2]] == ["example.com.json", "example.com.2.json"]
    names = []
    for _, chunks in files:
        changes = json.loads("".join(chunks))["Changes"]
        sets = [change["ResourceRecordSet"] for change in changes]
        # An UPSERT counts twice: of 1,000 records, and of 32,000 characters.
        assert 2 * len(sets) <= 1000
        assert 2 * sum(len(one["ResourceRecords"][0]["Value"]) for one in sets) <= 32_000
        names += [one["Name"] for one in sets]
    assert names == [f"s{n}._domainkey.example.com." for n in range(count)]
    assert len(files) < 4 * count / 30 + 3  # and are no smaller than they must be


DSL = """
const found = [];
const TTL = (seconds) => ({ttl: seconds});
const TXT = (name, value, ttl) => [name, value, ttl.ttl];
const D_EXTEND = (zone, ...records) => found.push([zone, records]);
eval(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(found));
"""


@settings(deadline=None, max_examples=15)
@given(records=RECORDS)
def test_dnscontrol_evaluates_to_the_very_values(results, needs_tool, records) -> None:
    needs_tool("node")
    text = file_of(Format.DNSCONTROL, results(records), ttl=60)
    assert not re.search(r",\s*\)", text)  # ES5 knows no comma at the end
    done = subprocess.run(
        ["node", "-e", DSL], input=text, capture_output=True, text=True, check=True, timeout=30
    )
    [[zone, found]] = json.loads(done.stdout)
    assert zone == "example.com"
    assert {(f"{name}.{zone}", value) for name, value, _ in found} == pairs(records)
    assert {ttl for *_, ttl in found} == {60}


def unescaped(literal: str) -> str:
    """A string of Terraform without templates, as it is after their evaluation."""
    assert not re.search(r"(?<!\$)\$\{|(?<!%)%\{", literal)
    return literal.replace("$${", "${").replace("%%{", "%{")


@given(records=RECORDS)
@pytest.mark.parametrize("provider", Provider)
def test_terraform_has_a_resource_for_each_record(results, provider, records) -> None:
    document = json.loads(file_of(Format.TERRAFORM, results(records), provider=provider))
    [variable] = document["variable"]
    [(kind, resources)] = document["resource"].items()
    found = set()
    for name, resource in resources.items():
        assert re.fullmatch(r"[a-z_][a-z0-9_-]*", name)
        assert (resource["type"], resource["ttl"]) == ("TXT", 3600)
        if provider is Provider.ROUTE53:
            assert kind == "aws_route53_record"
            [value] = resource["records"]
            # The provider puts the outer quotes.
            strings = re.findall(r'"(?:[^"\\]|\\.)*"', f'"{unescaped(value)}"')
            assert "".join(strings) == f'"{unescaped(value)}"'
            value = txt(" ".join(strings))
            zone = resource["zone_id"]
        elif provider is Provider.CLOUDFLARE:
            assert kind == "cloudflare_dns_record"
            value, zone = txt(unescaped(resource["content"])), resource["zone_id"]
        else:
            assert kind == "google_dns_record_set"
            [value] = resource["rrdatas"]
            value, zone = txt(unescaped(value)), resource["managed_zone"]
        assert zone == f"${{var.{variable}}}"
        found.add((resource["name"].removesuffix("."), value))
    assert found == pairs(records)


@pytest.mark.parametrize("fmt", PER_ZONE)
def test_each_record_goes_into_the_longest_zone_that_contains_it(result, fmt) -> None:
    found = [
        result(sign_domain=domain)
        for domain in ("example.com", "mail.example.com", "notexample.com", "example.net")
    ]
    zones = ["example.com", "mail.example.com", "NOTexample.com".lower(), "net", "unused.example"]
    suffix = open_renderer(fmt).suffix
    files = {name: "".join(chunks) for name, chunks in files_of(fmt, found, zones)}
    assert {name.removesuffix(f".{suffix}") for name in files} == {*zones[:4]}
    with pytest.raises(UsageError, match=r"s1\._domainkey\.notexample\.com, s1\._domainkey\.ex"):
        files_of(fmt, found, ["example.com"])
