"""Files for DNS tools, read as each of them does."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from dkimctl.errors import UsageError
from dkimctl.formats.renderer import PER_ZONE, Format, Provider
from dkimctl.formats.results import open_results
from dkimctl.models import DnsRecord
from rendering import RECORDS, name_and_value, render_file, render_files, txt_value


@pytest.mark.parametrize("fmt", [*PER_ZONE, Format.ZONE, Format.NSUPDATE])
def test_each_record_goes_into_the_longest_zone_that_contains_it(result, fmt):
    results = [
        result(sign_domain=domain)
        for domain in ("example.com", "mail.example.com", "notexample.com", "example.net")
    ]
    zones = ["example.com", "mail.example.com", "NOTexample.com".lower(), "net", "unused.example"]
    suffix = open_results(fmt, zones=["example.com"]).suffix
    files = render_files(fmt, results, zones)
    assert {file.name.removesuffix(f".{suffix}") for file in files} == {*zones[:4]}
    assert {file.zone: file.records for file in files} == dict.fromkeys(zones[:4], 1)
    for file in files:
        assert "".join(file.chunks).count("v=DKIM1") == 1
    with pytest.raises(UsageError, match=r"s1\._domainkey\.notexample\.com, s1\._domainkey\.ex"):
        render_files(fmt, results, ["example.com"])


def test_no_file_is_named_after_a_device_of_windows():
    for zone in ("con", "con.example", "AUX.example", "com1.example", "lpt9"):
        assert open_results(Format.POWERDNS).stem(zone) == f"_{zone}"
        assert open_results(Format.OCTODNS).stem(zone) == zone  # it looks for that name
    assert open_results(Format.POWERDNS).stem("cons.example") == "cons.example"


def octodns_can_hold(record):
    """Whether octoDNS has a form for the value, and takes the name.

    It counts the final dot among the 253 octets of a name.
    """
    value = record.value
    has_form = not value.startswith('"') and "\\;" not in value and '" "' not in value
    return has_form and len(record.fqdn) < 253


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(records=RECORDS.filter(lambda records: all(map(octodns_can_hold, records))))
def test_octodns_loads_the_file_strictly_and_reads_the_same_values(results, records):
    from octodns.provider.yaml import YamlProvider
    from octodns.zone import Zone

    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "example.com.yaml").write_text(
            render_file(Format.OCTODNS, results(records))
        )
        zone = Zone("example.com.", [])
        provider = YamlProvider("config", directory, escaped_semicolons=True, enforce_order=True)
        provider.populate(zone, lenient=False)
    loaded = {(record.fqdn.removesuffix("."), *record.values) for record in zone.records}
    assert {(name, value.replace("\\;", ";")) for name, value in loaded} == name_and_value(records)
    assert all(record.ttl == 3600 for record in zone.records)


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


def test_batches_fit_the_api_model(results, route53_model):
    record = DnsRecord("s1._domainkey.example.com", "TXT", "v=DKIM1; p=")
    batch = json.loads(render_file(Format.ROUTE53, results([record])))
    assert [change["Action"] for change in batch["Changes"]] == ["UPSERT"]
    assert route53_model(batch) == ""
    assert route53_model({"Changes": [{"Action": "UPSERT"}]}) != ""  # it can say no


def dnscontrol(text):
    """The arguments of each TXT: all of them are written as JSON."""
    assert text.endswith("TTL(3600))\n);\n")  # ES5 knows no comma at the end
    for name, value in re.findall(r'TXT\(("[^"]*"), ("(?:[^"\\]|\\.)*"), TTL\(3600\)\)', text):
        yield f"{json.loads(name)}.example.com", json.loads(value)


def powerdns(text):
    for rrset in json.loads(text)["rrsets"]:
        assert (rrset["changetype"], rrset["type"], rrset["ttl"]) == ("REPLACE", "TXT", 3600)
        [record] = rrset["records"]
        yield rrset["name"].removesuffix("."), txt_value(record["content"])


def route53(text):
    for change in json.loads(text)["Changes"]:
        rrset = change["ResourceRecordSet"]
        [value] = rrset["ResourceRecords"]
        yield rrset["Name"].removesuffix("."), txt_value(value["Value"])


@given(records=RECORDS)
@pytest.mark.parametrize(
    ("fmt", "read"),
    [(Format.DNSCONTROL, dnscontrol), (Format.POWERDNS, powerdns), (Format.ROUTE53, route53)],
)
def test_every_value_arrives(results, fmt, read, records):
    assert set(read(render_file(fmt, results(records)))) == name_and_value(records)


@pytest.mark.parametrize(("length", "count"), [(20, 1100), (400, 90), (3900, 9)])
def test_batches_keep_the_limits_of_the_api(result, length, count):
    many = [
        result(record=DnsRecord(f"s{n}._domainkey.example.com", "TXT", "p=" + "A" * length))
        for n in range(count)
    ]
    files = render_files(Format.ROUTE53, many, ["example.com"])
    assert [file.name for file in files[:2]] == ["example.com.json", "example.com.2.json"]
    names = []
    for file in files:
        changes = json.loads("".join(file.chunks))["Changes"]
        assert len(changes) == file.records
        sets = [change["ResourceRecordSet"] for change in changes]
        # An UPSERT counts twice: of 1,000 records, and of 32,000 characters.
        assert 2 * len(sets) <= 1000
        assert 2 * sum(len(one["ResourceRecords"][0]["Value"]) for one in sets) <= 32_000
        names += [one["Name"] for one in sets]
    assert names == [f"s{n}._domainkey.example.com." for n in range(count)]
    assert len(files) < 4 * count / 30 + 3  # and are no smaller than they must be


def unescaped(literal):
    """The value of a Terraform string, in which all templates are escaped."""
    assert not re.search(r"(?<!\$)\$\{|(?<!%)%\{", literal)
    return literal.replace("$${", "${").replace("%%{", "%{")


@pytest.mark.slow
@given(records=RECORDS)
@pytest.mark.parametrize("provider", Provider)
def test_each_record_has_a_resource(results, provider, records):
    document = json.loads(render_file(Format.TERRAFORM, results(records), provider=provider))
    [variable] = document["variable"]
    [(kind, resources)] = document["resource"].items()
    rendered = set()
    for name, resource in resources.items():
        assert re.fullmatch(r"[a-z_][a-z0-9_-]*", name)
        assert (resource["type"], resource["ttl"]) == ("TXT", 3600)
        if provider is Provider.ROUTE53:
            assert kind == "aws_route53_record"
            [value] = resource["records"]
            # The provider puts the outer quotes.
            strings = re.findall(r'"(?:[^"\\]|\\.)*"', f'"{unescaped(value)}"')
            assert "".join(strings) == f'"{unescaped(value)}"'
            value = txt_value(" ".join(strings))
            zone = resource["zone_id"]
        elif provider is Provider.CLOUDFLARE:
            assert kind == "cloudflare_dns_record"
            value, zone = txt_value(unescaped(resource["content"])), resource["zone_id"]
        else:
            assert kind == "google_dns_record_set"
            [value] = resource["rrdatas"]
            value, zone = txt_value(unescaped(value)), resource["managed_zone"]
        assert zone == f"${{var.{variable}}}"
        rendered.add((resource["name"].removesuffix("."), value))
    assert rendered == name_and_value(records)
