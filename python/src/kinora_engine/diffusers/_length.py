"""Clips whose length the pipeline chooses: `seconds: "auto"`.

LTX-2.5 has a `duration_head`, which predicts the length from the encoded prompt if the call has no `num_frames`. Source: diffusers
0.42.1, `pipelines/ltx2/duration_head.py`. Its call also takes `min_seconds` and `max_seconds`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .._description import Frames
from .._errors import Unsupported
from .._job import Job

if TYPE_CHECKING:
    from ._watch import Watch

ARGUMENTS = {"num_frames", "min_seconds", "max_seconds"}
"""Arguments of a call that can choose the length."""
HEAD = "duration_head"
SHORTEST_SECONDS = 2.0
"""Length of Kinora's shortest videos."""


def bounds(pipe: Any, job: Job, known: set[str]) -> dict[str, float]:
    """Arguments that let the pipeline choose a length that the job allows.

    Raises:
        Unsupported: the pipeline cannot choose one.
    """
    if not known >= ARGUMENTS or getattr(pipe, HEAD, None) is None:
        raise Unsupported(f"{type(pipe).__name__} cannot choose a length: it has no {HEAD}, or no arguments {', '.join(sorted(ARGUMENTS))}")
    longest = (job.clip.frames_max or 0) / job.clip.fps
    return {"min_seconds": min(SHORTEST_SECONDS, longest / 2), "max_seconds": longest}


@contextmanager
def chosen(pipe: Any, watch: "Watch") -> Iterator[None]:
    """Within this, `watch` has the last word on a length that the pipeline's duration head predicts."""
    head = getattr(pipe, HEAD, None)
    if head is None:
        yield
        return
    predict = head.predict_num_frames

    def predict_num_frames(*arguments: Any, **options: Any) -> int:
        return watch.length(int(predict(*arguments, **options)))

    head.predict_num_frames = predict_num_frames
    try:
        yield
    finally:
        del head.predict_num_frames


def decide(job: Job, frames: int, grid: Frames) -> int:
    """Decides the longest length that is on the grid, allowed by the job and at most `frames`; otherwise the shortest one.

    Raises:
        Unsupported: the job allows no length that is on the grid.
    """
    shortest = grid.offset or grid.step
    longest = min(frames, job.clip.frames_max or frames)
    length = max(shortest, longest - (longest - grid.offset) % grid.step)
    if job.clip.frames_max is not None and length > job.clip.frames_max:
        raise Unsupported(f"a clip of {length} frames is the shortest one; the job allows {job.clip.frames_max}")
    job.decide(length)
    return length
