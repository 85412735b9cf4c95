"""The creation of a topic by the first message of a producer, which connects in the same store transaction.

A command that is refused or killed before its first message is stored then leaves no empty topic (invariant 24).
"""

from __future__ import annotations

from functools import partial

from storage.client.connect_options import ConnectOptions
from storage.disk.connection import Connection
from storage.disk.view import WriteBatch
from storage.topic.catalogue import Topic
from storage.topic.open_topic import OpenTopic
from storage.topic.producers import errors, session_end
from storage.topic.producers.admission import AccessRequest, ProducerRegistry, SessionLifetime
from storage.topic.producers.publish_check import Connected, Credential, Passing
from storage.txn.coordinator import Coordinator
from storage.txn.fenced_txns import FencedTransactions


class Unconnected:
    """The credential of a producer whose topic is not created yet: what is known of the producer beforehand."""

    epoch = None
    token = None

    def __init__(self, request: AccessRequest) -> None:
        self.mode = request.mode
        self.name = request.name
        self.keeps_sequences = request.mode.is_exclusive or request.name is not None

    def check_publish(self, topic: OpenTopic[WriteBatch], name: str | None) -> tuple[int, str]:  # noqa: ARG002
        raise AssertionError("the creation of the topic has connected the producer")


class TopicCreation:
    """See the module.

    Args:
        connects: the producer stays connected from then on, instead of during each send.
    """

    __slots__ = ("_connection", "_connects", "_options", "_transactions")

    def __init__(
        self, connection: Connection, coordinator: Coordinator, options: ConnectOptions, *, connects: bool
    ) -> None:
        self._connection = connection
        self._options = options
        self._connects = connects
        self._transactions = FencedTransactions(coordinator, connection.identity)

    def connect(self, batch: WriteBatch) -> tuple[Topic, Credential]:
        """Create the topic and connect the producer; if the batch is refused for good, neither stays.

        Raises:
            ProducerBusy: a different process has created the topic meanwhile, and produces there.
        """
        request, topic = self._options.request, self._options.find_topic(batch)
        if not self._connects:
            return topic, Passing(topic, request.name)
        opened = OpenTopic.load(batch, topic.topic_id, topic.name)
        registry = ProducerRegistry(opened, self._transactions, request=request)
        if request.mode.waits and registry.present:
            raise errors.busy(batch, batch.locks, topic.name, request.mode, registry.present)
        lifetime = SessionLifetime(self._connection.identity, lease=self._connection.lease(batch))
        session = registry.admit(request, lifetime)
        batch.undo_if_refused(partial(session_end.leave, batch, session))
        return topic, Connected(topic, session)
