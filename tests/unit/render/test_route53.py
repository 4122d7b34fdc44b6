"""Change batches for Route 53, validated by botocore."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from dkimctl.models.registration import DnsRecord
from dkimctl.render.renderer import Format
from rendering import RECORDS, name_and_value, render_file, render_files, txt_value


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
def test_batches_fit_the_api_model(results, route53_model, records) -> None:
    batch = json.loads(render_file(Format.ROUTE53, results(records)))
    assert route53_model(batch) == ""
    assert route53_model({"Changes": [{"Action": "UPSERT"}]}) != ""  # it can say no
    rendered = set()
    for change in batch["Changes"]:
        assert change["Action"] == "UPSERT"
        rrset = change["ResourceRecordSet"]
        [value] = rrset["ResourceRecords"]
        rendered.add((rrset["Name"].removesuffix("."), txt_value(value["Value"])))
    assert rendered == name_and_value(records)


@pytest.mark.parametrize(("length", "count"), [(20, 1100), (400, 90), (3900, 9)])
def test_batches_keep_the_limits_of_the_api(result, length, count) -> None:
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
