"""The wait for the next commit of any process on a server's store: a notification, backed by a look once a second.

A process that waits holds a shared lock, so that a commit notifies only if a process waits. The notification is sent
after the commit, because inside it would lock the whole cluster until the commit ends. The commit number decides.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from storage.disk.postgres.environment import PostgresEnvironment

_LOOK_S: Final = 1.0


class ServerCommitWait:
    """The waits of one handle."""

    __slots__ = ("_environment",)

    def __init__(self, environment: PostgresEnvironment) -> None:
        self._environment = environment

    def wait(self, seen: int, until_ns: int) -> bool:
        """Sleep until views show a commit after `seen`, or the boot clock reaches `until_ns`; False for the latter.

        Args:
            seen: the commit number of the caller's last view.

        Raises:
            ServerLost, StoreNotFound
        """
        environment, clock = self._environment, self._environment.clock
        with environment.watching():
            while True:
                if environment.visible_commit() != seen:
                    return True
                left_s = (until_ns - clock.boot_ns()) / 1e9
                if left_s <= 0:
                    return False
                waiting = select.poll()
                waiting.register(environment.descriptor, select.POLLIN)
                clock.sleep_on_input(waiting, min(left_s, _LOOK_S))
