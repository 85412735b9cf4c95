"""An open topic: the topic's id and state within one view or batch, in one value.

Made over a view, an open topic is for reading only. Made over a batch, changes of its state are seen by everything
that opens the same topic in the batch, and the batch writes the state when the batch finishes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from storage.disk.view import ReadView
from storage.topic import state as states
from storage.topic.state import TopicState
from storage.values.named_tuple import NamedTuple

V = TypeVar("V", bound=ReadView, covariant=True)
W = TypeVar("W", bound=ReadView)


class OpenTopic(NamedTuple, Generic[V]):
    """See the module. Made by `load`.

    Attributes:
        view: the view, or the batch.
        name: for messages; empty where no message names the topic.
    """

    view: V
    topic_id: int
    name: str
    state: TopicState

    @staticmethod
    def load(view: W, topic_id: int, name: str = "") -> OpenTopic[W]:
        """Open the topic of an id.

        Raises:
            TopicNotFound: the topic was deleted meanwhile.
        """
        return as_open_topic((view, topic_id, name, states.load(view, topic_id)))


as_open_topic: Callable[[tuple[Any, int, str, TopicState]], OpenTopic[Any]] = partial(
    tuple.__new__, OpenTopic
)
"""Make an open topic of its fields, like `as_position`."""
