"""What a sheet says, in both languages; its formats, read back by parsers that we did not write."""

from __future__ import annotations

import html
import re
import string
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from unicodedata import east_asian_width

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dkimctl.formats.dns_tools import txt_data
from dkimctl.formats.renderer import NOT_FOR_DNS, Format
from dkimctl.handoff.providers import (
    DnsPlace,
    Trouble,
    ValueForm,
    provider_with,
    providers,
    read_yaml,
)
from dkimctl.handoff.sheet import (
    Language,
    Sheet,
    SheetFormat,
    Timing,
    Words,
    make_sheet,
    render_sheet,
)
from dkimctl.models import DnsRecord, Registration
from dkimctl.names import parse_domain
from rendering import HOSTILE, VALUES, txt_value
from terminals import is_harmless

NOW = datetime(2027, 1, 1, tzinfo=UTC)
STARTS = ("2027-03-01T00:00+09:00", "2026-01-01T00:00+00:00", "soon")


@pytest.fixture
def sheet_of(make_registration):
    """A sheet with a record for each zone; `value` is that of each."""

    def sheet_of(*zones: str, value: str = "", place=None, **options) -> Sheet:
        pairs, places = [], {}
        for number, zone in enumerate(zones or ("example.com",)):
            start = STARTS[number % len(STARTS)]
            registration = make_registration(zone, start_date=start, enable=number != 3)
            record = registration.record._replace(value=value or registration.record.value)
            pairs.append((registration, record))
            places[record.fqdn] = place or DnsPlace(zone, ("ns1.example.net",))
        return make_sheet(pairs, places, NOW, **options)

    return sheet_of


@pytest.fixture
def every_sheet(sheet_of) -> list[Sheet]:
    """Sheets that, together, say everything that a sheet can."""
    zones = ("example.com", "example.net", "xn--r8jz45g.jp", "example.org", "example.jp")
    return [
        *(sheet_of(*zones, panel=each, contact="Mail team <mail@example.net>")
          for each in (None, *providers())),
        *(sheet_of(place=DnsPlace(trouble=each, reason="why")) for each in Trouble),
        sheet_of(place=DnsPlace("example.com", trouble=Trouble.NO_ANSWER, reason="why")),
        sheet_of("sub.example.com", place=DnsPlace("example.com")),
        sheet_of("example.com", is_removal=True),
        sheet_of("example.com", "example.net", is_removal=True),
    ]  # fmt: skip


@pytest.fixture
def make(make_registration):
    """The only record of a sheet."""

    def make(*, panel=None, value="", **fields):
        registration = make_registration(**fields)
        record = registration.record._replace(value=value or registration.record.value)
        places = {record.fqdn: DnsPlace("example.com")}
        [made] = make_sheet([(registration, record)], places, NOW, panel=panel).records
        return made

    return make


@pytest.mark.parametrize(
    ("start", "regist", "enable", "timing", "starts", "due"),
    [("2027-03-01T00:00+09:00", "", True, Timing.LATER, "2027-03-01T00:00+09:00",
      "2027-02-27T00:00+09:00"),
     ("2027-01-02T00:00+00:00", "", True, Timing.LATER, "2027-01-02T00:00+00:00", None),
     ("2026-01-02T00:00+09:00", "", True, Timing.NOW, "2026-01-02T00:00+09:00", None),
     ("0001-01-01T00:00-12:00", "", True, Timing.NOW, "0001-01-01T00:00-12:00", None),
     ("2026-01-02T00:00+09:00", "2026-12-31T00:00:00+00:00", True, Timing.NOW,
      "2026-12-31T00:00+00:00", None),
     ("2027-03-01T00:00+09:00", "", False, Timing.DISABLED, "2027-03-01T00:00+09:00", None),
     ("soon", "", True, Timing.UNKNOWN, None, None)],
)  # fmt: skip
def test_when_a_record_is_due(make, start, regist, enable, timing, starts, due):
    record = make(start_date=start, enable=enable, **({"regist_date": regist} if regist else {}))
    times = [time and time.isoformat(timespec="minutes") for time in (record.starts_at, record.due)]
    assert (record.timing, *times) == (timing, starts, due)


@pytest.mark.parametrize(
    ("key", "length", "form", "is_too_long"),
    [("cloudflare", 800, ValueForm.WHOLE, False), ("ovh", 200, ValueForm.WHOLE, False),
     ("ovh", 400, ValueForm.STRINGS, False), ("sakura", 200, ValueForm.WHOLE, False),
     ("sakura", 400, ValueForm.WHOLE, True),
     # 16 strings: 32 quotes and 15 spaces of 4,000 characters.
     ("route53", 3953, ValueForm.STRINGS, False), ("route53", 3954, ValueForm.STRINGS, True)],
)  # fmt: skip
def test_the_value_is_entered_as_the_panel_takes_it(make, key, length, form, is_too_long):
    record = make(panel=provider_with(key), value="v" * length)
    assert (record.form, record.is_too_long) == (form, is_too_long)


