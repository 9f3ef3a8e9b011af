"""Resamples stereo sound to 48 kHz.

With numpy: a polyphase filter, a sinc windowed by a Kaiser window (J. O. Smith, "Digital Audio Resampling",
https://ccrma.stanford.edu/~jos/resample/), with the cut-off at the lower of the two rates. Without numpy: linear interpolation, which
dulls high tones and, from rates over 48 kHz, lets some of them fold.
"""

import math
from array import array
from typing import Any

from ._materials import SAMPLE_RATE_HZ

_ZERO_CROSSINGS = 24
"""On each side of the filter's middle."""
_KAISER_BETA = 9.0
_ROLL_OFF = 0.95
"""Cut-off, as a part of half the lower rate."""
_BLOCK = 16_384


def resample(data: bytes, rate: int) -> bytes:
    """Stereo 32-bit floats at `rate` to stereo 32-bit floats at 48 kHz, of the same length in seconds."""
    if rate == SAMPLE_RATE_HZ or not data:
        return data
    try:
        import numpy
    except ImportError:
        return _linear(array("f", data), rate).tobytes()
    return _polyphase(numpy, data, rate)


def resampled_length(samples: int, rate: int) -> int:
    """Samples per channel at 48 kHz, rounded to nearest."""
    return (samples * SAMPLE_RATE_HZ + rate // 2) // rate


def _polyphase(np: Any, data: bytes, rate: int) -> bytes:
    common = math.gcd(rate, SAMPLE_RATE_HZ)
    up, down = SAMPLE_RATE_HZ // common, rate // common
    cutoff = _ROLL_OFF * min(1.0, up / down)
    half = math.ceil(_ZERO_CROSSINGS / cutoff)
    filters = _filters(np, up, half, cutoff)
    sound = np.frombuffer(data, "<f4").reshape(-1, 2)
    padded = np.pad(sound, ((half, half + 1), (0, 0)))
    out = np.empty((resampled_length(len(sound), rate), 2), "<f4")
    taps = np.arange(2 * half)
    for start in range(0, len(out), _BLOCK):
        position = np.arange(start, min(start + _BLOCK, len(out)), dtype=np.int64) * down
        # Output n lies at n * down / up of the input; tap k reads input floor(...) - half + 1 + k.
        whole, phase = np.divmod(position, up)
        windows = padded[np.minimum(whole, len(sound) - 1)[:, None] + 1 + taps]
        np.einsum("nk,nkc->nc", filters[phase], windows, out=out[start : start + len(position)])
    return bytes(out.clip(-1.0, 1.0).tobytes())


def _filters(np: Any, up: int, half: int, cutoff: float) -> Any:
    """`[up phases][2 * half taps]`, each phase of sum 1."""
    distance = np.arange(2 * half)[None, :] - (half - 1) - np.arange(up)[:, None] / up
    window = np.i0(_KAISER_BETA * np.sqrt(np.maximum(0.0, 1.0 - (distance / half) ** 2)))
    filters = np.sinc(cutoff * distance) * window
    return (filters / filters.sum(axis=1, keepdims=True)).astype(np.float32)


def _linear(sound: "array[float]", rate: int) -> "array[float]":
    samples = len(sound) // 2
    out = array("f")
    for index in range(resampled_length(samples, rate)):
        whole, rest = divmod(index * rate, SAMPLE_RATE_HZ)
        part = rest / SAMPLE_RATE_HZ
        this, following = min(whole, samples - 1) * 2, min(whole + 1, samples - 1) * 2
        for channel in (0, 1):
            left = sound[this + channel]
            out.append(left + (sound[following + channel] - left) * part)
    return out
