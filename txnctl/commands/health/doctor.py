"""`txnctl doctor`: findings with the reason and the command to type next."""

from __future__ import annotations

from storage.errors import Busy, StoreInvalid
from storage.json_form import to_json
from txnctl.cli import exit_codes
from txnctl.cli.declaration import command
from txnctl.cli.decorators import example, names_store, option, output
from txnctl.fields.overview import AS_OF, FINDINGS, VERDICT
from txnctl.output.field import Field
from txnctl.output.human import sentence
from txnctl.output.screen import WIDTH, next_command
from txnctl.output.shell import hint_of, spell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.errors import TxnctlError
    from txnctl.cli.context import Context
    from txnctl.output.row import Row

DIAGNOSIS = (
    VERDICT,
    *AS_OF,
    Field("path", "text", "The store."),
    FINDINGS,
    Field("programs", "list", "What only `pipeline` needs: what, ok, version, place, hint (null where unknown)."),
)  # fmt: skip

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing",
    "txnctl transactions begin",
    "txnctl produce orders -m half --txn 0:1",
    "txnctl produce orders -m whole",
)


@command
@option("--exit-code", is_flag=True, help="End with 8 if anything is wrong.")
@option("--programs", is_flag=True, help="Show Java and PySpark also where nothing of them is missing.")
@names_store(effect="reads")
@output(DIAGNOSIS, name_field="verdict")
@example("txnctl doctor", setup=_SETUP)
@example("txnctl doctor --exit-code", setup=_SETUP, exit_code=8)
@example("txnctl doctor -o json", setup=_SETUP)
def doctor(context: Context, exit_code: bool, programs: bool) -> None:
    """List problems in plain words, with the reason and the next command.

    Checks that the store can be opened and is private; the writer gate; late and orphaned transactions; blocked
    messages and the blocking transactions; stopped owners, consumers and producers; and acknowledgements and keys of
    tables held by idle transactions: the process is gone or stopped, or the last use is a minute ago. Then at the disk
    (less than 1 GiB and 5 % left), LMDB's readers (90 % taken, or 1,000 commits behind), versions that gc would remove
    (100,000), and clocks that disagree by more than a minute. A suggested command that changes the store shows the
    change with --dry-run.

    A finding marked `i` is information, not a problem: messages that no consumer is there for. `check` has the same as
    measures, with thresholds.

    A store that cannot be opened is a finding too, after which the command fails as usual: with 6 where there is none.
    Java and PySpark, which only `pipeline` needs, are no findings.
    """
    try:
        diagnosis = _diagnosis(context)
    except (Busy, StoreInvalid) as error:
        _show(context, _unusable(context.store_path, error), programs)
        raise
    _show(context, diagnosis, programs)
    if exit_code and diagnosis["verdict"] != "ok":
        context.exit(exit_codes.CONDITION_FOUND)


def _show(context: Context, diagnosis: Row, programs: bool) -> None:
    from dataclasses import asdict

    from txnctl.spark.runtime import requirements

    row = {**diagnosis, "programs": [asdict(program) for program in requirements.check_all()]}
    shows_programs = programs or not all(program["ok"] for program in row["programs"])
    context.show(row, table=lambda shown: _report(context, shown, shows_programs=shows_programs))


def _diagnosis(context: Context) -> Row:
    with context.open_store(context.store_path, read_only=True) as store:
        facts = to_json(store.reports.store_overview(), spell)
    names = [field.name for field in (VERDICT, *AS_OF)]
    path = facts["store"]["path"]
    return {**{name: facts[name] for name in names}, "path": path, "findings": facts["findings"]}


def _unusable(path: str, error: TxnctlError) -> Row:
    """A store that cannot be opened, or read, as the one finding."""
    from shlex import quote

    from storage.process.clock import SYSTEM_CLOCK
    from storage.values.timestamps import both

    commands = {
        "store-not-found": f"txnctl store init {quote(path)}",
        "corrupt-store": f"txnctl store verify --full --store {quote(path)}",
        "store-unsafe": f"ls -ld {quote(path)}",
        "not-permitted": f"ls -ld {quote(path)}",
    }
    command = commands.get(error.code, f"txnctl errors explain {error.code}")
    wrong = {
        "code": error.code,
        "severity": "critical",
        "about": "store",
        "what": error.message,
        "why": hint_of(error) or "It was left as it is.",
        "command": command,
    }
    now = both("asOf", SYSTEM_CLOCK.wall_ms())
    return {"verdict": "critical", **now, "path": path, "findings": [wrong]}


def _report(context: Context, row: Row, *, shows_programs: bool) -> Iterator[str]:
    from txnctl.commands.health.status_screen import headline

    yield headline(context, row["path"], row)
    for finding in row["findings"]:
        yield ""
        yield from _finding(context, finding)
    yield ""
    if not row["findings"]:
        yield "Nothing is wrong."
    for program in row["programs"] if shows_programs else ():
        yield context.style(f"{program['what']}: {_presence(program)}", "dim")


def _finding(context: Context, finding: Row) -> Iterator[str]:
    """Problem, reason and command; the command stays on one line."""
    from textwrap import wrap

    from txnctl.commands.health.status_screen import VERDICT_STYLES

    style = VERDICT_STYLES[finding["severity"]]
    first, *rest = wrap(sentence(finding["what"]), WIDTH - 2, break_on_hyphens=False)
    mark = "i" if finding["severity"] == "info" else "!"
    yield f"{context.style(mark, *style)} {context.style(first, 'bold')}"
    for line in rest:
        yield f"  {context.style(line, 'bold')}"
    yield from [f"  {line}" for line in wrap(finding["why"], WIDTH - 2, break_on_hyphens=False)]
    yield f"  {next_command(context, finding['command'])}"


def _presence(program: Row) -> str:
    version = program["version"] or "not found"
    place = f" in {program['place']}" if program["place"] else ""
    return f"{version}{place}" if program["ok"] else f"{version}; only `pipeline` needs it. {program['hint']}"
