"""Reads messages from Kinora in a thread of its own, so that a cancel arrives while the engine works."""

import os
import queue
import sys
import threading
from dataclasses import dataclass, field

from ._cancel import Cancel
from ._messages import InvalidMessage, JobHead, Open, parse_job, parse_open
from ._source import Answers
from ._streams import end_group
from ._wire import WireError, read_message


@dataclass
class Arrived:
    """A job, complete with its materials once the reader hands it over."""

    head: JobHead
    cancel: Cancel = field(default_factory=Cancel)
    answers: Answers = field(default_factory=queue.SimpleQueue)
    materials: list[bytes] = field(default_factory=list)


class Reader:
    """Delivers the open message and the jobs. The process ends with the stream."""

    def __init__(self, descriptor: int) -> None:
        self._stream = os.fdopen(descriptor, "rb", buffering=1 << 16)
        self._inbox: queue.SimpleQueue[Open | InvalidMessage | Arrived] = queue.SimpleQueue()
        self._job: Arrived | None = None
        threading.Thread(target=self._read_all, name="kinora-reader", daemon=True).start()

    def open(self) -> Open:
        """Waits for the open message.

        Raises:
            InvalidMessage: it is invalid.
        """
        message = self._inbox.get()
        if isinstance(message, InvalidMessage):
            raise message
        if not isinstance(message, Open):
            raise InvalidMessage("a job came before the open message")
        return message

    def job(self) -> Arrived:
        """Waits for the next job and its materials."""
        while not isinstance(message := self._inbox.get(), Arrived):
            pass
        return message

    def _read_all(self) -> None:
        try:
            while (message := read_message(self._stream)) is not None:
                self._take(*message)
        except (WireError, InvalidMessage, OSError) as error:
            print(f"kinora-engine: {error}", file=sys.stderr, flush=True)
        finally:
            end_group()

    def _take(self, kind: bytes, body: bytes) -> None:
        job = self._job
        if kind == b"o":
            try:
                self._inbox.put(parse_open(body))
            except InvalidMessage as error:
                self._inbox.put(error)
        elif kind == b"j":
            self._job = Arrived(parse_job(body))
            self._hand_over(self._job)
        elif job is None:
            pass  # Nothing below means anything before the first job.
        elif kind == b"m":
            job.materials.append(body)
            self._hand_over(job)
        elif kind in (b"f", b"n", b"u"):
            job.answers.put((kind, body))
        elif kind == b"c":
            job.cancel.ask()

    def _hand_over(self, job: Arrived) -> None:
        if len(job.materials) == job.head.materials:
            self._inbox.put(job)
