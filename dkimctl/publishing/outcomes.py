"""What a state that was read says about a change."""

from dkimctl.errors import DkimctlError, NegativeAnswer
from dkimctl.publishing.changes import Applied, Change, NameState
from dkimctl.text.escaping import printable


def outcome_of(change: Change, state: NameState, error: DkimctlError) -> Applied:
    """What became of a change; `error` is for a name that has what it had before."""
    if is_done(state, change):
        return Applied(change)
    return Applied(change, error if is_same(state, change.before) else changed_error(change))


def is_done(state: NameState, change: Change) -> bool:
    """Whether this is the state after the change."""
    wanted = () if change.value is None else (change.value,)
    return state.values == wanted and not (state.alias or state.delegated)


def is_same(one: NameState, other: NameState) -> bool:
    """Whether both have the same records, with any TTL and in any order."""
    return _content(one) == _content(other)


def changed_error(change: Change) -> DkimctlError:
    """For a name that has not what the plan was made from."""
    return NegativeAnswer(
        f"DNS has changed at {printable(change.record.fqdn)} since it was read",
        hint="run the same command again",
    )


def _content(state: NameState) -> tuple[list[str], str, str]:
    return sorted(state.values), state.alias, state.delegated
