"""The sound of a clip: collects pieces, resamples them, and makes them exactly as long as the picture."""

from ._errors import Mistake
from ._job import Clip
from ._line import Port
from ._materials import SAMPLE_RATE_HZ
from ._outputs import Sound
from ._resample import resample

_SAMPLE_BYTES = 8
TOLERANCE_SECONDS = 0.5
"""Models round the length of sound. A difference of up to this much is filled with silence, or cut."""


class Soundtrack:
    """Pieces at 48 kHz are sent at once; others are resampled together, so that pieces join without a click."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._waiting: list[bytes] = []
        self._rate = SAMPLE_RATE_HZ
        self._sent = 0
        self._given = 0

    def add(self, sound: Sound, clip: Clip) -> None:
        """Takes the next piece.

        Raises:
            Mistake: the clip has no sound, or the sound is too long.
        """
        if not clip.audio:
            raise Mistake("generate() yielded sound for a clip without; look at job.clip.audio")
        if clip.frames is None:
            raise Mistake("sound came before the clip's length: call job.decide(frames) first")
        if sound.rate != self._rate:
            self._flush(clip)
            self._rate = sound.rate
        self._waiting.append(sound.data)
        if sound.rate == SAMPLE_RATE_HZ:
            self._flush(clip)

    def finish(self, clip: Clip) -> None:
        """Sends the rest.

        Raises:
            Mistake: the sound is too short or too long.
        """
        if not clip.audio:
            return
        self._flush(clip)
        wanted = _samples(clip)
        if abs(self._given - wanted) > TOLERANCE_SECONDS * SAMPLE_RATE_HZ:
            given, seconds = self._given / SAMPLE_RATE_HZ, wanted / SAMPLE_RATE_HZ
            raise Mistake(f"generate() yielded {given:.2f} s of sound for a clip of {seconds:.2f} s")
        if self._sent < wanted:
            self._port.send_large(b"a", bytes((wanted - self._sent) * _SAMPLE_BYTES))

    def _flush(self, clip: Clip) -> None:
        data = resample(b"".join(self._waiting), self._rate)
        self._waiting.clear()
        self._given += len(data) // _SAMPLE_BYTES
        data = data[: (_samples(clip) - self._sent) * _SAMPLE_BYTES]
        if data:
            self._sent += len(data) // _SAMPLE_BYTES
            self._port.send_large(b"a", data)


def _samples(clip: Clip) -> int:
    """Samples per channel as long as the picture, rounded to nearest, as Kinora counts them."""
    frames = clip.frames or 0
    return (frames * SAMPLE_RATE_HZ + clip.fps // 2) // clip.fps
