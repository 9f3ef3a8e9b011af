"""The engine."""

import gc
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from .._description import Description
from .._engine import Engine
from .._job import Job
from .._outputs import Output
from ._arguments import call_arguments
from ._decode import captured, outputs
from ._hooks import watched
from ._index import describe
from ._load import load_pipeline
from ._settings import Settings

LOAD_SECONDS = 1_800.0


class Pipeline(Engine):
    """Runs the pipeline in `settings.model`. `_settings.py` lists all settings."""

    def describe(self, settings: Mapping[str, Any]) -> Description:
        return describe(Settings.parse(settings))

    def load(self, settings: Mapping[str, Any], device: str | None) -> None:
        self.settings = Settings.parse(settings)
        self._has_compiled = not self.settings.compile
        with self.phase("importing and loading", LOAD_SECONDS):
            self.pipe = load_pipeline(self.settings)

    def generate(self, job: Job) -> Iterator[Output]:
        arguments = call_arguments(self.pipe, job, self.settings)
        try:
            with captured(self.pipe) as capture:
                result = self._call(job, arguments)
            yield from outputs(self.pipe, result, capture, job)
        finally:
            # Clears step caches and half-done offloading; otherwise a stopped job changes the next one's frames.
            self.pipe.maybe_free_model_hooks()

    def reset(self) -> None:
        gc.collect()
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _call(self, job: Job, arguments: dict[str, Any]) -> Any:
        with watched(self.pipe, job, self.settings.compile):
            if self._has_compiled:
                return self.pipe(**arguments)
            with job.phase("compiling", self.settings.compile_seconds):
                result = self.pipe(**arguments)
            self._has_compiled = True
            return result
