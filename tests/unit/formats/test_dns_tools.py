"""Files for DNS tools, read as each of them does; master files and nsupdate by dnspython."""

from __future__ import annotations

import io
import itertools
import json
import re
import tempfile
from pathlib import Path

import dns.name
import dns.rdatatype
import dns.rrset
import dns.tsig
import dns.update
import dns.zone
import dns.zonefile
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.formats.dns_tools import NsupdateRenderer
from dkimctl.formats.renderer import PER_ZONE, Format, Provider, render_all
from dkimctl.formats.results import open_results
from dkimctl.models import DnsRecord
from rendering import RECORDS, name_and_value, render_file, render_files, render_text, txt_value


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


# What delegates selectors: an RRset of two name servers is one record of ours.
DELEGATIONS = [
    DnsRecord("a1._domainkey.example.com", "CNAME", "a1.example.com.dkim.test"),
    DnsRecord("_domainkey.sub.example.com", "NS", "ns1.test ns2.test"),
]
DELEGATED = {
    (each.fqdn, each.type, name) for each in DELEGATIONS for name in each.value.split()
}  # fmt: skip


def names_in_text(fmt, text):
    """The name, type and target of each record in a text for example.com, as a tool reads it."""
    if fmt is Format.ZONE:
        zone = dns.zone.from_text(text, origin="example.com.", check_origin=False)
        for name, _, rdata in zone.iterate_rdatas():
            target = rdata.target.derelativize(zone.origin)
            yield f"{name}.example.com", dns.rdatatype.to_text(rdata.rdtype), f"{target}"
    elif fmt is Format.NSUPDATE:
        for line in re.findall(r"update add (.*)", text):
            name, _, _, kind, target = line.split()
            yield name, kind, target
    elif fmt is Format.DNSCONTROL:
        for kind, name, target in re.findall(r'  (\w+)\("(.*?)", "(.*?)", TTL', text):
            yield f"{name}.example.com", kind, target
    else:
        from octodns.provider.yaml import YamlProvider
        from octodns.zone import Zone

        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "example.com.yaml").write_text(text)
            zone = Zone("example.com.", [])
            YamlProvider("config", directory, escaped_semicolons=True).populate(zone)
        for record in zone.records:
            values = getattr(record, "values", None) or [record.value]
            yield from ((record.fqdn, record._type, str(value)) for value in values)


def names_in_json(fmt, text, provider):
    document = json.loads(text)
    if fmt is Format.ROUTE53:
        for rrset in (change["ResourceRecordSet"] for change in document["Changes"]):
            for value in rrset["ResourceRecords"]:
                yield rrset["Name"], rrset["Type"], value["Value"]
    elif fmt is Format.POWERDNS:
        for rrset in document["rrsets"]:
            for record in rrset["records"]:
                yield rrset["name"], rrset["type"], record["content"]
    else:
        [resources] = document["resource"].values()
        for resource in resources.values():
            values = resource[RESOURCES[provider][1]]
            for value in [values] if isinstance(values, str) else values:
                assert value.endswith(".") is (provider is Provider.GOOGLE)
                yield resource["name"], resource["type"], value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fmt", "provider"),
    [(Format.ZONE, None), (Format.NSUPDATE, None),
     *((fmt, Provider.ROUTE53) for fmt in PER_ZONE), *((Format.TERRAFORM, it) for it in Provider)],
)  # fmt: skip
def test_delegations_arrive_with_their_types(results, route53_model, fmt, provider):
    options = {"provider": provider} if provider else {}
    text = render_file(fmt, results(DELEGATIONS), **options)
    is_json = fmt in (Format.ROUTE53, Format.POWERDNS, Format.TERRAFORM)
    read = [*(names_in_json(fmt, text, provider) if is_json else names_in_text(fmt, text))]
    assert len(read) == 3
    assert {(name.removesuffix("."), kind, to.removesuffix(".")) for name, kind, to in read} == (
        DELEGATED
    )
    assert fmt is not Format.ROUTE53 or route53_model(json.loads(text)) == ""


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


