"""The session of a command line: named, in a file, or in TXNCTL_SESSION, on the topic of that session only.

The arguments of a process are shown to every user of the machine (`ps`), and a token is a secret: hence the file and
the variable.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import Store


def of_environment() -> str | None:
    """Return the token in TXNCTL_SESSION; None if the variable is not set.

    Raises:
        InvalidValue: the value of the variable is no token; an empty one is left behind by a `producers open` that
            failed.
    """
    from os import environ

    text = environ.get("TXNCTL_SESSION")
    if text is None:
        return None
    from storage.errors import InvalidValue
    from txnctl.cli.value_types import SESSION

    try:
        return SESSION.read(text)
    except InvalidValue as error:
        error.message = f"TXNCTL_SESSION: {error.message}"
        error.args = (error.message,)
        raise


_TOKEN_BYTES_MAX = 1000


def named_or_in_file(token: str | None, file: str | None, *, option: str = "--session") -> str | None:
    """Return the token of an option, else the token in the file of the option `OPTION-file`; None without both.

    Args:
        file: `-` is standard input.

    Raises:
        InvalidValue: both are given, or the file cannot be read or holds no token.
    """
    if file is None:
        return token
    from storage.errors import InvalidValue

    if token is not None:
        raise InvalidValue(f"{option} and {option}-file both name a session", hint="Leave one of them out.")
    from txnctl.cli.value_types import SESSION
    from txnctl.input.source import Source
    from txnctl.output.shell import line

    source = Source.open(file)
    content = source.read_all(_TOKEN_BYTES_MAX)[:_TOKEN_BYTES_MAX]
    try:
        return SESSION.read(content.decode().strip())
    except (InvalidValue, UnicodeDecodeError):
        # The content stays unsaid: the file may hold a different secret.
        raise InvalidValue(
            f"{source.name} holds no token of a session",
            hint=f"`{line('producers open', 'TOPIC')} > FILE` writes one.",
            path=file,
        ) from None


def named_or_current(named: str | None) -> str:
    """Return the token on the command line, else the token in TXNCTL_SESSION.

    Raises:
        InvalidValue: neither gives a token.
    """
    token = named if named is not None else of_environment()
    if token is None:
        from storage.errors import InvalidValue
        from txnctl.output.shell import line

        raise InvalidValue(
            "no session is named, and TXNCTL_SESSION is not set",
            hint=f"`{line('producers open', 'TOPIC')}` prints the token of a new session, for the variable or a file.",
        )
    return token


def of_environment_on(store: Store, topic: str) -> str | None:
    """Return the token in TXNCTL_SESSION if the session belongs to this topic, else None.

    Raises:
        InvalidValue: the value of the variable is no token.
        ProducerFenced: the topic of the session was deleted. This topic may have the same name: a former leader must
            get the error, and not continue as a Shared producer.
    """
    token = of_environment()
    if token is None:
        return None
    from storage.topic import catalogue as topics
    from storage.topic.producers.session import Token

    topic_id = Token(token).topic_id
    with store.connection.view() as view:
        if not Token(token).is_of(view):
            return None
        state = topics.find(view, topic)
        if state is not None and state.topic_id == topic_id:
            return token
        if any(other.topic_id == topic_id for other in topics.every(view)):
            return None
    from storage.errors import ProducerFenced

    raise ProducerFenced(
        "the topic of the session in TXNCTL_SESSION was deleted",
        hint=f"To produce to {topic} all the same: unset TXNCTL_SESSION.",
        topic=topic,
    )
