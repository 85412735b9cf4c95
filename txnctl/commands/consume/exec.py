"""`consume --exec`: a command for each message; the exit code acknowledges the message or gives the message back."""

from __future__ import annotations

import os
import signal
import subprocess
from binascii import b2a_base64
from errno import E2BIG
from time import sleep

from storage.errors import TxnctlError
from txnctl.cli.supervise import NOT_RUNNABLE
from txnctl.commands.consume.stop_signals import foreground_group
from txnctl.output import json_text
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage import Consumer, Message, MessageId, TxnID
    from txnctl.cli.context import Context
    from txnctl.commands.consume.options import ConsumeOptions

_SHELL = "/bin/sh"
RETRY_DELAY_S = 60.0
_VARIABLE_BYTES_MAX = 100_000
"""Linux takes 128 KiB, with the name; a message with a longer key or longer properties fails."""

_ENDING = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}

_FAREWELL_S = 2.0
"""How long a command that was told to end may take, before it is killed."""

_FAREWELL_LOOK_S = 0.02
"""Seconds between two looks whether a command that was told to end has ended."""


class CommandFailed(TxnctlError):
    """The command of `consume --exec` failed; the exit code is that of the command. The message was given back, and is
    delivered again or goes to the dead-letter topic.
    """

    code = "command-failed"


class _NotRun(Exception):
    """The reason why a command cannot be given a message."""


