"""Progress and cancel inside a pipeline's call, for every pipeline, with or without a callback."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._load import denoisers
from ._modular import is_modular, loops
from ._watch import Watch

DENOISING_SHARE = 0.9
"""Part of the progress that denoising takes; the decoder has the rest."""


class ProgressBar:
    """Stands in for tqdm: each step of the denoising loop is progress."""

    def __init__(self, watch: Watch, total: int) -> None:
        self._watch = watch
        self._total = max(1, total)
        self._steps = 0

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, steps: int = 1) -> None:
        """Reports steps as done."""
        self._steps += steps
        self._watch.step(DENOISING_SHARE * min(1.0, self._steps / self._total))

    def set_postfix(self, *_: Any, **__: Any) -> None:
        """Ignored."""


@contextmanager
def watched(pipe: Any, watch: Watch, is_compiled: bool) -> Iterator[None]:
    """Within this, `watch` hears of steps, of runs of a transformer and of its blocks.

    Compiled blocks would be compiled with the hook, so it does not hear of those.
    """

    def progress_bar(iterable: Any = None, total: int | None = None) -> Any:
        if iterable is None:
            return ProgressBar(watch, total or 1)
        return _counted(iterable, ProgressBar(watch, len(iterable)))

    handles = [denoiser.register_forward_pre_hook(lambda *_: watch.before()) for denoiser in denoisers(pipe)]
    if not is_compiled:
        handles += [block.register_forward_pre_hook(lambda *_: watch.inside()) for block in _blocks(pipe)]
    owners = list(loops(pipe._blocks)) if is_modular(pipe) else [pipe]
    for owner in owners:
        owner.progress_bar = progress_bar
    try:
        yield
    finally:
        for owner in owners:
            del owner.progress_bar
        for handle in handles:
            handle.remove()


def _counted(iterable: Any, bar: ProgressBar) -> Iterator[Any]:
    for item in iterable:
        yield item
        bar.update()


def _blocks(pipe: Any) -> Iterator[Any]:
    """The direct members of the module lists in each denoiser."""
    for denoiser in denoisers(pipe):
        for child in denoiser.children():
            if type(child).__name__ == "ModuleList":
                yield from child
