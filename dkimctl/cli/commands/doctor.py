"""`dkimctl doctor`: what is wrong with the set-up.

All checks, one after the other: one that fails, or takes too long, does not stop the others.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Annotated, NamedTuple

import typer

from dkimctl.cli import doctor_checks as checks
from dkimctl.cli import terminal
from dkimctl.cli.doctor_checks import Health, Remark
from dkimctl.cli.options import App, TableOrJson, TableOrJsonOption, option
from dkimctl.cli.output import table_layout
from dkimctl.cli.report import write
from dkimctl.cli.session import Session, open_session
from dkimctl.errors import DkimctlError, ExitCode
from dkimctl.formats.renderer import TableLayout
from dkimctl.formats.table import INDENT, Style, styled, wrap
from dkimctl.text import format_duration, printable
from dkimctl.threads import start_daemon

app = App()

_SECONDS = 60.0
_FAILED = (Health.WRONG, Health.UNKNOWN, Health.NOT_CHECKED)
_NO_NEWS = (Health.OK, Health.NOTE, Health.NOT_CHECKED)
_STYLES = {
    Health.OK: Style.GREEN,
    Health.WARNING: Style.YELLOW,
    Health.WRONG: Style.RED,
    Health.UNKNOWN: Style.YELLOW,
    Health.NOT_CHECKED: Style.DIM,
}
_CHECK_WIDTH = len("embedded service")
_STATE_WIDTH = max(map(len, Health))
_GAP = "  "
_LEAST_ROOM = 30  # columns, for the text


class Probe(NamedTuple):
    """A check, which is not tried if one that it `needs` has failed."""

    name: str
    find: Callable[[Session], Iterator[Remark]]
    needs: tuple[str, ...] = ()
    is_online: bool = False
    sandbox: bool | None = None  # whether it is only for the sandbox, or only outside
    also: tuple[str, ...] = ()  # other names under which it reports
    seconds: float = _SECONDS  # the longest that it may take


_CONFIG, _PROFILE = ("config file",), ("config file", "profile")
CHECKS = (
    Probe("python", checks.check_python),
    Probe("libraries", checks.check_libraries),
    Probe("embedded service", checks.check_service_extra, sandbox=True),
    Probe("config file", checks.check_config),
    Probe("profile", checks.check_profile, _CONFIG),
    Probe("auth URL", checks.check_auth_url, _PROFILE, is_online=True, sandbox=False),
    Probe("base URL", checks.check_base_url, _PROFILE, is_online=True, sandbox=False,
          also=("clock",)),
    # On a terminal, a keyring has a minute to be unlocked, for each of several calls.
    Probe("credentials", checks.check_credentials, _PROFILE, sandbox=False, seconds=2 * _SECONDS),
    Probe("token", checks.check_token, (*_PROFILE, "auth URL", "credentials"), is_online=True,
          sandbox=False),
    Probe("ledger", checks.check_ledger, _PROFILE),
    Probe("resolver", checks.check_resolver, is_online=True),
    Probe("IPv6", checks.check_ipv6, is_online=True),
    Probe("DNS targets", checks.check_targets, (*_PROFILE, "ledger"), is_online=True),
    Probe("DMARC reports", checks.check_reports, (*_PROFILE, "ledger"), is_online=True,
          sandbox=False),
    Probe("keys", checks.check_keys, (*_PROFILE, "ledger"), also=("timer",)),
    Probe("notices", checks.check_notices, _CONFIG),
)  # fmt: skip


@app.command(
    "dkimctl doctor", "dkimctl doctor --offline", "dkimctl doctor --profile agency --format json"
)
def doctor(
    ctx: typer.Context,
    offline: Annotated[bool, option("--offline", "Leave out checks over the network.")] = False,
    fmt: TableOrJsonOption = None,
) -> int:
    """Check the set-up: what is wrong, and what to do about it.

    Checks the installation, the config file, the service and the clock, the credentials, the
    ledger, DNS, where DMARC reports go, and what is overdue. It obtains a token, and tries an
    update of DNS that changes nothing. Nothing is stored or repaired.

    The exit code is 1 if something is wrong.
    """
    session = open_session(ctx)
    reporter = session.reporter
    counts: Counter[str] = Counter()

    def remarks() -> Iterator[Remark]:
        for remark in examine(session, offline=offline):
            counts[remark.state] += 1
            yield remark._replace(hint=reporter.complete(remark.hint))

    with terminal.interruptible("nothing was changed"):
        if fmt is TableOrJson.JSON:
            items = [{"check": remark.check, **remark._asdict()} for remark in remarks()]
            write([json.dumps({"items": items, "count": len(items)}, indent=2) + "\n"])
        else:  # each as soon as it is there
            layout = table_layout(reporter, None)
            write(
                line
                for remark in remarks()
                if not (reporter.quiet and remark.state in _NO_NEWS)
                for line in _lines(remark, layout)
            )
    text = ", ".join(f"{state} {counts[state]}" for state in Health if counts[state])
    reporter.summarize(text, counts)
    return ExitCode.NO if counts[Health.WRONG] else ExitCode.OK


def _lines(remark: Remark, layout: TableLayout) -> Iterator[str]:
    room = max(layout.width - _CHECK_WIDTH - _STATE_WIDTH - 2 * len(_GAP), _LEAST_ROOM)
    lines = wrap(printable(remark.message), room, breaks_words=False)
    if remark.hint:
        lines += wrap(f"hint: {printable(remark.hint)}", room, breaks_words=False)
    check, state, style = remark.check, str(remark.state), _STYLES.get(remark.state, "")
    for text in lines:
        padded = styled(f"{state:<{_STATE_WIDTH}}", style, layout)
        head = f"{check:<{_CHECK_WIDTH}}{_GAP}{padded}{_GAP}"
        # A name or a command that is too long for its column is not broken.
        yield f"{INDENT if len(text) > room and not check else head}{text}\n"
        check = state = style = ""


def examine(
    session: Session, *, offline: bool, probes: Iterable[Probe] = CHECKS
) -> Iterator[Remark]:
    """What each check finds, as soon as it has ended; `offline` leaves out what sends anything."""
    failed: set[str] = set()
    is_sandbox, is_shared = bool(session.flags["sandbox"]), False
    with suppress(DkimctlError):
        is_sandbox, is_shared = session.profile.is_sandbox, session.profile.ledger is not None
    for check in probes:
        if check.sandbox is not None and check.sandbox is not is_sandbox:
            continue
        remarks, unchecked = list[Remark](), (check.name, *check.also)
        uses_server = is_shared and "ledger" in (check.name, *check.needs)
        if offline and (check.is_online or uses_server):
            why = "it needs the network (--offline)"
        elif missing := [name for name in check.needs if name in failed]:
            why = f"it depends on: {missing[0]}"
        else:
            remarks, unchecked = _in_time(session, check), check.also
            why = f"it depends on: {check.name}"
        left = [name for name in unchecked if name not in {remark.check for remark in remarks}]
        remarks += [Remark(Health.NOT_CHECKED, why, check=name) for name in left]
        failed |= {remark.check for remark in remarks if remark.state in _FAILED}
        yield from remarks


def _in_time(session: Session, check: Probe) -> list[Remark]:
    """What the check finds within its time, in a thread of its own, which may hang."""
    remarks: list[Remark] = []

    def work() -> None:
        try:
            remarks.extend(check.find(session))
        except DkimctlError as error:
            remarks.append(Remark(Health.WRONG, error.message, error.hint))
        except Exception as error:  # noqa: BLE001 - a check that breaks is not the end of others
            # Without its own text, which may contain anything.
            text = f"the check itself failed: {type(error).__name__}"
            remarks.append(Remark(Health.UNKNOWN, text, "report it as a defect of dkimctl"))

    thread = start_daemon(work, f"doctor: {check.name}")
    if thread is None:
        remarks = [Remark(Health.UNKNOWN, "the system does not allow another thread")]
    else:
        thread.join(check.seconds)
        if thread.is_alive():
            limit = format_duration(check.seconds)
            return [Remark(Health.UNKNOWN, f"no answer within {limit}", check=check.name)]
    return [remark._replace(check=remark.check or check.name) for remark in remarks]
