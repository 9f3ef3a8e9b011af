"""FastVideo's result, as far as the adapter uses it; fastvideo 0.2.1."""

from dataclasses import dataclass
from typing import Any


@dataclass
class GenerationResult:
    frames: Any | None = None
    audio: Any | None = None
    audio_sample_rate: int | None = None
