"""The story on Spark: one topic, two streaming queries with different isolation levels, and a driver that is killed.

    1  the bank            a topic, a table, and one Spark driver with two queries: settle and monitor
    2  ordinary business   A1 and A2 send; settle applies; monitor sees
    3  a transfer is open  settle stands still, monitor goes on
    4  commit              the driver is killed in the middle of catching up; its successor ends the work
    5  abort               a transfer that monitor saw, and settle never applies
    6  the audit           `txnctl pipeline audit`, every balance against the data's own

`python -m txnctl.demo.spark_story [--accounts N] [--seed N] [--data FILE]` plays the story in a store of its own that
is removed at the end. Exit code 1 if a check failed.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from subprocess import PIPE

from storage import IsolationLevel, Store, Transaction
from storage.errors import TxnctlError
from txnctl.demo import child
from txnctl.demo.audit import check_balances
from txnctl.demo.clients import ACCOUNTS, REQUESTS, ClientA1, ClientA2, balances
from txnctl.demo.generator import SEED_DEFAULT, generate
from txnctl.demo.narrator import Narrator
from txnctl.demo.script import Script, messages_of
from txnctl.demo.spark_watch import SparkDriver
from txnctl.demo.transaction import COLUMNS, DEBIT, REMITTANCE, BankTransaction
from txnctl.output.shell import spell
from txnctl.pipelines.hellers import format_hellers
from txnctl.spark.runtime.scratch import scratch_directory

ACCOUNTS_OF_STORY = 40
_BATCHES = 25
_TRANSFER_MESSAGES = 2
_FALSE_TRANSFER_HELLERS = 1_000_000_00
_MONEY = ("amount", "balance", "delta")


class SparkStage:
    """The store, the clients, the driver, and the count of sent requests."""

    def __init__(self, store: Store, directory: str, script: Script, narrator: Narrator) -> None:
        self.store = store
        self.directory = directory
        self.script = script
        self.narrator = narrator
        self.sent = 0
        """Requests sent, whatever the outcome of their transaction."""
        store.create_topic(REQUESTS)
        store.create_table(ACCOUNTS)
        self.a2 = ClientA2(store)
        # Micro-batches are small, so that the driver can be killed between two of them.
        self.driver = SparkDriver(store, directory, messages=len(script.lines) // _BATCHES + 1)

    def send(self, lines: list[BankTransaction]) -> int:
        """Let A1 and A2 send lines, both at the same time; return the number of requests."""
        remittances = [line for line in lines if line.is_remittance]
        plain_lines = [line for line in lines if not line.is_remittance]
        with ClientA1(self.store.path, plain_lines):
            for line in remittances:
                self.a2.remit(line)
        self.sent += messages_of(lines)
        return messages_of(lines)

    def leave_open(self, line: BankTransaction) -> Transaction:
        """Let A2 send a remittance without a commit."""
        self.sent += _TRANSFER_MESSAGES
        return self.a2.leave_open(line)

    def check_settled(self, name: str, expected: dict[str, int]) -> None:
        """Compare the table with the data."""
        check_balances(name, balances(self.store), expected, self.narrator)

    def close(self) -> None:
        """Stop the driver and close the clients."""
        self.driver.stop()
        self.a2.close()


def play(store: Store, directory: str, script: Script, narrator: Narrator) -> None:
    """Play all acts. The results of all checks are in `narrator.checks`."""
    stage = SparkStage(store, directory, script, narrator)
    try:
        _the_bank(stage)
        _ordinary_business(stage)
        txn, bound, behind = _a_transfer_is_open(stage)
        _commit(stage, txn, bound, behind)
        _abort(stage)
    finally:
        stage.close()
    _audit(stage)


def _the_bank(stage: SparkStage) -> None:
    tell, lines = stage.narrator, stage.script.lines
    tell.act("The bank, on Spark")
    tell.say(
        f"{len(lines):,} transactions of {len(stage.script.balances_at_end()):,} accounts. Clients A1 and A2 send them "
        f"to topic {REQUESTS} as they do in txnctl demo. One Spark driver runs two streaming queries on that topic:"
    )
    tell.table(
        ["QUERY", "ISOLATION LEVEL", "WHAT IT DOES"],
        [
            ["settle", "READ_COMMITTED", f"applies requests to table {ACCOUNTS}, exactly once"],
            ["monitor", "READ_UNCOMMITTED", "adds up reserves, in- and outflow, final or not"],
        ],
    )
    stage.driver.start()
    tell.say(f"The driver is process {stage.driver.pid}, its JVM process {stage.driver.jvm}.")


def _ordinary_business(stage: SparkStage) -> None:
    tell = stage.narrator
    tell.act("Ordinary business")
    sent = stage.send(stage.script.opening)
    stage.driver.wait_until_settled()
    stage.driver.wait_until_seen(stage.sent)
    tell.say(f"A1 and A2 send {sent:,} requests, while both queries run.")
    tell.check_equal("messages monitor saw", stage.sent, stage.driver.seen)
    stage.check_settled("settle agrees with the data so far", stage.script.balances_before_transfer())


def _a_transfer_is_open(stage: SparkStage) -> tuple[Transaction, str, int]:
    tell, line = stage.narrator, stage.script.transfer
    tell.act("A transfer stays open: settle stands still, monitor goes on")
    bound = stage.driver.settled_through()
    dirty = stage.driver.uncommitted
    txn = stage.leave_open(line)
    behind = stage.send(stage.script.meanwhile)
    stage.driver.wait_until_seen(stage.sent)
    lag = stage.store.reports.subscription_stats(REQUESTS, "settle").row.stats
    tell.say(
        f"Account {line.account_id} remits {format_hellers(-line.delta, grouped=True)} to bank {line.bank} in "
        f"transaction {txn.id}, which is not committed. {behind:,} further requests arrive behind it. settle reads at "
        f"READ_COMMITTED: its micro-batches end at maxReadPosition, before the first message of {txn.id}. monitor "
        f"reads on; its reserves are {format_hellers(stage.driver.reserves, grouped=True)}."
    )
    tell.check_equal(
        "messages monitor saw, those of the open transfer included", stage.sent, stage.driver.seen
    )
    tell.check_equal(
        "of them uncommitted when it saw them", True, stage.driver.uncommitted - dirty >= _TRANSFER_MESSAGES
    )
    tell.check_equal(
        "the last message that is settled, the same as before", bound, stage.driver.settled_through()
    )
    tell.check_equal("requests blocked for settle, all behind the transfer", behind, lag.blocked)
    stage.check_settled("settle still has the balances from before", stage.script.balances_before_transfer())
    return txn, bound, behind


def _commit(stage: SparkStage, txn: Transaction, bound: str, behind: int) -> None:
    tell, driver = stage.narrator, stage.driver
    tell.act("Commit; the driver is killed in the middle of catching up")
    txn.commit()
    waiting = behind + _TRANSFER_MESSAGES
    driver.wait_until_moved(bound)
    killed = driver.kill()
    middle = driver.settled_through()
    tell.say(
        f"{txn.id} is committed, and {waiting:,} requests are free at once. settle takes them in micro-batches, each "
        f"of which is one transaction. The driver, process {killed}, is killed (SIGKILL), and its JVM with it; settled "
        f"is what stands in the store, through {middle}."
    )
    last = str(stage.store.reports.last_message_id(REQUESTS, IsolationLevel.READ_COMMITTED))
    tell.check_equal("the driver was killed in the middle", True, bound != middle != last)
    driver.start()
    driver.wait_until_settled()
    driver.wait_until_seen(stage.sent)
    tell.say(
        f"A new driver, process {driver.pid}, starts from the same checkpoints. A micro-batch that its predecessor had "
        "applied and not reported to Spark comes again, and is found applied."
    )
    tell.check_equal("messages monitor saw over both drivers", stage.sent, driver.seen)
    stage.check_settled("settle agrees with the data again", stage.script.balances_after_meanwhile())


def _abort(stage: SparkStage) -> None:
    tell = stage.narrator
    tell.act("A transfer is aborted")
    txn = stage.leave_open(false := _false_transfer(stage.script))
    sent = stage.send(stage.script.closing)
    stage.driver.wait_until_seen(stage.sent)
    txn.abort(reason="the customer recalled it")
    stage.driver.wait_until_settled()
    tell.say(
        f"A2 sends {format_hellers(-false.delta, grouped=True)} from account {false.account_id} in {txn.id}, "
        f"{sent:,} requests follow, and A2 aborts it: the customer has recalled it. monitor had counted it; settle "
        "applies what is behind it and never learns of it."
    )
    tell.check_equal("messages monitor saw, the aborted ones included", stage.sent, stage.driver.seen)
    stage.check_settled("settle agrees with the data to the end", stage.script.balances_at_end())


def _audit(stage: SparkStage) -> None:
    tell = stage.narrator
    tell.act("The audit")
    data = os.path.join(stage.directory, "bank.csv")
    write_csv(stage.script.lines, data)
    words = ["pipeline", "audit", REQUESTS, "--table", ACCOUNTS, "--legs", "legs", "--data", data]
    words += ["--engine", "spark", "-o", "json", "--store", stage.store.path]
    with child.start("txnctl", *words, stdin=PIPE) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        if process.wait() != 0:
            raise child.failure("the audit", process)
    report = json.loads(output)
    tell.say(
        "txnctl pipeline audit adds up the committed topic anew, and holds it against the table and the data."
    )
    tell.check_equal("accounts whose balances differ anywhere", 0, report["differing"])
    tell.check_equal("messages that are no requests", 0, report["skipped"])
    tell.check_equal(
        "problems that the full verification of the store finds",
        0,
        len(stage.store.maintenance.verify_store()),
    )


def write_csv(lines: list[BankTransaction], path: str) -> None:
    """Write lines as a CSV file of bank data."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for line in lines:
            values = {name: getattr(line, name) for name in COLUMNS}
            writer.writerow([format_hellers(v) if name in _MONEY else v for name, v in values.items()])