RESOURCES = {
    Provider.ROUTE53: (("aws_route53_record", "zone_id"), "records"),
    Provider.CLOUDFLARE: (("cloudflare_dns_record", "zone_id"), "content"),
    Provider.GOOGLE: (("google_dns_record_set", "managed_zone"), "rrdatas"),
}


@pytest.mark.slow
@given(records=RECORDS)
@pytest.mark.parametrize("provider", Provider)
def test_each_record_has_a_resource(results, provider, records):
    document = json.loads(render_file(Format.TERRAFORM, results(records), provider=provider))
    [variable] = document["variable"]
    [(kind, resources)] = document["resource"].items()
    kind_of_zone, argument = RESOURCES[provider]
    rendered = set()
    for name, resource in resources.items():
        assert re.fullmatch(r"[a-z_][a-z0-9_-]*", name)
        assert (resource["type"], resource["ttl"], kind) == ("TXT", 3600, kind_of_zone[0])
        assert resource[kind_of_zone[1]] == f"${{var.{variable}}}"
        values = resource[argument]
        value = unescaped(values if provider is Provider.CLOUDFLARE else "".join(values))
        if provider is Provider.ROUTE53:  # which puts the outer quotes
            strings = re.findall(r'"(?:[^"\\]|\\.)*"', f'"{value}"')
            assert "".join(strings) == f'"{value}"'
            value = " ".join(strings)
        rendered.add((resource["name"].removesuffix("."), txt_value(value)))
    assert rendered == name_and_value(records)


def deletions_of(results, zones=()):
    return "".join(render_all(NsupdateRenderer(zones, ttl=None), results))


def test_only_sound_records_are_deleted_and_only_in_the_zones(every_outcome):
    text = deletions_of(every_outcome)
    sound = ("created", "exists", "differs", "retired")
    assert text == "".join(
        f"prereq nxrrset s1._domainkey.{name}.example. CNAME\n"
        f"update delete s1._domainkey.{name}.example. IN TXT\nsend\n"
        for name in sound
    )
    with pytest.raises(UsageError, match="created"):
        deletions_of(every_outcome, ["example.net"])
    assert deletions_of([]) == ""


LONGEST_KEY = dns.tsig.Key(".".join(["k" * 61] * 4), b"secret", dns.tsig.HMAC_SHA512)
LONG_LABEL = "x" * 60 + "."
MAX_MESSAGE = 65_535  # RFC 1035 section 4.2.2


def updates_of(script):
    """The prerequisites and changes of each update, as dnspython reads the script."""
    updates = []
    for update in script.split("send\n")[:-1]:
        zone, *changes = update.splitlines()
        message = dns.update.UpdateMessage(zone.removeprefix("zone "))
        for change in changes:
            head, _, data = change.partition(" IN TXT")
            _, action, name, *more = head.split(" ")
            if action == "nxrrset":
                message.absent(name, *more)
            elif action == "add":
                message.add(name, int(*more), "TXT", data)
            else:
                message.delete(name, "TXT")
        updates.append([*message.prerequisite, *message.update])
    return updates


def size_of(changes):
    """The octets of an update without compression of names, signed with a long name."""
    rest = dns.update.UpdateMessage("example.com")
    rest.use_tsig(LONGEST_KEY)
    wire = io.BytesIO()
    for rrset in changes:
        rrset.to_wire(wire)
    return len(rest.to_wire()) + len(wire.getvalue())


def records_of(sizes, depths=(0,)):
    """Records whose values have these sizes, with so many long labels in their names."""
    return [
        DnsRecord(f"s{n}._domainkey.{LONG_LABEL * depth}example.com", "TXT", "v" * size)
        for n, (size, depth) in enumerate(zip(sizes, itertools.cycle(depths), strict=False))
    ]


@given(
    st.lists(st.integers(1, 4096), min_size=1, max_size=8),
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.integers(1, 40),
)
@settings(deadline=None, max_examples=10)
def test_an_update_fits_a_dns_message(results, sizes, depths, times):
    many = results(records_of(sizes * times, depths))
    scripts = (
        render_text(Format.NSUPDATE, many, zones=["example.com"]),
        deletions_of(many, ["example.com"]),
    )
    for script in scripts:
        updates = updates_of(script)
        assert max(map(size_of, updates)) <= MAX_MESSAGE
        assert len({rrset.name for changes in updates for rrset in changes}) == len(many)


