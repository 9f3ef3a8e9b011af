"""Progress and cancel inside a pipeline's call, for every pipeline, with or without a callback."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._job import Job
from ._load import denoisers

DENOISING_SHARE = 0.9
"""Part of the progress that denoising takes; the decoder has the rest."""


class ProgressBar:
    """Stands in for tqdm: each step of the denoising loop is progress."""

    def __init__(self, job: Job, total: int) -> None:
        self._job = job
        self._total = max(1, total)
        self._steps = 0

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, steps: int = 1) -> None:
        """Reports steps as done."""
        self._steps += steps
        self._job.progress(DENOISING_SHARE * min(1.0, self._steps / self._total))

    def set_postfix(self, *_: Any, **__: Any) -> None:
        """Ignored."""


@contextmanager
def watched(pipe: Any, job: Job, is_compiled: bool) -> Iterator[None]:
    """Within this, steps are progress, and a cancel takes effect between two blocks of a transformer.

    Compiled blocks would be compiled with the hook, so there it takes effect between two runs of the transformer.
    """

    def progress_bar(iterable: Any = None, total: int | None = None) -> Any:
        if iterable is None:
            return ProgressBar(job, total or 1)
        return _counted(iterable, ProgressBar(job, len(iterable)))

    handles = [block.register_forward_pre_hook(lambda *_: job.check()) for block in _blocks(pipe, is_compiled)]
    pipe.progress_bar = progress_bar
    try:
        yield
    finally:
        del pipe.progress_bar
        for handle in handles:
            handle.remove()


def _counted(iterable: Any, bar: ProgressBar) -> Iterator[Any]:
    for item in iterable:
        yield item
        bar.update()


def _blocks(pipe: Any, is_compiled: bool) -> Iterator[Any]:
    """The direct members of the module lists in each denoiser, and the denoiser itself."""
    for denoiser in denoisers(pipe):
        yield denoiser
        for child in denoiser.children():
            if type(child).__name__ == "ModuleList" and not is_compiled:
                yield from child