def _false_transfer(script: Script) -> BankTransaction:
    """Make up a transfer that is not in the data."""
    line, last = script.transfer, script.lines[-1]
    number = max(bank_line.trans_id for bank_line in script.lines) + 1
    amount = _FALSE_TRANSFER_HELLERS
    return BankTransaction(
        number, line.account_id, last.date, DEBIT, REMITTANCE, amount, 0, "", line.bank, line.account, 0, -amount, ""
    )  # fmt: skip


def _lines(arguments: argparse.Namespace) -> list[BankTransaction]:
    if arguments.data is None:
        return list(generate(arguments.accounts, arguments.seed))
    from txnctl.demo.csv_file import read_bank_csv

    return list(read_bank_csv(arguments.data))


def main(words: list[str] | None = None) -> int:
    """Play the story; return 0 if every check held."""
    parser = argparse.ArgumentParser(
        prog="python -m txnctl.demo.spark_story", description="The bank's story on Spark."
    )
    parser.add_argument("--accounts", type=int, default=ACCOUNTS_OF_STORY, help="accounts to generate")
    parser.add_argument("--seed", type=int, default=SEED_DEFAULT, help="another seed makes another bank")
    parser.add_argument("--data", help="the bank's lines as CSV, plain or gzip, instead of generated ones")
    arguments = parser.parse_args(words)
    narrator = Narrator(lambda text: print(text, flush=True))
    try:
        with scratch_directory() as directory:
            Store.create(path := os.path.join(directory, "store"))
            with Store.open(path, program="demo on Spark") as store:
                play(store, directory, Script(_lines(arguments)), narrator)
    except TxnctlError as error:
        hint = f"\ntxnctl: hint: {spell(error.hint)}" if error.hint else ""
        print(f"txnctl: error: {error.message}{hint}", file=sys.stderr)
        return error.exit_code
    failed = [check for check in narrator.checks if not check.ok]
    narrator.line()
    narrator.say(f"{len(narrator.checks) - len(failed)} of {len(narrator.checks)} checks held.")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("txnctl: error: interrupted", file=sys.stderr)
        sys.exit(130)
