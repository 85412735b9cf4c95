"""Command lines for people to type, worded in one place: actions and keywords of the engine's hints, and the commands
that screens and notes name.

A command line names the store where `--store` named the store of this run: typed as shown, it acts on the same store,
also where TXNCTL_STORE names a different one. The option comes first, so that a line cut at the end loses the verb and
never the store. A name that begins with a hyphen follows `--`.
"""

from __future__ import annotations

from binascii import b2a_base64

from storage.actions import Action, Hint, Keyword
from storage.values.key_text import key_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.errors import TxnctlError

COMMANDS = {
    "Store.copy": "txnctl store copy",
    "Store.create": "txnctl store init",
    "list_ended_transactions": "--ended",
    "inspect_process": "ps -fp",
    "resume_process": "kill -CONT",
    "terminate_session": "psql -c",
    "store.admin.acknowledgements.acknowledge_messages": "txnctl subscriptions ack",
    "store.admin.producers.close_session": "txnctl producers close",
    "store.admin.producers.fence_producers": "txnctl producers fence",
    "store.admin.settings.set_table_retention": "txnctl store config table-retention",
    "store.admin.subscriptions.clear_backlog": "txnctl subscriptions clear-backlog",
    "store.admin.subscriptions.create_subscription": "txnctl subscriptions create",
    "store.admin.subscriptions.delete_subscription": "txnctl subscriptions delete",
    "store.admin.subscriptions.evict_consumers": "txnctl subscriptions evict",
    "store.admin.subscriptions.update_subscription": "txnctl subscriptions update",
    "store.admin.tables.delete_table": "txnctl tables delete",
    "store.admin.topics.compact_topic": "txnctl topics compact",
    "store.admin.topics.remove_compacted": "txnctl topics compact --remove",
    "store.admin.topics.set_retention": "txnctl topics config",
    "store.admin.topics.trim_topic": "txnctl topics trim",
    "store.admin.topics.truncate_topic": "txnctl topics truncate",
    "store.admin.transactions.abort_transaction": "txnctl transactions abort",
    "store.admin.transactions.reap_transactions": "txnctl transactions reap",
    "store.begin_transaction": "txnctl transactions begin",
    "store.create_table": "txnctl tables create",
    "store.create_topic": "txnctl topics create",
    "store.maintenance.collect_garbage": "txnctl store gc",
    "store.maintenance.upgrade_store": "txnctl store upgrade",
    "store.maintenance.verify_store": "txnctl store verify",
    "store.open_session": "txnctl producers open",
    "store.reader": "txnctl topics peek",
    "store.reports.explain_transaction": "txnctl transactions explain",
    "store.reports.list_audit_records": "txnctl audit list",
    "store.reports.list_conflicts": "txnctl tables history",
    "store.reports.list_freeable": "txnctl store space --freeable",
    "store.reports.list_locks": "txnctl store locks",
    "store.reports.list_producers": "txnctl producers list",
    "store.reports.list_readers": "txnctl store readers",
    "store.reports.list_subscriptions": "txnctl subscriptions list",
    "store.reports.list_tables": "txnctl tables list",
    "store.reports.list_topics": "txnctl topics list",
    "store.reports.list_transactions": "txnctl transactions list",
    "store.reports.peek_key": "txnctl topics peek",
    "store.reports.peek_messages": "txnctl topics peek",
    "store.reports.server_status": "txnctl store info",
    "store.reports.show_producers": "txnctl producers show",
    "store.reports.show_transaction": "txnctl transactions show",
    "store.reports.store_info": "txnctl store config",
    "store.reports.subscription_stats": "txnctl subscriptions show",
    "store.reports.wait_for_transaction": "txnctl transactions wait",
    "store.run_transaction": "txnctl transactions run --retries 10",
    "store.table": "txnctl tables show",
}
"""The words of each call of a hint. A call without `store.` continues a sentence, and so do its words."""

_OWN_COMMANDS = {"explain_error": "txnctl errors explain", "list_directory": "ls -ld"}
"""The words of actions that the command line adds to those of the engine."""

_OPTIONS = {"path": "--store", "size": "--retention-size"}
"""Options with a name of their own; every further option is the keyword with hyphens."""

_PROGRAM = "txnctl"
_BEGINNINGS = (_PROGRAM, "kill ", "ls ", "ps ", "psql ", "ssh ")
_ENDINGS = (" ", "\x1b", ".", ",", ";", ":", ")")
"""The first sign after a command in a sentence."""
_WITHOUT_STORE = ("errors", "demo", "version", "completion")
"""Commands that read no store."""


