"""Actions and keywords of the engine's hints, worded as commands and options of the command line."""

from __future__ import annotations

from storage.actions import Action, Hint, Keyword

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.errors import TxnctlError

COMMANDS = {
    "Store.create": "txnctl store init",
    "consumer.blocked_by": "txnctl subscriptions lag",
    "list_ended_transactions": "--ended",
    "open_session": "producers open",
    "resume_process": "kill -CONT",
    "show_producers": "producers show",
    "store.admin.producers.close_session": "txnctl producers close",
    "store.admin.producers.fence_producers": "txnctl producers fence",
    "store.admin.settings.set_table_retention": "txnctl store config table-retention",
    "store.admin.subscriptions.create_subscription": "txnctl subscriptions create",
    "store.admin.subscriptions.evict_consumers": "txnctl subscriptions evict",
    "store.admin.tables.delete_table": "txnctl tables delete",
    "store.admin.topics.set_retention": "txnctl topics config",
    "store.admin.topics.trim_topic": "txnctl topics trim",
    "store.admin.topics.truncate_topic": "txnctl topics truncate",
    "store.admin.transactions.abort_transaction": "txnctl transactions abort",
    "store.admin.transactions.reap_transactions": "txnctl transactions reap",
    "store.begin_transaction": "txnctl transactions begin",
    "store.create_table": "txnctl tables create",
    "store.create_topic": "txnctl topics create",
    "store.maintenance.collect_garbage": "txnctl store gc",
    "store.maintenance.verify_store": "txnctl store verify",
    "store.open_session": "txnctl producers open",
    "store.reader": "txnctl topics peek",
    "store.reports.explain_transaction": "txnctl transactions explain",
    "store.reports.list_audit_records": "txnctl audit list",
    "store.reports.list_conflicts": "txnctl tables history",
    "store.reports.list_databases": "txnctl store space",
    "store.reports.list_freeable": "txnctl store space --freeable",
    "store.reports.list_locks": "txnctl store locks",
    "store.reports.list_producers": "txnctl producers list",
    "store.reports.list_readers": "txnctl store readers",
    "store.reports.list_subscriptions": "txnctl subscriptions list",
    "store.reports.list_topics": "txnctl topics list",
    "store.reports.list_transactions": "txnctl transactions list",
    "store.reports.show_producers": "txnctl producers show",
    "store.reports.show_transaction": "txnctl transactions show",
    "store.reports.store_info": "txnctl store config",
    "store.reports.subscription_stats": "txnctl subscriptions show",
    "store.reports.wait_for_transaction": "txnctl transactions wait",
    "store.run_transaction": "txnctl transactions run --retries 10",
    "store.table": "txnctl tables --help",
}
"""The words of each call of a hint. A call without `store.` continues a sentence, and so do its words."""

_OWN_COMMANDS = {"explain_error": "txnctl errors explain", "list_directory": "ls -ld"}
"""The words of actions that the command line adds to those of the engine."""

_OPTIONS = {"path": "--store", "size": "--retention-size"}
"""Options with a name of their own; every further option is the keyword with hyphens."""


def command(action: Action) -> str:
    """The command line of an action: `txnctl transactions abort 0:7 --dry-run`."""
    return " ".join(
        [
            COMMANDS.get(action.call) or _OWN_COMMANDS[action.call],
            *map(_quoted, action.arguments),
            *map(option, action.options),
        ]
    )


def option(keyword: Keyword) -> str:
    """The option of a keyword argument: `--force`, `--access-mode WaitForExclusive`, `--timeout 1m`."""
    name, value = _OPTIONS.get(keyword.name, f"--{keyword.name.replace('_', '-')}"), keyword.value
    if value is None or value is True:
        return name
    # Only durations are numbers, in seconds.
    return f"{name} {f'{value // 60}m' if isinstance(value, int) else _quoted(value)}"


def spell(value: object) -> str:
    """A value as text for the shell: an action as its command, a hint with commands and options, the rest as it is."""
    if isinstance(value, Action):
        return command(value)
    if isinstance(value, Keyword):
        return option(value)
    if isinstance(value, Hint):
        return value.template.format(*map(spell, value.parts))
    return str(value)


def hint_of(error: TxnctlError) -> str | None:
    """The hint of an error, with commands and options."""
    return None if error.hint is None else spell(error.hint)


def _quoted(value: object) -> str:
    from shlex import quote

    return quote(str(value))
