"""Connecting `produce` to a topic: through an open session, or in an access mode."""

from __future__ import annotations

from storage.errors import InvalidValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import AccessMode
    from storage.client.producer import Producer
    from txnctl.cli.context import Context
    from txnctl.commands.produce.options import ProduceOptions

_OF_CONNECTING = {"access_mode": "--access-mode", "epoch": "--epoch", "timeout": "--timeout"}
"""What only somebody who connects can say: parameter -> option. A timeout may be that of --atomic instead."""


def check(options: ProduceOptions) -> None:
    """Refuse contradicting options about connecting.

    Raises:
        InvalidValue
    """
    from txnctl.commands.producers.waiting import check_timeout

    mode = _mode(options)
    if options.session is not None:
        for name in _said_of_connecting(options):
            option = _OF_CONNECTING[name]
            raise InvalidValue(f"{option} is for connecting, and --session is connected already")
        return
    if not options.atomic:
        check_timeout(options.timeout, mode)
    if options.epoch is not None and not mode.is_exclusive:
        raise InvalidValue(
            "--epoch is what an exclusive producer brings along; Shared ones take the topic's",
            hint="Leave it out, or give an exclusive --access-mode.",
        )


def connect(context: Context, topic: str, options: ProduceOptions) -> Producer:
    """A producer, connected; waited for, if that was asked for.

    Raises:
        as `Store.create_producer`
    """
    store = context.store
    token = _token(context, topic, options)
    if token is not None:
        producer = store.session_producer(topic, token)
        _check_name(producer, options.producer_name)
        return producer
    from storage import AccessMode
    from txnctl.commands.producers.waiting import WaitNote

    mode = _mode(options)
    timeout = options.timeout if mode is AccessMode.WAIT_FOR_EXCLUSIVE else None
    if options.txn is not None and mode.is_exclusive:
        # Check the transaction first: an ended transaction must not evict producers.
        store.use_transaction(options.txn)
    return store.create_producer(
        topic,
        producer_name=options.producer_name,
        access_mode=mode,
        timeout=timeout,
        txn=options.txn,
        topic_epoch=options.epoch,
        connected=mode.is_exclusive or options.reads_input,
        create_late=options.create,
        on_wait=WaitNote(context, topic, timeout),
    )


def _mode(options: ProduceOptions) -> AccessMode:
    from storage import AccessMode

    return options.access_mode or AccessMode.SHARED


def _said_of_connecting(options: ProduceOptions) -> list[str]:
    """The parameters given that are about connecting."""
    return [
        name
        for name in _OF_CONNECTING
        if getattr(options, name) is not None and not (name == "timeout" and options.atomic)
    ]


def _token(context: Context, topic: str, options: ProduceOptions) -> str | None:
    """The session to publish through. Options count before TXNCTL_SESSION."""
    if options.session is not None:
        return str(options.session)
    if options.access_mode is not None or options.epoch is not None:
        return None
    from txnctl.cli.current_session import of_environment_on

    return of_environment_on(context.store, topic)


def _check_name(producer: Producer, name: str | None) -> None:
    """See that the session's producer is the one that was named.

    Raises:
        InvalidValue
    """
    if name not in (None, producer.producer_name):
        raise InvalidValue(
            f"--producer {name}: the session is that of producer {producer.producer_name}",
            hint="Leave out --producer, or open a session under that name.",
        )
