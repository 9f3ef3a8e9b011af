"""The way to Kinora: a thread that writes messages, and says `alive` once a second.

Only this thread writes, so an exception that stops a job cannot tear a message.
"""

import json
import os
import queue
import struct
import sys
import threading
import time
from typing import Any, NoReturn

from ._cancel import Cancel
from ._streams import end_group
from ._wire import write_message

ALIVE_SECONDS = 1.0
LARGE_WAITING_MAX = 3
"""Number of frames and pieces of sound that wait for Kinora to read."""
SLOT_POLL_SECONDS = 0.1


class Line:
    """Sends messages in the order of the calls, from any thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: queue.SimpleQueue[tuple[bytes, bytes, Port | None] | threading.Event] = queue.SimpleQueue()
        self._alive_at: float | None = None
        self._thread = threading.Thread(target=self._write_all, name="kinora-writer", daemon=True)
        self._thread.start()

    def send(self, kind: bytes, body: bytes = b"", port: "Port | None" = None) -> None:
        """Queues a message."""
        self._queue.put((kind, body, port))

    def send_json(self, kind: bytes, body: dict[str, Any], port: "Port | None" = None) -> None:
        """Queues a message with a JSON body."""
        self.send(kind, json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"), port)

    def start_alive(self) -> None:
        """Begins to send `k`. Call it after the hello was queued."""
        self._alive_at = time.monotonic()

    def flush(self) -> None:
        """Waits until all queued messages are written."""
        written = threading.Event()
        self._queue.put(written)
        written.wait()

    def _write_all(self) -> None:
        try:
            while True:
                self._write_next()
        except OSError as error:
            print(f"kinora-engine: Kinora is gone: {error}", file=sys.stderr)
            end_group()

    def _write_next(self) -> None:
        try:
            item = self._queue.get(timeout=self._seconds_to_alive())
        except queue.Empty:
            item = None
        if isinstance(item, threading.Event):
            item.set()
        elif item is not None:
            kind, body, port = item
            if port is None or port.take(kind):
                write_message(self._descriptor, kind, body)
            if port is not None:
                port.release(kind)
        if self._alive_at is not None and time.monotonic() >= self._alive_at:
            write_message(self._descriptor, b"k", b"")
            self._alive_at = time.monotonic() + ALIVE_SECONDS

    def _seconds_to_alive(self) -> float:
        if self._alive_at is None:
            return ALIVE_SECONDS / 10
        return max(0.0, self._alive_at - time.monotonic())


class Port:
    """One job's access to the line. Messages of a job that has ended are dropped, whichever thread sends them."""

    def __init__(self, line: Line, cancel: Cancel) -> None:
        self._line = line
        self._cancel = cancel
        self._slots = threading.Semaphore(LARGE_WAITING_MAX)
        self._ended = False
        self._fraction = 0.0
        self._progress_at = 0.0
        self._in_phase = False

    def send(self, kind: bytes, body: bytes = b"") -> None:
        """Queues a small message."""
        self._line.send(kind, body, self)

    def send_json(self, kind: bytes, body: dict[str, Any]) -> None:
        """Queues a message with a JSON body."""
        self._line.send_json(kind, body, self)

    def send_large(self, kind: bytes, body: bytes) -> None:
        """Queues a frame or sound (`f`, `a`, `v`), once few enough of them wait.

        Raises:
            Cancelled: Kinora stopped the job.
        """
        self._cancel.check()
        while not self._slots.acquire(timeout=SLOT_POLL_SECONDS):
            self._cancel.check()
        self.send(kind, body)
        self._progress_at = time.monotonic()

    def progress(self, fraction: float) -> None:
        """Reports progress. It never falls."""
        self._in_phase = False  # For Kinora, any progress ends a phase.
        self._fraction = max(self._fraction, fraction)
        self._progress_at = time.monotonic()
        self.send(b"p", struct.pack("<d", self._fraction))

    def sign_of_life(self, seconds: float) -> None:
        """Repeats the progress if none was reported for so many seconds. A declared phase stays as it is."""
        if not self._in_phase and time.monotonic() - self._progress_at >= seconds:
            self.progress(self._fraction)

    def begin_phase(self, name: str, limit_seconds: float) -> None:
        """Declares a long silent part of the work."""
        self._in_phase = True
        self.send_json(b"g", {"name": name, "limit_seconds": limit_seconds})

    def end_phase(self) -> None:
        """Ends the phase by a sign of progress."""
        self.progress(self._fraction)

    def take(self, kind: bytes) -> bool:
        """Whether to write a message of this kind; called by the writer. The job's `e` is its last one."""
        was_ended = self._ended
        self._ended = was_ended or kind == b"e"
        return not was_ended

    def release(self, kind: bytes) -> None:
        """Frees the slot of a large message; called by the writer."""
        if kind in b"fav":
            self._slots.release()


def leave(line: Line, status: int) -> NoReturn:
    """Writes all messages and ends the process. Skips interpreter shutdown, which native threads can block."""
    line.flush()
    sys.stderr.flush()
    os._exit(status)
