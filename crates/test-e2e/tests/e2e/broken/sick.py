"""An engine that is sick on one of its devices, in the way that its settings say, until a file says that it is mended."""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kinora_engine import Broken, Description, Engine, Features, Job, Output


class Sick(Engine):
    def describe(self, settings: Mapping[str, Any]) -> Description:
        return Description(version="1", fps=8, features=Features(text_to_video=True))

    def load(self, settings: Mapping[str, Any], device: str | None) -> None:
        self.how = settings["how"]
        self.is_sick = device == settings["device"]
        self.mended = Path(settings["mended"])
        self.jobs = 0
        if self.acts("opening_hangs"):
            time.sleep(600)
        if self.acts("opening_exits"):
            os._exit(1)
        if self.acts("opening_fails"):
            raise RuntimeError("No CUDA GPUs are available")

    def acts(self, how: str) -> bool:
        return self.is_sick and self.how == how and not self.mended.exists()

    def generate(self, job: Job) -> Iterator[Output]:
        self.jobs += 1
        if job.prompt == "fails everywhere":
            raise ValueError("no such picture")
        if self.acts("fails") or (self.acts("fails_every_second") and self.jobs % 2 == 0):
            raise ValueError("the picture is black")
        if self.acts("broken"):
            raise Broken("the device is gone")
        if self.acts("exits"):
            os._exit(1)
        frame = bytes(job.clip.width * job.clip.height * 3)
        for number in range(job.clip.frames):
            if number == 4 and self.acts("fails_late"):
                raise ValueError("the picture is black")
            if self.acts("lies"):
                yield job.rgb(frame + frame)
            time.sleep(0.02)
            yield job.rgb(frame)
