"""The engine's settings: its table `settings` in Kinora's configuration. Unknown keys are errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

DTYPE = "bfloat16"
OFFLOADS = ("none", "model", "sequential", "group")


@dataclass(frozen=True)
class Settings:
    """All keys with their defaults."""

    model: str
    """A folder with `model_index.json`, or a repository id that is in the local cache or can be downloaded."""
    pipeline: str = ""
    """Class of the pipeline; empty: the one of `model_index.json`."""
    workflow: str = ""
    """Of a modular pipeline: the task whose parts are loaded, such as `t2va` of MiniMax-H3. Empty: all parts."""
    dtype: str | dict[str, str] = DTYPE
    """Type of the weights; or types by the name of the part, with `default` for the others: `{"vae": "float32"}`."""
    torch_device: str = ""
    """Empty: `cuda` if there is one, otherwise `cpu`."""
    steps: int = 0
    """0: the default of the pipeline."""
    draft_steps: int = 0
    """0: no drafts. Only pipelines that take text and a video offer them: a final works from its draft's video."""
    final_strength: float = 0.5
    """How far the final of a draft may leave the draft's video, 0.0 to 1.0."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """Further arguments of every call, such as `guidance_scale`."""
    map: dict[str, str] = field(default_factory=dict)
    """Names of call arguments for fields of a job, where they differ from the usual ones; see `_arguments.py`."""
    describe: dict[str, Any] = field(default_factory=dict)
    """`size_multiple`, `frames`, `fps` and `features`, for pipelines that this package does not know, and to offer less."""
    components: dict[str, Any] = field(default_factory=dict)
    """Further arguments of `from_pretrained`."""
    scheduler: dict[str, Any] = field(default_factory=dict)
    """Changes to the scheduler's configuration, such as `flow_shift`."""
    quantization: dict[str, Any] = field(default_factory=dict)
    """Arguments of `diffusers.PipelineQuantizationConfig`. Tables with `type` in it become objects; see `_objects.py`."""
    single_files: dict[str, str] = field(default_factory=dict)
    """Files by the name of the part that is read from them instead of the model's folder, in GGUF or safetensors."""
    offload: str = "none"
    offload_options: dict[str, Any] = field(default_factory=dict)
    retry_out_of_memory: bool = True
    """If the device's memory does not suffice, load again with the next `offload` (`none`, `model`, `group`), and try once more."""
    vae_tiling: bool = False
    vae_slicing: bool = False
    cache: dict[str, Any] = field(default_factory=dict)
    """`{"type": "FirstBlockCacheConfig", "threshold": 0.05}`: a step cache and its arguments."""
    attention: str = ""
    """Name of an attention backend, such as `sage`."""
    loras: list[dict[str, Any]] = field(default_factory=list)
    """Tables with `name`, `path`, `scale` (1.0), `active` (true) and further arguments of `load_lora_weights`. Without a preset, those that
    are active work; see `_preset.py`."""
    compile: bool = False
    """Compiles the repeated blocks of the transformers."""
    compile_seconds: float = 900.0
    ranks: int = 1
    """Processes that make each clip together, with a device each; see `_ranks.py`. The devices are those that are visible, in order."""
    parallel: dict[str, Any] = field(default_factory=dict)
    """Arguments of `diffusers.ContextParallelConfig`; empty: `{"ulysses_degree": ranks}`."""
    yield_seconds: float = 10.0
    """A cancel takes effect between two blocks of the transformer, or after the decoder, which cannot be stopped."""

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "Settings":
        """Checks and takes the settings.

        Raises:
            ValueError: a key is unknown, missing, or has an impossible value.
        """
        known = {one.name for one in fields(cls)}
        unknown = sorted(set(settings) - known)
        if unknown:
            raise ValueError(f"unknown settings {', '.join(unknown)}; known are {', '.join(sorted(known))}")
        if not isinstance(settings.get("model"), str):
            raise ValueError("settings.model is missing: a folder with model_index.json, or a repository id")
        parsed = cls(**settings)
        if parsed.offload not in OFFLOADS:
            raise ValueError(f"settings.offload is {parsed.offload!r}; it is one of {', '.join(OFFLOADS)}")
        if not (isinstance(parsed.dtype, str) or all(isinstance(name, str) for name in parsed.dtype.values())):
            raise ValueError(f"settings.dtype is {parsed.dtype!r}; it is a type, or a table of types by the name of the part")
        if parsed.ranks < 1:
            raise ValueError(f"settings.ranks is {parsed.ranks}; it must be 1 or more")
        if parsed.ranks > 1 and parsed.cache:
            raise ValueError("settings.cache needs ranks = 1: each rank would decide on its own which steps to skip")
        for lora in parsed.loras:
            if "name" not in lora or "path" not in lora:
                raise ValueError("each of settings.loras needs name and path")
            if not isinstance(lora.get("active", True), bool):
                raise ValueError("active of settings.loras is true or false")
        return parsed
