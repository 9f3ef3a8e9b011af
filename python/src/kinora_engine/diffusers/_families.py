"""What each pipeline class of diffusers can do. Source: the signatures and checks of diffusers 0.42.1.

Sizes and rates are those that the authors trained with. `settings.describe` overrides them. Left out, because a part of a job would get
lost: pipelines that take their size from the picture (HunyuanVideo 1.5 I2V), need further inputs (Wan-Animate, ConsisID), ignore the
strength of an edit (Lucy Edit) or need a guard of their own (Cosmos).
"""

from dataclasses import dataclass

from .._description import Features, Frames


@dataclass(frozen=True)
class Family:
    """Defaults of one pipeline class."""

    features: Features
    size_multiple: int
    frames: Frames
    fps: int
    chooses_length: bool = False
    """Whether the call chooses a length if the model has a part for that; see `_length.py`."""


_TEXT = Features(text_to_video=True, negative_prompt=True)
_FIRST = Features(first_frame=True, negative_prompt=True)
_BOTH_ENDS = Features(first_frame=True, last_frame=True, negative_prompt=True)
_EDIT = Features(edit=True, negative_prompt=True)
_CONDITION = Features(text_to_video=True, first_frame=True, last_frame=True, negative_prompt=True)
_VACE = Features(
    text_to_video=True, first_frame=True, last_frame=True, reference_images_max=4, negative_prompt=True, edit=True
)
_TEXT_OR_FIRST = Features(text_to_video=True, first_frame=True, audio_output=True, negative_prompt=True)
_TEXT_AND_SOUND = Features(text_to_video=True, audio_output=True)
_LTX2_TEXT = Features(text_to_video=True, audio_output=True, negative_prompt=True)
_LTX2_FIRST = Features(first_frame=True, audio_output=True, negative_prompt=True)
_LTX2_CONDITION = Features(text_to_video=True, first_frame=True, last_frame=True, audio_output=True, negative_prompt=True)

_BY_4, _BY_8, _BY_6 = Frames(4, 1), Frames(8, 1), Frames(6, 1)
_BY_WINDOWS = Frames(33, 0)
_BY_17 = Frames(17, 5)

FAMILIES = {
    "WanPipeline": Family(_TEXT, 16, _BY_4, 16),
    "WanImageToVideoPipeline": Family(_BOTH_ENDS, 16, _BY_4, 16),
    "WanVACEPipeline": Family(_VACE, 16, _BY_4, 16),
    "WanVideoToVideoPipeline": Family(_EDIT, 16, _BY_4, 16),
    "HunyuanVideoPipeline": Family(_TEXT, 16, _BY_4, 24),
    "HunyuanVideoImageToVideoPipeline": Family(_FIRST, 16, _BY_4, 24),
    "HunyuanSkyreelsImageToVideoPipeline": Family(_FIRST, 16, _BY_4, 24),
    "HunyuanVideo15Pipeline": Family(_TEXT, 16, _BY_4, 24),
    "LTXPipeline": Family(_TEXT, 32, _BY_8, 24),
    "LTXImageToVideoPipeline": Family(_FIRST, 32, _BY_8, 24),
    "LTXConditionPipeline": Family(_CONDITION, 32, _BY_8, 24),
    "LTX2Pipeline": Family(_LTX2_TEXT, 32, _BY_8, 24, chooses_length=True),
    "LTX2ImageToVideoPipeline": Family(_LTX2_FIRST, 32, _BY_8, 24, chooses_length=True),
    "LTX2ConditionPipeline": Family(_LTX2_CONDITION, 32, _BY_8, 24, chooses_length=True),
    "LTX2DFRPipeline": Family(_TEXT_AND_SOUND, 32, _BY_8, 24, chooses_length=True),
    "CogVideoXPipeline": Family(_TEXT, 16, _BY_4, 8),
    "CogVideoXImageToVideoPipeline": Family(_FIRST, 16, _BY_4, 8),
    "CogVideoXVideoToVideoPipeline": Family(_EDIT, 16, _BY_4, 8),
    "MiniMaxH3ModularPipeline": Family(_TEXT_AND_SOUND, 32, _BY_17, 24),
    "SkyReelsV2Pipeline": Family(_TEXT, 16, _BY_4, 24),
    "SkyReelsV2ImageToVideoPipeline": Family(_BOTH_ENDS, 16, _BY_4, 24),
    "SanaVideoPipeline": Family(_TEXT, 32, _BY_4, 16),
    "SanaImageToVideoPipeline": Family(_FIRST, 32, _BY_4, 16),
    "MochiPipeline": Family(_TEXT, 16, _BY_6, 30),
    "Kandinsky5T2VPipeline": Family(_TEXT, 16, _BY_4, 24),
    "Kandinsky5I2VPipeline": Family(_FIRST, 16, _BY_4, 24),
    "Kandinsky6TI2VAPipeline": Family(_TEXT_OR_FIRST, 16, _BY_4, 24),
    "AnyFlowPipeline": Family(_TEXT, 16, _BY_4, 16),
    "AnyFlowFARPipeline": Family(_TEXT, 16, _BY_4, 16),
    "HeliosPipeline": Family(_TEXT, 16, _BY_WINDOWS, 24),
    "HeliosPyramidPipeline": Family(_TEXT, 16, _BY_WINDOWS, 24),
    "MotifVideoPipeline": Family(_TEXT, 16, _BY_4, 24),
    "MotifVideoImage2VideoPipeline": Family(_FIRST, 16, _BY_4, 24),
    "EasyAnimatePipeline": Family(_TEXT, 16, _BY_4, 8),
    "AnimateDiffPipeline": Family(_TEXT, 8, Frames(), 8),
    "AnimateDiffVideoToVideoPipeline": Family(_EDIT, 8, Frames(), 8),
}
UNSPLIT = {"LTX2Pipeline", "LTX2ImageToVideoPipeline", "LTX2ConditionPipeline", "LTX2DFRPipeline"}
"""Classes that context parallelism of diffusers 0.42.1 cannot split: the plan of their transformer leaves out the sound."""
