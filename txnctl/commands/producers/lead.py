"""`txnctl producers lead`: leader election for shell scripts."""

from __future__ import annotations

import click

from storage.errors import ProducerBusy, ProducerFenced, SessionNotFound
from txnctl.cli.decorators import argument, changes_store, example, option, passes_arguments
from txnctl.cli.value_types import DURATION, EXCLUSIVE_MODE, TOPIC, TXN_ID, NamedConstant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage import AccessMode
    from storage.client.producer import Producer
    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context

_SETUP = "txnctl topics create nightly"


@argument("topic", type=TOPIC, help="The topic to lead.")
@argument(
    "command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="CMD [ARG]...", help="What to run."
)
@option(
    "--access-mode",
    type=EXCLUSIVE_MODE,
    help="Wait for the turn, give up at once, or evict who is there. [default: WaitForExclusive]",
)
@option(
    "--timeout", type=DURATION, help="Give up waiting after this long, with exit code 7. [default: never]"
)
@option("--producer", "producer_name", metavar="NAME", help="The leader's name. [default: one of its own]")
@option(
    "--on-fenced",
    type=NamedConstant("on fenced", ("term", "ignore")),
    default="term",
    help="What to do if the topic is lost while CMD runs: end it (SIGTERM, after 10 s SIGKILL), or only say so. "
    "[default: term]",
)
@option(
    "--txn",
    type=TXN_ID,
    envvar="TXNCTL_TXN",
    help="The transaction that a take-over spares: it is the leader's own. [env: TXNCTL_TXN]",
)
@passes_arguments
@changes_store()
@example("txnctl producers lead nightly -- txnctl produce nightly -m 'the report is out'", setup=_SETUP)
@example(
    "txnctl producers lead nightly --timeout 10s --producer $(hostname) -- sh -c 'echo one at a time'",
    setup=_SETUP,
)
def lead(
    context: Context,
    topic: str,
    command: Sequence[str],
    access_mode: AccessMode | None,
    timeout: float | None,
    producer_name: str | None,
    on_fenced: str,
    txn: TxnID | None,
) -> None:
    """Wait for exclusive ownership of a topic, run a command as the leader, release the topic.

    One leader of a topic runs a command at a time, first come first served. The environment of the command has the
    session in TXNCTL_SESSION and the store in TXNCTL_STORE: every txnctl inside produces to the topic as the leader,
    and no other producer can. When the command ends, or this process dies by any means, the next leader follows. The
    exit code is that of the command; 128 plus the signal's number after a signal, 127 for a missing command.

    If the topic is lost meanwhile (fenced by an operator, or by ExclusiveWithFencing), the command and its children
    get SIGTERM within a second, and SIGKILL ten seconds later if they are still there; a later publish of the command
    to the topic fails. SIGTERM, SIGHUP and the like are passed on; Ctrl-C goes to the command, and Ctrl-Z stops both.
    If this process is killed outright, the command gets SIGTERM.
    """
    from txnctl.cli import supervise
    from txnctl.commands.producers.waiting import Leaving, WaitNote, check_timeout

    mode = access_mode or EXCLUSIVE_MODE.read("WaitForExclusive")
    check_timeout(timeout, mode)
    if txn is not None:
        context.store.use_transaction(txn)
    supervise.check(command)
    _refuse_nesting(context, topic)
    waited = WaitNote(context, topic, timeout)
    producer = context.store.create_producer(
        topic, producer_name=producer_name, access_mode=mode, timeout=timeout, txn=txn, on_wait=waited
    )
    with Leaving(context, producer):
        if waited.said:
            context.note(f"leading {topic}, epoch {producer.topic_epoch}")
        status = _run(context, producer, command, tells=on_fenced == "term")
    context.exit(status)


def _refuse_nesting(context: Context, topic: str) -> None:
    """A leader that waits to become the leader would wait for itself.

    Raises:
        ProducerBusy
    """
    from txnctl.cli.current_session import of_environment_on

    try:
        token = of_environment_on(context.store, topic)
        if token is None:
            return
        session = context.store.reports.show_session(token).row
    except (ProducerFenced, SessionNotFound):
        # The session of the environment lost the topic: this is another's turn.
        return
    raise ProducerBusy(
        f"this runs under the session of {session.producer_name} on {session.name} already (TXNCTL_SESSION)",
        hint="Run the command unchanged to publish as that producer, or unset TXNCTL_SESSION for a new one.",
        topic=session.name,
        owner=session.producer_name,
    )


def _run(context: Context, producer: Producer, command: Sequence[str], *, tells: bool) -> int:
    """Run the command as the leader; the exit status as a shell reports it."""
    from os import environ

    from txnctl.cli import supervise
    from txnctl.commands.producers.session_watch import Watch

    assert producer.session is not None, "an exclusive producer is connected"
    store = context.store_of_children(context.store)
    environment = {**environ, "TXNCTL_SESSION": producer.session, "TXNCTL_STORE": store}
    watch = Watch(context, producer, command[0], tells=tells)
    return supervise.run(command, environment, watch.look).status
