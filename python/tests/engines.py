"""Engines of the tests. They need no numpy."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from kinora_engine import Broken, ContentPolicy, Description, Engine, Features, Frames, Job, Output, Unsupported

ALL = Features(
    text_to_video=True,
    first_frame=True,
    last_frame=True,
    reference_images_max=2,
    reference_audios_max=1,
    audio_output=True,
    auto_duration=True,
    negative_prompt=True,
    draft=True,
    edit=True,
)


class Base(Engine):
    def describe(self, settings: Mapping[str, Any]) -> Description:
        return Description(features=ALL, yield_seconds=3.0)


class Script(Base):
    """Does what the prompt says: the name of a method below."""

    def load(self, settings: Mapping[str, Any], device: str | None) -> None:
        self.resets = 0
        self.carried = 0

    def generate(self, job: Job) -> Iterator[Output]:
        self.carried += 1
        yield from getattr(self, job.prompt)(job)

    def reset(self) -> None:
        self.resets += 1
        self.carried = 0

    def frame(self, job: Job, value: int) -> bytes:
        return bytes([value % 256]) * (job.clip.width * job.clip.height * 3)

    def plain(self, job: Job) -> Iterator[Output]:
        for number in range(job.frames):
            yield job.rgb(self.frame(job, job.seed + number))

    def deferred(self, job: Job) -> Iterator[Output]:
        """Works on after a cancel until a place of its own choice. The signal comes after half a second."""
        with job.deferred_cancel():
            job.progress(0.5)
            while not job.cancelled:
                job.check()
            began = time.monotonic()
            while time.monotonic() - began < 0.8:
                job.check()
            print("came to its place", flush=True)
        job.check()
        yield job.rgb(self.frame(job, 0))

    def stateful(self, job: Job) -> Iterator[Output]:
        """Frames depend on what an earlier, stopped job left behind, unless `reset` clears it."""
        if job.seed == 1:
            while True:
                self.carried += 1
                job.check()
                time.sleep(0.01)
        for number in range(job.frames):
            yield job.rgb(self.frame(job, number + min(self.carried, 1)))
        self.carried = 0

    def busy(self, job: Job) -> Iterator[Output]:
        yield job.rgb(self.frame(job, 1))
        while True:
            sum(range(100))

    def sleeps(self, job: Job) -> Iterator[Output]:
        yield job.rgb(self.frame(job, 1))
        time.sleep(60)

    def swallows(self, job: Job) -> Iterator[Output]:
        yield job.rgb(self.frame(job, 1))
        while True:
            try:
                time.sleep(60)
            except Exception:
                pass

    def checks(self, job: Job) -> Iterator[Output]:
        try:
            yield job.rgb(self.frame(job, 1))
            while True:
                job.check()
                time.sleep(0.005)
        finally:
            time.sleep(0.8)
            print("cleaned up")

    def prints(self, job: Job) -> Iterator[Output]:
        print("from print")
        subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
        os.write(1, b"from descriptor 1\n")
        child = subprocess.run([sys.executable, "-c", "import sys; print(len(sys.stdin.read()))"], check=True)
        assert child.returncode == 0
        yield from self.plain(job)

    def grandchild(self, job: Job) -> Iterator[Output]:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
        print(f"child {child.pid}")
        yield job.rgb(self.frame(job, 1))
        time.sleep(60)

    def memory(self, job: Job) -> Iterator[Output]:
        raise MemoryError
        yield

    def torch_memory(self, job: Job) -> Iterator[Output]:
        raise type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory. Tried to allocate 2 GiB")
        yield

    def allocator(self, job: Job) -> Iterator[Output]:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory")
        yield

    def poisoned(self, job: Job) -> Iterator[Output]:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
        yield

    def accelerator(self, job: Job) -> Iterator[Output]:
        raise type("AcceleratorError", (RuntimeError,), {})("device-side assert triggered")
        yield

    def lost(self, job: Job) -> Iterator[Output]:
        raise Broken("the device is gone")
        yield

    def runtime(self, job: Job) -> Iterator[Output]:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
        yield

    def policy(self, job: Job) -> Iterator[Output]:
        raise ContentPolicy("not this")
        yield

    def refuses(self, job: Job) -> Iterator[Output]:
        raise Unsupported("only at night")
        yield

    def breaks(self, job: Job) -> Iterator[Output]:
        raise KeyError("a key")
        yield

    def small(self, job: Job) -> Iterator[Output]:
        yield job.rgb([bytes(job.clip.width * job.clip.height * 3 - 3)])

    def few(self, job: Job) -> Iterator[Output]:
        yield job.rgb(self.frame(job, 1))

    def many(self, job: Job) -> Iterator[Output]:
        yield job.rgb(self.frame(job, 1) * (job.frames + 1))

    def wrong(self, job: Job) -> Iterator[Output]:
        yield b"raw"  # type: ignore[misc]

    def silent(self, job: Job) -> Iterator[Output]:
        yield from self.plain(job)
        yield job.sound([0.0] * 100, 48_000)

    def sounds(self, job: Job) -> Iterator[Output]:
        yield from self.plain(job)
        half = round(job.clip.seconds * 24_000 / 2)
        yield job.sound([0.25] * half, 24_000)
        yield job.sound([0.25] * half, 24_000)

    def late(self, job: Job) -> Iterator[Output]:
        job.decide(job.seed)
        yield from self.plain(job)

    def undecided(self, job: Job) -> Iterator[Output]:
        yield job.rgb(self.frame(job, 1))

    def echo(self, job: Job) -> Iterator[Output]:
        """The source twice at once; the frame is the sum of both, from positions 0 and 1."""
        assert job.source is not None
        ahead = iter(job.source)
        next(ahead)
        for this in job.source:
            after = next(ahead, this)
            yield job.rgb(bytes((a + b) % 256 for a, b in zip(this.bytes, after.bytes)))

    def replays(self, job: Job) -> Iterator[Output]:
        assert job.source is not None
        for _ in range(17):
            for picture in job.source:
                break
        yield job.rgb(picture.bytes)

    def materials(self, job: Job) -> Iterator[Output]:
        assert job.first_frame and job.last_frame
        yield job.rgb(job.first_frame)
        yield job.rgb([image.bytes for image in job.images])
        yield job.rgb(job.last_frame)
        assert job.audios[0].bytes == bytes(16)

    def signs(self, job: Job) -> Iterator[Output]:
        job.progress(0.5)
        job.progress(0.25)
        with job.phase("compiling", 900):
            time.sleep(1.2)
        job.preview(job.first_frame)
        yield from self.plain(job)


class Refuses(Script):
    def load(self, settings: Mapping[str, Any], device: str | None) -> None:
        raise FileNotFoundError("no weights here")


class BadReset(Script):
    def reset(self) -> None:
        raise RuntimeError("cannot")


class Narrow(Script):
    def describe(self, settings: Mapping[str, Any]) -> Description:
        return Description(Features(text_to_video=True), size_multiple=16, frames=Frames(4, 1), fps=16)
