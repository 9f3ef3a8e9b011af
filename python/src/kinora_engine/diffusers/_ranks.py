"""Several processes that make each clip together, one device each: what torchrun does, with this process as the first rank.

The others are children in this process group, so Kinora measures and kills all of them. Each call goes to all ranks, and they stop only
at places that all of them pass, as the first one says: otherwise a rank would wait for another for ever. If one dies, all end.
"""

import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from .._description import Frames
from .._errors import Cancelled, OutOfMemory
from .._job import Job
from .._streams import end_group
from ._length import decide
from ._rank import DONE, OUT_OF_MEMORY, receive, send
from ._settings import Settings
from ._together import from_first, join, meeting_place

ANSWER_SECONDS = 20.0
"""Longest wait for the other ranks after one has ended a call."""


class Leader:
    """The watch of the first rank. Use it while the job's cancel is deferred."""

    def __init__(self, job: Job, grid: Frames) -> None:
        self._job = job
        self._grid = grid

    def inside(self) -> None:
        """A sign of life."""
        self._job.check()

    def before(self) -> None:
        """Stops all ranks here if the job was stopped."""
        self._job.check()
        if from_first(int(self._job.cancelled)):
            raise Cancelled

    def step(self, fraction: float) -> None:
        """Reports progress."""
        self._job.progress(fraction)
        self.before()

    def length(self, frames: int) -> int:
        """Decides the length for all ranks."""
        return from_first(decide(self._job, frames, self._grid))


class Rank:
    """A rank beside the first."""

    def __init__(self, number: int, place: int) -> None:
        self.number = number
        command = [sys.executable, "-m", "kinora_engine.diffusers._rank", str(place)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, pass_fds=[place])
        assert self.process.stdin is not None and self.process.stdout is not None
        self._input, self._output = self.process.stdin, self.process.stdout
        self._answers: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._arrived = self._taken = 0
        threading.Thread(target=self._listen, name=f"kinora-rank-{number}", daemon=True).start()

    def send(self, message: Any) -> None:
        """Sends a message."""
        send(self._input, message)

    def error(self, seconds: float | None) -> Exception | None:
        """Waits until the rank has loaded or ended its call, and returns its error, if any.

        Raises:
            queue.Empty: the rank did not answer in time.
        """
        outcome, message = self._answers.get(timeout=seconds)
        self._taken += 1
        if outcome == DONE:
            return None
        kind = OutOfMemory if outcome == OUT_OF_MEMORY else RuntimeError
        return kind(f"rank {self.number}: {message}")

    def _listen(self) -> None:
        try:
            while (message := receive(self._output)) is not None:
                self._arrived += 1
                self._answers.put(message)
                if message[0] != DONE:
                    self._limit_waiting()
        finally:
            print(f"kinora-engine: rank {self.number} ended", file=sys.stderr, flush=True)
            end_group()

    def _limit_waiting(self) -> None:
        """Ends all if the first rank does not come for this answer: then it waits for this rank in its call."""
        timer = threading.Timer(ANSWER_SECONDS, self._end_if_waiting, [self._arrived])
        timer.daemon = True
        timer.start()

    def _end_if_waiting(self, answer: int) -> None:
        if self._taken < answer:
            print(f"kinora-engine: rank {self.number} failed, and the others wait for it", file=sys.stderr, flush=True)
            end_group()


class Ranks:
    """All ranks but the first, as the first sees them."""

    def __init__(self, settings: Mapping[str, Any], parsed: Settings) -> None:
        """Starts them and joins them. They load while this process loads; see `loaded`."""
        place = meeting_place()
        self._ranks = [Rank(number, place) for number in range(1, parsed.ranks)]
        self._is_stuck = False
        for rank in self._ranks:
            rank.send({"settings": dict(settings), "rank": rank.number})
        join(place, 0, parsed)

    def loaded(self) -> None:
        """Waits until all have loaded the pipeline.

        Raises:
            RuntimeError, OutOfMemory: one of them could not load it.
        """
        for rank in self._ranks:
            error = rank.error(None)
            if error is not None:
                raise error

    def begin(self, arguments: dict[str, Any], seed: int, settings: Settings) -> None:
        """Sends a call to all of them, with the settings of its job. The caller makes the same call, and then calls `end`."""
        # Only the first rank decodes.
        call = {"arguments": {**arguments, "output_type": "latent"}, "seed": seed, "settings": settings}
        for rank in self._ranks:
            rank.send(call)

    def end(self) -> Exception | None:
        """Waits until all of them have ended the call, and returns the first error, if any."""
        errors = [self._end(rank) for rank in self._ranks]
        return next((error for error in errors if error is not None), None)

    def _end(self, rank: Rank) -> Exception | None:
        try:
            return rank.error(ANSWER_SECONDS)
        except queue.Empty:
            self._is_stuck = True
            return RuntimeError(f"rank {rank.number} did not end its call")

    def check(self) -> None:
        """Call this after a failed job.

        Raises:
            RuntimeError: a rank is stuck in its call, so none can take another one.
        """
        if self._is_stuck:
            raise RuntimeError("a rank is stuck in its call")
