//! Our configuration as OpenH264's parameter block, with every default that would change the
//! number of frames, the entropy coder or the colour tags overridden.

use openh264_sys2::{
    CAMERA_VIDEO_REAL_TIME, CONSTANT_ID, LOW_COMPLEXITY, PRO_HIGH, RC_OFF_MODE, SEncParamExt,
    SM_SINGLE_SLICE, VF_UNDEF,
};

use crate::level::level_idc;
use crate::{Config, Error};

/// Rec. ITU-T H.273: code point 1 is BT.709 for primaries, transfer and matrix alike.
const BT709: u8 = 1;
/// Nominal only: with rate control off the library checks it against the level and ignores it.
const NOMINAL_BITRATE: i32 = 64_000;

/// Fills `params`, which holds the library's defaults.
pub(crate) fn apply(config: &Config, params: &mut SEncParamExt) -> Result<(), Error> {
    let side_ok = |side: u32| (16..=4096).contains(&side) && side.is_multiple_of(2);
    if !side_ok(config.width) || !side_ok(config.height) {
        return Err(Error::Unsupported("sides must be even, 16 to 4096 pixels"));
    }
    if !(1..=240).contains(&config.fps) || config.qp > 51 {
        return Err(Error::Unsupported(
            "1 to 240 frames/s and quantiser 0 to 51",
        ));
    }
    let level = level_idc(config.width, config.height, config.fps)
        .ok_or(Error::Unsupported("beyond level 5.2"))?;
    let (width, height) = (config.width.cast_signed(), config.height.cast_signed());

    params.iUsageType = CAMERA_VIDEO_REAL_TIME;
    params.iPicWidth = width;
    params.iPicHeight = height;
    params.fMaxFrameRate = config.fps as f32;
    params.iTargetBitrate = NOMINAL_BITRATE;
    params.iRCMode = RC_OFF_MODE;
    params.iTemporalLayerNum = 1;
    params.iSpatialLayerNum = 1;
    params.iComplexityMode = LOW_COMPLEXITY;
    // Only the first picture of an encoder is an IDR: the caller makes one encoder per run.
    params.uiIntraPeriod = 0;
    params.iNumRefFrame = 1;
    params.eSpsPpsIdStrategy = CONSTANT_ID;
    params.bPrefixNalAddingCtrl = false;
    params.bEnableSSEI = false;
    params.bSimulcastAVC = false;
    params.iPaddingFlag = 0;
    params.iEntropyCodingModeFlag = 1;
    params.bEnableFrameSkip = false;
    params.iMaxQp = 51;
    params.iMinQp = 0;
    params.bEnableLongTermReference = false;
    params.iMultipleThreadIdc = 1;
    params.iLoopFilterDisableIdc = 0;
    params.bEnableDenoise = false;
    params.bEnableBackgroundDetection = false;
    params.bEnableAdaptiveQuant = false;
    params.bEnableFrameCroppingFlag = true;
    params.bEnableSceneChangeDetect = false;

    let layer = &mut params.sSpatialLayers[0];
    layer.iVideoWidth = width;
    layer.iVideoHeight = height;
    layer.fFrameRate = config.fps as f32;
    layer.iSpatialBitrate = NOMINAL_BITRATE;
    layer.uiProfileIdc = PRO_HIGH;
    layer.uiLevelIdc = level.into();
    layer.iDLayerQp = config.qp.into();
    layer.sSliceArgument.uiSliceMode = SM_SINGLE_SLICE;
    layer.sSliceArgument.uiSliceNum = 1;
    layer.bVideoSignalTypePresent = true;
    layer.uiVideoFormat = VF_UNDEF as u8;
    layer.bFullRange = false;
    layer.bColorDescriptionPresent = true;
    layer.uiColorPrimaries = BT709;
    layer.uiTransferCharacteristics = BT709;
    layer.uiColorMatrix = BT709;
    Ok(())
}
