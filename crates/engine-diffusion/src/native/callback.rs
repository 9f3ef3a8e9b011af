//! The library's call-backs. They are global to the process, so only one call can have a listener
//! at a time. Nothing here may unwind into C++: panics of a listener are caught and ignored.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::slice;
use std::sync::{Mutex, PoisonError};

use diffusion_rs_sys::{
    preview_t, sd_image_t, sd_log_level_t, sd_set_log_callback, sd_set_preview_callback,
    sd_set_progress_callback,
};
use kinora_contract::Size;
use kinora_engine::RgbPicture;

use super::listener::{Level, Listener};

/// Held while the library works.
static LIBRARY: Mutex<()> = Mutex::new(());

/// No preview has longer sides.
const SIDE_MAX: u32 = 16_384;
const CHANNELS: u32 = 3;

/// The source of previews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Previews {
    /// The latents' channels, mixed to colours.
    Small,
    /// The tiny autoencoder.
    Full,
}

/// Removes the call-backs on every path out.
struct Installed;

impl Drop for Installed {
    fn drop(&mut self) {
        // SAFETY: the library takes null for no call-back; it is not working now.
        unsafe { sd_set_log_callback(None, ptr::null_mut()) };
        // SAFETY: as above.
        unsafe { sd_set_progress_callback(None, ptr::null_mut()) };
        // SAFETY: as above.
        unsafe {
            sd_set_preview_callback(
                None,
                preview_t::PREVIEW_NONE,
                1,
                false,
                false,
                ptr::null_mut(),
            );
        };
    }
}

/// Runs `work`, which calls the library, with `listener` attached.
pub(super) fn during<T>(
    listener: &Listener<'_>,
    previews: Option<Previews>,
    work: impl FnOnce() -> T,
) -> T {
    let _alone = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner);
    let _installed = Installed;
    let data = ptr::from_ref(listener).cast_mut().cast::<c_void>();
    // SAFETY: `data` leads to `listener`, which outlives `_installed`, and `log` takes it as such.
    unsafe { sd_set_log_callback(Some(log), data) };
    // SAFETY: as above, for `progress`.
    unsafe { sd_set_progress_callback(Some(progress), data) };
    if let Some(previews) = previews {
        let mode = match previews {
            Previews::Small => preview_t::PREVIEW_PROJ,
            Previews::Full => preview_t::PREVIEW_TAE,
        };
        // SAFETY: as above, for `picture`; every step (1), of what is denoised and not of noise.
        unsafe { sd_set_preview_callback(Some(picture), mode, 1, true, false, data) };
    }
    work()
}

/// Calls a listener and contains its panics.
///
/// # Safety
/// `data` is what `during` gave the library, and `during` has not returned.
unsafe fn tell(data: *mut c_void, telling: impl FnOnce(&Listener<'_>)) {
    // SAFETY: `during` made the pointer of a reference that is alive while the library works; a
    // listener may be used from any thread, since all of it is behind locks and atomics.
    let listener = unsafe { &*data.cast::<Listener<'_>>() };
    let _ = catch_unwind(AssertUnwindSafe(|| telling(listener)));
}

unsafe extern "C" fn log(level: sd_log_level_t, text: *const c_char, data: *mut c_void) {
    if text.is_null() {
        return;
    }
    // SAFETY: the library gives a text that ends with NUL and stays until this returns.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let level = match level {
        sd_log_level_t::SD_LOG_DEBUG => Level::Debug,
        sd_log_level_t::SD_LOG_INFO => Level::Info,
        sd_log_level_t::SD_LOG_WARN => Level::Warning,
        _ => Level::Error,
    };
    // SAFETY: `data` comes from `during`, by way of the library.
    unsafe { tell(data, |listener| listener.line(level, &text)) };
}

unsafe extern "C" fn progress(step: c_int, steps: c_int, _seconds: f32, data: *mut c_void) {
    let (Ok(step), Ok(steps)) = (u32::try_from(step), u32::try_from(steps)) else {
        return;
    };
    // SAFETY: as in `log`.
    unsafe { tell(data, |listener| listener.count(step, steps)) };
}

unsafe extern "C" fn picture(
    _step: c_int,
    frames: c_int,
    images: *mut sd_image_t,
    _noisy: bool,
    data: *mut c_void,
) {
    let Some(count) = usize::try_from(frames).ok().filter(|count| *count > 0) else {
        return;
    };
    if images.is_null() {
        return;
    }
    // SAFETY: the library gives `frames` images that stay until this returns.
    let images = unsafe { slice::from_raw_parts(images, count) };
    // SAFETY: the image is one of the library's own, whole until this returns.
    let Some((size, rgb)) = (unsafe { pixels(&images[count / 2]) }) else {
        return;
    };
    let rgb = rgb.to_vec();
    // SAFETY: as in `log`.
    unsafe { tell(data, |listener| listener.preview(RgbPicture { size, rgb })) };
}

/// An image's size and bytes, `[height][width][3] u8`; `None` for an unexpected kind of image.
///
/// # Safety
/// The library filled the image, and its bytes are alive for as long as the answer is used.
pub(super) unsafe fn pixels(image: &sd_image_t) -> Option<(Size, &[u8])> {
    let sides = 1..=SIDE_MAX;
    if image.data.is_null() || image.channel != CHANNELS {
        return None;
    }
    if !sides.contains(&image.width) || !sides.contains(&image.height) {
        return None;
    }
    let size = Size::new(image.width, image.height);
    let bytes = usize::try_from(size.pixels() * u64::from(CHANNELS)).ok()?;
    // SAFETY: the library allocates width * height * channel bytes for an image.
    Some((size, unsafe { slice::from_raw_parts(image.data, bytes) }))
}
