"""An open topic: the topic's id and state within one view or batch, in one value.

Made over a view, an open topic is for reading only. Made over a batch, changes of its state are seen by everything
that opens the same topic in the batch, and the batch writes the state when the batch finishes.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from storage.disk.view import ReadView
from storage.topic import state as states

V = TypeVar("V", bound=ReadView, covariant=True)


class OpenTopic(Generic[V]):
    """See the module.

    Attributes:
        view: the view, or the batch.
        name: for messages; empty where no message names the topic.
    """

    __slots__ = ("name", "state", "topic_id", "view")

    def __init__(self, view: V, topic_id: int, name: str = "") -> None:
        """Raises:
        TopicNotFound: the topic was deleted meanwhile.
        """
        self.view = view
        self.topic_id = topic_id
        self.name = name
        self.state = states.load(view, topic_id)
