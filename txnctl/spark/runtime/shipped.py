"""Objects that Spark ships to tasks, unpacked there: a host without a package gets one sentence and no traceback.

Readers, writers and partitions are pickled by the driver. Plain pickle imports their modules in the task before any
code of txnctl runs; a missing package would then be an ImportError of pickle, which names neither host nor store. A
shipped object is pickled as a call of `unpack`, whose module needs no package.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any

from txnctl.spark.runtime.task_host import lacks_package


class Shipped(ABC):
    """The base of classes whose objects go to tasks; their state is their `__dict__`."""

    @abstractmethod
    def store_path(self) -> str:
        """The path of the store or of its files, for the error of a host that cannot work on them."""

    def __reduce__(self) -> tuple[Any, ...]:
        kind = type(self)
        return unpack, (kind.__module__, kind.__qualname__, pickle.dumps(vars(self)), self.store_path())


def unpack(module: str, name: str, state: bytes, store_path: str) -> object:
    """Make the object of a class of a module, with its pickled state.

    Raises:
        ProgramMissing: a package that the module needs is not installed here; host, Python and store are named.
    """
    try:
        kind = getattr(import_module(module), name)
        values: dict[str, object] = pickle.loads(state)
    except ImportError as error:
        raise lacks_package(error, store_path) from error
    shipped = kind.__new__(kind)
    vars(shipped).update(values)
    return shipped
