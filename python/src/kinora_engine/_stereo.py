"""Sound of any common kind to 32-bit floats, interleaved left and right, at its own rate."""

from array import array
from collections.abc import Iterable
from typing import Any

from ._errors import Mistake

_INTEGER_SCALES = {"int16": 1 / 32_768, "int32": 1 / 2_147_483_648}


def stereo(pcm: Any, channels: int | None) -> bytes:
    """The samples of `pcm`, clipped to -1.0..1.0.

    `pcm` is a numpy array or a torch tensor (`[samples]`, `[samples][channels]`, `[channels][samples]`, with any number of leading 1s;
    floats, int16 or int32), bytes of 32-bit floats, or an iterable of floats. `channels` is 1 or 2 and says what a flat `pcm` holds;
    without it, bytes are stereo and everything else is mono.

    Raises:
        Mistake: the type or the number of channels is another one.
    """
    if channels not in (None, 1, 2):
        raise Mistake(f"sound of {channels} channels: 1 or 2 are needed")
    if hasattr(pcm, "is_floating_point"):
        pcm = _from_tensor(pcm)
    if hasattr(pcm, "dtype"):
        return _from_numpy(pcm, channels)
    if isinstance(pcm, (bytes, bytearray, memoryview)):
        data = bytes(pcm)
        if len(data) % 4:
            raise Mistake(f"{len(data)} bytes of sound are no whole 32-bit floats")
        return _interleave(array("f", data), channels or 2)
    return _interleave(array("f", _numbers(pcm)), channels or 1)


def _from_tensor(tensor: Any) -> Any:
    if tensor.is_floating_point():
        tensor = tensor.float()
    tensor = tensor.detach().cpu()
    try:
        return tensor.numpy()
    except RuntimeError:
        raise Mistake("sound from a tensor needs numpy: install kinora-engine[numpy]") from None


def _from_numpy(pcm: Any, channels: int | None) -> bytes:
    import numpy

    shape = pcm.shape
    while pcm.ndim > 2 and pcm.shape[0] == 1:
        pcm = pcm[0]
    scale = _INTEGER_SCALES.get(pcm.dtype.name)
    if pcm.dtype.kind != "f" and scale is None:
        raise Mistake(f"sound of type {pcm.dtype.name}: floats, int16 or int32 are needed")
    pcm = pcm.astype(numpy.float32)
    if scale is not None:
        pcm = pcm * numpy.float32(scale)
    if pcm.ndim == 1:
        pcm = pcm.reshape(-1, channels or 1)
    elif pcm.ndim == 2 and pcm.shape[1] not in (1, 2) and pcm.shape[0] in (1, 2):
        pcm = pcm.T
    if pcm.ndim != 2 or pcm.shape[1] not in (1, 2):
        raise Mistake(f"sound of shape {list(shape)}: [samples][1 or 2] or [1 or 2][samples] is needed")
    if not numpy.isfinite(pcm).all():
        raise Mistake("the sound holds values that are no numbers; the model overflowed")
    both = numpy.broadcast_to(pcm, (pcm.shape[0], 2))
    return numpy.ascontiguousarray(both.clip(-1.0, 1.0), dtype="<f4").tobytes()


def _numbers(pcm: Iterable[Any]) -> Iterable[float]:
    try:
        return map(float, pcm)
    except TypeError:
        raise Mistake(f"job.sound() takes arrays, tensors, bytes or numbers, not a {type(pcm).__name__}") from None


def _interleave(samples: "array[float]", channels: int) -> bytes:
    if len(samples) % channels:
        raise Mistake(f"{len(samples)} values are no whole samples of {channels} channels")
    if any(sample != sample for sample in samples):
        raise Mistake("the sound holds values that are no numbers; the model overflowed")
    if samples and (min(samples) < -1.0 or max(samples) > 1.0):
        samples = array("f", (min(1.0, max(-1.0, sample)) for sample in samples))
    if channels == 2:
        return samples.tobytes()
    both = array("f", bytes(len(samples) * 8))
    both[0::2] = samples
    both[1::2] = samples
    return both.tobytes()
