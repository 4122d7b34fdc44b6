"""Results of registrations, and plans of them, in every format."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from dkimctl.formats import dns_tools
from dkimctl.formats import table as tables
from dkimctl.formats.data import open_data
from dkimctl.formats.renderer import Format, Provider, Renderer, TableLayout, publishable
from dkimctl.formats.table import Row, Style
from dkimctl.models import GOOD, Outcome, Registration, Result, own_time
from dkimctl.names import parents
from dkimctl.text import MAX_ALIKE, Grouping, and_more, printable, readable, without_names

RESULT_COLUMNS = (
    "sign_domain", "selector", "outcome", "code", "message", "reason", "key_len", "start_date",
    "default", "enable", "regist_date", "fqdn", "type", "value",
)  # fmt: skip

_WAITING = frozenset({Outcome.PENDING, Outcome.RETIRED, Outcome.DIFFERS, Outcome.TAKEN})
_NEED_NO_ATTENTION = GOOD | {Outcome.PENDING}
_NOT_GROUPED = _NEED_NO_ATTENTION | {Outcome.RETIRED}
_PLAN_ORDER = sorted(Outcome, key=lambda outcome: outcome is not Outcome.PENDING)
# What needs attention stands first: it is shown where there is no room for all.
_MARKDOWN_ORDER = (
    Outcome.BLOCKED, Outcome.DIFFERS, Outcome.TAKEN, Outcome.INVALID, Outcome.UNUSABLE,
    Outcome.FAILED, Outcome.UNKNOWN, Outcome.PENDING, Outcome.CREATED, Outcome.RETIRED,
    Outcome.EXISTS,
)  # fmt: skip
_MARKDOWN_ROOM = 60_000  # bytes of rows; a comment at GitHub has 65,536 characters at most


def open_results(
    fmt: Format,
    *,
    ttl: int | None = 3600,
    origin: str | None = None,
    zones: Sequence[str] = (),
    provider: Provider = Provider.ROUTE53,
    layout: TableLayout = TableLayout(),  # noqa: B008 - it is immutable
) -> Renderer[Result]:
    """The renderer of results in `fmt`; a PerZoneRenderer for zone, nsupdate and those in PER_ZONE.

    The table, Markdown, and formats with `zones` keep results until the end; the others keep none.
    """
    match fmt:
        case Format.TABLE:
            return ResultTable(layout)
        case Format.MARKDOWN:
            return ResultMarkdown(is_plan=layout.is_plan)
        case Format.VALUE:
            return dns_tools.ValueRenderer()
        case Format.ZONE:
            return dns_tools.ZoneRenderer(zones, ttl, origin)
        case Format.TERRAFORM:
            return dns_tools.TerraformRenderer(zones, ttl, provider)
        case _ if fmt in dns_tools.RENDERERS:
            return dns_tools.RENDERERS[fmt](zones, ttl)
        case _:
            counts = ("count", "total")
            return open_data(fmt, RESULT_COLUMNS, result_row, *counts, fields=result_fields)


def result_fields(result: Result) -> dict[str, object]:
    """`result` for JSON, in the shape of the service's own response (interface 2.4).

    Fields that the service omitted are omitted; `result` is null without an answer.
    """
    registration, record = result.registration, result.registration.record
    code, message = registration.code, registration.message
    answer = {"code": code} | ({} if message is None else {"message": message})
    names = ("sign_domain", "selector", "key_len", "start_date", "default", "enable")
    fields = {name: getattr(registration, name) for name in names} | {
        "setting_values": None if record is None else record._asdict(),
        "regist_date": registration.regist_date,
        "outcome": result.outcome,
    }
    known = {key: value for key, value in fields.items() if value is not None}
    return {"result": None if code is None else answer, **known}


def result_row(result: Result) -> tuple[object, ...]:
    """The cells of RESULT_COLUMNS; those of the record are empty unless it may be published."""
    registration = result.registration
    return (
        registration.sign_domain, registration.selector, result.outcome, registration.code,
        registration.message, result.reason, registration.key_len, registration.start_date,
        registration.default, registration.enable, registration.regist_date,
        *(publishable(result) or ("", "", "")),
    )  # fmt: skip


def _answer(result: Result, *, has_message: bool) -> str:
    """The code that the service answered, with the day of one that an earlier run got (201)."""
    registration = result.registration
    code, day = result.answer, None
    if code is None and (code := registration.code) == "201":
        day = own_time(registration.regist_date)
    message = registration.message if has_message and code == registration.code else None
    return " ".join(filter(None, (code, message, str(day.date()) if day else None)))


class ResultTable(Renderer[Result]):
    """For each result its row, reason, FQDN and TXT value.

    An FQDN and a TXT value are lines of any length, which the terminal wraps: ready to copy. A plan
    has totals first, by outcome and by a name that entries share, and no records.
    """

    def __init__(self, layout: TableLayout) -> None:
        self._layout = layout
        self._planned: list[tuple[Registration, Outcome]] = []
        self._shown: list[Result] = []
        self._hidden = 0
        self._alike = Grouping[str](layout.most_alike)

    def add(self, item: Result) -> str:
        registration, outcome, reason, _ = item
        left_out = _NEED_NO_ATTENTION
        if self._layout.is_plan:
            self._planned.append((registration, outcome))
            left_out = GOOD
        if self._layout.only_attention and outcome in left_out:
            self._hidden += 1
        elif outcome in _NOT_GROUPED or self._alike.shows(
            f"{outcome}: {without_names(reason, *registration.key)}"
        ):
            self._shown.append(item)
        return ""

    def end(self) -> Iterator[str]:
        layout = self._layout
        if self._planned:
            yield from self._totals()
        columns = ["DOMAIN", "SELECTOR", "OUTCOME", "RESULT", "BITS", "START"]
        if layout.is_plan:
            columns.remove("RESULT")
        rows = map(self._row, self._shown)
        yield from tables.table(columns, rows, layout, optional=("BITS", "START"))
        for kind, count in self._alike.rest():
            yield from tables.wrapped(and_more(count, kind), layout)
        why = "exist already" if layout.is_plan else "need no attention"
        yield from tables.hidden_rows(self._hidden, layout, why=why)

    def _row(self, result: Result) -> Row:
        registration, layout, reason = result.registration, self._layout, result.reason
        style, domain = _style_of(result.outcome), registration.sign_domain
        cells = [domain if layout.wide else readable(domain, layout.encoding)]
        cells += [registration.selector or "", result.outcome]
        styles = ["", "", style]
        if not layout.is_plan:
            cells.append(_answer(result, has_message=layout.wide))
            styles.append(Style.DIM if result.answer is None else style)
            reason = "" if layout.wide and reason == registration.message else reason
        cells += [str(registration.key_len or ""), registration.start_date or ""]
        lines = [*tables.below(reason, layout, style)]
        if not layout.is_plan and (record := registration.record):
            fqdn = f"{tables.INDENT}FQDN  {printable(record.fqdn)}  {printable(record.type)}"
            if tables.columns_of(fqdn) > layout.width:  # the name is not broken
                fqdn = f"{tables.INDENT}FQDN, {printable(record.type)}:\n{printable(record.fqdn)}"
            lines.append(f"{tables.styled(fqdn, Style.DIM, layout)}\n")
            lines.append(f"{printable(record.value)}\n")
        return Row(cells, [*styles, "", ""], [*lines, "\n"] if lines else [])

    def _totals(self) -> Iterator[str]:
        counts = Counter(outcome for _, outcome in self._planned)
        outcomes = [outcome for outcome in _PLAN_ORDER if counts[outcome]]
        rows = [
            Row([outcome, str(counts[outcome]).rjust(len("ENTRIES"))], [_style_of(outcome), ""])
            for outcome in outcomes
        ]
        yield from tables.table(["OUTCOME", "ENTRIES"], rows, self._layout)
        yield "\n"
        by_name: dict[str, Counter[Outcome]] = defaultdict(Counter)
        for name, (_, outcome) in zip(self._names(), self._planned, strict=True):
            by_name[name][outcome] += 1
        if len(by_name) < len(self._planned):
            encoding = "ascii" if self._layout.wide else self._layout.encoding
            titles = ["UNDER", *(name.upper() for name in outcomes)]
            largest_first = sorted(by_name, key=lambda name: (-by_name[name].total(), name))
            rows = []
            for name in largest_first[:MAX_ALIKE]:
                numbers = (str(by_name[name][item]).rjust(len(item)) for item in outcomes)
                rows.append(Row([readable(name, encoding), *numbers]))
            yield from tables.table(titles, rows, self._layout)
            if more := len(largest_first) - len(rows):
                yield from tables.wrapped(f"… and {more:,} more", self._layout)
            yield "\n"

    def _names(self) -> Iterator[str]:
        """The longest name that each entry shares with others, or its domain: we know no zones."""
        domains = [registration.sign_domain for registration, _ in self._planned]
        shared = Counter(name for domain in domains for name in parents(domain) if "." in name)
        for domain in domains:
            yield next((name for name in parents(domain) if shared[name] > 1), domain)


def _style_of(outcome: Outcome) -> str:
    if outcome in GOOD:
        return Style.GREEN
    return Style.YELLOW if outcome in _WAITING else Style.RED


class ResultMarkdown(Renderer[Result]):
    """A heading with totals, and a table for each outcome; long ones, and what exists, are folded.

    It fits a comment on a pull request: rows for which there is no room are counted.
    """

    def __init__(self, *, is_plan: bool) -> None:
        self._is_plan = is_plan
        self._by_outcome: dict[Outcome, list[Result]] = defaultdict(list)

    def add(self, item: Result) -> str:
        self._by_outcome[item.outcome].append(item)
        return ""

    def end(self) -> Iterator[str]:
        titles = {}
        for outcome in filter(self._by_outcome.__contains__, _MARKDOWN_ORDER):
            word = "to create" if self._is_plan and outcome is Outcome.PENDING else outcome.value
            titles[outcome] = f"{word} {len(self._by_outcome[outcome]):,}"
        yield f"### DKIM registrations: {', '.join(titles.values()) or 'nothing to do'}\n"
        room = _MARKDOWN_ROOM
        for outcome, title in titles.items():
            results = self._by_outcome[outcome]
            is_folded = outcome is Outcome.EXISTS or len(results) > MAX_ALIKE
            yield f"\n<details><summary>{title}</summary>\n" if is_folded else f"\n**{title}**\n"
            columns = ["Domain", "Selector", "Bits", "Start"]
            has_reasons = any(result.reason for result in results)
            columns += ["Reason"] if has_reasons else []
            shown = 0
            for result in results:
                domain, selector, bits, start, *_ = result.registration
                cells = [domain, *(str(cell or "-") for cell in (selector, bits, start))]
                row = tables.markdown_row([*cells, result.reason] if has_reasons else cells)
                room -= len(row.encode())
                if room < 0:
                    break
                if not shown:
                    yield f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
                yield row
                shown += 1
            if more := len(results) - shown:
                yield f"\n… and {more:,} more; `--format json` has them all\n"
            if is_folded:
                yield "\n</details>\n"