class _Run:
    """The store that `--store` named, for the one command line of this process; None without the option."""

    store: str | None = None


_WORDED: set[str] = set()
"""The command lines worded so far: a narrow terminal breaks them with a backslash only."""


def name_store(path: str | None) -> None:
    """Name a store in every command line worded from now on; None: name no store."""
    _Run.store = path


def named_store() -> str | None:
    """The store that is named in command lines; None if none is."""
    return _Run.store


def worded(command: str) -> str:
    """Note a command line to paste, so that a narrow terminal does not break it like prose."""
    _WORDED.add(command)
    return command


def worded_at(text: str, at: int) -> int:
    """The length of the worded command line that begins there in a text; 0 if none does."""
    if not text.startswith(_BEGINNINGS, at):
        return 0
    end = len(text)
    while end > at:
        if text[at:end] in _WORDED:
            return end - at
        end = max([text.rfind(sign, at, end) for sign in _ENDINGS])
    return 0


def command(action: Action) -> str:
    """The command line of an action: `txnctl transactions abort 0:7 --dry-run`."""
    words = COMMANDS.get(action.call) or _OWN_COMMANDS[action.call]
    if action.call == "terminate_session":
        return _line(words, [f"SELECT pg_terminate_backend({action.arguments[0]})"], [])
    if action.call in ("inspect_process", "resume_process"):
        hosts = [f"ssh {_quoted(option.value)}" for option in action.options]
        return _line(" ".join([*hosts, words]), action.arguments, [])
    # `store init PATH` names the store itself.
    names_store = action.call == "Store.create" and bool(action.arguments)
    return _line(words, action.arguments, action.options, names_store=names_store)


def line(words: str, *arguments: object, **options: object) -> str:
    """The command line of txnctl: `line("transactions abort", txn, force=True, reason=...)`.

    An option that is None or False is left out, True gives the option alone, and an ellipsis a text to fill in.
    """
    given = [
        Keyword(name, value) for name, value in options.items() if value is not None and value is not False
    ]
    return _line(f"{_PROGRAM} {words}", arguments, given)


def name_in(text: str) -> str:
    """A text with command lines that a process of this run worded, which was not told of `--store`."""
    if _Run.store is None:
        return text
    from re import sub

    named = _program()
    return sub(rf"\b{_PROGRAM} (?=[a-z])", lambda _: f"{named} ", text)


def option(keyword: Keyword) -> str:
    """The option of a keyword argument: `--force`, `--access-mode WaitForExclusive`, `--timeout 1m`."""
    hyphens = "-" if len(keyword.name) == 1 else "--"
    name, value = _OPTIONS.get(keyword.name, f"{hyphens}{keyword.name.replace('_', '-')}"), keyword.value
    if value is None or value is True:
        return name
    if value is ...:
        return f'{name} "..."'
    if isinstance(value, bytes):
        return _of_bytes(name, value)
    # Only durations are numbers, in seconds.
    return f"{name} {f'{value // 60}m' if isinstance(value, int) else _quoted(value)}"


def _of_bytes(name: str, value: bytes) -> str:
    """An option as text, and as Base64 where the text could not be typed as it is shown: `--key /w== --key-base64`."""
    text = key_text(value)
    if text.encode() == value:
        return f"{name} {_quoted(text)}"
    return f"{name} {b2a_base64(value, newline=False).decode()} {name}-base64"


def _line(
    words: str, arguments: Sequence[object], options: Sequence[Keyword], *, names_store: bool = False
) -> str:
    """Words, arguments and options; options come first where an argument looks like one."""
    program, _, rest = words.partition(" ")
    if program == _PROGRAM and not names_store:
        group = rest.partition(" ")[0]
        names_store = group in _WITHOUT_STORE
        names_store = names_store or any(keyword.name == "path" for keyword in options)
        words = words if names_store else f"{_program()} {rest}"
    named, chosen = [_quoted(argument) for argument in arguments], [option(keyword) for keyword in options]
    if any(str(argument).startswith("-") for argument in arguments):
        return worded(" ".join([words, *chosen, "--", *named]))
    return worded(" ".join([words, *named, *chosen]))


def _program() -> str:
    return _PROGRAM if _Run.store is None else f"{_PROGRAM} --store {_quoted(_Run.store)}"


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
