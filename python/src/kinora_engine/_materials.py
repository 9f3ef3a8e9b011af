"""Pictures and sounds that come with a job."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

SAMPLE_RATE_HZ = 48_000


@dataclass(frozen=True)
class Picture:
    """A picture: `[height][width][3]`, 8 bits, RGB."""

    width: int
    height: int
    bytes: bytes

    def numpy(self) -> "npt.NDArray[np.uint8]":
        """The picture as an array `[height][width][3]`. It shares the bytes and is read-only. Needs numpy."""
        import numpy

        return numpy.frombuffer(self.bytes, numpy.uint8).reshape(self.height, self.width, 3)

    def pil(self) -> Any:
        """The picture as a `PIL.Image.Image`. Needs Pillow."""
        from PIL import Image

        return Image.frombytes("RGB", (self.width, self.height), self.bytes)


@dataclass(frozen=True)
class Audio:
    """A sound: 32-bit floats from -1.0 to 1.0, interleaved left and right, 48,000 a second for each."""

    bytes: bytes

    @property
    def seconds(self) -> float:
        """The sound's length."""
        return len(self.bytes) / 8 / SAMPLE_RATE_HZ

    def numpy(self) -> "npt.NDArray[np.float32]":
        """The sound as an array `[samples][2]`. It shares the bytes and is read-only. Needs numpy."""
        import numpy

        return numpy.frombuffer(self.bytes, numpy.float32).reshape(-1, 2)
