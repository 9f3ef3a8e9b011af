"""What a pipeline's call reports to, and where a cancel takes effect. `_ranks.py` has the watches of several processes."""

from typing import Protocol

from .._description import Frames
from .._job import Job
from ._length import decide


class Watch(Protocol):
    """Hears from a running call, all in the thread of the call. Each method may raise `Cancelled`."""

    def inside(self) -> None:
        """Between two blocks of a denoiser."""

    def before(self) -> None:
        """Before a denoiser runs: once a step or more."""

    def step(self, fraction: float) -> None:
        """After a step; `fraction` is the job's progress."""

    def length(self, frames: int) -> int:
        """The clip's length, which the pipeline would like to be `frames`."""


class JobWatch:
    """The watch of a call in one process."""

    def __init__(self, job: Job, grid: Frames) -> None:
        self._job = job
        self._grid = grid

    def inside(self) -> None:
        """Stops here if the job was stopped."""
        self._job.check()

    def before(self) -> None:
        """Stops here if the job was stopped."""
        self._job.check()

    def step(self, fraction: float) -> None:
        """Reports progress."""
        self._job.progress(fraction)

    def length(self, frames: int) -> int:
        """Decides the length."""
        return decide(self._job, frames, self._grid)
