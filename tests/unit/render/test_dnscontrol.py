"""JavaScript for DNSControl, run by Node.js."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from hypothesis import given, settings

from dkimctl.render.renderer import Format
from rendering import RECORDS, name_and_value, render_file

DSL = """
const calls = [];
const TTL = (seconds) => ({ttl: seconds});
const TXT = (name, value, ttl) => [name, value, ttl.ttl];
const D_EXTEND = (zone, ...records) => calls.push([zone, records]);
eval(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(calls));
"""


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(records=RECORDS)
def test_node_evaluates_the_script_to_the_same_values(results, needs_tool, records) -> None:
    needs_tool("node")
    text = render_file(Format.DNSCONTROL, results(records), ttl=60)
    assert not re.search(r",\s*\)", text)  # ES5 knows no comma at the end
    done = subprocess.run(
        ["node", "-e", DSL], input=text, capture_output=True, text=True, check=True, timeout=30
    )
    [[zone, added]] = json.loads(done.stdout)
    assert zone == "example.com"
    assert {(f"{name}.{zone}", value) for name, value, _ in added} == name_and_value(records)
    assert {ttl for *_, ttl in added} == {60}
