"""`txnctl store verify`: check a store in a child process, which a damaged page may kill."""

from __future__ import annotations

from storage.errors import CorruptStore
from txnctl.cli.decorators import example, names_store, option, output
from txnctl.output.field import Field
from txnctl.output.human import duration, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context
    from txnctl.output.row import Row

VERIFIED = (
    Field("path", "text", "The store's directory."),
    Field("mode", "text", "full or quick."),
    Field("ok", "boolean", "Whether nothing is wrong."),
    Field("records", "integer", "Records looked at."),
    Field("elapsedMs", "duration", "How long it took.", heading="ELAPSED"),
    Field(
        "invariants",
        "list",
        "The rules that were checked, by their numbers in docs/SEMANTICS.md; 13 only where nobody wrote meanwhile.",
    ),
    Field(
        "problems",
        "list",
        "What is wrong: invariant (its number in docs/SEMANTICS.md, or null), object, message.",
    ),
)

PROBLEMS = (
    Field("invariant", "id", "The number of the invariant that does not hold.", heading="RULE"),
    Field("object", "text", "Where."),
    Field("message", "text", "What is wrong.", heading="WHAT IS WRONG"),
)


@option(
    "--full/--quick",
    "full",
    default=True,
    help="Read every record, or only the structure and the counters. [default: full]",
)
@names_store(effect="reads")
@output(VERIFIED, name_field="path")
@example("txnctl store verify --full")
@example("txnctl store verify --quick -o json")
def verify(context: Context, full: bool) -> None:
    """Check every record of a store and every rule between records.

    --full reads everything, checks every checksum and recounts every counter from the messages; without a writer
    meanwhile, the check also reads from tables, and proves that reads leave the file unchanged. --quick compares the
    records of topics, transactions and subscriptions. Readers and writers may go on meanwhile; the check sees one
    instant. A store with a problem ends in exit code 6, after the report.

    The check runs in a child process: reading a damaged page can kill a process.
    """
    from time import perf_counter

    from txnctl.commands.store.verify_child import Verification

    began = perf_counter()
    with (
        Verification(context.store_path, full=full) as running,
        context.progress("Verify", total=running.total, unit="records") as bar,
    ):
        for done in running.steps():
            bar.advance(done)
    row = {
        "path": running.path,
        "mode": "full" if full else "quick",
        "ok": not running.problems,
        "records": running.done,
        "elapsedMs": int((perf_counter() - began) * 1000),
        "invariants": running.invariants,
        "problems": running.problems,
    }
    context.show(row, table=lambda shown: _report(context, shown))
    if running.problems:
        _refuse(row)


def _report(context: Context, row: Row) -> list[str]:
    rules = f"rules {', '.join(map(str, row['invariants']))}" if row["invariants"] else "no rule to its end"
    facts = f"{plural(row['records'], 'record')}, {row['mode']}, {duration(row['elapsedMs'])}; {rules}"
    if row["ok"]:
        return [f"{context.style('ok', 'green')}  {row['path']}: {facts}"]
    count = context.style(plural(len(row["problems"]), "problem"), "bold", "red")
    return [f"{row['path']}: {count} ({facts})", "", context.table_of(row["problems"], PROBLEMS)]


def _refuse(row: Row) -> None:
    raise CorruptStore(
        f"{plural(len(row['problems']), 'problem')} found in {row['path']}",
        hint="Keep a copy of the directory as evidence, and restore a backup.",
        path=row["path"],
        problems=len(row["problems"]),
    )
