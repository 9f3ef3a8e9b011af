"""An engine of diffusers whose GPU fails once."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kinora_engine import Job, Output
from kinora_engine.diffusers import Pipeline

PROMPT = "poison"
RUNS_BEFORE = 1
"""Few, for models of few steps that two experts share."""
MARK = "KINORA_POISON_MARK"
"""Names the variable with the path of a file, which says that it has failed."""


class Poisoned(Pipeline):
    """At the first job with this prompt, a kernel fails an assertion in a step. Without a GPU it raises what torch would."""

    def generate(self, job: Job) -> Iterator[Output]:
        mark = Path(os.environ[MARK])
        if job.prompt == PROMPT and not mark.exists():
            mark.touch()
            self._runs = 0
            self.pipe.transformer.register_forward_pre_hook(self._count)
        yield from super().generate(job)

    def _count(self, *_: Any) -> None:
        self._runs += 1
        if self._runs > RUNS_BEFORE:
            _fail()


def _fail() -> None:
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError("CUDA error: device-side assert triggered")
    # The kernel runs later, so the error arrives with a later call.
    torch.zeros(1, device="cuda")[torch.ones(1, device="cuda", dtype=torch.long)]
