"""The steps with a model, each of which fails or says what it measured. Times are in seconds, memory in MiB.

Those of `ALONE` have a service as its user would start it; those of `SHARED` one with two engines on a device that has room for one,
of which the pipelines of diffusers are `poison.py`.
"""

import os
import signal
import statistics
import struct
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import cards, film
from .machine import MemoryHolder, Peak, family, gpus, processor_seconds
from .service import Service

PROMPT = "A red balloon drifts over a calm sea at dawn"
POISON_PROMPT, POISON_MARK = "poison", "KINORA_POISON_MARK"
"""Those of `poison.py`, which only engines can import."""
SHORT_MIB = 300
"""What another process leaves, too little for any clip beside an engine that has loaded."""
PICTURE_SIDE = 512
Measured = dict[str, Any]


class Skipped(Exception):
    """The step does not apply, and why."""


@dataclass
class Trial:
    """A service, the card of the model in it, and on which GPU it runs."""

    service: Service
    card: cards.Card
    other: cards.Card
    """That of a second model, for a swap."""
    gpu: int
    clips: int
    patience: float
    _seed: int = 0
    _picture: str = ""

    def submit(self, card: cards.Card | None = None, **more: Any) -> str:
        """A task of the smallest length, unless `more` says otherwise. Its size is the model's first one."""
        self._seed += 1
        card = card or self.card
        request = {"model": cards.name(card), "prompt": PROMPT, "seed": self._seed, "seconds": cards.shortest(card), **more}
        features = cards.features(card)
        if features and not features.get("text_to_video"):
            self._picture = self._picture or self.service.upload("picture.png", picture())
            request["first_frame"] = self._picture
        return self.service.submit(**request)

    def wait(self, task: str, ready: Callable[[Any], bool]) -> Any:
        """The task object, as soon as it is ready."""
        return self.service.wait(task, ready, self.patience)

    def completed(self, task: str) -> Any:
        """The task object when its video is there."""
        return self.wait(task, lambda video: video["status"] == "completed")

    def made(self, card: cards.Card | None = None, **more: Any) -> float:
        """Makes a clip: seconds from the submit to its end."""
        begun = time.monotonic()
        self.completed(self.submit(card, **more))
        return time.monotonic() - begun

    def ended(self, task: str) -> Measured:
        """How the task ends; for want of memory it may fail."""
        begun = time.monotonic()
        video = self.wait(task, lambda video: video["status"] in ("completed", "failed"))
        code = (video.get("error") or {}).get("code", "")
        if code not in ("", "out_of_memory"):
            raise RuntimeError(f"without memory the task failed with {code}: {video['error']['message']}")
        return {"status": code or "completed", "seconds": time.monotonic() - begun}

    def needs_gpu(self) -> None:
        """Skips the step without a GPU of NVIDIA, whose memory another process can hold."""
        if self.gpu not in [gpu.index for gpu in gpus()]:
            raise Skipped("needs an NVIDIA GPU")


def first_clip(trial: Trial) -> Measured:
    """The first clip, for which the engine loads, and what is in its file."""
    begun = time.monotonic()
    video = trial.completed(trial.submit())
    seconds = time.monotonic() - begun
    found = film.read(trial.service.film(video))
    size = f"{found.width}x{found.height}"
    told = (video["size"], video["frames"], video["has_audio"])
    if (size, found.frames, found.has_sound) != told:
        raise RuntimeError(f"the file has {(size, found.frames, found.has_sound)}, the task says {told}")
    if cards.features(trial.card).get("audio_output") and not found.has_sound:
        raise RuntimeError("the file has no sound")
    opened = trial.service.logged("engine opened")[-1]["seconds"]
    return {"seconds": seconds, "load": opened, "size": size, "frames": found.frames, "fps": video["fps"], "sound": found.has_sound}


def longest_clip(trial: Trial) -> Measured:
    """The longest clip that the card promises, which needs the most memory."""
    length = cards.longest(trial.card)
    with Peak(trial.service.process.pid, trial.gpu) as peak:
        seconds = trial.made(seconds=length)
    return {"seconds": seconds, "length": length, "gpu_mib": peak.gpu, "main_mib": peak.main}


def next_clips(trial: Trial) -> Measured:
    """The same again: medians, processor seconds of the service with its engines, and the highest memory."""
    pid = trial.service.process.pid
    clips: list[tuple[float, float]] = []
    with Peak(pid, trial.gpu) as peak:
        for _ in range(trial.clips):
            spent = processor_seconds(pid)
            seconds = trial.made()
            clips.append((seconds, processor_seconds(pid) - spent))
    seconds, processor = (statistics.median(column) for column in zip(*clips))
    return {"seconds": seconds, "processor": processor, "gpu_mib": peak.gpu, "main_mib": peak.main}


