//! The encoder handle: creation, one picture at a time, release.
//! Not `Send`: an encoder lives and dies on the thread that made it.

use std::ptr;

use openh264_sys2::{
    ENCODER_OPTION_TRACE_LEVEL, ISVCEncoder, ISVCEncoderVtbl, SEncParamExt, SFrameBSInfo,
    SLayerBSInfo, SSourcePicture, WELS_LOG_QUIET, source::APILoader, videoFormatI420,
    videoFrameTypeIDR,
};

use crate::{EncoderConfig, H264Error, params};

/// H.264 `nal_unit_type` values (Rec. ITU-T H.264, table 7-1).
const NAL_SPS: u8 = 7;
const NAL_PPS: u8 = 8;

/// An I420 picture, borrowed: full-size luma, chroma halved in both directions.
#[derive(Debug, Clone, Copy)]
pub struct I420Planes<'a> {
    /// Luma, `[height][y_stride] u8`.
    pub y: &'a [u8],
    /// Blue difference, `[height / 2][chroma_stride] u8`.
    pub u: &'a [u8],
    /// Red difference, `[height / 2][chroma_stride] u8`.
    pub v: &'a [u8],
    /// Bytes from one luma row to the next, at least the width.
    pub y_stride: usize,
    /// Bytes from one chroma row to the next, at least half the width.
    pub chroma_stride: usize,
}

/// One coded picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedFrame {
    /// Its slices without parameter sets, each behind a 4-byte big-endian length: an MP4 sample
    /// (ISO/IEC 14496-15, 5.3.4.2).
    pub data: Vec<u8>,
    /// Whether decoding can start here.
    pub is_idr: bool,
}

/// Sequence and picture parameter set without start codes, as `avcC` stores them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParameterSets {
    /// Sequence parameter set, its NAL header byte included.
    pub sps: Vec<u8>,
    /// Picture parameter set, its NAL header byte included.
    pub pps: Vec<u8>,
}

/// An OpenH264 encoder. Its first picture is an IDR, all others refer to their predecessor.
pub struct H264Encoder {
    handle: EncoderHandle,
    config: EncoderConfig,
    parameter_sets: ParameterSets,
    frames: u32,
}

/// Owns the library's object, so that every way out of `H264Encoder::new` releases it.
pub(crate) struct EncoderHandle(*mut ISVCEncoder);

impl EncoderHandle {
    pub(crate) fn create() -> Result<Self, H264Error> {
        let mut raw: *mut ISVCEncoder = ptr::null_mut();
        // SAFETY: the library writes one pointer through a valid pointer to a pointer.
        let code = unsafe { APILoader::WelsCreateSVCEncoder(&raw mut raw) };
        if code != 0 || raw.is_null() {
            return Err(H264Error::Library {
                call: "WelsCreateSVCEncoder",
                code,
            });
        }
        Ok(Self(raw))
    }

    pub(crate) fn raw(&self) -> *mut ISVCEncoder {
        self.0
    }

    /// The object's methods.
    pub(crate) fn methods(&self) -> &ISVCEncoderVtbl {
        // SAFETY: `create` got a non-null object, alive until `Drop`; its first word is a pointer.
        let table = unsafe { *self.0 };
        // SAFETY: that pointer leads to the method table, static data of the library.
        unsafe { &*table }
    }
}

impl Drop for EncoderHandle {
    fn drop(&mut self) {
        if let Some(uninitialize) = self.methods().Uninitialize {
            // SAFETY: the object is alive; the call is allowed in every state of it.
            unsafe { uninitialize(self.0) };
        }
        // SAFETY: the object came from `WelsCreateSVCEncoder` and is not used again.
        unsafe { APILoader::WelsDestroySVCEncoder(self.0) };
    }
}

/// A missing method would mean a library of another layout than the one built in.
pub(crate) fn method<T>(method: Option<T>, call: &'static str) -> Result<T, H264Error> {
    method.ok_or(H264Error::Library { call, code: 0 })
}

fn succeeded(code: i32, call: &'static str) -> Result<(), H264Error> {
    if code == 0 {
        Ok(())
    } else {
        Err(H264Error::Library { call, code })
    }
}