ANY_TEXT = st.text(st.characters())


PRINTABLE_ASCII = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=1500)


ZONES = ["example.com", "mail.example.com", "example.net"]


def zone_text(*results, ttl=3600):
    return render_text(Format.ZONE, results, ttl=ttl)


def parsed(text):
    """The RRsets of a master file, read by dnspython."""
    return dns.zonefile.read_rrsets(text, origin=".", relativize=False, rdclass=None)


def strings_of(rrset):
    [rdata] = rrset
    return rdata.strings


def test_a_file_for_each_zone_is_included_in_it(result, tmp_path):
    domains = ("example.com", "www.example.com", "mail.example.com", "example.net")
    results = [result(sign_domain=domain) for domain in domains]
    apex = "@ 60 IN SOA ns.example.com. root.example.com. 1 2 3 4 5\n@ 60 IN NS ns.example.com.\n"
    found = {}
    for file in render_files(Format.ZONE, results, ZONES):
        (tmp_path / file.name).write_text("".join(file.chunks))
        text = f'$INCLUDE {tmp_path / file.name}\nafter 60 IN TXT "x"\n'
        # For the origin of the whole, `after` must be a name of it again.
        origin = dns.name.from_text(file.zone)
        zone = dns.zone.from_text(apex + text, origin=origin, allow_include=True)
        found[file.zone] = {
            name.derelativize(origin).to_text(omit_final_dot=True)
            for name, _ in zone.iterate_rdatasets(dns.rdatatype.TXT)
        }
    assert found == {
        "example.com": {
            "s1._domainkey.example.com", "s1._domainkey.www.example.com", "after.example.com",
        },
        "mail.example.com": {"s1._domainkey.mail.example.com", "after.mail.example.com"},
        "example.net": {"s1._domainkey.example.net", "after.example.net"},
    }  # fmt: skip


@given(text=ANY_TEXT)
@example(text="x\nevil.example. 1 IN TXT gotcha")
@example(text="x\revil")
@example(text="x\u2028evil \u202e 日本語")
def test_no_text_ends_the_comment(result, text):
    hostile = result(selector=text, message=text, code=text)
    zone = zone_text(hostile)
    assert re.fullmatch(r";[ -~]*\n[ -~]*\n", zone)
    [rrset] = parsed(zone)
    assert b"".join(strings_of(rrset)).decode() == hostile.registration.record.value


@given(value=PRINTABLE_ASCII | ANY_TEXT)
@example(value='v=DKIM1; n="a\\b"; p=')
@example(value="\\032\\" * 100)
@example(value="é" * 200)
def test_any_value_is_read_back_exactly(result, value):
    record = DnsRecord("s1._domainkey.example.com", "TXT", value)
    zone = zone_text(result(record=record))
    [rrset] = parsed(zone)
    assert zone.isascii()
    assert b"".join(strings_of(rrset)) == value.encode("utf-8", "surrogatepass")
    assert all(len(string) <= 255 for string in strings_of(rrset))


@given(label=st.text(st.characters(exclude_characters="."), min_size=1, max_size=15))
@example(label='a b;c"d\\e')
@example(label="@")
@example(label="*")
@example(label="$ORIGIN")
def test_any_name_is_read_back_exactly(result, label):
    record = DnsRecord(f"{label}._domainkey.example.com", "TXT", "v=DKIM1; p=")
    [rrset] = parsed(zone_text(result(record=record)))
    assert rrset.name.labels == (
        label.encode("utf-8", "surrogatepass"),
        b"_domainkey",
        b"example",
        b"com",
        b"",
    )


def values_of(*results):
    return render_text(Format.VALUE, results)


def test_control_characters_are_escaped(result):
    hostile = result(record=DnsRecord("a\tb", "TXT", "x\ny\x1b[2J"))
    assert values_of(hostile) == "x\\x0ay\\x1b[2J\n"
    assert values_of(hostile, hostile).splitlines()[0] == "a\\x09b\tx\\x0ay\\x1b[2J"
