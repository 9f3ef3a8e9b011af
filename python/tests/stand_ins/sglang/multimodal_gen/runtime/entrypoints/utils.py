"""SGLang's result, as far as the adapter uses it; sglang 0.5.23."""

from dataclasses import dataclass
from typing import Any


@dataclass
class GenerationResult:
    samples: Any = None
    frames: Any = None
    audio: Any = None
