"""Names of topics, subscriptions, producers, consumers and labels, and names of constants. A name is never a path."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, TypeVar

from storage.errors import InvalidName, InvalidValue
from storage.limits import NAME_BYTES_MAX, TOPIC_NAME_BYTES_MAX

LETTERS_PREFIX: Final = "dead-letter-"
"""The prefix of the producer names with which the store writes to dead-letter topics; reserved for the store."""

N = TypeVar("N", bound=Enum)

_PART = re.compile(r"[A-Za-z0-9_.=:-]+")
_SCHEME: Final = "persistent://"
_DEFAULT: Final = "persistent://public/default/"
_RULE: Final = f"Letters, digits and -_.=: are allowed, at most {NAME_BYTES_MAX} of them."


def full_topic_name(name: str) -> str:
    """`persistent://tenant/namespace/topic` of a full or a short topic name.

    Raises:
        InvalidName
    """
    if not isinstance(name, str):
        raise InvalidName(f"{name!r} is not a topic name")
    parts = name[len(_SCHEME) :].split("/") if name.startswith(_SCHEME) else [name]
    if len(parts) not in (1, 3) or (len(parts) == 1) == name.startswith(_SCHEME):
        raise InvalidName(
            f"{_shown(name)} is not a topic name",
            hint="Write topic, or persistent://tenant/namespace/topic.",
            name=name[:80],
        )
    for part in parts:
        check_name("topic name", part)
    full = name if len(parts) == 3 else _DEFAULT + name
    if len(full) > TOPIC_NAME_BYTES_MAX:
        raise InvalidName(
            f"a topic name of {len(full)} characters is too long", hint=f"At most {TOPIC_NAME_BYTES_MAX}."
        )
    return full


def short_topic_name(full: str) -> str:
    """The short name of a topic in the default namespace, else the full name."""
    return full[len(_DEFAULT) :] if full.startswith(_DEFAULT) else full


def check_name(kind: str, name: str) -> str:
    """Check that `name` is a valid name of a `kind`, and return `name`.

    Raises:
        InvalidName
    """
    if not isinstance(name, str):
        raise InvalidName(f"{name!r} is not a {kind}")
    if len(name) > NAME_BYTES_MAX or name in (".", "..") or _PART.fullmatch(name) is None:
        raise InvalidName(f"{_shown(name)} is not a valid {kind}", hint=_RULE, name=name[:80])
    return name


def named(kind: type[N], value: N | str | None, noun: str) -> N | None:
    """Return a constant given as a member or by name: `READ_COMMITTED`, `read-committed`, `Key_Shared`, `keyShared`.

    Raises:
        InvalidValue: the value is neither a member nor a name.
    """
    if value is None or isinstance(value, kind):
        return value
    bare_name = _bare(value) if isinstance(value, str) else ""
    for name, constant in kind.__members__.items():
        if _bare(name) == bare_name:
            return constant
    raise _no_constant(kind, value, noun)


def chosen(kind: type[N], value: N | str, noun: str) -> N:
    """Return a constant as `named` does, where none must be left out.

    Raises:
        InvalidValue: the value is neither a member nor a name.
    """
    constant = named(kind, value, noun)
    if constant is None:
        raise _no_constant(kind, value, noun)
    return constant


def _no_constant(kind: type[Enum], value: object, noun: str) -> InvalidValue:
    names = [one.value if isinstance(one.value, str) else one.name.lower() for one in kind]
    return InvalidValue(f"{value!r} is no {noun}", hint=f"One of {', '.join(names)}.")


def _bare(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 80 else name[:80] + "...")
