"""Resources for Terraform."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given

from dkimctl.render.renderer import Format, Provider
from rendering import RECORDS, name_and_value, render_file, txt_value


def unescaped(literal: str) -> str:
    """The value of a Terraform string, in which all templates are escaped."""
    assert not re.search(r"(?<!\$)\$\{|(?<!%)%\{", literal)
    return literal.replace("$${", "${").replace("%%{", "%{")


@pytest.mark.slow
@given(records=RECORDS)
@pytest.mark.parametrize("provider", Provider)
def test_each_record_has_a_resource(results, provider, records) -> None:
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
