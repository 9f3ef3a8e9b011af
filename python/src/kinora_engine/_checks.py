"""Compares a job with the engine's description, and what the engine yields with the job."""

from ._description import Description
from ._errors import Mistake, Unsupported
from ._job import Clip
from ._messages import JobHead


def check_job(head: JobHead, description: Description) -> None:
    """Refuses a job that the description does not allow. Kinora plans by its configuration, which may promise too much.

    Raises:
        Unsupported: with the difference.
    """
    _check_clip(head.clip, description)
    features = description.features
    needs = [
        ("first_frame", head.first_frame is not None, features.first_frame),
        ("last_frame", head.last_frame is not None, features.last_frame),
        ("negative_prompt", bool(head.negative_prompt), features.negative_prompt),
        ("draft", head.draft or head.final, features.draft),
        ("edit", head.strength is not None, features.edit),
        ("audio_output", head.clip.audio, features.audio_output),
        ("auto_duration", head.clip.frames is None, features.auto_duration),
    ]
    for name, needed, offered in needs:
        if needed and not offered:
            raise Unsupported(f"the job needs the feature {name}, which the engine does not have")
    if len(head.images) > features.reference_images_max:
        raise Unsupported(f"{len(head.images)} reference images; the engine takes {features.reference_images_max}")
    if head.audios > features.reference_audios_max:
        raise Unsupported(f"{head.audios} reference sounds; the engine takes {features.reference_audios_max}")
    if head.preset and not description.presets:
        raise Unsupported("the job has a preset, and the engine takes none")


def _check_clip(clip: Clip, description: Description) -> None:
    multiple = description.size_multiple
    if clip.width % multiple or clip.height % multiple:
        raise Unsupported(f"a clip of {clip.width}x{clip.height}; the engine's sizes are multiples of {multiple}")
    grid = description.frames
    if clip.frames is not None and not grid.allow(clip.frames):
        raise Unsupported(f"a clip of {clip.frames} frames; the engine's clips have {grid.step} * n + {grid.offset}")
    if description.fps and clip.fps != description.fps:
        raise Unsupported(f"a clip of {clip.fps} frames per second; the engine's have {description.fps}")


def check_frame(data: bytes, number: int, clip: Clip) -> None:
    """Checks a frame, numbered from 1.

    Raises:
        Mistake: it is one too many, or has another size.
    """
    if clip.frames is None:
        raise Mistake("a frame came before the clip's length: call job.decide(frames) first")
    if number > clip.frames:
        raise Mistake(f"generate() yielded frame {number} of a clip of {clip.frames} frames; yield exactly job.frames")
    wanted = clip.width * clip.height * 3
    if len(data) != wanted:
        size = f"{clip.width} x {clip.height} x 3 = {wanted}"
        raise Mistake(f"frame {number} has {len(data)} bytes; the clip needs {size}")


def check_end(frames: int, clip: Clip) -> None:
    """Checks the number of frames at the end of a job.

    Raises:
        Mistake: frames are missing.
    """
    if clip.frames is None:
        raise Mistake("generate() ended without job.decide(frames)")
    if frames != clip.frames:
        raise Mistake(f"generate() ended after {frames} of {clip.frames} frames; yield exactly job.frames")
