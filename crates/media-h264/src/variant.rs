//! Detects whether OpenH264's hand-written assembly or its portable C++ is linked in. Asks the
//! library itself, because a cached build may be older than the installed tools.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use openh264_sys2::{
    ENCODER_OPTION_TRACE_CALLBACK, ENCODER_OPTION_TRACE_CALLBACK_CONTEXT,
    ENCODER_OPTION_TRACE_LEVEL, WELS_LOG_INFO,
};

use crate::encoder::{EncoderHandle, initialize, method};
use crate::{EncoderConfig, H264Error};

type TraceCallback = extern "C" fn(*mut c_void, c_int, *const c_char);

/// The line by which the library reports the instruction sets that it will use.
const CPU_FEATURES_PREFIX: &str = "CPU features/capacities (0x";

/// Whether the fast, hand-written assembly is linked in and usable on this processor.
pub fn assembly() -> bool {
    static ASSEMBLY: OnceLock<bool> = OnceLock::new();
    *ASSEMBLY.get_or_init(|| detect_assembly().unwrap_or(false))
}

/// The linked variant for a start-up log line.
pub fn variant() -> &'static str {
    if assembly() {
        "openh264 with assembly"
    } else {
        "openh264 without assembly (slow: install nasm and rebuild)"
    }
}

/// Opens a tiny encoder and reads its log line about the processor. Without assembly the
/// library's feature mask is zero (`WelsCPUFeatureDetect` in its `common/src/cpu.cpp`).
fn detect_assembly() -> Result<bool, H264Error> {
    let found = AtomicBool::new(false);
    let handle = EncoderHandle::create()?;
    let set_option = method(handle.methods().SetOption, "SetOption")?;
    let mut level = WELS_LOG_INFO;
    let mut callback: TraceCallback = on_trace;
    let mut context: *mut c_void = (&raw const found).cast_mut().cast();
    let options: [(_, *mut c_void); 3] = [
        (ENCODER_OPTION_TRACE_LEVEL, (&raw mut level).cast()),
        (ENCODER_OPTION_TRACE_CALLBACK, (&raw mut callback).cast()),
        (
            ENCODER_OPTION_TRACE_CALLBACK_CONTEXT,
            (&raw mut context).cast(),
        ),
    ];
    for (option, value) in options {
        // SAFETY: each value points to a live object of the type that its option documents
        // (`int`, function pointer, `void*`); `found` outlives `handle`, declared after it.
        unsafe { set_option(handle.raw(), option, value) };
    }
    initialize(
        &handle,
        &EncoderConfig {
            width: 16,
            height: 16,
            fps: 1,
            qp: 26,
        },
    )?;
    drop(handle);
    Ok(found.load(Ordering::Relaxed))
}

extern "C" fn on_trace(context: *mut c_void, _level: c_int, message: *const c_char) {
    if context.is_null() || message.is_null() {
        return;
    }
    // SAFETY: `detect_assembly` registered a pointer to an `AtomicBool` that outlives the encoder.
    let found = unsafe { &*context.cast::<AtomicBool>() };
    // SAFETY: the library passes a NUL-terminated line that is valid during the call.
    let line = unsafe { CStr::from_ptr(message) }.to_string_lossy();
    if let Some((_, mask)) = line.split_once(CPU_FEATURES_PREFIX) {
        let digits = mask.split(')').next().unwrap_or_default();
        if u32::from_str_radix(digits, 16).is_ok_and(|mask| mask != 0) {
            found.store(true, Ordering::Relaxed);
        }
    }
}
