"""`txnctl store gc`: free what nobody needs."""

from __future__ import annotations

from txnctl.options import administrative, changes_store, example, output
from txnctl.output.field import Field
from txnctl.output.human import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from txnctl.context import Context

COLLECTED = (
    Field("readersFreed", "integer", "Slots of the reader table that dead processes had."),
    Field("deletedTopics", "integer", "Deleted topics of which something was left."),
    Field("purgeSteps", "integer", "Commits that removed it; null in a dry run."),
    Field("dryRun", "boolean", "Whether nothing was changed."),
)


@changes_store()
@administrative
@output(COLLECTED, name_field="purgeSteps")
@example("txnctl store gc --dry-run")
@example("txnctl store gc --reason 'topics delete was killed'")
def gc(context: Context) -> None:
    """Free what nobody needs any more.

    That is what `topics delete` had still to remove when it was killed, and what processes that died were reading:
    until then their pages are not used again. It is safe at any time.
    """
    context.show(context.store.gc(dry_run=context.dry_run, reason=context.reason), table=_collected)


def _collected(row: dict[str, Any]) -> list[str]:
    slots, topics = plural(row["readersFreed"], "reader slot"), plural(row["deletedTopics"], "deleted topic")
    if row["dryRun"]:
        return [
            "DRY RUN: nothing was changed.",
            "",
            f"Would free {slots} of dead processes, and remove what {topics} left.",
        ]
    return [
        f"Freed {slots} of dead processes; removed what {topics} left, in {plural(row['purgeSteps'], 'step')}."
    ]
