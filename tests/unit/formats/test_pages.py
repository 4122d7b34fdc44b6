"""HTML pages: what others wrote is text in them, and nothing is fetched."""

from __future__ import annotations

import re

from dkimctl.formats.pages import environment


def test_a_page_may_fetch_nothing_and_run_no_script():
    templates = environment("dkimctl.formats.pages")
    assert templates.from_string("{{ name | printable }}").render(name="a\u202eb") == r"a\u202eb"
    page = templates.get_template("base.html").render()
    [policy] = re.findall(r'<meta http-equiv="Content-Security-Policy"\s+content="([^"]*)"', page)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert not re.findall(r"<(?:script|link)\b|\ssrc=", page)
