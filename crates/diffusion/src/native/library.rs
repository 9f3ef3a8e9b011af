//! The calls into the library. What it allocates is freed on every way out; what it is given lives
//! until it returns; what it hands back is measured before it is read.

use std::ffi::{CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::slice;

use diffusion_rs_sys::{
    free_sd_audio, free_sd_ctx, free_sd_images, generate_video, new_sd_ctx, sd_audio_t,
    sd_ctx_params_init, sd_ctx_params_t, sd_ctx_supports_video_generation, sd_ctx_t, sd_image_t,
    sd_sample_params_t, sd_vid_gen_params_init, sd_vid_gen_params_t, str_to_sample_method,
    str_to_scheduler,
};
use kinora_contract::Size;
use kinora_engine::Picture;

use super::callback::pixels;
use super::inputs::Pictures;
use crate::family::{Family, Role};
use crate::generation::Generation;
use crate::settings::Settings;
use crate::sound::Made;

/// Longer sound than any clip has, in samples of all channels.
const SAMPLES_MAX: u64 = 1 << 30;

/// An opened model.
pub(super) struct Context(NonNull<sd_ctx_t>);

// SAFETY: the library binds nothing of a context to a thread; it is used by one at a time, since
// every use needs `&mut` or comes before it is shared.
unsafe impl Send for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context came from `new_sd_ctx` and is not used again.
        unsafe { free_sd_ctx(self.0.as_ptr()) };
    }
}

/// C strings, kept for as long as the library reads them.
#[derive(Default)]
struct Texts(Vec<CString>);

impl Texts {
    /// A pointer that stays good while this lives: a `CString`'s bytes do not move with it.
    /// Settings and prompts have no NUL bytes; a text with one would become empty.
    fn keep(&mut self, text: &str) -> *const c_char {
        let text = CString::new(text).unwrap_or_default();
        let pointer = text.as_ptr();
        self.0.push(text);
        pointer
    }

    fn path(&mut self, settings: &Settings, role: Role) -> *const c_char {
        let path = settings.file(role).and_then(|path| path.to_str());
        path.map_or(ptr::null(), |path| self.keep(path))
    }
}

impl Context {
    /// Opens the model that `settings` describe; `None` when the library cannot.
    pub(super) fn open(settings: &Settings) -> Option<Self> {
        let mut texts = Texts::default();
        let params = context_params(settings, &mut texts);
        // SAFETY: the parameters are whole, and `texts` keeps what they point to.
        let context = unsafe { new_sd_ctx(&raw const params) };
        NonNull::new(context).map(Self)
    }

    /// Whether it is a model of videos.
    pub(super) fn makes_video(&self) -> bool {
        // SAFETY: the context is alive.
        unsafe { sd_ctx_supports_video_generation(self.0.as_ptr()) }
    }

    /// Makes a clip; `None` when the library cannot.
    pub(super) fn generate(&mut self, made: &Generation, given: &Pictures) -> Option<Output> {
        let mut texts = Texts::default();
        let mut control: Vec<sd_image_t> = given.control.iter().map(image).collect();
        let mut params = video_params(made, &mut texts);
        params.init_image = given.initial.as_ref().map_or_else(no_image, image);
        params.end_image = given.end.as_ref().map_or_else(no_image, image);
        if !control.is_empty() {
            params.control_frames = control.as_mut_ptr();
            params.control_frames_size = int(control.len());
        }
        let mut output = Output {
            images: ptr::null_mut(),
            count: 0,
            audio: ptr::null_mut(),
        };
        let (images, count) = (&raw mut output.images, &raw mut output.count);
        let audio = &raw mut output.audio;
        let params = &raw const params;
        // SAFETY: the context is alive and used by nobody else; texts, pictures and the list of
        // control frames outlive the call, which only reads them; it writes one value through
        // each of the three pointers.
        let done = unsafe { generate_video(self.0.as_ptr(), params, images, count, audio) };
        (done && !output.images.is_null() && output.count > 0).then_some(output)
    }
}

