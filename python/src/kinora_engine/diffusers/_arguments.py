"""Arguments of a pipeline's call for a job, without its generator. Only arguments in the call's signature are passed.

Fields and their usual arguments: `prompt`, `negative_prompt`, `width`, `height`, `frames` (`num_frames`, or `frames`), `fps`
(`frame_rate`, `fps`), `steps` (`num_inference_steps`), `first_frame` (`image`), `last_frame` (`last_image`), `images`
(`reference_images`), `source` (`video`), `audio` (`sample_audio`), `strength`. `settings.map` names others.
"""

import inspect
from typing import Any

from .._errors import Unsupported
from .._job import Job
from ._length import bounds
from ._modular import inputs, is_modular
from ._settings import Settings

_USUAL = {
    "frames": ("num_frames", "frames"),
    "fps": ("frame_rate", "fps"),
    "steps": ("num_inference_steps",),
    "first_frame": ("image",),
    "last_frame": ("last_image",),
    "images": ("reference_images",),
    "source": ("video",),
    "audio": ("sample_audio",),
}
_MUST = ("prompt", "first_frame", "last_frame", "images", "source", "negative_prompt", "frames")
"""Fields that a pipeline must not drop in silence."""
_GREY = (128, 128, 128)


def call_arguments(pipe: Any, job: Job, settings: Settings) -> dict[str, Any]:
    """The arguments.

    Raises:
        Unsupported: the pipeline has no argument for a field that the job uses.
    """
    known = known_arguments(pipe)
    arguments: dict[str, Any] = {}
    for field, value in _fields(pipe, job, settings, known).items():
        usual = _USUAL.get(field, (field,))
        name = settings.map.get(field) or next((one for one in usual if one in known), None)
        if name in known:
            arguments[str(name)] = value
        elif field in _MUST and not (field == "frames" and job.source is not None):
            raise Unsupported(f"{type(pipe).__name__} has no argument for {field}; settings.map can name it")
    for name, value in settings.arguments.items():
        arguments.setdefault(name, value)
    if job.clip.frames is None:
        for name, value in bounds(pipe, job, known).items():
            arguments.setdefault(name, value)
    arguments["output_type"] = "pt"
    return arguments


def known_arguments(pipe: Any) -> set[str]:
    """Names of the arguments that the pipeline's call takes."""
    return inputs(pipe) if is_modular(pipe) else set(inspect.signature(type(pipe).__call__).parameters) - {"self"}


def _fields(pipe: Any, job: Job, settings: Settings, known: set[str]) -> dict[str, Any]:
    clip = job.clip
    steps = (settings.draft_steps if job.draft else 0) or settings.steps
    values: dict[str, Any] = {
        "prompt": job.prompt,
        "negative_prompt": job.negative_prompt,
        "width": clip.width,
        "height": clip.height,
        "frames": job.clip.frames,
        "fps": clip.fps,
        "steps": steps or None,
        "images": [image.pil() for image in job.images] or None,
        "audio": clip.audio,
        "strength": settings.final_strength if job.final else job.strength,
    }
    if "conditions" in known and (job.first_frame or job.last_frame):
        values["conditions"] = _conditions(pipe, job)
    elif "mask" in known and (job.source or job.first_frame or job.last_frame):
        values.update(_vace(job, values["strength"] or 0.0))
    else:
        values["first_frame"] = job.first_frame and job.first_frame.pil()
        values["last_frame"] = job.last_frame and job.last_frame.pil()
        values["source"] = _source(job)
    return {field: value for field, value in values.items() if value is not None}


def _source(job: Job) -> list[Any] | None:
    if job.source is None:
        return None
    frames: list[Any] = []
    for picture in job.source:
        if len(frames) == job.frames:
            break
        image = picture.pil()
        size = (job.clip.width, job.clip.height)
        frames.append(image if image.size == size else image.resize(size))
        job.check()
    if not frames:
        raise Unsupported("the source has no frames")
    # A source may be shorter than the model's grid allows.
    return frames + frames[-1:] * (job.frames - len(frames))


def _conditions(pipe: Any, job: Job) -> list[Any]:
    """Frames at both ends, as LTX takes them."""
    import importlib

    module = importlib.import_module(type(pipe).__module__)
    condition = getattr(module, "LTX2VideoCondition", None)
    if condition is not None:
        ends = [(job.first_frame, 0), (job.last_frame, -1)]
        return [condition(frames=picture.pil(), index=index) for picture, index in ends if picture]
    condition = getattr(module, "LTXVideoCondition")
    ends = [(job.first_frame, 0), (job.last_frame, job.frames - 1)]
    return [condition(image=picture.pil(), frame_index=index) for picture, index in ends if picture]


def _vace(job: Job, strength: float) -> dict[str, Any]:
    """A control video and its mask, as VACE takes them: white is made, black is kept.

    An edit gives the source as the control video; its strength is the influence that the source loses.
    """
    from PIL import Image

    size = (job.clip.width, job.clip.height)
    black, white = Image.new("L", size, 0), Image.new("L", size, 255)
    source = _source(job)
    if source is not None:
        return {"source": source, "mask": [white] * job.frames, "conditioning_scale": 1.0 - strength}
    video: list[Any] = [Image.new("RGB", size, _GREY)] * job.frames
    mask = [white] * job.frames
    for picture, index in ((job.first_frame, 0), (job.last_frame, job.frames - 1)):
        if picture is not None:
            video[index], mask[index] = picture.pil(), black
    return {"source": video, "mask": mask}
