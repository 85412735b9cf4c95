"""The options of a producer that connects, checked before the store is touched."""

from __future__ import annotations

from collections.abc import Callable

from storage.disk.connection import Connection
from storage.disk.view import WriteBatch
from storage.errors import InvalidName, InvalidValue
from storage.limits import SESSION_LEASE_MS_MAX
from storage.process.clock import nanoseconds
from storage.topic import catalogue as topics
from storage.topic.catalogue import Topic
from storage.topic.producers.access_mode import AccessMode
from storage.topic.producers.admission import AccessRequest
from storage.topic.producers.session import Token
from storage.values.arguments import check_flags
from storage.values.names import LETTERS_PREFIX, check_name, named

OnTurn = Callable[[list[str]], None]
"""Called once, when a producer begins to wait, with the producers before it."""


class WaitOptions:
    """How a producer waits for its turn.

    Attributes:
        timeout: seconds; None waits for ever.
    """

    __slots__ = ("on_wait", "timeout")

    def __init__(self, timeout: float | None = None, on_wait: OnTurn | None = None) -> None:
        self.timeout = timeout
        self.on_wait = on_wait


class ConnectOptions:
    """See `Store.create_producer` and `Store.open_session`.

    Attributes:
        lease_ms: the lease of a session for the shell; 0 for a session that is attached to this process.
        create_topic: create the topic if it is missing.
        create_late: the first message does so, and connects the producer.
    """

    __slots__ = ("create_late", "create_topic", "lease_ms", "request", "topic", "wait")

    def __init__(
        self,
        topic: str,
        request: AccessRequest,
        wait: WaitOptions,
        *,
        create_topic: bool = False,
        lease: float | None = None,
    ) -> None:
        """Raises:
        InvalidValue: the lease is out of bounds, or `create_topic` neither True nor False.
        """
        check_flags(create_topic=create_topic)
        self.topic = topic
        self.request = request
        self.wait = wait
        self.create_topic = create_topic
        self.create_late = False
        self.lease_ms = 0 if lease is None else _lease_ms(lease)

    def may_create_late(self, connection: Connection) -> bool:
        """Whether a message may create the topic: it is missing, and no session or epoch of a former one is asked for.

        Raises:
            InvalidName
        """
        request = self.request
        is_asked = self.create_topic or self.create_late
        if not is_asked or request.resume is not None or request.brings is not None:
            return False
        with connection.view() as view:
            return topics.find(view, self.topic) is None

    def find_topic(self, batch: WriteBatch) -> Topic:
        """Find the topic, or create it if the options say so.

        Raises:
            TopicNotFound
        """
        if self.create_topic or self.create_late:
            return topics.find_or_create(batch, self.topic)
        return topics.get(batch, self.topic)


def access_mode_of(access_mode: AccessMode | str | None, default: AccessMode) -> AccessMode:
    """The access mode that is named, or the default.

    Raises:
        InvalidValue
    """
    return named(AccessMode, access_mode, "access mode") or default


def access_request(
    mode: AccessMode,
    name: str | None,
    epoch: int | None,
    resume: str | None,
    spare: int = 0,
) -> AccessRequest:
    """Check the access that a producer asks for.

    Args:
        epoch: of the topic, when the producer was connected before.
        resume: the token of the session by which the producer was connected before.
        spare: the number of the transaction that a take-over spares; 0 for none.

    Raises:
        InvalidName, InvalidValue
    """
    if not mode.is_exclusive and (epoch is not None or resume is not None):
        raise InvalidValue(
            "a Shared producer brings no epoch and resumes no session: it just connects again",
            hint="Epoch and session belong to the exclusive access modes.",
        )
    if epoch is not None and (type(epoch) is not int or not 0 <= epoch < 1 << 62):
        raise InvalidValue(f"a topic's epoch is a whole number of 0 or more, not {epoch!r}")
    if resume is not None and name is not None:
        raise InvalidValue("a session that is resumed keeps its name", hint="Leave the producer's name out.")
    checked_name = None if name is None else _check_given_name(name)
    return AccessRequest(mode, checked_name, epoch, None if resume is None else Token(resume), spare)


def _lease_ms(seconds: float) -> int:
    lease_ms = nanoseconds(seconds, "a lease") // 1_000_000
    if not 0 < lease_ms <= SESSION_LEASE_MS_MAX:
        raise InvalidValue(f"a lease of {seconds:g} s is not between 1 ms and 24 h", leaseMs=lease_ms)
    return lease_ms


def _check_given_name(name: str) -> str:
    """Return a name that an application may give to a producer.

    Raises:
        InvalidName
    """
    check_name("producer name", name)
    prefix, _, number = name.rpartition("-")
    if (prefix == "producer" and number.isdigit()) or name.startswith(LETTERS_PREFIX):
        raise InvalidName(
            f"{name} is a name that the store gives", hint="Choose another name for the producer."
        )
    return name
