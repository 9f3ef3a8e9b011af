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
from ._index import describe
from ._load import load_pipeline
from ._ranks import Leader, Ranks
from ._run import clean, run
from ._settings import Settings
from ._watch import JobWatch

LOAD_SECONDS = 1_800.0


class Pipeline(Engine):
    """Runs the pipeline in `settings.model`. `_settings.py` lists all settings."""

    def describe(self, settings: Mapping[str, Any]) -> Description:
        return describe(Settings.parse(settings))

    def load(self, settings: Mapping[str, Any], device: str | None) -> None:
        self.settings = Settings.parse(settings)
        self._grid = describe(self.settings).frames
        self._has_compiled = not self.settings.compile
        with self.phase("importing and loading", LOAD_SECONDS):
            self.ranks = Ranks(settings, self.settings) if self.settings.ranks > 1 else None
            self.pipe = load_pipeline(self.settings)
            if self.ranks is not None:
                self.ranks.loaded()

    def generate(self, job: Job) -> Iterator[Output]:
        arguments = call_arguments(self.pipe, job, self.settings)
        try:
            with captured(self.pipe) as capture:
                result = self._first_call(job, arguments)
            yield from outputs(self.pipe, result, capture, job, self._grid)
        finally:
            clean(self.pipe)

    def reset(self) -> None:
        gc.collect()
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()
        if self.ranks is not None:
            self.ranks.check()

    def _first_call(self, job: Job, arguments: dict[str, Any]) -> Any:
        """The call, in a phase of its own if it compiles."""
        if self._has_compiled:
            return self._call(job, arguments)
        with job.phase("compiling", self.settings.compile_seconds):
            result = self._call(job, arguments)
        self._has_compiled = True
        return result

    def _call(self, job: Job, arguments: dict[str, Any]) -> Any:
        compiled = self.settings.compile
        if self.ranks is None:
            return run(self.pipe, arguments, job.seed, JobWatch(job, self._grid), compiled)
        job.check()
        # No rank may stop alone, also not before it has begun.
        with job.deferred_cancel():
            self.ranks.begin(arguments, job.seed, compiled)
            try:
                result = run(self.pipe, arguments, job.seed, Leader(job, self._grid), compiled)
            finally:
                error = self.ranks.end()
            if error is not None:
                raise error
        return result