EN, JA = (
    {key: text for key, text in words.items() if isinstance(text, str)}
    for words in (read_yaml("texts/en.yaml"), read_yaml("texts/ja.yaml"))
)
ENGLISH, JAPANESE = Words(Language.ENGLISH), Words(Language.JAPANESE)
# Names and what is typed, which are the same in Japanese.
SAME = {"DNS", "TXT", "TTL", "DKIM", "CNAME", "Linux", "macOS", "Windows", "dkimctl", "xn",
        "_domainkey", "Change in text format", "NS", "Proxy status", "DNS only"}  # fmt: skip


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_the_same_texts_with_the_same_data():
    assert EN.keys() == JA.keys()
    for key in EN.keys() - {"date", "time"}:  # which are tested below
        text = EN[key]
        assert fields(text) - {"count"} == fields(JA[key]) - {"count"}, key


@pytest.mark.parametrize("key", JA)
def test_japanese_has_no_english_left_in_it(key):
    text = re.sub(r"\{[^}]+\}", "", JA[key])
    for word in sorted(SAME, key=len, reverse=True):
        text = text.replace(word, "")
    assert not re.findall(r"[A-Za-z]+", text)


@pytest.mark.parametrize(
    ("seconds", "in_english", "in_japanese"),
    [(0, "0 seconds", "0秒"), (60, "60 seconds (1 minute)", "60秒(1分)"),
     (3600, "3600 seconds (1 hour)", "3600秒(1時間)"),
     (5400, "5400 seconds (90 minutes)", "5400秒(90分)"),
     (172800, "172800 seconds (2 days)", "172800秒(2日)")],
)  # fmt: skip
def test_a_ttl_is_in_seconds_and_in_a_larger_unit(seconds, in_english, in_japanese):
    assert (ENGLISH.duration(seconds), JAPANESE.duration(seconds)) == (in_english, in_japanese)


@pytest.mark.parametrize(
    ("offset", "in_english", "in_japanese"),
    [(9.0, "1 March 2027, 00:05 (UTC+09:00)", "2027年3月1日(月)0:05(日本時間)"),
     (-3.5, "1 March 2027, 00:05 (UTC-03:30)", "2027年3月1日(月)0:05(UTC-03:30)"),
     (0.0, "1 March 2027, 00:05 (UTC)", "2027年3月1日(月)0:05(UTC)")],
)  # fmt: skip
def test_a_time_has_its_offset(offset, in_english, in_japanese):
    time = datetime(2027, 3, 1, 0, 5, tzinfo=timezone(timedelta(hours=offset)))
    assert (ENGLISH.time(time), JAPANESE.time(time)) == (in_english, in_japanese)


LANGUAGES = pytest.mark.parametrize("language", Language)
HOSTILE_CONTACT = f"</code><script>alert(1)</script> `x` ** [a](b) | {HOSTILE}"


def render(sheet: Sheet, fmt: SheetFormat, language: Language = Language.ENGLISH) -> str:
    return "".join(render_sheet(sheet, fmt, language))


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
def test_values_survive_copying(every_sheet, language):
    for sheet in every_sheet:
        page = Html(render(sheet, SheetFormat.HTML, language))
        assert (set(page.values), page.language) == (forms(sheet), language)
        assert not {"script", "img", "link", "iframe"} & set(page.tags)
        blocks, _, kinds = parse_markdown(render(sheet, SheetFormat.MARKDOWN, language))
        assert set(blocks) == forms(sheet)
        assert not {"html_inline", "html_block", "image", "em_open"} & kinds
        assert forms(sheet) <= set(render(sheet, SheetFormat.TEXT, language).splitlines())


