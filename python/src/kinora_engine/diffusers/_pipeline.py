"""The engine."""

from collections.abc import Iterator, Mapping
from typing import Any

from .._description import Description
from .._engine import Engine
from .._errors import Cancelled, OutOfMemory, is_out_of_memory
from .._job import Job
from .._outputs import Output
from ._arguments import call_arguments, known_arguments
from ._decode import Captured, captured, outputs
from ._index import describe
from ._load import load_pipeline
from ._memory import forget, give_back, note, with_more_offload
from ._preset import for_job
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
        with self.phase("importing and loading", LOAD_SECONDS):
            self.ranks = Ranks(settings, self.settings) if self.settings.ranks > 1 else None
            try:
                self._load()
            except Exception as error:
                self._offload_more(error)
                self._load()
            if self.ranks is not None:
                self.ranks.loaded()

    def generate(self, job: Job) -> Iterator[Output]:
        try:
            result, capture = self._result(job)
            yield from outputs(self.pipe, result, capture, job, self._grid)
        finally:
            if self.pipe is not None:
                clean(self.pipe)

    def reset(self) -> None:
        give_back()
        if self.pipe is None:
            raise RuntimeError("the pipeline was not loaded again")
        if self.ranks is not None:
            self.ranks.check()

    def _load(self) -> None:
        self.pipe: Any = load_pipeline(self.settings)
        self._has_compiled = not self.settings.compile

    def _result(self, job: Job) -> tuple[Any, Captured]:
        """The call's result. If memory runs out, the pipeline is loaded again with more offload, for this job and all later ones."""
        try:
            return self._attempt(job)
        except Exception as error:
            first = str(error)
            clean(self.pipe)
            self._offload_more(error)
        try:
            with job.phase(f"loading again with offload = {self.settings.offload}", LOAD_SECONDS):
                self._load()
            return self._attempt(job)
        except Cancelled:
            raise
        except Exception as error:
            raise OutOfMemory(f"{first}; then, with offload = {self.settings.offload!r}: {error}") from error

    def _offload_more(self, error: Exception) -> None:
        """Drops the pipeline, for one with more offload.

        Raises:
            Exception: the error, if it is another one, or no offload needs less memory.
        """
        more = with_more_offload(self.settings) if is_out_of_memory(error) else None
        if more is None:
            raise error
        note(self.settings, more, error)
        forget(error)
        self.pipe, self.settings = None, more
        give_back()

    def _attempt(self, job: Job) -> tuple[Any, Captured]:
        settings = for_job(self.settings, job.preset, known_arguments(self.pipe))
        arguments = call_arguments(self.pipe, job, settings)
        with captured(self.pipe) as capture:
            return self._first_call(job, arguments, settings), capture

    def _first_call(self, job: Job, arguments: dict[str, Any], settings: Settings) -> Any:
        """The call, in a phase of its own if it compiles."""
        if self._has_compiled:
            return self._call(job, arguments, settings)
        with job.phase("compiling", self.settings.compile_seconds):
            result = self._call(job, arguments, settings)
        self._has_compiled = True
        return result

    def _call(self, job: Job, arguments: dict[str, Any], settings: Settings) -> Any:
        if self.ranks is None:
            return run(self.pipe, arguments, job.seed, JobWatch(job, self._grid), settings)
        job.check()
        # No rank may stop alone, also not before it has begun.
        with job.deferred_cancel():
            self.ranks.begin(arguments, job.seed, settings)
            try:
                result = run(self.pipe, arguments, job.seed, Leader(job, self._grid), settings)
            finally:
                error = self.ranks.end()
            if error is not None:
                raise error
        return result
