"""Engines that are another library's generator: one call a clip, which blocks, reports nothing and cannot be stopped.

The call runs in a thread of its own. A stopped job waits a little for its call; if the call goes on, the process ends, and Kinora starts
another one.
"""

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ._description import YIELD_SECONDS_MAX, Description, Features, Frames
from ._engine import PHASE_SECONDS_MAX, Engine
from ._job import Job
from ._outputs import Output

POLL_SECONDS = 0.1
RESET_SHARE = 0.8
"""Part of `yield_seconds` in which a stopped job waits for its call."""


@dataclass(frozen=True)
class Settings:
    """All keys with their defaults. Unknown keys are errors."""

    model: str
    """A folder, or a repository id, as the library takes it."""
    describe: dict[str, Any]
    """`size_multiple`, `frames`, `fps` and `features` of the model, as in `[engines.describe]`."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """Further arguments of `from_pretrained`, such as `num_gpus`."""
    sampling: dict[str, Any] = field(default_factory=dict)
    """Further fields of each request, such as `guidance_scale`."""
    steps: int = 0
    """0: the library's default for the model."""
    sound_rate: int = 0
    """Samples a second of the model's sound, where the library does not say it."""
    call_seconds: float = PHASE_SECONDS_MAX
    """Longest call. Kinora ends the process when nothing came for so long."""
    yield_seconds: float = 10.0

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "Settings":
        """Checks and takes the settings.

        Raises:
            ValueError: a key is unknown, missing, or has an impossible value.
        """
        unknown = sorted(set(settings) - {one.name for one in fields(cls)})
        if unknown:
            raise ValueError(f"unknown settings: {', '.join(unknown)}")
        if not isinstance(settings.get("model"), str) or not isinstance(settings.get("describe"), dict):
            raise ValueError("settings.model and settings.describe are required")
        parsed = cls(**settings)
        if not 0 < parsed.call_seconds <= PHASE_SECONDS_MAX or not 0 < parsed.yield_seconds <= YIELD_SECONDS_MAX:
            limits = f"settings.call_seconds is at most {PHASE_SECONDS_MAX:g}, and settings.yield_seconds {YIELD_SECONDS_MAX:g}"
            raise ValueError(limits)
        return parsed


class Library(Engine):
    """An engine by a library. A subclass names the library, and makes its generator, requests and outputs."""

    package: str
    features: frozenset[str]
    """Features that the adapter can pass on."""
    _call: "Call | None" = None

    def describe(self, settings: Mapping[str, Any]) -> Description:
        parsed = Settings.parse(settings)
        said = parsed.describe
        features = said.get("features", {})
        lost = sorted(name for name, value in features.items() if value and name not in self.features)
        if lost:
            raise ValueError(f"this adapter cannot pass on {', '.join(lost)}; it can {', '.join(sorted(self.features))}")
        return Description(
            features=Features(**features),
            size_multiple=int(said.get("size_multiple", 1)),
            frames=Frames(**said.get("frames", {})),
            fps=int(said["fps"]),
            name=self.package,
            version=_version(self.package),
            yield_seconds=parsed.yield_seconds,
        )

    def load(self, settings: Mapping[str, Any], device: str | None) -> None:
        self.settings = Settings.parse(settings)
        with self.phase("importing and loading", PHASE_SECONDS_MAX):
            self.generator = self.open(self.settings)

    def generate(self, job: Job) -> Iterator[Output]:
        self._call = Call(lambda: self._make(job))
        with job.phase("generating", self.settings.call_seconds):
            while not self._call.wait(POLL_SECONDS):
                job.check()
        result = self._call.result()
        yield from self.outputs(job, result)

    def reset(self) -> None:
        call, self._call = self._call, None
        if call is not None and not call.wait(RESET_SHARE * self.settings.yield_seconds):
            raise RuntimeError(f"{self.package} cannot stop its call")

    def _make(self, job: Job) -> Any:
        with TemporaryDirectory(prefix="kinora-") as folder:
            return self.make(self.request(job, Path(folder)))

    @abstractmethod
    def open(self, settings: Settings) -> Any:
        """The library's generator."""

    @abstractmethod
    def request(self, job: Job, folder: Path) -> dict[str, Any]:
        """The request for a job. Files for it belong into the folder, which lasts as long as the call. Called in the call's thread."""

    @abstractmethod
    def make(self, request: dict[str, Any]) -> Any:
        """Makes the clip. Called in the call's thread."""

    @abstractmethod
    def outputs(self, job: Job, result: Any) -> Iterator[Output]:
        """The frames, then the sound if the clip has one."""


class Call:
    """A call in a thread of its own."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._value: Any = None
        self._error: BaseException | None = None
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="kinora-call", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Waits until the call has ended; `False` if it has not."""
        return self._ended.wait(seconds)

    def result(self) -> Any:
        """The result of a call that has ended.

        Raises:
            BaseException: as the call raised it.
        """
        if self._error is not None:
            raise self._error
        return self._value

    def _run(self) -> None:
        try:
            self._value = self._make()
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()


def saved(picture: Any, path: Path) -> str:
    """Saves a picture as a PNG, and returns its path."""
    picture.pil().save(path)
    return str(path)


def present(values: dict[str, Any]) -> dict[str, Any]:
    """The values that are given."""
    return {key: value for key, value in values.items() if value is not None}


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""
