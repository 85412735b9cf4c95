"""Where the process starts: the console script and `python -m txnctl`.

Start-up is part of the product (scripts run txnctl in loops), so three things happen here that a library must not do:

- the garbage collector waits until all modules are loaded, as module objects live as long as the process; then
  collections are seldom, since messages hold no cycles: a short command never meets a collection;
- `inspect`, `gettext` and `uuid`, a quarter of click's own start-up, are loaded on the first access to an attribute,
  mostly never: click needs `inspect` for help texts, `gettext` for translations, and `uuid` for a type of parameter;
- the process ends with `os._exit` once everything is flushed and closed. Finalising the interpreter costs more than
  half of the start, and frees memory that the kernel frees anyway.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


_GC_THRESHOLD = 50_000
"""Objects made and not freed between two looks at the youngest ones; Python's own 700 (2,000) costs bulk loops half."""


class _LoadedOnUse(type(sys)):  # type: ignore[misc]
    """A module that is imported on the first access to an attribute.

    `importlib.util.LazyLoader` would load the module at the next `import` statement (Python 3.11).
    """

    def __getattr__(self, attribute: str) -> object:
        if attribute == "__path__":
            # `from gettext import gettext` asks for it first. None of these modules is a package.
            raise AttributeError(attribute)
        name = str(self.__name__)
        if sys.modules.get(name) is self:
            del sys.modules[name]
        return getattr(__import__(name), attribute)


def _load_on_use() -> None:
    """Put three modules off, and import click, which would load them."""
    sys.modules.setdefault("inspect", _LoadedOnUse("inspect"))
    if "gettext" not in sys.modules:
        # Messages of click stay English, as all of txnctl is.
        gettext = sys.modules["gettext"] = _LoadedOnUse("gettext")
        gettext.gettext = lambda message: message
        gettext.ngettext = lambda singular, plural, count: singular if count == 1 else plural
    if "uuid" not in sys.modules:
        uuid = sys.modules["uuid"] = _LoadedOnUse("uuid")
        uuid.UUID = object
        __import__("click")
        # Click alone keeps the empty module, for a type of parameter that no command has.
        del sys.modules["uuid"]


def run() -> NoReturn:
    """The whole life of the command: load, run, leave."""
    gc.disable()
    try:
        _open_standard_streams()
        _load_on_use()
        from txnctl.cli.main import main

        gc.freeze()
        gc.set_threshold(_GC_THRESHOLD)
        gc.enable()
        status = main(sys.argv[1:])
    except KeyboardInterrupt:
        status = 130
    _leave(status)


def _open_standard_streams() -> None:
    """Put /dev/null where a standard descriptor is closed: otherwise the store's file would get number 1 or 2.

    Standard input is open for writing then: to commands below it is as little to be read as a closed one, not empty.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_WRONLY)


def _leave(status: int) -> NoReturn:
    """End the process without finalising the interpreter, unless threads or exit handlers need the end."""
    threading = sys.modules.get("threading")
    others_run = threading is not None and threading.active_count() > 1
    atexit = sys.modules.get("atexit")
    if others_run or (atexit is not None and atexit._ncallbacks()):
        sys.exit(status)
    os._exit(status)


if __name__ == "__main__":
    run()
