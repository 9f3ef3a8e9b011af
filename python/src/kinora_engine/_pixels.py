"""Pixels of any common kind to bytes, `[height][width][3]`, 8 bits.

Arrays are numpy arrays or torch tensors, uint8 or float 0..1. Tensors are scaled and cast on their own device, then copied frame by
frame. Nothing here imports numpy or torch: an array's module is loaded already.
"""

import ctypes
from collections.abc import Iterator
from typing import Any

from ._errors import Mistake
from ._materials import Picture

# Decoders overshoot 0..1 a little. Values beyond these bounds mean another scale, such as 0..255 or -1..1.
_FLOAT_MIN, _FLOAT_MAX = -0.5, 1.5


def frames_of(value: Any, width: int, height: int) -> Iterator[bytes]:
    """The frames in `value`, each as bytes.

    `value` is bytes of whole frames, a `Picture`, a PIL image, an array `[height][width][3]` or `[3][height][width]`, several of these
    (`[frames]` before them, and any number of leading 1s), or an iterable of any of these.

    Raises:
        Mistake: the size or the type is another one.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        yield from _split(memoryview(value).cast("B"), width, height)
    elif isinstance(value, Picture):
        _expect_size(value.width, value.height, width, height)
        yield value.bytes
    elif _is_pil(value):
        _expect_size(value.size[0], value.size[1], width, height)
        yield value.convert("RGB").tobytes()
    elif hasattr(value, "shape"):
        yield from _array_frames(value, width, height)
    else:
        try:
            items = iter(value)
        except TypeError:
            raise Mistake(f"job.rgb() takes bytes, pictures, arrays or tensors, not a {type(value).__name__}") from None
        for item in items:
            yield from frames_of(item, width, height)


def picture_of(value: Any) -> Picture:
    """One picture of any size.

    Raises:
        Mistake: the value is no `Picture`, PIL image or array of three dimensions.
    """
    if isinstance(value, Picture):
        return value
    if _is_pil(value):
        return Picture(value.size[0], value.size[1], value.convert("RGB").tobytes())
    shape = tuple(getattr(value, "shape", ()))
    if len(shape) != 3 or 3 not in (shape[0], shape[2]):
        raise Mistake(f"job.preview() takes a Picture, a PIL image or an array [height][width][3], not a {_name(value)}")
    height, width = shape[:2] if shape[2] == 3 else shape[1:]
    return Picture(width, height, next(frames_of(value, width, height)))


def _split(data: memoryview, width: int, height: int) -> Iterator[bytes]:
    length = width * height * 3
    if len(data) == 0 or len(data) % length:
        raise Mistake(f"{len(data)} bytes are no whole frames of {width}x{height} (width x height x 3 = {length} bytes each)")
    for start in range(0, len(data), length):
        yield bytes(data[start : start + length])


def _array_frames(value: Any, width: int, height: int) -> Iterator[bytes]:
    shape = tuple(value.shape)
    while len(shape) > 4 and shape[0] == 1:
        value, shape = value[0], shape[1:]
    if shape[-3:] == (height, width, 3):
        channels_first = False
    elif shape[-3:] == (3, height, width):
        channels_first = True
    else:
        wanted = f"[frames][{height}][{width}][3] or [frames][3][{height}][{width}]"
        raise Mistake(f"frames of shape {list(shape)} do not fit a clip of {width}x{height}: {wanted} is needed")
    if len(shape) > 4:
        raise Mistake(f"an array of shape {list(shape)} holds several clips; pass one of them")
    convert = _tensor_bytes if hasattr(value, "is_floating_point") else _numpy_bytes
    if len(shape) == 3:
        yield convert(value, channels_first)
        return
    for index in range(shape[0]):
        yield convert(value[index], channels_first)


def _numpy_bytes(frame: Any, channels_first: bool) -> bytes:
    if channels_first:
        frame = frame.transpose(1, 2, 0)
    kind = frame.dtype.kind
    if kind == "f":
        frame = frame.astype("float32")
        _expect_range(float(frame.min()), float(frame.max()))
        frame = (frame.clip(0.0, 1.0) * 255.0 + 0.5).astype("uint8")
    elif frame.dtype.name != "uint8":
        raise Mistake(f"frames of type {frame.dtype.name}: uint8, or floats from 0 to 1, are needed")
    return bytes(frame.tobytes())


def _tensor_bytes(frame: Any, channels_first: bool) -> bytes:
    frame = frame.detach()
    if channels_first:
        frame = frame.permute(1, 2, 0)
    if frame.is_floating_point():
        frame = frame.float()
        low, high = frame.aminmax()
        _expect_range(float(low), float(high))
        frame = (frame.clamp(0.0, 1.0) * 255.0 + 0.5).byte()
    elif str(frame.dtype) != "torch.uint8":
        raise Mistake(f"frames of type {frame.dtype}: uint8, or floats from 0 to 1, are needed")
    frame = frame.contiguous().cpu()
    # Tensor.numpy() needs numpy, which is optional.
    return ctypes.string_at(frame.data_ptr(), frame.numel())


def _expect_range(low: float, high: float) -> None:
    if low != low or high != high:
        raise Mistake("a frame holds values that are no numbers; the model overflowed (bfloat16 or float32 often helps)")
    if low < _FLOAT_MIN or high > _FLOAT_MAX:
        raise Mistake(f"a frame's floats reach from {low:.3g} to {high:.3g}; scale them to 0..1")


def _expect_size(width: int, height: int, clip_width: int, clip_height: int) -> None:
    if (width, height) != (clip_width, clip_height):
        raise Mistake(f"a frame of {width}x{height} does not fit a clip of {clip_width}x{clip_height}")


def _is_pil(value: Any) -> bool:
    return hasattr(value, "convert") and hasattr(value, "mode") and hasattr(value, "size")


def _name(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"{type(value).__name__} of shape {list(shape)}"
