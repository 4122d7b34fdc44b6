"""The formats of a sheet, read back by parsers that we did not write."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dkimctl.formats.renderer import txt_data
from dkimctl.handoff.providers import DnsPlace, Trouble, provider_with, read_yaml
from dkimctl.handoff.sheet import Language, Sheet, SheetFormat, render_sheet
from rendering import HOSTILE, VALUES, txt_value
from terminals import is_harmless

TEXTS = [
    {key: text for key, text in words.items() if isinstance(text, str)}
    for words in (read_yaml("texts/en.yaml"), read_yaml("texts/ja.yaml"))
]
LANGUAGES = pytest.mark.parametrize("language", Language)
HOSTILE_CONTACT = f"</code><script>alert(1)</script> `x` ** [a](b) | {HOSTILE}"


def render(sheet: Sheet, fmt: SheetFormat, language: Language = Language.ENGLISH) -> str:
    return render_sheet(sheet, fmt, language)


class Html(HTMLParser):
    """What a browser makes of a page: its elements, and the text of each value."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.values: list[str] = []
        self.text = ""
        self._is_value = False
        self.language = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        given = dict(attrs)
        self.language = given.get("lang", self.language)
        self._is_value = tag == "code" and "value" in given.get("class", "").split()
        if self._is_value:
            self.values.append("")

    def handle_endtag(self, tag):
        self._is_value = self._is_value and tag != "code"

    def handle_data(self, data):
        self.text += data
        if self._is_value:
            self.values[-1] += data


def forms(sheet: Sheet) -> set[str]:
    """The values of a sheet, whole and, if they are to be entered, as strings."""
    values = {record.value for record in sheet.records}
    if sheet.is_removal:
        return values
    return values | set(map(txt_data, values))


def parse_markdown(text: str) -> tuple[list[str], str, set[str]]:
    """The code blocks, all text, and the types of what is in it."""
    tokens = MarkdownIt("commonmark").parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    blocks = [token.content.removesuffix("\n") for token in tokens if token.type == "fence"]
    kinds = {token.type for token in (*tokens, *inline)}
    return blocks, "".join(token.content for token in inline), kinds


@LANGUAGES
def test_values_survive_copying_from_html(every_sheet, language):
    for sheet in every_sheet:
        page = Html(render(sheet, SheetFormat.HTML, language))
        assert set(page.values) == forms(sheet)
        assert page.language == language
        assert not {"script", "img", "link", "iframe"} & set(page.tags)


@LANGUAGES
def test_values_survive_copying_from_markdown(every_sheet, language):
    for sheet in every_sheet:
        blocks, _, kinds = parse_markdown(render(sheet, SheetFormat.MARKDOWN, language))
        assert set(blocks) == forms(sheet)
        assert not {"html_inline", "html_block", "image", "em_open"} & kinds


@LANGUAGES
def test_values_stand_on_lines_of_their_own_in_text(every_sheet, language):
    for sheet in every_sheet:
        lines = render(sheet, SheetFormat.TEXT, language).splitlines()
        assert forms(sheet) <= set(lines)


@given(value=VALUES, fmt=st.sampled_from((SheetFormat.HTML, SheetFormat.MARKDOWN)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_value_can_be_copied(sheet_of, value, fmt):
    text = render(sheet_of(value=value), fmt)
    shown = Html(text).values if fmt is SheetFormat.HTML else parse_markdown(text)[0]
    assert set(shown) == {value, txt_data(value)}
    assert txt_value(txt_data(value)) == value


@LANGUAGES
@pytest.mark.parametrize("fmt", [SheetFormat.HTML, SheetFormat.MARKDOWN, SheetFormat.TEXT])
def test_a_contact_is_only_text(sheet_of, language, fmt):
    sheet = sheet_of(contact=HOSTILE_CONTACT)
    text = render(sheet, fmt, language)
    assert all(map(is_harmless, text.split("\n")))
    if fmt is SheetFormat.HTML:
        assert "script" not in Html(text).tags
        assert "</code><script>alert(1)</script> `x`" in Html(text).text
    if fmt is SheetFormat.MARKDOWN:
        _, shown, kinds = parse_markdown(text)
        assert "</code><script>alert(1)</script> `x` ** [a](b)" in shown
        assert not {"html_inline", "html_block", "link_open"} & kinds


@pytest.mark.parametrize("fmt", [SheetFormat.HTML, SheetFormat.MARKDOWN, SheetFormat.TEXT])
def test_names_from_dns_are_only_text(sheet_of, fmt):
    place = DnsPlace("example.com", (f"<script>`|{HOSTILE}",), Trouble.NO_ANSWER, HOSTILE)
    text = render(sheet_of(place=place), fmt)
    assert all(map(is_harmless, text.split("\n")))
    if fmt is SheetFormat.HTML:
        assert "script" not in Html(text).tags
    if fmt is SheetFormat.MARKDOWN:
        assert not {"html_inline", "html_block", "link_open"} & parse_markdown(text)[2]


@LANGUAGES
def test_a_sheet_to_delete_has_nothing_about_entering(sheet_of, language):
    sheet = sheet_of(is_removal=True, provider=provider_with("sakura"))
    texts = TEXTS[list(Language).index(language)]
    for fmt in (SheetFormat.TEXT, SheetFormat.HTML, SheetFormat.MARKDOWN):
        text = render(sheet, fmt, language)
        for value in forms(sheet):
            assert value in text
            text = text.replace(value, "")  # there may be any three letters in it
        assert texts["delete_title"] in text
        for key in (
            "title",
            "ttl",
            "at_once",
            "no_quotes",
            "harmless",
            "value_enter",
            "never_cname",
        ):
            assert texts[key] not in text, key
