"""`txnctl store gc`: free what nobody needs."""

from __future__ import annotations

from txnctl.options import changes_store, example, output
from txnctl.output.field import Field
from txnctl.output.human import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.context import Context

COLLECTED = (
    Field("readersFreed", "integer", "Slots of the reader table that dead processes had."),
    Field("purgeSteps", "integer", "Commits that removed what deleted topics had left."),
)


@changes_store()
@output(COLLECTED, name_field="purgeSteps")
@example("txnctl store gc")
def gc(context: Context) -> None:
    """Free what nobody needs any more.

    That is what `topics delete` had still to remove when it was killed, and what processes that died were reading:
    until then their pages are not used again. It is safe at any time.
    """
    context.show(
        context.store.gc(),
        table=lambda row: (
            f"Freed {plural(row['readersFreed'], 'reader slot')} of dead processes; "
            f"removed what deleted topics left in {plural(row['purgeSteps'], 'step')}."
        ),
    )
