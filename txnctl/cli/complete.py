"""Completion in the shell: the scripts, and the names that only the store knows.

Nothing here may fail, wait, or create anything: a store that is not there, busy or broken completes to nothing. Bash
splits words at colons, so the `0:42` of a transaction would reach click as three words; the script here passes the
typed line on and replaces only the text after the last colon.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import click

    from storage import Store
    from storage.audit_trail import AuditRecord
    from storage.reports.producers import ProducerRow
    from storage.reports.transactions import TransactionRow

VARIABLE = "_TXNCTL_COMPLETE"

SCRIPTS = {"bash": "txnctl.bash", "zsh": "_txnctl", "fish": "txnctl.fish"}
"""The shells, and the file in completions/ that holds the script of each."""

_LOOK_S = 1.0
"""Seconds in which the store must answer."""
_AGAIN_S = 0.1
_AUDITED = 1000
"""Records of the audit trail that completion reads at most."""
_NUMBERED = 100
"""Records of the audit trail whose numbers completion offers."""

_BASH = r"""# bash completion for txnctl

%(complete_func)s() {
    local line kind value help width=0 prefix=""
    local -a values=() helps=()
    COMPREPLY=()

    # Bash breaks words at colons: it replaces only what follows the last one, as found here.
    local word="${COMP_LINE:0:COMP_POINT}"
    word="${word##* }"
    if [[ "$COMP_WORDBREAKS" == *:* && "$word" == *:* ]]; then
        prefix="${word%%:*}:"
    fi

    while IFS=$'\t' read -r kind value help; do
        case "$kind" in
            dir) compopt -o dirnames 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
            plain)
                value="${value#"$prefix"}"
                [[ "$value" == *" "* ]] && printf -v value '%%q' "$value"
                values+=("$value")
                helps+=("$help")
                (( ${#value} > width )) && width=${#value}
                ;;
        esac
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" %(complete_var)s=bash_complete "$1" 2>/dev/null)

    # What each name is, shown only where a list is shown; it must never be inserted.
    local i
    for i in "${!values[@]}"; do
        if [[ "$COMP_TYPE" == 63 && ${#values[@]} -gt 1 && -n "${helps[i]}" ]]; then
            printf -v line '%%-*s  (%%s)' "$width" "${values[i]}" "${helps[i]}"
            COMPREPLY+=("$line")
        else
            COMPREPLY+=("${values[i]}")
        fi
    done
}

complete -o nosort -F %(complete_func)s %(prog_name)s 2>/dev/null || complete -F %(complete_func)s %(prog_name)s
"""


class _Bash(BashComplete):
    """Bash, with words that hold colons and with the help of each name."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get("COMP_LINE", "")
        words = split_arg_string(line)
        if not words:
            return [], ""
        if line[-1:].isspace():
            return words[1:], ""
        return words[1:-1], words[-1] if len(words) > 1 else ""

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type}\t{item.value}\t{' '.join((item.help or '').split())}"


class _Fish(FishComplete):
    """Fish, with helps that hold commas: click's script ends a help text at the first comma."""

    source_template = FishComplete.source_template.replace('(string split ","', '(string split -m 1 ","')


def script(shell: str) -> str:
    """The script of that shell. The same text as in completions/."""
    kind = _class_of(shell)
    from txnctl.cli.main import root

    complete = kind(root(), {}, "txnctl", VARIABLE)
    # Not `source()`: for bash that starts a bash, to look at its version.
    return complete.source_template % complete.source_vars()


def answer(tree: click.Command, variable: str, instruction: str) -> int:
    """Answer a completion script."""
    from click.shell_completion import shell_complete

    _class_of("bash")
    try:
        return shell_complete(tree, {}, "txnctl", variable, instruction)
    except Exception:  # noqa: BLE001  a shell that completes must never see an error
        return 0


def _class_of(shell: str) -> type[ShellComplete]:
    add_completion_class(_Bash, "bash")
    add_completion_class(_Fish, "fish")
    kind = get_completion_class(shell)
    assert kind is not None, shell
    return kind


def topics(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """The topics of the store."""
    return _looked_up(context, lambda store: [CompletionItem(name) for name in store.topics()], incomplete)


def subscriptions(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """The subscriptions of the topic that stands on the line."""
    topic = context.params.get("topic")
    if not isinstance(topic, str):
        return []

    def find(store: Store) -> list[CompletionItem]:
        return [
            CompletionItem(name, help=f"{stats.type}, {stats.subscription_isolation_level}")
            for name, stats in store.reports.topic_stats(topic).subscriptions.items()
        ]

    return _looked_up(context, find, incomplete)


def tables(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """The tables of the store."""
    return _looked_up(context, lambda store: [CompletionItem(name) for name in store.tables()], incomplete)


def open_transactions(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """The open transactions, with age and owner."""

    def find(store: Store) -> list[CompletionItem]:
        return [
            CompletionItem(str(row.txn_id), help=_age_and_owner(row))
            for row in store.reports.list_transactions()
        ]

    return _looked_up(context, find, incomplete)


def labels(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """The labels of open transactions, with the ids of the transactions."""

    def find(store: Store) -> list[CompletionItem]:
        owners: dict[str, list[str]] = {}
        for row in store.reports.list_transactions():
            for name, value in row.labels.items():
                owners.setdefault(f"{name}={value}", []).append(str(row.txn_id))
        return [CompletionItem(label, help=", ".join(txns)) for label, txns in owners.items()]

    return _looked_up(context, find, incomplete)


def audit_actions(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """The actions of the newest records of the audit trail, and their groups."""

    def find(store: Store) -> list[CompletionItem]:
        actions = {record.action for record in store.reports.list_audit_records(_AUDITED)}
        return [
            CompletionItem(action) for action in sorted(actions | {action.split()[0] for action in actions})
        ]

    return _looked_up(context, find, incomplete)


def audit_targets(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """The targets of the newest records of the audit trail."""

    def find(store: Store) -> list[CompletionItem]:
        targets = dict.fromkeys(record.target for record in store.reports.list_audit_records(_AUDITED))
        return [CompletionItem(target) for target in targets]

    return _looked_up(context, find, incomplete)


def audit_records(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """The numbers of the newest records of the audit trail, with action, target and reason."""

    def find(store: Store) -> list[CompletionItem]:
        return [
            CompletionItem(str(record.number), help=_change(record))
            for record in store.reports.list_audit_records(_NUMBERED)
        ]

    return _looked_up(context, find, incomplete)


def sessions(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """The sessions that no process holds, of the topic that stands on the line or of all, with name, age and owner."""
    topic = context.params.get("topic")

    def find(store: Store) -> list[CompletionItem]:
        rows = store.reports.list_producers(topic if isinstance(topic, str) else None)
        return [
            CompletionItem(token, help=_name_and_owner(row))
            for row in rows
            if row.lease_ms is not None and (token := _token(store, row)) is not None
        ]

    return _looked_up(context, find, incomplete)


def _token(store: Store, row: ProducerRow) -> str | None:
    """The token of a session, which reports do not show; None if it has gone meanwhile."""
    from storage.topic import catalogue as topics
    from storage.topic.producers import session as sessions

    with store.connection.view() as view:
        topic = topics.find(view, row.topic)
        session = None if topic is None else sessions.find(view, topic.topic_id, row.session_id)
        return None if session is None else session.token


def _name_and_owner(row: ProducerRow) -> str:
    from txnctl.fields.producer import alive

    return ", ".join([row.producer_name, row.name, alive(row), row.owner.address])


def _change(record: AuditRecord) -> str:
    change = f"{record.action} {record.target}"
    return f"{change}, {record.reason}" if record.reason else change


def _age_and_owner(row: TransactionRow) -> str:
    from txnctl.output.human import duration

    user = "" if row.last_user == row.owner else f", last used by {row.last_user}"
    return f"{duration(row.age_ms)}, {row.owner}{user}"


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the block once the seconds are over: a server that is silent is as good as none.

    The error comes again at each later wait, so that no clean-up asks the server once more.
    """

    def end(_number: int, _frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_S)
    try:
        yield
    finally:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        except TimeoutError:
            signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _looked_up(
    context: click.Context, find: Callable[[Store], list[CompletionItem]], incomplete: str
) -> list[CompletionItem]:
    from txnctl.cli import settings
    from txnctl.cli.context import shared

    try:
        from storage import Store

        path = settings.store(shared(context, "store")).value or ""
        with _within(_LOOK_S), Store.open(path, read_only=True, lock_timeout=0.0) as store:
            items = [item for item in find(store) if item.value.startswith(incomplete)]
        from txnctl.output.escape import printable

        # A name that the terminal would obey cannot be typed either.
        items = [item for item in items if printable(item.value) == item.value]
        for item in items:
            # The shell shows it on the terminal; with a line end in it the next completion would be of its making.
            item.help = None if item.help is None else printable(item.help)
        return items
    except Exception:  # noqa: BLE001  a shell that completes must never see an error
        return []
