"""Where stores of a crash sweep stand: directories, or schemas of the server on which tests run (`tests/server_stores.py`)."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from typing import Any

from tests import server_stores
from tests.waiting import wait_for

PATIENCE_S = 30.0
_SESSIONS = "SELECT 1 FROM pg_stat_activity WHERE application_name ~ '^txnctl:' AND application_name ~ %s"


def is_on_server() -> bool:
    """Whether stores of tests stand on a server."""
    return server_stores.SERVER in os.environ


def name_of(path: str) -> str:
    """The name of the store that a test names by a path: the path, or the URL on the server."""
    return server_stores.url_of(path) if is_on_server() else path


def is_there(name: str) -> bool:
    """Whether a store, or anything else, stands under a name."""
    if not server_stores.is_url(name):
        return os.path.exists(name)
    with closing(_connected()) as connection:
        found = connection.execute(
            "SELECT 1 FROM pg_namespace WHERE nspname = %s", (server_stores.schema_of(name),)
        )
        return found.fetchone() is not None


def rows(url: str) -> dict[str, list[Any]]:
    """The rows of each table of a store on the server, counters and marks included, with the commit of each row."""
    schema = server_stores.schema_of(url)
    with closing(_connected()) as connection:
        tables = connection.execute(
            "SELECT table_name::text FROM information_schema.tables WHERE table_schema = %s", (schema,)
        ).fetchall()
        return {
            name: connection.execute(
                f'SELECT xmin::text, t::text FROM "{schema}".{name} t ORDER BY 2'
            ).fetchall()
            for (name,) in tables
        }


def remove(name: str) -> None:
    """Remove a store in one step, so that a kill leaves the whole store or none under the name."""
    if not server_stores.is_url(name):
        trash = name + ".trash"
        shutil.rmtree(trash, ignore_errors=True)
        os.rename(name, trash)
        return
    with closing(_connected()) as connection:
        connection.execute("SET client_min_messages = error")
        connection.execute(f'DROP SCHEMA "{server_stores.schema_of(name)}" CASCADE')


def await_end(pid: int) -> None:
    """Wait until the server has ended the sessions of a killed process; a kernel ends locks of files with the process."""
    if not is_on_server():
        return
    with closing(_connected()) as connection:
        wait_for(
            lambda: connection.execute(_SESSIONS, (f":{pid}(:|$)",)).fetchone() is None,
            f"the server ends the sessions of the dead process {pid}",
            PATIENCE_S,
        )


def _connected() -> Any:
    import psycopg

    return psycopg.connect(os.environ[server_stores.SERVER], autocommit=True)
