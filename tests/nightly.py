"""All long forms of the Makefile, one after the other: `python -m tests.nightly [FACTOR]`, or `make nightly NIGHTLY=0.1`.

A part is a target of the Makefile with a size. Results are kept under `build/nightly/`, one directory for each state of the
code and each factor: a second call goes on where the first was cut, and a commit that changes documents alone keeps
all results. `docs/figures/nightly.md` is the page of figures, written anew after each part.

The exit code is 1 where a promise broke (a part failed, or did not end within its limit), 2 where no run can begin.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import machine
from benchmarks.rows import ROWS

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = "docs/figures/nightly.md"
HOURS: Final = 8
DOCUMENTS: Final = (":!docs", ":!*.md", ":!man", ":!completions")
"""Paths that no part runs, as git leaves them out."""
_PATIENCE_S: Final = 30.0


class Part(NamedTuple):
    """One long form.

    Attributes:
        setting: the words of make after the target; `{}` stands for the size.
        size: at the factor 1.
        minutes: on two free cores, at the factor 1.
        short: the test that runs the same code in the gate; empty where `make test` runs a part of the target itself.
        part: the target instead, below the factor 1, of a part without a size.
        shows: a pattern of the lines of output that belong on the page.
    """

    name: str
    target: str
    setting: str
    size: float
    minutes: float
    promise: str
    short: str
    least: float = 1
    part: str = ""
    shows: str = r"\S"
    lines: int = 4

    def sized(self, factor: float) -> str:
        """The size at a factor, as make is given it."""
        size = max(self.least, self.size * factor)
        return f"{round(size)}" if self.least >= 1 else f"{size:.4g}"

    def words(self, factor: float) -> list[str]:
        """The words of make."""
        target = self.part if self.part and factor < 1 else self.target
        return [target, *self.setting.format(self.sized(factor)).split()]

    def limit_s(self, factor: float) -> float:
        """The seconds after which the part hangs."""
        return 60 * (15 + 3 * self.minutes * max(factor, self.least / self.size))


def _bench(row: str) -> Part:
    minutes = {"I1": 5.0, "C1": 3.0, "D2": 3.0, "X1": 8.0, "X2": 8.0}.get(row, 1.0)
    short = (
        "tests/benchmarks/test_bench_smoke.py::test_every_comparison_is_measured_or_the_missing_peer_is_named"
    )
    return Part(
        f"bench-{row}", "bench", f"ROWS={row} SIZE={{}}", 1.0, minutes, "ends", short, 0.001,
        shows=r" \| |^note", lines=40,
    )  # fmt: skip


_FAULT_SHORTS: Final = {
    "power-cuts": "tests/faults/test_power_cut.py::test_a_power_cut_loses_nothing_acknowledged_and_halves_nothing",
    "kills": "tests/faults/test_kills.py::test_a_process_killed_at_a_system_call_leaves_all_or_nothing",
    "refusals": "tests/faults/test_refusals.py::test_a_refused_call_ends_in_one_clear_error_and_a_sound_store",
    "stale-pages": "tests/faults/test_stale_pages.py::test_an_older_page_ends_no_command_in_a_traceback",
    "flipped-messages": "tests/faults/test_stale_pages.py::test_a_flipped_bit_never_makes_a_message_wrong_or_missing",
    "hostile": "tests/faults/test_hostile.py::test_hostile_input_ends_in_one_clear_error",
}


def _fault(kind: str, minutes: float, size: float = 1.0) -> Part:
    promise, short = "0 broken promises", _FAULT_SHORTS[kind]
    return Part(f"faults-{kind}", "faults", f"FAULTS={{}} KINDS={kind}", size, minutes, promise, short, 0.001)


PARTS: Final = (
    Part("demo-cluster", "demo-cluster", "", 1, 1, "every check of the story holds",
         "tests/txnctl/demo/test_cluster_story.py::test_every_check_of_the_story_holds"),
    Part("demo-spark", "demo-spark", "", 1, 2, "every check of the story holds",
         "tests/txnctl/demo/test_spark_story.py::test_every_check_of_the_story_holds"),
    *map(_bench, ROWS),
    Part("curves", "curves", "SIZE={} PICTURES=build", 1, 10, "ends",
         "tests/benchmarks/test_curves.py::test_every_axis_has_a_table_and_a_panel", 0.02,
         shows=r"^\||cores", lines=120),
    Part("soak", "soak", "MINUTES={} PICTURES=build", 30, 30, "files, memory and latency stay flat",
         "tests/benchmarks/test_soak.py::test_neither_files_nor_memory_grow", 0.5,
         shows=r"^\||verify", lines=40),
    Part("crash-sweep", "crash-sweep", "CRASH_ROUNDS={}", 500, 30, "nothing acknowledged is lost, nothing is half",
         "tests/processes/test_crash_sweep.py::test_a_process_killed_at_random_moments_loses_and_halves_nothing"),
    _fault("power-cuts", 25), _fault("kills", 50), _fault("refusals", 60, 0.5),
    _fault("stale-pages", 10), _fault("flipped-messages", 10), _fault("hostile", 15),
    Part("flips", "flips", "FLIPS={}", 10_000, 40, "no wrong answer that verify does not find",
         "tests/processes/test_damage.py::test_a_flipped_bit_is_found_or_does_no_harm"),
    Part("serializability", "serializability", "TRANSACTIONS={}", 100_000, 10, "what was committed is serializable",
         "tests/processes/test_table_serializability.py::test_what_several_processes_did_is_serializable", 3000,
         lines=16),
    Part("takeovers", "takeovers", "TAKEOVERS={}", 10_000, 25, "no message of a fenced producer is ever seen",
         "tests/processes/test_takeovers.py::test_no_message_of_a_fenced_producer_is_ever_seen", 1000),
    Part("failovers", "failovers", "FAILOVERS={}", 200, 25, "nothing acknowledged is lost or doubled",
         "tests/processes/postgres/test_failovers.py::test_nothing_acknowledged_is_lost_or_doubled", 3),
    Part("scale", "scale", "MESSAGES={}", 10_000_000, 30, "14 checks of the cluster hold",
         "tests/scale/test_scale.py::test_a_cluster_without_lmdb_reads_and_writes_exactly_what_was_produced", 60_000),
    Part("transfers", "transfers", "TRANSFERS={}", 117_805, 20, "every balance is right, by both engines under kills",
         "tests/scale/test_transfers.py::test_transfers_come_through_both_engines_and_kills", 300),
    Part("test-postgres", "test-postgres", "", 1, 30, "all tests of storage and processes pass on a server",
         "", part="pytest-postgres"),
)  # fmt: skip


class Result(NamedTuple):
    """The kept outcome of one part."""

    name: str
    size: str
    held: bool
    outcome: str
    seconds: float
    commit: str
    figures: list[str]


class Night:
    """The parts of one state of the code.

    Args:
        root: the checkout.
        factor: of all sizes.
    """

    def __init__(self, root: Path, parts: Sequence[Part], factor: float) -> None:
        self._root, self._parts, self._factor = root, parts, factor
        self._place = root / "build/nightly" / f"{self._code()}-{factor:g}"

    def _git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self._root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def _code(self) -> str:
        """The name of the committed code, documents left out."""
        files = self._git("ls-files", "-s", "--", ".", *DOCUMENTS)
        return hashlib.sha256(files.encode()).hexdigest()[:12]

    def changes(self) -> str:
        """The changes of code that are not committed: figures would have no commit."""
        return self._git("status", "--porcelain", "--untracked-files=no", "--", ".", *DOCUMENTS)

    def run(self) -> int:
        """Run the parts that have no result yet; return 1 if a promise broke, in this call or an earlier one."""
        self._place.mkdir(parents=True, exist_ok=True)
        results: list[Result] = []
        for number, part in enumerate(self._parts, 1):
            kept = self._place / f"{part.name}.json"
            say(f"[{number} of {len(self._parts)}] {part.name} {' '.join(part.words(self._factor))}")
            if kept.exists():
                result = Result(**json.loads(kept.read_text()))
                say(f"    kept: {result.outcome}")
            else:
                result = self._run_part(part)
                kept.write_text(json.dumps(result._asdict()))
                say(f"    {result.outcome}, {result.seconds:.0f} s")
            results.append(result)
            self._write(results)
        broken = [result.name for result in results if not result.held]
        say(f"{len(results) - len(broken)} of {len(results)} parts held; the page is {PAGE}")
        if broken:
            say(f"broken: {', '.join(broken)}; their output is in {self._place}")
        return bool(broken)

    def _run_part(self, part: Part) -> Result:
        log = self._place / f"{part.name}.log"
        began = time.monotonic()
        outcome = _run_make(part.words(self._factor), self._root, log, part.limit_s(self._factor))
        seconds = time.monotonic() - began
        lines = [line for line in log.read_text(errors="replace").splitlines() if not line.startswith("make")]
        shown = [line for line in lines if outcome != "held" or re.search(part.shows, line)]
        return Result(
            part.name, part.sized(self._factor), outcome == "held", outcome, seconds, self._git("rev-parse", "HEAD"),
            shown[-part.lines :] if outcome == "held" else shown[-40:],
        )  # fmt: skip

    def _write(self, results: Sequence[Result]) -> None:
        page = self._root / PAGE
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("\n".join(self._lines(results)) + "\n")

    def _lines(self, results: Sequence[Result]) -> Iterator[str]:
        facts, versions = machine.describe(self._place), machine.versions()
        commits = ", ".join(f"`{commit[:12]}`" for commit in dict.fromkeys(one.commit for one in results))
        hours = sum(result.seconds for result in results) / 3600
        yield "# The long forms, in figures"
        yield ""
        yield "Written by `make nightly`: each long form of the Makefile, one after the other."
        yield ""
        yield f"Commit {commits}; {time.strftime('%Y-%m-%d', time.gmtime())}; sizes times {self._factor:g};"
        yield f"{len(results)} of {len(self._parts)} parts in {hours:.2f} hours; {facts['processor']},"
        yield f"{facts['cores']} cores, {facts['fileSystem']}, Python {versions['python']}."
        yield ""
        yield "| part | size | promise | outcome | seconds |"
        yield "|---|---|---|---|---|"
        for part, result in zip(self._parts, results, strict=False):
            outcome = result.outcome if result.held else f"**{result.outcome}**"
            yield f"| {part.name} | {result.size} | {part.promise} | {outcome} | {result.seconds:.0f} |"
        for result in results:
            yield from ("", f"## {result.name}", "", "```text", *result.figures, "```")


def _run_make(words: Sequence[str], root: Path, log: Path, limit_s: float) -> str:
    """Run a target with its output in a file; return `held`, or in words the way the target failed.

    An interrupt ends the target and all its processes, and is raised again.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    with log.open("w") as output, ExitStack() as ends:
        with _interrupts_held():
            process = subprocess.Popen(
                ["make", "-s", *words], cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            ends.callback(_end_group, process)
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return f"BROKEN: not ended after {limit_s:.0f} s"
    return "held" if code == 0 else f"BROKEN: exit code {code}"


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Raise an interrupt at the end of the block: a process that is being started has no name to end it by."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = {number: signal.signal(number, lambda number, _: came.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in came[:1]:
            signal.raise_signal(number)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the processes of a target that are left, first by SIGTERM."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def say(text: str) -> None:
    """Tell the person who waits."""
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    """Run all parts; return the exit code."""
    factor = float(arguments[0]) if arguments else 1.0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    night = Night(ROOT, PARTS, factor)
    if changes := night.changes():
        say(f"error: code is not committed, so figures would have no commit; commit first:\n{changes}")
        return 2
    minutes = sum(part.minutes * factor for part in PARTS)
    say(
        f"{len(PARTS)} parts, about {minutes:.0f} minutes on two free cores; a second call goes on after a cut"
    )
    try:
        return night.run()
    except KeyboardInterrupt:
        say("cut; call again to go on")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
