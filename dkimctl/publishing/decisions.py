"""What to do at a name, by what DNS has there."""

from __future__ import annotations

import re
from typing import TypeAlias

from dkimctl.dkim import KeyRecordError, parse_tag_list
from dkimctl.dns.comparison import compare_values
from dkimctl.dns.verdicts import ACCEPTED, Verdict
from dkimctl.publishing.changes import Action, NameState
from dkimctl.text.escaping import printable

# A key record, even if copying has left quotation marks in it or cut its end.
_KEY_RECORD = r'[\s"\\]*v\s*=\s*DKIM1\b'

Decision: TypeAlias = tuple[Action, str]


def decide(value: str, state: NameState, *, remove: bool, replace_foreign: bool) -> Decision:
    """The action, and the reason for one that is blocked.

    `value` is the registered one. `remove`: its record is to go; `replace_foreign`: so are TXT
    records that are not DKIM key records, and with `remove` those of other keys.
    """
    if reason := _obstacle(state):
        return Action.BLOCKED, reason
    if remove:
        return _removal(value, state, replace_foreign=replace_foreign)
    if not state.values:
        return Action.CREATE, ""
    if compare_values(value, state.values).verdict is Verdict.PUBLISHED:
        return Action.KEEP, ""
    if not (replace_foreign or all(map(is_key_record, state.values))):
        return Action.BLOCKED, "a TXT record there is not a DKIM key record; --replace replaces it"
    return Action.REPLACE, ""


def is_key_record(value: str) -> bool:
    """Whether a TXT value is a DKIM key record, or was meant to be one."""
    if re.match(_KEY_RECORD, value):
        return True
    try:
        tags = parse_tag_list(value, tolerant=True)
    except KeyRecordError:
        return False
    return "p" in tags and tags.get("v", "DKIM1") == "DKIM1"


def _obstacle(state: NameState) -> str:
    if state.redirected:
        owner, target = printable(state.redirected), printable(state.alias)
        return f"a DNAME at {owner} redirects the name to {target}"
    if state.alias:
        return f"there is a CNAME, to {printable(state.alias)}"
    if state.delegated:
        return f"the zone delegates {printable(state.delegated)} to other servers"
    return ""


def _removal(value: str, state: NameState, *, replace_foreign: bool) -> Decision:
    if not state.values:
        return Action.KEEP, ""
    if replace_foreign or all(_is_of_key(value, one) for one in state.values):
        return Action.REMOVE, ""
    return (
        Action.BLOCKED,
        "a TXT record there is not that of the retired key",
    )


def _is_of_key(registered: str, value: str) -> bool:
    """Whether a TXT value is the record of this key, or of a revoked one."""
    verdict = compare_values(registered, [value]).verdict
    return verdict in ACCEPTED or verdict in (Verdict.TRUNCATED, Verdict.REVOKED)
