"""`txnctl demo`: the bank's story, told on a real store and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from storage.errors import InvalidValue, TxnctlError
from storage.json_form import Flat
from txnctl.cli.declaration import command
from txnctl.cli.decorators import example, names_store, option, output
from txnctl.cli.whole_number import WholeNumber
from txnctl.demo.facts import StoryFacts
from txnctl.output.field import Help, fields_of
from txnctl.output.human import duration, plural

if TYPE_CHECKING:
    from txnctl.cli.context import Context
    from txnctl.demo.narrator import Check, Narrator
    from txnctl.demo.transaction import BankTransaction


class DemoResult(NamedTuple):
    """The result of a demo."""

    ok: bool
    store: str
    kept: bool
    source: str | None
    seed: int | None
    transactions: int
    accounts: int
    story: Flat[StoryFacts]
    checks: list[Check]
    elapsed_ms: int


FIELDS = fields_of(
    DemoResult,
    {
        "ok": "Whether every check held.",
        "store": "Where the store is, or was.",
        "kept": "Whether the store is still there.",
        "source": "The file of --data, or null where the transactions were generated.",
        "seed": "The seed of the generator, or null.",
        "transactions": "Bank transactions played.",
        "accounts": "Accounts of the bank.",
        "ordinary": "What was sent and booked before a transfer was left open.",
        "blocked": "What E and D saw while it was open, with both positions and what waited.",
        "committed": "What E booked after the commit, and what the killed E had in hand.",
        "aborted": "What D saw, and E did not, of the transfer that was aborted.",
        "audit": "Accounts that agree with the data, and messages by isolation level.",
        "checks": "Every check: name, ok, expected, actual.",
        "elapsed_ms": Help("How long it took.", heading="ELAPSED"),
    },
)

_STYLES = {
    "title": ("bold",),
    "headings": ("dim",),
    "command": ("cyan",),
    "ok": ("green",),
    "failed": ("bold", "red"),
}


@command
@option(
    "--data",
    metavar="FILE",
    type=click.Path(),
    help="Bank transactions as CSV, plain or gzip. [default: generated]",
)
@option("--accounts", type=WholeNumber(1, 2000), help="Accounts to generate. [default: 160]")
@option("--seed", type=WholeNumber(0), help="Another seed makes another bank. [default: 298]")
@option("--keep-store", "keep", is_flag=True, help="Keep the store, to look into it afterwards.")
@option(
    "--pause", is_flag=True, help="Wait for Enter while the transfer is open, to look from another terminal."
)
@names_store(effect="writes")
@output(FIELDS, name_field="store")
@example("txnctl demo --accounts 20")
@example("txnctl demo --accounts 20 --store bank.store", "txnctl topics stats requests --store bank.store")
def demo(
    context: Context, data: str | None, accounts: int | None, seed: int | None, keep: bool, pause: bool
) -> None:
    """Tell the bank's story in a new store, and check every balance.

    Clients send a bank's deposits, withdrawals and remittances to a topic. One remittance stays open in a transaction
    while thousands of requests arrive behind. A subscription at READ_COMMITTED stands still, and the store says why;
    one at READ_UNCOMMITTED sees everything. Then the transaction is committed, a process is killed in the middle of
    work, a transfer is aborted. Requests are booked exactly once: the account in a table, a message about the change
    and the acknowledgement are one transaction. At the end every account's balance is held against the data's own.

    The store is a temporary one and removed at the end, unless --store or --keep-store is given. TXNCTL_STORE is not
    looked at: the demo works in no store that is there already.

    FILE has the columns trans_id, account_id, date, type, operation, amount, balance, k_symbol, bank, account,
    acct_seq, delta, src. On every line the account's balance must be the previous balance plus delta.
    """
    from time import perf_counter

    began = perf_counter()
    lines, seed = _bank(data, accounts, seed)
    narrator = _narrator(context, pause)
    store, story, kept = _play(context, lines, narrator, keep)
    failed = [check for check in narrator.checks if not check.ok]
    result = DemoResult(
        ok=not failed,
        store=store,
        kept=kept,
        source=data,
        seed=seed,
        transactions=len(lines),
        accounts=len({line.account_id for line in lines}),
        story=story,
        checks=narrator.checks,
        elapsed_ms=int((perf_counter() - began) * 1000),
    )
    if context.output == "table":
        _farewell(narrator, result)
    else:
        context.show(result)
    if failed:
        raise _failure(failed, result)


def _bank(
    data: str | None, accounts: int | None, seed: int | None
) -> tuple[list[BankTransaction], int | None]:
    """Give the lines of the bank, and the seed."""
    if data is None:
        from txnctl.demo.generator import ACCOUNTS_DEFAULT, SEED_DEFAULT, generate

        seed = SEED_DEFAULT if seed is None else seed
        return list(generate(accounts or ACCOUNTS_DEFAULT, seed)), seed
    if accounts is not None or seed is not None:
        raise InvalidValue("--accounts and --seed are for generated transactions; --data brings its own")
    from txnctl.demo.csv_file import read_bank_csv

    lines = list(read_bank_csv(data))
    if not lines:
        raise InvalidValue(f"{data!r} holds no transactions", path=data)
    return lines, None


def _narrator(context: Context, pause: bool) -> Narrator:
    """A narrator on standard output, silent where the result is for programs."""
    import sys

    from txnctl.demo.narrator import Narrator

    def write(text: str) -> None:
        context.out.write(text + "\n")
        context.out.flush()

    def wait() -> None:
        print("\n  Press Enter to go on.", file=sys.stderr, flush=True)
        sys.stdin.readline()

    is_asked = sys.stdin is not None and sys.stdin.isatty()
    if pause and (context.output != "table" or not context.out.terminal or not is_asked):
        raise InvalidValue("--pause is for a terminal")
    return Narrator(
        write if context.output == "table" else None,
        style=lambda text, style: context.style(text, *_STYLES[style]),
        progress=lambda total: context.progress("Sending", total=total, unit="transactions"),
        wait=wait if pause else None,
        width=context.width,
    )


def _play(
    context: Context, lines: list[BankTransaction], narrator: Narrator, keep: bool
) -> tuple[str, StoryFacts, bool]:
    """Play the story in a new store; return the path of the store, the facts, and whether the store is kept."""
    import os
    from shutil import rmtree
    from tempfile import mkdtemp

    from storage import Store
    from storage.process.machine import temporary_directory
    from txnctl.demo.script import Script
    from txnctl.demo.story import play

    script = Script(lines)
    given = next(setting for setting in context.settings() if setting.name == "store")
    temporary = None
    if not given.source.startswith("option"):
        temporary = mkdtemp(prefix="txnctl-demo-", dir=temporary_directory())
    path = given.value if temporary is None else os.path.join(temporary, "store")
    assert path is not None
    keep = keep or temporary is None
    try:
        # A demonstration is lost to nobody with its server, and newcomers have no standby.
        Store.create(path, durability="local")
        with Store.open(path, program=context.program) as store:
            facts = play(store, path, script, narrator)
        # A store in which a check failed is evidence.
        keep = keep or not all(check.ok for check in narrator.checks)
        return path, facts, keep
    finally:
        if temporary is not None and not keep:
            rmtree(temporary, ignore_errors=True)


def _farewell(narrator: Narrator, result: DemoResult) -> None:
    """Print the result, and commands to try."""
    import shlex

    held = sum(check.ok for check in result.checks)
    narrator.line()
    narrator.say(
        f"{held} of {plural(len(result.checks), 'check')} held: {result.story.audit.accounts_agreeing:,} of "
        f"{plural(result.accounts, 'account')} agree with the data. {duration(result.elapsed_ms)}."
    )
    if not result.kept:
        narrator.say("The store was temporary and is gone. To look into it: txnctl demo --keep-store")
        return
    narrator.say(f"The store is kept: {result.store}. Try:")
    narrator.line()
    narrator.command(f"export TXNCTL_STORE={shlex.quote(result.store)}")
    for words in (
        "topics stats requests",
        "subscriptions lag requests",
        "transactions list --ended",
        f"transactions show {result.story.blocked.transaction}",
        "tables scan accounts -n 5",
        "consume balances | tail -3",
        "consume requests --isolation-level READ_UNCOMMITTED | tail -3",
    ):
        narrator.command(f"txnctl {words}")
    narrator.line()


def _failure(failed: list[Check], result: DemoResult) -> Exception:
    return TxnctlError(
        f"{len(failed)} of {len(result.checks)} checks of the demo failed, the first: {failed[0].name}",
        hint=f"This is a bug. Please report it with this output. The store is kept: {result.store}",
        store=result.store,
        failed=[check.name for check in failed],
    )
