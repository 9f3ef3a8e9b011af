"""The base class of engines."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ._description import Description
from ._outputs import Output

if TYPE_CHECKING:
    from ._job import Job
    from ._line import Line

PHASE_NAME_CHARS_MAX = 200
PHASE_SECONDS_MAX = 3_600.0


class Engine(ABC):
    """An engine. Kinora keeps one object for a process and gives it one job at a time, all in the main thread."""

    _line: "Line | None" = None

    @abstractmethod
    def describe(self, settings: Mapping[str, Any]) -> Description:
        """What the engine can do with these settings. It runs before `load`; keep it quick, and import nothing large.

        Raises:
            Exception: a setting is wrong. The engine does not open, and the message reaches the log.
        """

    def load(self, settings: Mapping[str, Any], device: str | None) -> None:
        """Loads the model, once. `device` is this process's entry of the engine's `devices`, or `None`.

        For CUDA, Kinora has made the device the only visible one: it is `cuda:0` here.
        """

    @abstractmethod
    def generate(self, job: "Job") -> Iterable[Output]:
        """Makes the clip: a generator of `job.rgb(...)` and, if `job.clip.audio`, `job.sound(...)`.

        Raises:
            Unsupported: the engine cannot make such a clip.
            OutOfMemory: memory is exhausted. `MemoryError` and torch's own exception mean the same.
            ContentPolicy: the engine refuses the prompt or its result.
            Exception: anything else fails the job.
        """

    def reset(self) -> None:
        """Makes the engine as new after a job that was stopped or failed. If this raises, the process ends."""

    @contextmanager
    def phase(self, name: str, limit_seconds: float) -> Iterator[None]:
        """Declares a silent part of `load` that takes up to `limit_seconds`, at most 3,600. In a job, use `job.phase`."""
        body = phase_body(name, limit_seconds)
        if self._line is not None:
            self._line.send_json(b"g", body)
        yield


def phase_body(name: str, limit_seconds: float) -> dict[str, Any]:
    """The body of `g`.

    Raises:
        ValueError: the limit is out of its bounds.
    """
    if not 0 < limit_seconds <= PHASE_SECONDS_MAX:
        raise ValueError(f"a phase of {limit_seconds} s: over 0 and at most {PHASE_SECONDS_MAX:g} s are allowed")
    return {"name": name[:PHASE_NAME_CHARS_MAX], "limit_seconds": limit_seconds}
