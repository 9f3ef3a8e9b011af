"""Runs one job: calls the engine, sends what it yields, checks it, and leaves the engine as new."""

import gc
import sys
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

from ._checks import check_end, check_frame, check_job
from ._description import Description
from ._engine import Engine
from ._errors import Cancelled, Mistake, ended
from ._job import Job, Request
from ._line import Line, Port
from ._materials import Audio, Picture
from ._messages import JobHead
from ._outputs import Frame, FrameStream, Output, Sound
from ._reader import Arrived
from ._soundtrack import Soundtrack
from ._source import Source


def run_job(engine: Engine, description: Description, arrived: Arrived, line: Line) -> bool:
    """Runs the job and sends `e`. Returns whether the engine can take another job."""
    port = Port(line, arrived.cancel)
    try:
        error = _attempt(engine, description, arrived, port)
    except Cancelled as cancelled:
        # The signal arrived on the way out, after another end. It arrives at most once.
        error = cancelled
    body = ended(error, arrived.cancel.asked)
    if error is not None and not isinstance(error, Cancelled) and body["outcome"] != "cancelled":
        traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
    # A broken device may hang in whatever the engine does to clean up.
    is_usable = error is None or (body["outcome"] != "broken" and _clean(engine, error))
    port.send_json(b"e", body)
    return is_usable


def _attempt(engine: Engine, description: Description, arrived: Arrived, port: Port) -> BaseException | None:
    """The job's error, if any. Only between `begin` and `end` can the signal raise."""
    work: Iterator[Output] | None = None
    error: BaseException | None = None
    arrived.cancel.begin()
    try:
        arrived.cancel.check()
        check_job(arrived.head, description)
        job = _job(arrived, port)
        work = _outputs(engine.generate(job))
        _send_all(job, work, port)
        arrived.cancel.end()
    except BaseException as raised:
        arrived.cancel.end()
        error = raised
    return error if work is None else _close(work, error)


def _send_all(job: Job, work: Iterator[Output], port: Port) -> None:
    soundtrack = Soundtrack(port)
    frames = 0
    for output in work:
        if isinstance(output, (Frame, FrameStream)):
            stream = [output] if isinstance(output, Frame) else output
            for frame in stream:
                frames += 1
                check_frame(frame.data, frames, job.clip)
                port.send_large(b"f", frame.data)
        elif isinstance(output, Sound):
            soundtrack.add(output, job.clip)
        elif output is not None:
            name = type(output).__name__
            raise Mistake(f"generate() yielded a {name}; yield job.rgb(frames) or job.sound(pcm, rate)")
        job.check()
    check_end(frames, job.clip)
    soundtrack.finish(job.clip)
    port.progress(1.0)


def _outputs(generated: Iterable[Output] | Any) -> Iterator[Output]:
    try:
        return iter(generated)
    except TypeError:
        name = type(generated).__name__
        raise Mistake(f"generate() returned a {name}; it must yield job.rgb(frames)") from None


def _close(work: Iterator[Output], error: BaseException | None) -> BaseException | None:
    """Runs the `finally` blocks of a generator that has not ended, and returns the job's error."""
    throw = getattr(work, "throw", None)
    if error is None or throw is None:
        return error
    try:
        # A generator that has ended raises this at once.
        throw(Cancelled() if isinstance(error, Cancelled) else GeneratorExit())
        print("kinora-engine: generate() yielded after the job was stopped", file=sys.stderr)
        getattr(work, "close")()
    except (Cancelled, GeneratorExit, StopIteration):
        pass
    except BaseException as raised:
        if raised is not error:
            traceback.print_exception(type(raised), raised, raised.__traceback__, file=sys.stderr)
    return error


def _clean(engine: Engine, error: BaseException) -> bool:
    """Makes the engine as new; `False` if that fails."""
    # Frames of the call stack hold tensors.
    traceback.clear_frames(error.__traceback__)
    error.__traceback__ = error.__context__ = error.__cause__ = None
    try:
        engine.reset()
    except BaseException:
        print("kinora-engine: reset() failed; the process ends", file=sys.stderr)
        traceback.print_exc()
        return False
    gc.collect()
    return True


def _job(arrived: Arrived, port: Port) -> Job:
    head = arrived.head
    source = None if head.source is None else Source(head.source, port, arrived.cancel, arrived.answers)
    return Job(_request(head, arrived.materials), head.clip, source, port, arrived.cancel)


def _request(head: JobHead, materials: list[bytes]) -> Request:
    sizes = head.pictures
    pictures = [_picture(size, data) for size, data in zip(sizes, materials)]
    first = pictures.pop(0) if head.first_frame is not None else None
    last = pictures.pop(0) if head.last_frame is not None else None
    return Request(
        prompt=head.prompt,
        negative_prompt=head.negative_prompt,
        seed=head.seed,
        draft=head.draft,
        final=head.final,
        strength=head.strength,
        first_frame=first,
        last_frame=last,
        images=tuple(pictures),
        audios=tuple(map(Audio, materials[len(sizes) :])),
        preset=head.preset,
    )


def _picture(size: tuple[int, int], data: bytes) -> Picture:
    width, height = size
    if len(data) != width * height * 3:
        raise Mistake(f"Kinora sent {len(data)} bytes for a picture of {width}x{height}")
    return Picture(width, height, data)