impl H264Encoder {
    /// Opens an encoder and its parameter sets.
    pub fn new(config: &EncoderConfig) -> Result<Self, H264Error> {
        let handle = EncoderHandle::create()?;
        // The library logs to standard error otherwise; failures come back as codes anyway.
        let mut quiet = WELS_LOG_QUIET;
        let set_option = method(handle.methods().SetOption, "SetOption")?;
        // SAFETY: this option reads one `int`, which outlives the call.
        let code = unsafe {
            set_option(
                handle.raw(),
                ENCODER_OPTION_TRACE_LEVEL,
                (&raw mut quiet).cast(),
            )
        };
        succeeded(code, "SetOption")?;
        initialize(&handle, config)?;
        let parameter_sets = read_parameter_sets(&handle)?;
        Ok(Self {
            handle,
            config: *config,
            parameter_sets,
            frames: 0,
        })
    }

    /// The parameter sets; equal for encoders whose configurations differ in `qp` only.
    pub fn parameter_sets(&self) -> &ParameterSets {
        &self.parameter_sets
    }

    /// Encodes the next picture.
    pub fn encode(&mut self, planes: I420Planes<'_>) -> Result<EncodedFrame, H264Error> {
        let picture = self.source_picture(planes)?;
        let mut info = SFrameBSInfo::default();
        let encode_frame = method(self.handle.methods().EncodeFrame, "EncodeFrame")?;
        // SAFETY: the encoder is initialised; `source_picture` proved every plane long enough
        // for the configured size; the library only reads through the plane pointers.
        let code = unsafe { encode_frame(self.handle.raw(), &raw const picture, &raw mut info) };
        succeeded(code, "EncodeFrame")?;
        self.frames += 1;
        let mut data = Vec::new();
        for_each_nal(&info, |nal| {
            if !matches!(nal_type(nal), NAL_SPS | NAL_PPS) {
                // A NAL cannot exceed `int`, the library's own size type.
                data.extend_from_slice(&(nal.len() as u32).to_be_bytes());
                data.extend_from_slice(nal);
            }
        })?;
        if data.is_empty() {
            return Err(H264Error::Library {
                call: "EncodeFrame",
                code: 0,
            });
        }
        Ok(EncodedFrame {
            data,
            is_idr: info.eFrameType == videoFrameTypeIDR,
        })
    }

    /// Checks the planes and describes them to the library.
    fn source_picture(&self, planes: I420Planes<'_>) -> Result<SSourcePicture, H264Error> {
        let (width, height) = (self.config.width as usize, self.config.height as usize);
        if !fits(planes.y, planes.y_stride, width, height)
            || !fits(planes.u, planes.chroma_stride, width / 2, height / 2)
            || !fits(planes.v, planes.chroma_stride, width / 2, height / 2)
        {
            return Err(H264Error::PlaneLength);
        }
        let mut picture = SSourcePicture {
            iColorFormat: videoFormatI420,
            iPicWidth: self.config.width.cast_signed(),
            iPicHeight: self.config.height.cast_signed(),
            uiTimeStamp: i64::from(self.frames) * 1000 / i64::from(self.config.fps),
            ..SSourcePicture::default()
        };
        picture.iStride[0] = stride(planes.y_stride)?;
        picture.iStride[1] = stride(planes.chroma_stride)?;
        picture.iStride[2] = stride(planes.chroma_stride)?;
        picture.pData[0] = planes.y.as_ptr().cast_mut();
        picture.pData[1] = planes.u.as_ptr().cast_mut();
        picture.pData[2] = planes.v.as_ptr().cast_mut();
        Ok(picture)
    }
}

/// Whether `plane` has all bytes of `height` rows; the last one may end at `width`.
fn fits(plane: &[u8], stride: usize, width: usize, height: usize) -> bool {
    let needed = stride
        .checked_mul(height - 1)
        .and_then(|rows| rows.checked_add(width));
    stride >= width && needed.is_some_and(|needed| plane.len() >= needed)
}

