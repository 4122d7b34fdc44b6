"""Plans to publish: as a table, as JSON, and as Markdown."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dkimctl.errors import ServiceError
from dkimctl.formats.changes import render_changes
from dkimctl.formats.renderer import PublicationFormat, TableLayout
from dkimctl.models import DnsRecord, Registration
from dkimctl.publishing.plan import Action, Change, NameState
from dns_targets import FakeTarget

VALUE = "v=DKIM1; k=rsa; p=NEW"
OLD = "v=DKIM1; k=rsa; p=OLD"


def _item(step, domain="example.com", *, before=NameState(), zone="example.com", **fields):  # noqa: B008 - a constant
    record = DnsRecord(f"s1._domainkey.{domain}", "TXT", VALUE)
    registration = Registration(domain, "s1", record=record)
    if label := fields.pop("target", "ns.test"):
        fields["target"] = FakeTarget(label=label)
    if error := fields.get("error"):
        fields["reason"] = error.message
    if step not in (Action.UNCOVERED, Action.UNREAD):
        fields |= {"value": None if step is Action.REMOVE else VALUE, "ttl": 3600}
    return Change(registration, step, before, zone=zone, **fields)


def _render(fmt, *items, shows_kept=False, **layout):
    return "".join(render_changes(items, fmt, TableLayout(**layout), shows_kept=shows_kept))


def _table(*items, **options):
    return _render(PublicationFormat.TABLE, *items, **options)


def _markdown(*items, **options):
    return _render(PublicationFormat.MARKDOWN, *items, **options)


BEFORE = NameState((OLD,), 60)
ITEMS = [
    _item(Action.CREATE),
    _item(Action.REPLACE, "mail.example.com", before=BEFORE),
    _item(Action.KEEP, "kept.example.com"),
    _item(Action.BLOCKED, "b.example.com", before=BEFORE, reason="not ours"),
    _item(Action.UNREAD, "xn--r8jz45g.jp", zone="xn--r8jz45g.jp", error=ServiceError("no answer")),
    _item(Action.UNCOVERED, "y.example.org", zone="", target=""),
]


def test_a_table_shows_each_change_by_zone_and_what_stays_if_asked():
    lines = [
        "ACTION     RECORD",
        "example.com at ns.test: create 1, replace 1, keep 1, blocked 1",
        "create     s1._domainkey.example.com",
        "replace    s1._domainkey.mail.example.com",
        f"  old, TTL 60: {OLD}",
        f"  new, TTL 3600: {VALUE}",
        "blocked    s1._domainkey.b.example.com",
        "  not ours",
        f"  now, TTL 60: {OLD}",
        "例え.jp at ns.test: unread 1",
        "unread     s1._domainkey.例え.jp",
        "  no answer",
        "no DNS target: uncovered 1",
        "uncovered  s1._domainkey.y.example.org",
    ]
    assert _table(*ITEMS, width=120).splitlines() == lines
    lines.insert(6, "keep       s1._domainkey.kept.example.com")
    assert _table(*ITEMS, width=120, shows_kept=True).splitlines() == lines


def test_markdown_lists_the_changes_with_old_and_new_values():
    text = _markdown(*ITEMS)
    assert text.splitlines()[:12] == [
        "### DKIM records: create 1, replace 1, keep 1, blocked 1, uncovered 1, unread 1",
        "",
        "#### `example.com` at `ns.test`: create 1, replace 1, keep 1, blocked 1",
        "",
        "- **create** `s1._domainkey.example.com`",
        "  ```diff",
        f"  + {VALUE}",
        "  ```",
        "- **replace** `s1._domainkey.mail.example.com`",
        "  ```diff",
        f"  - {OLD}",
        f"  + {VALUE}",
    ]
    assert "#### No DNS target: uncovered 1" in text


def test_a_long_table_shows_some_of_each_kind_and_counts_the_rest():
    created = [_item(Action.CREATE, f"d{number}.example.com") for number in range(30)]
    blocked = [
        _item(Action.BLOCKED, f"b{number}.example.com", reason="there is a CNAME, to x.example.net")
        for number in range(5)
    ]
    text = _table(*created, *blocked, most_alike=3, only_attention=True, shown_by="--verbose")
    assert len(re.findall("^create", text, re.MULTILINE)) == 3
    assert len(re.findall("^blocked", text, re.MULTILINE)) == 3
    assert "… and 27 more: create (--verbose shows all)" in text
    assert "… and 2 more: blocked: there is a CNAME" in text
    assert "and 27 more: create (`--verbose` lists all)" in _markdown(*created, most_alike=3)


def _hostile_items(text):
    state = NameState((text, f"`{text}`"), 60)
    return [
        _item(Action.REPLACE, before=state),
        _item(Action.BLOCKED, before=state, reason=text),
        _item(Action.CREATE, text, zone=text, target=text),
        _item(Action.UNREAD, zone=text, error=ServiceError(text)),
    ]


def _assert_is_code(text, hostile_text):
    """The hostile text is only in code, and the document has only our own elements."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    flat = [child for token in tokens for child in (token, *(token.children or ()))]
    kinds = {token.type.removesuffix("_open").removesuffix("_close") for token in flat}
    assert kinds <= {
        "heading", "inline", "text", "bullet_list", "list_item", "paragraph", "strong",
        "code_inline", "fence", "softbreak",
    }, kinds  # fmt: skip
    assert {token.tag for token in tokens if token.type == "heading_open"} == {"h3", "h4"}


@given(st.text(st.sampled_from("`~|\\<>#-+*_[]()!&@ \t\r\n\x1b\u202eab1."), max_size=30))
def test_nothing_in_markdown_acts(text):
    _assert_is_code(_markdown(*_hostile_items(text)), text)
