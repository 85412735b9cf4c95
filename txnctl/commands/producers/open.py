"""`txnctl producers open`: a session for a sequence of shell commands."""

from __future__ import annotations

import click

from txnctl.cli.decorators import argument, changes_store, example, option, output
from txnctl.cli.value_types import ACCESS_MODE, DURATION, SESSION as TOKEN, TOPIC, TXN_ID
from txnctl.cli.whole_number import WholeNumber
from txnctl.fields.producer import ROW
from txnctl.output.field import Help, fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import AccessMode
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context

_LEASE_S = 60.0

SESSION = fields_of(
    "storage.reports.producers:SessionRow",
    {**ROW, "session": Help("The token: for TXNCTL_SESSION, --session-file and --session.", kind="id")},
)


@argument("topic", type=TOPIC, help="The topic.")
@option("--access-mode", type=ACCESS_MODE, help="How it wants the topic. [default: Exclusive]")
@option(
    "--lease", type=DURATION, help="How long it lives without being used; each use renews it. [default: 60s]"
)
@option("--producer", "producer_name", metavar="NAME", help="The producer's name. [default: one of its own]")
@option(
    "--timeout",
    type=DURATION,
    help="With WaitForExclusive: give up after this long, exit 7. [default: never]",
)
@option(
    "--epoch",
    type=WholeNumber(0),
    metavar="N",
    help="Only if the topic still has this epoch: nobody took over since.",
)
@option(
    "--resume", type=TOKEN, help="Go on as this session, under its epoch, if nobody took over or produced."
)
@option(
    "--resume-file",
    type=click.Path(),
    metavar="FILE",
    help="The same, with the token in a file; `-` is standard input. Arguments are shown by `ps`, a file is not.",
)
@option(
    "--txn",
    type=TXN_ID,
    envvar="TXNCTL_TXN",
    help="The transaction that a take-over spares: it is the new owner's. [env: TXNCTL_TXN]",
)
@option("--create", is_flag=True, help="Create the topic if it is missing.")
@changes_store()
@output(SESSION, name_field="session")
@example(
    "export TXNCTL_SESSION=$(txnctl producers open orders --lease 5m)",
    "txnctl produce orders -m one",
    "txnctl produce orders -m two",
    "txnctl producers close",
    setup="txnctl topics create orders",
)
@example(
    "txnctl producers open orders --access-mode ExclusiveWithFencing -o json",
    setup=("txnctl topics create orders", "txnctl producers open orders"),
)
def open_(
    context: Context,
    topic: str,
    access_mode: AccessMode | None,
    lease: float | None,
    producer_name: str | None,
    timeout: float | None,
    epoch: int | None,
    resume: str | None,
    resume_file: str | None,
    txn: TxnID | None,
    create: bool,
) -> None:
    r"""Open a session for a sequence of shell commands, and print the token, alone.

    The token is a secret: its holders may publish. Give the token in TXNCTL_SESSION or in a file (--session-file) that
    you alone can read: every user of the machine sees the arguments of a command, and so the token of --session.

    The session belongs to no process. The session lives as long as the lease, and every `produce` with the token
    renews the lease. An exclusive session has the topic alone until then. When the lease
    has ended, the next producer gets the topic, and later uses of the token fail as fenced. For one script `producers
    lead` is safer: the session ends with the script.

    \b
    Shared                joins others that are Shared.
    Exclusive             gets the topic if nobody is there, else exit code 4.
    WaitForExclusive      waits for its turn, first come first served.
    ExclusiveWithFencing  evicts all who are there, waiting ones too, and
                          aborts their open transactions.
    """
    from storage import AccessMode
    from txnctl.cli.current_session import named_or_in_file
    from txnctl.commands.producers.waiting import WaitNote, check_timeout

    mode = access_mode or AccessMode.EXCLUSIVE
    check_timeout(timeout, mode)
    context.out.require_open("the session would have a token that nobody knows")
    if txn is not None:
        context.store.use_transaction(txn)
    row = context.store.open_session(
        topic,
        lease=_LEASE_S if lease is None else lease,
        access_mode=mode,
        producer_name=producer_name,
        timeout=timeout,
        txn=txn,
        resume=named_or_in_file(resume, resume_file, option="--resume"),
        topic_epoch=epoch,
        on_wait=WaitNote(context, topic, timeout),
        create_topic=create,
    )
    context.show(row, table=lambda shown: shown.session)