fn stride(bytes: usize) -> Result<i32, H264Error> {
    i32::try_from(bytes).map_err(|_| H264Error::PlaneLength)
}

/// Initialises the library with our parameters.
pub(crate) fn initialize(handle: &EncoderHandle, config: &EncoderConfig) -> Result<(), H264Error> {
    let mut params = SEncParamExt::default();
    let defaults = method(handle.methods().GetDefaultParams, "GetDefaultParams")?;
    // SAFETY: the object is alive and `params` is a valid block to write to.
    let code = unsafe { defaults(handle.raw(), &raw mut params) };
    succeeded(code, "GetDefaultParams")?;
    params::apply(config, &mut params)?;
    let initialize = method(handle.methods().InitializeExt, "InitializeExt")?;
    // SAFETY: the object is alive, not yet initialised, and copies the block it reads.
    let code = unsafe { initialize(handle.raw(), &raw const params) };
    succeeded(code, "InitializeExt")
}

fn read_parameter_sets(handle: &EncoderHandle) -> Result<ParameterSets, H264Error> {
    let mut info = SFrameBSInfo::default();
    let encode = method(handle.methods().EncodeParameterSets, "EncodeParameterSets")?;
    // SAFETY: the encoder is initialised and `info` is a valid block to write to.
    let code = unsafe { encode(handle.raw(), &raw mut info) };
    succeeded(code, "EncodeParameterSets")?;
    let mut sets = ParameterSets::default();
    for_each_nal(&info, |nal| match nal_type(nal) {
        NAL_SPS => sets.sps = nal.to_vec(),
        NAL_PPS => sets.pps = nal.to_vec(),
        _ => {}
    })?;
    if sets.sps.len() < 4 || sets.pps.is_empty() {
        return Err(H264Error::Library {
            call: "EncodeParameterSets",
            code: 0,
        });
    }
    Ok(sets)
}

/// The low five bits of a NAL unit's first byte; callers pass no empty NAL.
fn nal_type(nal: &[u8]) -> u8 {
    nal.first().map_or(0, |header| header & 0x1f)
}

/// Calls `visit` with each NAL unit of an answer, its Annex B start code removed.
fn for_each_nal(info: &SFrameBSInfo, mut visit: impl FnMut(&[u8])) -> Result<(), H264Error> {
    let malformed = H264Error::Library {
        call: "bit stream",
        code: 0,
    };
    let layers = usize::try_from(info.iLayerNum).unwrap_or(0);
    for layer in info.sLayerInfo.iter().take(layers) {
        let Some((lengths, mut bytes)) = layer_slices(layer) else {
            return Err(malformed);
        };
        for &length in lengths {
            let split = usize::try_from(length)
                .ok()
                .and_then(|l| bytes.split_at_checked(l));
            let Some((nal, rest)) = split else {
                return Err(malformed);
            };
            let Some(nal) = nal
                .strip_prefix(&[0, 0, 0, 1])
                .or_else(|| nal.strip_prefix(&[0, 0, 1]))
            else {
                return Err(malformed);
            };
            visit(nal);
            bytes = rest;
        }
    }
    Ok(())
}

/// The NAL lengths and the bytes of a layer; both live in the encoder until its next call, and
/// the borrow of `layer` ends before that.
fn layer_slices(layer: &SLayerBSInfo) -> Option<(&[i32], &[u8])> {
    let count = usize::try_from(layer.iNalCount).ok()?;
    if count == 0 {
        return Some((&[], &[]));
    }
    if layer.pNalLengthInByte.is_null() || layer.pBsBuf.is_null() {
        return None;
    }
    // SAFETY: non-null, and the library documents `iNalCount` valid entries behind it.
    let lengths = unsafe { std::slice::from_raw_parts(layer.pNalLengthInByte, count) };
    let total = lengths.iter().try_fold(0usize, |sum, &length| {
        sum.checked_add(usize::try_from(length).ok()?)
    })?;
    // SAFETY: non-null, and the library documents the NALs of a layer as contiguous from here.
    let bytes = unsafe { std::slice::from_raw_parts(layer.pBsBuf, total) };
    Some((lengths, bytes))
}