def cancel(trial: Trial) -> Measured:
    """From a cancel in a step, and in the decoder, until the next task has the engine, and until its first step."""
    found: Measured = {}
    for place, least in (("step", 1), ("decoder", 90)):
        engine = trial.service.engine()
        stopped, waiting = trial.submit(), trial.submit()
        if trial.wait(stopped, _reached(least))["status"] == "completed":
            # The decoder was quicker than the poll.
            trial.completed(waiting)
            continue
        begun = time.monotonic()
        trial.service.cancel(stopped)
        trial.wait(waiting, lambda video: video["status"] != "queued")
        taken = time.monotonic() - begun
        trial.wait(waiting, lambda video: video["progress"] > 0)
        found[place] = {"taken": taken, "first_step": time.monotonic() - begun, "same_process": trial.service.engine() == engine}
        trial.completed(waiting)
    if "step" not in found:
        raise RuntimeError("a clip was completed before it could be cancelled in a step")
    return found


def kill(trial: Trial) -> Measured:
    """The engine is killed in a step: until the same task is completed."""
    task = trial.submit()
    trial.wait(task, lambda video: video["progress"] > 0)
    engine = trial.service.engine()
    begun = time.monotonic()
    # Of an engine that has a server as its child, the server.
    os.kill(list(family(engine))[-1], signal.SIGKILL)
    trial.completed(task)
    return {"seconds": time.monotonic() - begun, "next": trial.made()}


def memory(trial: Trial) -> Measured:
    """Another process leaves little memory beside a loaded engine, then none: each task ends, and the next clip is made."""
    trial.needs_gpu()
    trial.made()
    offloads = _offloads(trial)
    with MemoryHolder(SHORT_MIB, trial.gpu):
        short = trial.ended(trial.submit())
    found: Measured = {"short": short, "after": trial.made()}
    with MemoryHolder(0, trial.gpu, greedy=True):
        found["none"] = trial.ended(trial.submit())
    return {**found, "after_none": trial.made(), "more_offload": _offloads(trial) - offloads}


def unopened(trial: Trial) -> Measured:
    """An engine that finds no memory when it loads, then one that does."""
    trial.needs_gpu()
    with MemoryHolder(0, trial.gpu, greedy=True):
        none = trial.ended(trial.submit())
    return {"none": none, "after": trial.made()}


def swap(trial: Trial) -> Measured:
    """Tasks of two models in turn: from a submit to its first step, in which one engine leaves and the other loads."""
    trial.made(trial.other)
    found: Measured = {"other": cards.name(trial.other)}
    for way, card in (("to", trial.card), ("back", trial.other)):
        started, begun = trial.service.engine(), time.monotonic()
        task = trial.submit(card)
        trial.wait(task, lambda video: video["progress"] > 0)
        found[way] = time.monotonic() - begun
        trial.completed(task)
        if trial.service.engine() == started:
            raise RuntimeError(f"no engine was started for {cards.name(card)}: the two did not share the device")
    return found


def poisoned(trial: Trial) -> Measured:
    """A kernel on the GPU fails an assertion in a step: until the same task is completed, by another process."""
    if not cards.engine(trial.card).get("command"):
        raise Skipped("only for pipelines of diffusers")
    trial.made()
    started = len(trial.service.logged("engine process started"))
    seconds = trial.made(prompt=POISON_PROMPT)
    processes = len(trial.service.logged("engine process started")) - started
    if not processes:
        raise RuntimeError("the engine's process went on after its GPU had failed, or did not fail")
    return {"seconds": seconds, "processes": processes, "next": trial.made()}


Step = Callable[[Trial], Measured]
ALONE: Mapping[str, Step] = {
    "first_clip": first_clip,
    "next_clips": next_clips,
    "longest_clip": longest_clip,
    "cancel": cancel,
    "kill": kill,
    "memory": memory,
}
SHARED: Mapping[str, Step] = {"unopened": unopened, "swap": swap, "poisoned": poisoned}
"""In this order: for `unopened` nothing may be loaded."""


def picture() -> bytes:
    """A PNG for models that need a first frame: a gradient."""
    row = b"\0" + b"".join(bytes((x // 2, 96, 160)) for x in range(PICTURE_SIDE))

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", PICTURE_SIDE, PICTURE_SIDE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(row * PICTURE_SIDE)) + chunk(b"IEND", b"")


def _reached(least: int) -> Callable[[Any], bool]:
    return lambda video: bool(video["progress"] >= least)


def _offloads(trial: Trial) -> int:
    """How often an engine has loaded with more offload."""
    return sum("once more with" in line for line in trial.service.log.read_text().splitlines())