@given(value=VALUES, fmt=st.sampled_from((SheetFormat.HTML, SheetFormat.MARKDOWN)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_value_can_be_copied(sheet_of, value, fmt):
    text = render(sheet_of(value=value), fmt)
    shown = Html(text).values if fmt is SheetFormat.HTML else parse_markdown(text)[0]
    assert set(shown) == {value, txt_data(value)}
    assert txt_value(txt_data(value)) == value


@pytest.mark.parametrize("fmt", [SheetFormat.HTML, SheetFormat.MARKDOWN, SheetFormat.TEXT])
def test_a_contact_and_names_from_dns_are_only_text(sheet_of, fmt):
    place = DnsPlace("example.com", (f"<script>`|{HOSTILE}",), Trouble.NO_ANSWER, HOSTILE)
    text = render(sheet_of(contact=HOSTILE_CONTACT, place=place), fmt)
    assert all(map(is_harmless, text.split("\n")))
    if fmt is SheetFormat.HTML:
        assert "script" not in Html(text).tags
        assert "</code><script>alert(1)</script> `x`" in Html(text).text
    if fmt is SheetFormat.MARKDOWN:
        _, shown, kinds = parse_markdown(text)
        assert "</code><script>alert(1)</script> `x` ** [a](b)" in shown
        assert not {"html_inline", "html_block", "link_open"} & kinds


@LANGUAGES
def test_paragraphs_fit_an_email_and_no_name_is_broken(sheet_of, language):
    for number in range(1, 40):
        name = f"日本{'a' * number}語.example"
        text = render(sheet_of(parse_domain(name)), SheetFormat.TEXT, language)
        paragraphs = re.findall(r"(?m)^[^ \n].*[.。]$", text)
        widths = [sum(1 + (east_asian_width(char) in "WF") for char in it) for it in paragraphs]
        assert max(widths) <= 72
        assert f"日本{'a' * number}" in text
        assert is_harmless(text.replace("\n", ""))
        assert not re.search(r"日本?\n|a\n *語|語\n *\.", text)


@LANGUAGES
@pytest.mark.parametrize("fmt", [SheetFormat.HTML, SheetFormat.MARKDOWN, SheetFormat.TEXT])
def test_a_sheet_to_delete_has_nothing_about_adding(sheet_of, language, fmt):
    texts = EN if language is Language.ENGLISH else JA
    adding = ("title", "ttl", "at_once", "no_quotes", "harmless", "value_enter", "never_cname")

    def said(sheet: Sheet) -> list[str]:
        value = sheet.records[0].value  # there may be any three letters in it
        text = render(sheet, fmt, language)
        assert value in text
        text = re.sub(r"\s", "", html.unescape(text).replace(value, ""))
        return [key for key in adding if re.sub(r"\s", "", texts[key]) in text]

    zones, panel = ("example.com", "example.net"), provider_with("sakura")
    assert said(sheet_of(*zones, panel=panel)) == [*adding]
    assert said(sheet_of(*zones, panel=panel, is_removal=True)) == []


def test_delegations_have_all_formats_for_dns():
    for_dns = {fmt.value for fmt in Format if fmt not in (*NOT_FOR_DNS, Format.VALUE)}
    assert for_dns <= {fmt.value for fmt in SheetFormat}


def test_a_zone_is_written_without_a_look_at_all_others(sheet_of, monkeypatch):
    """There may be 50,000."""
    sheet = sheet_of(*(f"d{number}.example" for number in range(50)))
    looks, records = [], Sheet.records.fget
    monkeypatch.setattr(Sheet, "records", property(lambda sheet: looks.append(1) or records(sheet)))
    render(sheet, SheetFormat.TEXT)
    assert len(looks) < 10


@LANGUAGES
@pytest.mark.parametrize("kind", ["CNAME", "NS"])
def test_a_delegation_is_a_table_for_each_panel(kind, language):
    host = "a1._domainkey" if kind == "CNAME" else "_domainkey"
    pairs = [
        (Registration("example.com", "a1"), DnsRecord(f"{host}.example.com", kind, name))
        for name in ("one.dkim.example.net", "two.dkim.example.net")
    ]
    places = {f"{host}.example.com": DnsPlace("example.com", ("ns1.example.net",))}
    texts = EN if language is Language.ENGLISH else JA
    proxied = []
    for panel in (None, *providers()):
        lines = {f"{host}.example.com": ("*.example.com. 60 IN A 192.0.2.1",)}
        sheet = make_sheet(pairs, places, NOW, lines, panel=panel)
        names = [f"{pair[1].value}{'.' if panel and panel.key == 'ovh' else ''}" for pair in pairs]
        page, text, markdown = (
            render(sheet, fmt, language)
            for fmt in (SheetFormat.HTML, SheetFormat.TEXT, SheetFormat.MARKDOWN)
        )
        for name in names:
            assert f'<code class="copy">{name}</code>' in page
            assert f"| `{host}` | `{name}` |\n" in markdown
            assert re.search(rf"(?m)^  {host} +{re.escape(name)}$", text)
        assert "TXT" not in re.sub("https://.*", "", text)
        assert text.count("60 IN A") == 1
        assert f"dig +short {kind} {host}.example.com" in text
        proxied += [panel] if texts["delegate_proxies"] in html.unescape(page) else []
    assert [panel.key for panel in proxied] == (["cloudflare"] if kind == "CNAME" else [])


@LANGUAGES
def test_a_sheet_with_delegations_of_both_kinds_names_both(language):
    records = [
        DnsRecord("a1._domainkey.example.com", "CNAME", "a1.dkim.example.net"),
        DnsRecord("_domainkey.example.org", "NS", "ns1.example.net"),
    ]
    pairs = [(Registration(it.fqdn.partition("_domainkey.")[2], "a1"), it) for it in records]
    places = {it.fqdn: DnsPlace(key.sign_domain) for key, it in pairs}
    text = render(make_sheet(pairs, places, NOW), SheetFormat.MARKDOWN, language)
    texts = EN if language is Language.ENGLISH else JA
    assert texts["delegate_about_CNAME_NS"].partition("{")[0] in text
    assert "dig +short CNAME a1._domainkey.example.com" in text


def test_what_is_urgent_looks_so(sheet_of):
    page = render(sheet_of("example.com", "example.net", "example.org"), SheetFormat.HTML)
    assert page.count('class="deadline bad"') == 1
