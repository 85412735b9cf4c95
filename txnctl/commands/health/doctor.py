"""`txnctl doctor`: findings with the reason and the command to type next."""

from __future__ import annotations

from typing import NamedTuple

from storage.actions import Action
from storage.errors import Busy, StoreInvalid
from storage.values.store_name import is_url
from txnctl.cli import exit_codes
from txnctl.cli.declaration import command
from txnctl.cli.decorators import example, names_store, option, output
from txnctl.fields.overview import AS_OF, FINDINGS, VERDICT
from txnctl.output.field import fields_of
from txnctl.output.human import sentence
from txnctl.output.screen import WIDTH, next_command
from txnctl.output.shell import spell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.errors import TxnctlError
    from storage.reports.finding import Finding
    from txnctl.cli.context import Context


class Program(NamedTuple):
    """A program that pipelines need; version, place and hint as far as known."""

    what: str
    ok: bool
    version: str | None
    place: str | None
    hint: str | None


class Diagnosis(NamedTuple):
    """The findings about a store, and the programs that pipelines need."""

    verdict: str
    as_of_at_ms: int
    path: str
    findings: list[Finding]
    programs: list[Program]


DIAGNOSIS = fields_of(
    Diagnosis,
    {
        **VERDICT,
        **AS_OF,
        "path": "The store.",
        **FINDINGS,
        "programs": "What only `pipeline` needs: what, ok, version, place, hint (null where unknown).",
    },
)

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
    messages and the blocking transactions; stopped owners, consumers and producers; living
    consumers that hold messages and have acknowledged none for a minute; and acknowledgements and keys of
    tables held by idle transactions: the process is gone or stopped, or the last use is a minute ago. Then at the disk
    (less than 1 GiB and 5 % left), LMDB's readers (90 % taken, or 1,000 commits behind), versions that gc would remove
    (100,000), and clocks that disagree by more than a minute. A suggested command that changes the store shows the
    change with --dry-run.

    On a server, in place of disk and readers: unsafe settings, missing standbys, standbys that are behind (64 MiB or
    10 s), transactions of any client for which VACUUM waits (5 minutes), and connections (90 % in use).

    A finding marked `i` is information, not a problem: messages that no consumer is there for. `check` has the same as
    measures, with thresholds.

    A store that cannot be opened is a finding too, after which the command fails as usual: with 6 where there is none.
    Java and PySpark, which only `pipeline` needs, are no findings.
    """
    try:
        diagnosis = _diagnosis(context)
    except (Busy, StoreInvalid) as error:
        _show(context, _unusable(context.shown_store, error), programs)
        raise
    _show(context, diagnosis, programs)
    if exit_code and diagnosis.verdict != "ok":
        context.exit(exit_codes.CONDITION_FOUND)


def _show(context: Context, diagnosis: Diagnosis, programs: bool) -> None:
    shows_programs = programs or not all(program.ok for program in diagnosis.programs)
    context.show(diagnosis, table=lambda shown: _report(context, shown, shows_programs=shows_programs))


def _programs() -> list[Program]:
    from dataclasses import asdict

    from txnctl.spark.runtime import requirements

    return [Program(**asdict(requirement)) for requirement in requirements.check_all()]


def _diagnosis(context: Context) -> Diagnosis:
    from txnctl.commands.health.survey import overview_of

    overview = overview_of(context)
    facts = overview.facts
    return Diagnosis(
        overview.verdict, facts.as_of_at_ms, facts.store.info.path, overview.findings, _programs()
    )


def _unusable(path: str, error: TxnctlError) -> Diagnosis:
    """A store that cannot be opened, or read, as the one finding."""
    from storage.process.clock import SYSTEM_CLOCK
    from storage.reports.finding import Finding
    from storage.reports.findings import verdict

    actions = {
        "store-not-found": Action("Store.create", path),
        "corrupt-store": Action("store.maintenance.verify_store", full=True, path=path),
    }
    if not is_url(path):
        actions["store-unsafe"] = actions["not-permitted"] = Action("list_directory", path)
    action = actions.get(error.code, Action("explain_error", error.code))
    why = error.hint or "It was left as it is."
    wrong = [Finding(error.code, "critical", "store", error.message, why, action)]
    return Diagnosis(verdict(wrong), SYSTEM_CLOCK.wall_ms(), path, wrong, _programs())


def _report(context: Context, diagnosis: Diagnosis, *, shows_programs: bool) -> Iterator[str]:
    from txnctl.commands.health.status_screen import headline

    findings = diagnosis.findings
    yield headline(context, diagnosis.path, diagnosis.as_of_at_ms, diagnosis.verdict, findings)
    for finding in findings:
        yield ""
        yield from finding_lines(context, finding)
    yield ""
    if not findings:
        yield "Nothing is wrong."
    for program in diagnosis.programs if shows_programs else ():
        yield context.style(f"{program.what}: {_presence(program)}", "dim")


def finding_lines(context: Context, finding: Finding) -> Iterator[str]:
    """Problem, reason and command of a finding."""
    from txnctl.commands.health.status_screen import VERDICT_STYLES
    from txnctl.output.prose import wrapped

    mark = "i" if finding.severity == "info" else "!"
    first, *rest = wrapped(f"{mark} {sentence(finding.what)}", context.width, most=WIDTH)
    yield f"{context.style(mark, *VERDICT_STYLES[finding.severity])} {context.style(first[2:], 'bold')}"
    yield from [f"  {context.style(line.lstrip(), 'bold')}" for line in rest]
    yield from wrapped(f"  {spell(finding.why)}", context.width, hanging=2, most=WIDTH)
    yield f"  {next_command(context, spell(finding.action))}"


def _presence(program: Program) -> str:
    version = program.version or "not found"
    place = f" in {program.place}" if program.place else ""
    return f"{version}{place}" if program.ok else f"{version}; only `pipeline` needs it. {program.hint}"