/// A clip as the library made it.
pub(super) struct Output {
    images: *mut sd_image_t,
    count: c_int,
    audio: *mut sd_audio_t,
}

// SAFETY: memory that nobody else knows of, freed by `free` from whatever thread.
unsafe impl Send for Output {}

impl Drop for Output {
    fn drop(&mut self) {
        // SAFETY: the library allocated them so, or they are null, which it takes.
        unsafe { free_sd_images(self.images, self.count) };
        if !self.audio.is_null() {
            // SAFETY: the library allocated it and it is not used again.
            unsafe { free_sd_audio(self.audio) };
        }
    }
}

impl Output {
    /// How many frames there are.
    pub(super) fn frames(&self) -> usize {
        usize::try_from(self.count).unwrap_or(0)
    }

    /// A frame's size and bytes, `[height][width][3] u8`.
    pub(super) fn frame(&self, index: usize) -> Option<(Size, &[u8])> {
        // SAFETY: the library allocated `count` images, which live as long as this.
        let images = unsafe { slice::from_raw_parts(self.images, self.frames()) };
        // SAFETY: the library filled them.
        unsafe { pixels(images.get(index)?) }
    }

    /// The sound, where there is any.
    pub(super) fn sound(&self) -> Option<Made<'_>> {
        // SAFETY: null or an object of the library's that lives as long as this.
        let audio = unsafe { self.audio.as_ref() }?;
        let samples = audio.sample_count.checked_mul(audio.channels.into())?;
        if audio.data.is_null() || samples > SAMPLES_MAX {
            return None;
        }
        // SAFETY: `sample_count` samples of `channels` channels each (`waveform_to_sd_audio`).
        let pcm = unsafe { slice::from_raw_parts(audio.data, usize::try_from(samples).ok()?) };
        Some(Made {
            rate_hz: audio.sample_rate,
            channels: audio.channels as usize,
            pcm,
        })
    }
}

/// Sides, counts and steps are bounded far below this type's end.
fn int(number: impl TryInto<c_int>) -> c_int {
    number.try_into().unwrap_or(c_int::MAX)
}

fn no_image() -> sd_image_t {
    sd_image_t {
        width: 0,
        height: 0,
        channel: 0,
        data: ptr::null_mut(),
    }
}

/// The library's view of a picture; it reads it only, whatever the type says.
fn image(picture: &Picture) -> sd_image_t {
    sd_image_t {
        width: picture.size.width,
        height: picture.size.height,
        channel: 3,
        data: picture.rgb.as_ptr().cast_mut(),
    }
}

fn context_params(settings: &Settings, texts: &mut Texts) -> sd_ctx_params_t {
    let mut params = MaybeUninit::<sd_ctx_params_t>::zeroed();
    // SAFETY: the library fills the whole struct.
    unsafe { sd_ctx_params_init(params.as_mut_ptr()) };
    // SAFETY: filled by the call above.
    let mut params = unsafe { params.assume_init() };
    params.diffusion_model_path = texts.path(settings, Role::DiffusionModel);
    params.high_noise_diffusion_model_path = texts.path(settings, Role::HighNoiseDiffusionModel);
    params.vae_path = texts.path(settings, Role::Vae);
    params.audio_vae_path = texts.path(settings, Role::AudioVae);
    params.clip_vision_path = texts.path(settings, Role::ClipVision);
    params.embeddings_connectors_path = texts.path(settings, Role::EmbeddingsConnectors);
    params.taesd_path = texts.path(settings, Role::Taesd);
    let text_encoder = texts.path(settings, Role::TextEncoder);
    match settings.family {
        Family::Wan | Family::WanVace => params.t5xxl_path = text_encoder,
        Family::Ltx => params.llm_path = text_encoder,
    }
    params.tae_preview_only = true;
    params.diffusion_flash_attn = settings.flash_attention;
    params.enable_mmap = settings.mmap;
    if let Some(threads) = settings.threads {
        params.n_threads = int(threads);
    }
    params.max_vram = settings.max_vram_gib.unwrap_or(0.0);
    if let Some(backend) = &settings.backend {
        params.backend = texts.keep(backend);
    }
    if settings.offload_to_cpu {
        params.params_backend = texts.keep("cpu");
    }
    params
}

