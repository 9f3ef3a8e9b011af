"""Exceptions of engines, and how each exception ends a job.

Exceptions of torch and numpy are recognised by the names of their classes, so neither is imported.
"""

from typing import Any

MESSAGE_CHARS_MAX = 4_000

_OUT_OF_MEMORY_CLASSES = {"MemoryError", "OutOfMemoryError"}
_OUT_OF_MEMORY_WORDS = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "failed to allocate",
    "resource_exhausted",
    "bad_alloc",
)

_BROKEN_CLASSES = {"AcceleratorError"}
# Errors after which a CUDA or HIP context serves nothing but errors.
_BROKEN_WORDS = (
    "cuda error",
    "hip error",
    "device-side assert",
    "cublas_status_not_initialized",
    "cudnn_status_not_initialized",
    "illegal memory access",
    "uncorrectable ecc",
    "xid ",
)


class Cancelled(BaseException):
    """Kinora stopped the job. Not an `Exception`, so `except Exception` does not swallow it. Clean up in `finally`; do not catch it."""


class Unsupported(Exception):
    """The engine cannot make such a clip."""


class OutOfMemory(Exception):
    """The machine or a device is out of memory. Kinora ends the process."""


class Broken(Exception):
    """The process or its device serves nothing any more, whatever the job. Kinora replaces the process and runs the job again."""


class ContentPolicy(Exception):
    """The engine refuses the prompt or its own result."""


class Mistake(Exception):
    """The engine broke a rule of the protocol, in words for its author."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the error reports exhausted memory."""
    if isinstance(error, OutOfMemory):
        return True
    if any(base.__name__ in _OUT_OF_MEMORY_CLASSES for base in type(error).__mro__):
        return True
    # torch's CPU allocator and several libraries raise a plain RuntimeError.
    if not isinstance(error, RuntimeError):
        return False
    text = str(error).lower()
    return any(words in text for words in _OUT_OF_MEMORY_WORDS)


def is_broken(error: BaseException) -> bool:
    """Whether the error says that the device's context is lost, so that every later job would fail too."""
    if isinstance(error, Broken):
        return True
    if any(base.__name__ in _BROKEN_CLASSES for base in type(error).__mro__):
        return True
    if not isinstance(error, RuntimeError):
        return False
    text = str(error).lower()
    return any(words in text for words in _BROKEN_WORDS)


def ended(error: BaseException | None, cancel_asked: bool) -> dict[str, Any]:
    """The body of `e` for a job that raised this error, or none."""
    if error is None:
        return {"outcome": "done"}
    message = _message(error)
    if is_out_of_memory(error):
        return {"outcome": "out_of_memory", "message": message}
    if is_broken(error):
        return {"outcome": "broken", "message": message}
    # A cancel often surfaces as another error, for example when a library wraps the exception.
    if cancel_asked or isinstance(error, Cancelled):
        return {"outcome": "cancelled"}
    if isinstance(error, Unsupported):
        return {"outcome": "unsupported", "message": message}
    if isinstance(error, ContentPolicy):
        return {"outcome": "failed", "code": "content_policy", "message": message}
    return {"outcome": "failed", "message": message}


def _message(error: BaseException) -> str:
    text = str(error)
    if not isinstance(error, (Mistake, Unsupported, OutOfMemory, Broken, ContentPolicy)):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text[:MESSAGE_CHARS_MAX]
