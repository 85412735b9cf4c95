"""Connecting `produce` to a topic: through an open session, or in an access mode."""

from __future__ import annotations

from storage.errors import InvalidValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from storage.client.producer import Producer
    from txnctl.cli.context import Context

_OF_CONNECTING = {"access_mode": "--access-mode", "epoch": "--epoch", "timeout": "--timeout"}
"""What only somebody who connects can say: parameter -> option. A timeout may be that of --atomic instead."""


def check(how: dict[str, Any]) -> None:
    """Refuse contradicting options about connecting.

    Raises:
        InvalidValue
    """
    from txnctl.commands.producers.waiting import check_timeout

    mode = _mode(how)
    if how["session"] is not None:
        for name in _said_of_connecting(how):
            option = _OF_CONNECTING[name]
            raise InvalidValue(f"{option} is for connecting, and --session is connected already")
        return
    if not how["atomic"]:
        check_timeout(how["timeout"], mode)
    if how["epoch"] is not None and not mode.is_exclusive:
        raise InvalidValue(
            "--epoch is what an exclusive producer brings along; Shared ones take the topic's",
            hint="Leave it out, or give an exclusive --access-mode.",
        )


def connect(context: Context, topic: str, how: dict[str, Any], *, create: bool, once: bool) -> Producer:
    """A producer, connected; waited for, if that was asked for.

    Args:
        how: the command's own options by name.
        once: it sends once: a Shared one need not be connected for that, which makes it one durable commit in all.

    Raises:
        as `Store.create_producer`
    """
    store = context.store
    token = _token(context, topic, how)
    if token is not None:
        producer = store.session_producer(topic, token)
        _check_name(producer, how["producer_name"])
        return producer
    from storage import AccessMode
    from txnctl.commands.producers.waiting import WaitNote

    mode = _mode(how)
    timeout = how["timeout"] if mode is AccessMode.WAIT_FOR_EXCLUSIVE else None
    if how["txn"] is not None and mode.is_exclusive:
        # Check the transaction first: an ended transaction must not evict producers.
        store.use_transaction(how["txn"])
    return store.create_producer(
        topic,
        producer_name=how["producer_name"],
        access_mode=mode,
        timeout=timeout,
        txn=how["txn"],
        topic_epoch=how["epoch"],
        connected=mode.is_exclusive or not once,
        create_topic=create,
        on_wait=WaitNote(context, topic, timeout),
    )


def _mode(how: dict[str, Any]) -> Any:
    from storage import AccessMode

    return how["access_mode"] or AccessMode.SHARED


def _said_of_connecting(how: dict[str, Any]) -> list[str]:
    """The parameters given that are about connecting."""
    return [
        name for name in _OF_CONNECTING if how[name] is not None and not (name == "timeout" and how["atomic"])
    ]


def _token(context: Context, topic: str, how: dict[str, Any]) -> str | None:
    """The session to publish through. Options count before TXNCTL_SESSION."""
    if how["session"] is not None:
        return str(how["session"])
    if how["access_mode"] is not None or how["epoch"] is not None:
        return None
    from txnctl.cli.current_session import of_environment_on

    return of_environment_on(context.store, topic)


def _check_name(producer: Producer, wanted: str | None) -> None:
    """See that the session's producer is the one that was named.

    Raises:
        InvalidValue
    """
    if wanted not in (None, producer.producer_name):
        raise InvalidValue(
            f"--producer {wanted}: the session is that of producer {producer.producer_name}",
            hint="Leave out --producer, or open a session under that name.",
        )
