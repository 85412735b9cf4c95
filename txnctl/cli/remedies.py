"""The next step after an error, by code: the hint of an error without a closer one, and `txnctl errors explain`."""

from __future__ import annotations

import os
from shlex import quote
from types import MappingProxyType

from txnctl.output.shell import name_in, worded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

REMEDIES = {
    "already-exists": "Choose another name, or use what is there.",
    "bad-input": "Correct the value; --help of the command says what it takes.",
    "bad-line": "Mend the line, or leave it out (`produce --on-error skip`).",
    "busy": "Try again; `txnctl store locks` shows who uses the store.",
    "cluster-unreachable": "Start the master, or correct --master; then run the job again.",
    "command-failed": "Mend the cause the command names; its messages come again.",
    "commits-lost": "Compare what clients were told with `txnctl topics log`.",
    "condition-failed": "Read the key again (`txnctl tables get`), then decide anew.",
    "conflict": "Look at the state of the object first; then decide anew.",
    "consumer-evicted": "Subscribe again; messages without acknowledgement come again.",
    "consumer-not-found": "`txnctl subscriptions show` lists the attached consumers.",
    "corrupt-store": "Restore a backup: `txnctl store restore BACKUP --to PATH`.",
    "group-refused": "Repeat only the refused ends; the others are durable.",
    "hung-up": "Run it again, under nohup where the terminal may go.",
    "interrupted": "Run it again; what was acknowledged before is kept.",
    "invalid-name": "Use letters, digits and -_.=: only.",
    "invalid-position": "Write earliest, latest, L:E or L:E:B, as `topics peek` does.",
    "invalid-transaction-id": "Write an id as `txnctl transactions list` prints it.",
    "invalid-value": "Correct the value; --help of the command says what it takes.",
    "job-failed": "Mend the cause; --debug shows the whole output of Spark.",
    "jvm-died": "Run the job again; PIPELINE.md says what to do about memory.",
    "key-not-found": "`txnctl tables scan` shows the keys.",
    "lost-conflict": "Run all steps again in a new transaction.",
    "message-not-found": "`txnctl topics log` shows what each position has.",
    "message-too-large": "Split the message, or store its content elsewhere.",
    "needs-confirmation": "Look at the plan, and give --yes.",
    "nested-transaction": "End the outer transaction first, or work in that one.",
    "not-a-store": "Name a store's directory, or make one: `txnctl store init`.",
    "not-deliverable": "Acknowledge messages that the subscription has received.",
    "not-found": "See what there is with the list command of that group.",
    "not-permitted": "Run as the owner of the store: `ls -ld` names the owner.",
    "object-held": "End the holders first, or give --force.",
    "offload-invalid": "Offload again, to a new directory.",
    "old-format": "Run `txnctl store upgrade`; reading needs no upgrade.",
    "outcome-unknown": "Send the same sequence id again, or read the topic's end.",
    "output-failed": "Make room where the output goes.",
    "owner-alive": "Ask the owner to end it, or give --force.",
    "platform-unsupported": "Give this system what the message names; a store needs Linux.",
    "producer-busy": "`txnctl producers show TOPIC` names who has it; wait, or fence.",
    "producer-fenced": "Stop this producer; connect a new one if it may go on.",
    "program-missing": "Install it; `txnctl doctor --programs` names what is missing.",
    "read-only-transaction": "Begin a serializable transaction for writes.",
    "readers-full": "End readers: `txnctl store readers` names them.",
    "refused": "Look first, and then give the flag that the message names.",
    "request-too-old": "Begin a new transaction, or read a later time.",
    "sequence-conflict": "Wait for the end of that transaction, then send again.",
    "server-lost": "Run the command again when the server is back.",
    "server-unreachable": "Start the server, or name all hosts of the cluster.",
    "session-not-found": "Open a new session: `txnctl producers open TOPIC`.",
    "store-closed": "Open the store anew.",
    "store-full": "Free some space: `txnctl store space --freeable` tells how.",
    "store-in-use": "End the processes that `txnctl store locks` names.",
    "store-invalid": "Name a usable path with --store or TXNCTL_STORE.",
    "store-not-found": "Check --store and TXNCTL_STORE, or run `txnctl store init`.",
    "store-unsafe": "Move the store to a local directory that its owner alone has.",
    "subscription-busy": "Close the consumers first, or give --force.",
    "subscription-not-found": "`txnctl subscriptions list` shows what there is.",
    "table-not-found": "`txnctl tables list` shows what there is.",
    "terminated": "Run it again; what was acknowledged before is kept.",
    "too-many-files": "Close files, or raise the limit: ulimit -n.",
    "topic-full": "Let the subscription catch up; `txnctl topics show` names it.",
    "topic-not-found": "`txnctl topics list` shows what there is.",
    "transaction-changed": "Look at it again (`transactions show`), then decide anew.",
    "transaction-conflict": "`txnctl subscriptions pending` names the transaction.",
    "transaction-not-found": "`txnctl transactions list --ended` shows which are kept.",
    "transaction-not-open": "Begin a new transaction, and run all steps again.",
    "transaction-timed-out": "Begin a new transaction, with a longer --timeout if needed.",
    "unexpected": "Please report it with the output of --debug.",
    "unknown-format": "Use the release of txnctl that wrote the store, or a later one.",
    "usage": "--help of the command says what it takes.",
    "wait-timeout": "Wait longer (--timeout); `txnctl doctor` says what is in the way.",
    "write-too-old": "Run all steps again in a new transaction.",
    "writer-busy": "Try again, or wait longer: --lock-timeout.",
}
"""Error code -> the next step, for errors of the engine and of the command line."""

_OF_VALUES = frozenset({"bad-input", "invalid-value"})
_WITHOUT_HINT = frozenset({"hung-up", "interrupted", "terminated"})
"""Ends that the user asked for: no advice."""


def remedy_hint(code: str, details: Mapping[str, object] = MappingProxyType({})) -> str | None:
    """The hint of an error that has none of its own; None where no advice is wanted.

    Args:
        details: of the error; a value that is a path gets a command that looks where the path ends to be there.
    """
    remedy = REMEDIES.get(code)
    path = details.get("path")
    if code in _OF_VALUES and isinstance(path, str) and "://" not in path:
        return f"Look what is there: {worded(f'ls -ld {quote(_last_there(path))}')}"
    return None if remedy is None or code in _WITHOUT_HINT else name_in(remedy)


def _last_there(path: str) -> str:
    """The path, or the nearest directory above that is there."""
    while not os.path.lexists(path):
        path = os.path.dirname(os.path.abspath(path)) if path else "."
    return path
