"""From a pipeline's result to frames and sound.

The decoder's output stays on its device, in its own type, and is scaled, cast and copied one frame at a time: the clip as floats
never exists in main memory.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._description import Frames
from .._job import Job
from .._outputs import Output
from ._length import decide
from ._modular import is_modular


class Captured:
    """The decoder's output, `[batch][3][frames][height][width]`, -1.0 to 1.0, if the pipeline's processor got it."""

    def __init__(self) -> None:
        self.video: Any = None


@contextmanager
def captured(pipe: Any) -> Iterator[Captured]:
    """Within this, the pipeline's video processor keeps the decoder's output and returns it unchanged."""
    # Those of modular pipelines do not all get values from -1.0 to 1.0.
    processor = None if is_modular(pipe) else getattr(pipe, "video_processor", None)
    capture = Captured()
    if not hasattr(processor, "postprocess_video"):
        yield capture
        return

    def postprocess_video(video: Any, *_: Any, **__: Any) -> Any:
        capture.video = video
        return video

    assert processor is not None
    processor.postprocess_video = postprocess_video
    try:
        yield capture
    finally:
        del processor.postprocess_video


def outputs(pipe: Any, result: Any, capture: Captured, job: Job, grid: Frames) -> Iterator[Output]:
    """The frames, then the sound if the clip has one."""
    if job.clip.frames is None:
        # The pipeline chose a length without asking its duration head.
        frames = decide(job, _count(result, capture), grid)
        capture.video = capture.video if capture.video is None else capture.video[:, :, :frames]
    yield job.rgb(_frames(result, capture, job))
    if job.clip.audio:
        sound, rate = _sound(pipe, result)
        yield job.sound(sound, rate)


def _count(result: Any, capture: Captured) -> int:
    return len(result.frames[0]) if capture.video is None else int(capture.video.shape[2])


def _frames(result: Any, capture: Captured, job: Job) -> Iterator[Any]:
    if capture.video is None:
        for frame in result.frames[0][: job.frames]:
            yield frame
        return
    video = capture.video[0]
    for index in range(video.shape[1]):
        # Decoders overshoot, as the pipelines' own processor expects. NaN passes the clamp, and fails the job.
        yield video[:, index].float().mul(0.5).add(0.5).clamp(0.0, 1.0)


def _sound(pipe: Any, result: Any) -> tuple[Any, int]:
    audio = getattr(result, "audio", None)
    # MiniMax-H3 says it in the result, Kandinsky 6 in the pipeline, LTX-2 by its vocoder.
    rate = getattr(result, "sampling_rate", None) or getattr(pipe, "audio_sample_rate", None) or _vocoder_rate(pipe)
    if audio is None or rate is None:
        raise RuntimeError(f"{type(pipe).__name__} made no sound")
    return audio[0], int(rate)


def _vocoder_rate(pipe: Any) -> int | None:
    config = getattr(getattr(pipe, "vocoder", None), "config", None)
    return None if config is None else config.output_sampling_rate
