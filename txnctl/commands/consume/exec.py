"""`consume --exec`: a command for each message; the exit code acknowledges the message or gives the message back."""

from __future__ import annotations

import os
import signal
import subprocess
from binascii import b2a_base64

from storage.errors import TxnctlError
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
"""Linux takes 128 KiB; what is longer is left out."""

_ENDING = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}

_FAREWELL_S = 2.0
"""How long a command that was told to end may take, before it is killed."""


class CommandFailed(TxnctlError):
    """The command of `consume --exec` failed; the exit code is that of the command. The message was given back, and is
    delivered again or goes to the dead-letter topic.
    """

    code = "command-failed"


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
            status = self._run(message)
            if status == 0:
                self._consumer.acknowledge(message, txn=self._txn)
                self._done += 1
                self._again.discard(message.message_id)
                continue
            self._failed += 1
            self._status = status
            how = f"message {message.message_id}: the command exited with {status}"
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
        """The exit code, as reported by a shell. The command never outlives this process, except after SIGKILL."""
        environment = self._environment(message)
        # Between fork and return no signal may end this process: the command would go on alone.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)

        def release() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

        try:
            child = subprocess.Popen(
                [_SHELL, "-c", self._command],
                stdin=subprocess.PIPE,
                env=environment,
                preexec_fn=release,  # noqa: PLW1509  this process has no other threads
            )
        except BaseException:
            release()
            raise
        try:
            release()
            child.communicate(message.value or b"")
        except BaseException:
            child.terminate()
            try:
                child.wait(_FAREWELL_S)
            except subprocess.TimeoutExpired:
                child.kill()
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
            if text is not None and len(os.fsencode(text)) <= _VARIABLE_BYTES_MAX:
                environment[f"TXNCTL_MESSAGE_{name}"] = text
        environment["TXNCTL_STORE"] = self._store_path
        if self._txn is not None:
            environment["TXNCTL_TXN"] = str(self._txn)
        return environment


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
