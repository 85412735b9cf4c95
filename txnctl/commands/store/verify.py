"""`txnctl store verify`: check a store in a child process, which a damaged page may kill."""

from __future__ import annotations

from typing import NamedTuple

from storage.errors import CorruptStore
from txnctl.cli.decorators import example, names_store, option, output
from txnctl.output.column import Column
from txnctl.output.field import Help, fields_of
from txnctl.output.human import duration, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.verify.problem import Problem
    from txnctl.cli.context import Context


class Verified(NamedTuple):
    """The result of a check."""

    path: str
    mode: str
    ok: bool
    records: int
    elapsed_ms: int
    invariants: list[int]
    problems: list[Problem]


VERIFIED = fields_of(
    Verified,
    {
        "path": "The store's directory.",
        "mode": "full or quick.",
        "ok": "Whether nothing is wrong.",
        "records": "Records looked at.",
        "elapsed_ms": Help("How long it took.", heading="ELAPSED"),
        "invariants": (
            "The rules that were checked, by their numbers in docs/SEMANTICS.md; 13 only where nobody wrote meanwhile."
        ),
        "problems": "What is wrong: invariant (its number in docs/SEMANTICS.md, or null), object, message.",
    },
)

_PROBLEMS: tuple[Column[Problem], ...] = (
    Column("RULE", "id", lambda problem: problem.invariant),
    Column("OBJECT", "text", lambda problem: problem.object),
    Column("WHAT IS WRONG", "text", lambda problem: problem.message),
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

    --full first reads every page of the file, without LMDB: a damaged page is named, and ends the check, as reading
    its records could end the process. Then --full checks every checksum and recounts every counter from the messages;
    without a writer meanwhile, the check also reads from tables, and proves that reads leave the file unchanged.
    --quick compares the records of topics, transactions and subscriptions. Readers and writers may go on meanwhile; the
    check sees one instant. A store with a problem ends in exit code 6, after the report.

    The check runs in a child process, whose death is reported.
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
    row = Verified(
        path=running.path,
        mode="full" if full else "quick",
        ok=not running.problems,
        records=running.done,
        elapsed_ms=int((perf_counter() - began) * 1000),
        invariants=running.invariants,
        problems=running.problems,
    )
    context.show(row, table=lambda shown: _report(context, shown))
    if row.problems:
        _refuse(row)


def _report(context: Context, row: Verified) -> list[str]:
    rules = f"rules {', '.join(map(str, row.invariants))}" if row.invariants else "no rule to its end"
    facts = f"{plural(row.records, 'record')}, {row.mode}, {duration(row.elapsed_ms)}; {rules}"
    if row.ok:
        return [f"{context.style('ok', 'green')}  {row.path}: {facts}"]
    count = context.style(plural(len(row.problems), "problem"), "bold", "red")
    return [f"{row.path}: {count} ({facts})", "", *context.table_of(row.problems, _PROBLEMS)]


def _refuse(row: Verified) -> None:
    from txnctl.commands.store.verify_child import EVIDENCE

    raise CorruptStore(
        f"{plural(len(row.problems), 'problem')} found in {row.path}",
        hint=EVIDENCE,
        path=row.path,
        problems=len(row.problems),
    )