class Commands:
    """Runs the command, and acknowledges or gives back."""

    def __init__(
        self,
        context: Context,
        store_path: str,
        consumer: Consumer,
        options: ConsumeOptions,
        txn: TxnID | None,
    ) -> None:
        assert options.run is not None, "--exec was given"
        self._context = context
        self._store_path = store_path
        self._consumer = consumer
        self._command = options.run
        self._txn = txn
        self._retry_delay: float | None = None
        self._letters_topic = ""
        if options.on_error == "retry":
            self._retry_delay = RETRY_DELAY_S if options.retry_delay is None else options.retry_delay
        self._done = self._failed = self._status = self._letters = 0
        self._again: set[MessageId] = set()

    def handle(self, messages: Sequence[Message]) -> None:
        """Run the command once a message.

        Raises:
            CommandFailed: the command failed, without --on-error retry.
        """
        for message in messages:
            try:
                status = self._run(message)
                how = f"message {message.message_id}: the command exited with {status}"
            except _NotRun as reason:
                status = NOT_RUNNABLE
                how = f"message {message.message_id}: {reason}, so the command was not run"
            if status == 0:
                self._consumer.acknowledge(message, txn=self._txn)
                self._done += 1
                self._again.discard(message.message_id)
                continue
            self._failed += 1
            self._status = status
            letters = self._consumer.dead_letter_topic_of(message)
            if letters is not None:
                self._letters += 1
                self._letters_topic = letters
                self._again.discard(message.message_id)
            if self._retry_delay is None:
                given = "was given back" if letters is None else _goes_to(letters)
                raise self._failure(f"{how}; the message {given}")
            self._consumer.negative_acknowledge(message, delay=self._retry_delay)
            if letters is None:
                self._again.add(message.message_id)
                self._context.warn(f"{how}; the message comes again in {self._retry_delay:g} s")
            else:
                self._context.warn(f"{how}; the message {_goes_to(letters)} in {self._retry_delay:g} s")

    def check(self) -> None:
        """Raises CommandFailed if any command failed."""
        if self._failed:
            from txnctl.output.human import plural

            ends = []
            if self._again:
                verb = "comes" if len(self._again) == 1 else "come"
                ends.append(f"{plural(len(self._again), 'message')} {verb} again")
            if self._letters:
                verb = "goes" if self._letters == 1 else "go"
                ends.append(
                    f"{plural(self._letters, 'message')} {verb} to the dead-letter topic {self._letters_topic}"
                )
            text = f"the command failed {plural(self._failed, 'time')}"
            raise self._failure("; ".join([text, *ends]))

    def _failure(self, text: str) -> CommandFailed:
        error = CommandFailed(text, status=self._status, done=self._done, failed=self._failed)
        error.exit_code = self._status
        if self._letters:
            redrive = line("subscriptions redrive", self._consumer.topic, self._consumer.subscription)
            error.hint = f"Mend the cause; then `{redrive}`."
        return error

    def summary(self) -> str:
        """How it went."""
        from txnctl.output.human import plural

        return f"{plural(self._done, 'message')} done, {self._failed:,} failed"

    def _run(self, message: Message) -> int:
        """The exit code, as reported by a shell. The command never outlives this process, except after SIGKILL.

        Raises:
            _NotRun: the command cannot be given the whole message.
        """
        environment = self._environment(message)
        is_at_terminal = foreground_group() == os.getpgrp()
        # Between fork and return no signal may end this process: the command would go on alone.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)

        def release() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

        def prepare() -> None:
            if is_at_terminal:
                # The group of the terminal gets its hang-up, too, and the command is to finish.
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
            release()

        try:
            child = subprocess.Popen(
                [_SHELL, "-c", self._command],
                stdin=subprocess.PIPE,
                env=environment,
                preexec_fn=prepare,  # noqa: PLW1509  this process has no other threads
                # In a group of its own the command could not read the terminal, nor hear Ctrl-C and Ctrl-Z.
                process_group=None if is_at_terminal else 0,
            )
        except BaseException as error:
            release()
            if isinstance(error, OSError) and error.errno == E2BIG:
                raise _NotRun(f"the system refuses the environment: {error.strerror}") from error
            raise
        try:
            release()
            child.communicate(message.value or b"")
        except BaseException:
            _end(child)
            raise
        return child.returncode if child.returncode >= 0 else 128 - child.returncode

    def _environment(self, message: Message) -> dict[str, str]:
        facts: dict[str, str | None] = {
            "ID": str(message.message_id),
            "TOPIC": message.topic,
            **_key(message.key),
            "PROPERTIES": json_text.one_line(message.properties),
            "EVENT_TIME_MS": None if message.event_time is None else str(message.event_time),
            "DELIVERY_TIME_MS": None if message.deliver_at is None else str(message.deliver_at),
            "PUBLISH_TIME_MS": str(message.publish_time),
            "PRODUCER": message.producer_name,
            "SEQUENCE_ID": str(message.sequence_id),
            "REDELIVERY_COUNT": str(message.redelivery_count),
            "NULL": "1" if message.value is None else None,
        }
        # Variables of an outer --exec belong to a different message.
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("TXNCTL_MESSAGE_")
        }
        for name, text in facts.items():
            if text is not None:
                environment[f"TXNCTL_MESSAGE_{name}"] = _fitting(name, text)
        environment["TXNCTL_STORE"] = self._store_path
        if self._txn is not None:
            environment["TXNCTL_TXN"] = str(self._txn)
        return environment


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the command and all that it started; no further signal comes in between."""
    from txnctl.cli.farewell import Farewell

    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        farewell = Farewell(child, signal.SIGTERM, _FAREWELL_S)
        while child.poll() is None or not farewell.is_over():
            sleep(_FAREWELL_LOOK_S)
            farewell.look()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _fitting(name: str, text: str) -> str:
    """The text of a variable.

    Raises:
        _NotRun: the text is too long.
    """
    size = len(os.fsencode(text))
    if size > _VARIABLE_BYTES_MAX:
        part = name.lower().replace("_", " ")
        raise _NotRun(f"{size:,} bytes of {part} fit no variable ({_VARIABLE_BYTES_MAX:,} at most)")
    return text


def _goes_to(dead_letter_topic: str) -> str:
    return f"goes to the dead-letter topic {dead_letter_topic}"


def _key(key: bytes | None) -> dict[str, str | None]:
    """The key as text, or as Base64 where no variable can hold the text."""
    if key is None:
        return {}
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return {"KEY_BASE64": b2a_base64(key, newline=False).decode()}
    return {"KEY": text}
