"""HTML pages: what others wrote is text in them, and nothing is fetched."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from dkimctl.formats.pages import environment


class _Page(HTMLParser):
    """The elements of a page, with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def render():
    """Renders a template that is given as text."""
    templates = environment("dkimctl.formats.pages")
    return lambda text, **values: templates.from_string(text).render(values)


def test_what_would_reorder_text_is_written_out(render):
    assert render("{{ name | printable }}", name="a\u202eb") == r"a\u202eb"


def test_a_page_may_fetch_nothing_and_run_no_script():
    page = _Page(environment("dkimctl.formats.pages").get_template("base.html").render())
    policies = [
        each["content"]
        for tag, each in page.elements
        if tag == "meta" and each.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    assert not {"script", "link"} & {tag for tag, _ in page.elements}
    assert not [each for _, each in page.elements if "src" in each]
