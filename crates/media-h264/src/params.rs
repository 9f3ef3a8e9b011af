//! Translates our configuration into OpenH264's parameter block: overrides every default that
//! would change the number of frames, the entropy coder or the colour tags, and picks the lowest
//! H.264 level that fits.

use openh264_sys2::{
    CAMERA_VIDEO_REAL_TIME, CONSTANT_ID, LOW_COMPLEXITY, PRO_HIGH, RC_OFF_MODE, SEncParamExt,
    SM_SINGLE_SLICE, VF_UNDEF,
};

use crate::{EncoderConfig, H264Error};

/// Rec. ITU-T H.273: code point 1 is BT.709 for primaries, transfer and matrix alike.
const BT709: u8 = 1;
/// Nominal only: with rate control off the library checks it against the level and ignores it.
const NOMINAL_BITRATE: i32 = 64_000;

fn is_valid_side(pixels: u32) -> bool {
    (16..=4096).contains(&pixels) && pixels.is_multiple_of(2)
}

/// Fills `params`, which holds the library's defaults.
pub(crate) fn apply(config: &EncoderConfig, params: &mut SEncParamExt) -> Result<(), H264Error> {
    if !is_valid_side(config.width) || !is_valid_side(config.height) {
        return Err(H264Error::Unsupported(
            "sides must be even, 16 to 4096 pixels",
        ));
    }
    if !(1..=240).contains(&config.fps) || config.qp > 51 {
        return Err(H264Error::Unsupported(
            "1 to 240 frames/s and quantiser 0 to 51",
        ));
    }
    let level = level_idc(config.width, config.height, config.fps)
        .ok_or(H264Error::Unsupported("beyond level 5.2"))?;
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

/// (level times ten, macroblocks per second, macroblocks per picture).
const LEVELS: [(u8, u32, u32); 14] = [
    (10, 1_485, 99),
    (11, 3_000, 396),
    (12, 6_000, 396),
    (20, 11_880, 396),
    (21, 19_800, 792),
    (22, 20_250, 1_620),
    (30, 40_500, 1_620),
    (31, 108_000, 3_600),
    (32, 216_000, 5_120),
    (40, 245_760, 8_192),
    (42, 522_240, 8_704),
    (50, 589_824, 22_080),
    (51, 983_040, 36_864),
    (52, 2_073_600, 36_864),
];

/// The level's number times ten, or `None` beyond level 5.2.
fn level_idc(width: u32, height: u32, fps: u32) -> Option<u8> {
    let (columns, rows) = (width.div_ceil(16), height.div_ceil(16));
    let picture = columns * rows;
    LEVELS
        .iter()
        .find(|(_, per_second, per_picture)| {
            let side_max_squared = per_picture * 8;
            picture <= *per_picture
                && picture.saturating_mul(fps) <= *per_second
                && columns * columns <= side_max_squared
                && rows * rows <= side_max_squared
        })
        .map(|(idc, ..)| *idc)
}

#[cfg(test)]
mod tests {
    use super::level_idc;

    #[test]
    fn usual_sizes_get_their_usual_levels() {
        assert_eq!(level_idc(854, 480, 24), Some(30));
        assert_eq!(level_idc(1280, 720, 30), Some(31));
        assert_eq!(level_idc(1920, 1080, 24), Some(40));
        assert_eq!(level_idc(1920, 1080, 60), Some(42));
        assert_eq!(level_idc(2520, 1080, 24), Some(50));
        assert_eq!(level_idc(4096, 2304, 30), Some(52));
        assert_eq!(level_idc(4096, 4096, 24), None);
        assert_eq!(level_idc(4096, 2304, 240), None);
    }
}
