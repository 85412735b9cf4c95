"""The name of a store as an option of Spark: an absolute path, or the URL of a server.

Spark shows options on the page of the job, in plans and in logs, and sends options to executors on further hosts: a
password has no place there. Driver and executors each find the password as every client of PostgreSQL does.
"""

from __future__ import annotations

from os.path import abspath

from storage.disk.stores import is_url, without_password
from storage.errors import InvalidValue


def shown_name(name: str) -> str:
    """The name of a store that Spark may show: an absolute path, or a URL without a password.

    Raises:
        InvalidValue: the URL has a password, or cannot be read.
    """
    return without_url_password(name) if is_url(name) else abspath(name)


def without_url_password(name: str) -> str:
    """A path unchanged, or a URL that has no password.

    Raises:
        InvalidValue: the URL has a password, or cannot be read.
    """
    try:
        return without_password(name)
    except InvalidValue as error:
        if error.details.get("parameter") == "password":
            error.message = (
                "the URL of the store has a password, which Spark shows to everybody who sees the job"
            )
            error.args = (error.message,)
            error.hint = (
                "Give the URL without it. Driver and executors find the password in a file that PGPASSFILE names, in "
                "pg_service.conf, or in PGPASSWORD (spark.executorEnv.PGPASSFILE for executors)."
            )
        raise


def refuse_offload_path(name: str, offload_path: str | None) -> None:
    """Refuse offloaded files of a store on a server.

    Raises:
        InvalidValue
    """
    if offload_path is not None and is_url(name):
        raise InvalidValue(
            "offloaded files are for a store in a directory, and this store is on a server",
            hint="Leave out offloadPath (--offload-path): tasks on every host read from the server itself.",
        )