fn video_params(made: &Generation, texts: &mut Texts) -> sd_vid_gen_params_t {
    let mut params = MaybeUninit::<sd_vid_gen_params_t>::zeroed();
    // SAFETY: the library fills the whole struct.
    unsafe { sd_vid_gen_params_init(params.as_mut_ptr()) };
    // SAFETY: filled by the call above.
    let mut params = unsafe { params.assume_init() };
    params.prompt = texts.keep(&made.prompt);
    params.negative_prompt = texts.keep(&made.negative_prompt);
    params.width = int(made.rendered.width);
    params.height = int(made.rendered.height);
    params.video_frames = int(made.frames);
    params.fps = int(made.fps);
    params.seed = made.seed;
    params.strength = made.strength;
    params.vace_strength = made.control_strength;
    params.moe_boundary = made.moe_boundary;
    params.vae_tiling_params.enabled = made.vae_tiling;
    sampling(&mut params.sample_params, made, made.guidance);
    params.sample_params.sample_steps = int(made.steps);
    // How many of the steps the other expert takes is left at -1: as `moe_boundary` says.
    let high_noise = &mut params.high_noise_sample_params;
    sampling(high_noise, made, made.high_noise_guidance);
    params
}

fn sampling(params: &mut sd_sample_params_t, made: &Generation, guidance: f32) {
    params.guidance.txt_cfg = guidance;
    if let Some(shift) = made.flow_shift {
        params.flow_shift = shift;
    }
    if let Some(sampler) = made.sampler {
        let name = CString::new(sampler.name()).unwrap_or_default();
        // SAFETY: a C string that outlives the call.
        params.sample_method = unsafe { str_to_sample_method(name.as_ptr()) };
    }
    if let Some(scheduler) = made.scheduler {
        let name = CString::new(scheduler.name()).unwrap_or_default();
        // SAFETY: a C string that outlives the call.
        params.scheduler = unsafe { str_to_scheduler(name.as_ptr()) };
    }
}

/// The library's names for samplers and schedulers it knows, to hold ours against.
#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use diffusion_rs_sys::{
        sample_method_t, scheduler_t, sd_sample_method_name, sd_scheduler_name,
    };

    use super::*;
    use crate::{Sampler, Scheduler};

    fn text(pointer: *const c_char) -> String {
        // SAFETY: the library answers with a static C string.
        let text = unsafe { CStr::from_ptr(pointer) };
        text.to_string_lossy().into_owned()
    }

    #[test]
    fn every_sampler_and_scheduler_is_the_library_s() {
        for sampler in Sampler::ALL {
            let name = CString::new(sampler.name()).unwrap();
            // SAFETY: a C string that outlives the call.
            let number = unsafe { str_to_sample_method(name.as_ptr()) };
            assert_ne!(number, sample_method_t::SAMPLE_METHOD_COUNT);
            // SAFETY: any number is answered.
            let answer = unsafe { sd_sample_method_name(number) };
            assert_eq!(text(answer), sampler.name());
        }
        assert_eq!(
            Sampler::ALL.len(),
            sample_method_t::SAMPLE_METHOD_COUNT as usize
        );
        for scheduler in Scheduler::ALL {
            let name = CString::new(scheduler.name()).unwrap();
            // SAFETY: a C string that outlives the call.
            let number = unsafe { str_to_scheduler(name.as_ptr()) };
            assert_ne!(number, scheduler_t::SCHEDULER_COUNT);
            // SAFETY: any number is answered.
            let answer = unsafe { sd_scheduler_name(number) };
            assert_eq!(text(answer), scheduler.name());
        }
        assert_eq!(Scheduler::ALL.len(), scheduler_t::SCHEDULER_COUNT as usize);
    }
}
