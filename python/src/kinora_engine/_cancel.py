"""Cancels a running job: first by a flag, then by an exception in the main thread.

The exception comes from a signal handler. Python runs signal handlers only in the main thread, which also runs the job, so the handler
and the job never race: it raises only while the job's own code runs. Unlike PyThreadState_SetAsyncExc, a signal also interrupts sleeps,
waits for child processes and socket reads.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ._errors import Cancelled

GRACE_SECONDS = 0.5
"""Time for `check` to find the flag before the signal is sent."""
# Ignored by default, so a late one harms no process.
SIGNAL = signal.SIGURG


class Cancel:
    """The cancel flag of one job."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._raises = False
        self._deferred = False

    @property
    def asked(self) -> bool:
        """Whether Kinora asked to stop the job."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Sets the flag. Called by the reader's thread."""
        if self.asked:
            return
        self._asked.set()
        timer = threading.Timer(GRACE_SECONDS, _interrupt)
        timer.daemon = True
        timer.start()

    def check(self) -> None:
        """Raises `Cancelled` if the flag is set, unless cancels are deferred."""
        if self.asked and not self._deferred:
            # The job's `finally` blocks run from here on: do not interrupt them.
            self._raises = False
            raise Cancelled

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Within this nothing raises `Cancelled`; the flag is set all the same."""
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False

    def begin(self) -> None:
        """From here on the signal raises `Cancelled` in the main thread, at most once."""
        global _current
        _current = self
        self._raises = True

    def end(self) -> None:
        """From here on the signal has no effect."""
        self._raises = False

    def on_signal(self) -> None:
        """Raises `Cancelled`, if this job runs, is to stop, and was not told yet."""
        if self._raises:
            self.check()


_current: Cancel | None = None


def install() -> None:
    """Installs the signal handler.

    Raises:
        ValueError: not called from the main thread.
    """
    signal.signal(SIGNAL, _on_signal)


def _on_signal(_signal: int, _frame: FrameType | None) -> None:
    if _current is not None:
        _current.on_signal()


def _interrupt() -> None:
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, SIGNAL)
