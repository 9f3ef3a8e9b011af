"""Any diffusers video pipeline as an engine, without code: `python -m kinora_engine kinora_engine.diffusers:Pipeline`.

Importing this package imports neither torch nor diffusers; `Pipeline.load` does.
"""

from ._pipeline import Pipeline

__all__ = ["Pipeline"]
