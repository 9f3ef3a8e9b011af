//! A loaded model: the library's context, and the path of a job through it to a sink. Two modules
//! contain all unsafe code: `library` calls C++, and `callback` is called by it. The library cannot
//! be stopped in the middle of a clip: to stop it, run it in a separate process and kill that.

#![allow(unsafe_code, reason = "calls the C++ of stable-diffusion.cpp")]

mod callback;
mod inputs;
mod library;
mod listener;

use std::sync::{Mutex, PoisonError};
use std::thread;

use kinora_contract::{VideoSpec, Warning};
use kinora_engine::{
    ClipPlan, ClipPlanner, ClipSink, Engine, EngineDescription, EngineError, FrameJob, JobControl,
    JobMaterials, WorkStage,
};

use crate::generation::Generation;
use crate::progress::HANDING_OVER;
use crate::{Model, Settings, sound};
use callback::Previews;
use inputs::Pictures;
use library::{Context, Output};
use listener::Listener;

/// A model with loaded weights. The library works on one clip at a time per process; other callers
/// wait.
pub struct Native {
    model: Model,
    context: Mutex<Context>,
}

impl std::fmt::Debug for Native {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Native").field(&self.model).finish()
    }
}

impl Native {
    /// Opens a model's files and prepares the library. Checks all names and shapes; the weights are
    /// read into memory with the first clip that needs them, and stay there.
    ///
    /// # Errors
    /// [`EngineError::Failed`] or [`EngineError::OutOfMemory`] with the library's messages. In some
    /// cases (a Wan model with an unexpected number of blocks) the library aborts the process:
    /// [`crate::check`] detects these beforehand.
    pub fn load(model: Model) -> Result<Self, EngineError> {
        if model.settings().audio_vae.is_some() && vae_on_processor(model.settings()) {
            let why = "audio_vae: the library ends the process when it makes sound on the \
                processor; leave it out, or run the VAEs on an accelerator";
            return Err(EngineError::Failed(why.to_owned()));
        }
        let control = JobControl::default();
        let listener = Listener::new(1, &control);
        let context = on_deep_stack(|| {
            callback::during(&listener, None, || Context::open(model.settings()))
        })?;
        let context = context.ok_or_else(|| listener.failure("the model could not be opened"))?;
        if !context.makes_video() {
            return Err(EngineError::Failed(
                "this model does not generate video".to_owned(),
            ));
        }
        Ok(Self {
            model,
            context: Mutex::new(context),
        })
    }

    /// The model according to its settings.
    pub fn model(&self) -> &Model {
        &self.model
    }

    fn render(
        &self,
        made: &Generation,
        pictures: &Pictures,
        control: &JobControl,
    ) -> Result<Output, EngineError> {
        let mut context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        let previews = match self.model.settings().taesd {
            Some(_) => Previews::Full,
            None => Previews::Small,
        };
        let listener = Listener::new(made.steps, control);
        let context = &mut *context;
        let output = on_deep_stack(|| {
            callback::during(&listener, Some(previews), || {
                context.generate(made, pictures)
            })
        })?;
        // The library cannot be stopped, so a cancel during its call shows only now; its clip is
        // dropped.
        if control.cancel.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        let output = output.ok_or_else(|| listener.failure("the library made no clip"))?;
        let rendered = output.frames();
        if rendered < made.frames as usize {
            let why = format!("the library made {rendered} frames of {}", made.frames);
            return Err(listener.failure(&why));
        }
        Ok(output)
    }
}

impl ClipPlanner for Native {
    fn describe(&self) -> &EngineDescription {
        self.model.describe()
    }

    fn plan(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
        self.model.plan(spec, materials)
    }

    fn warnings(&self, spec: &VideoSpec, materials: &JobMaterials) -> Vec<Warning> {
        self.model.warnings(spec, materials)
    }
}

impl Engine for Native {
    /// Obeys a cancel before the library starts, after it returns, and between delivered frames.
    /// Shows a preview after each denoising step: the current middle frame, as small as the
    /// latents, or at the rendered size with `taesd`.
    fn generate(
        &self,
        job: &FrameJob<'_>,
        sink: &mut dyn ClipSink,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        control.report(WorkStage::Preparing, 0.0)?;
        let made = self.model.generation(job.spec, job.materials)?;
        if made.clip() != job.clip {
            let why = "the clip does not match its plan";
            return Err(EngineError::Failed(why.to_owned()));
        }
        let pictures = Pictures::of(&made, job.materials, control)?;
        control.report(WorkStage::Preparing, 1.0)?;
        let output = self.render(&made, &pictures, control)?;
        control.report(WorkStage::Generating, HANDING_OVER.start)?;
        hand_over(&output, &made, sink, control)?;
        control.report(WorkStage::Finishing, 1.0)
    }
}

/// Whether sound would be decoded on the CPU. The pinned version decodes it with `f32` filters
/// (`Activation1D` in `ltx_audio_vae.hpp`), but ggml's CPU code asserts `f16`
/// (`ggml_compute_forward_im2col_f16`): any audio VAE aborts the process, after all the steps.
fn vae_on_processor(settings: &Settings) -> bool {
    let accelerated = cfg!(any(feature = "cuda", feature = "vulkan", feature = "metal"));
    let assigned = settings.backend.as_deref().unwrap_or_default();
    let mut place = None;
    for part in assigned.split(',') {
        let (what, value) = part.split_once('=').unwrap_or(("", part));
        match what.trim().to_lowercase().as_str() {
            // A module's own assignment overrides the general one, whatever the order.
            "vae" => {
                place = Some(value.trim());
                break;
            }
            "" | "all" | "default" | "*" => place = Some(value.trim()),
            _ => {}
        }
    }
    !accelerated || place.is_some_and(|place| place.eq_ignore_ascii_case("cpu"))
}

/// The library matches prompts with `std::regex`, which recurses for each byte: the longest prompt
/// of three-byte characters takes about 6 MiB of stack, but threads usually have 2.
const STACK_BYTES: usize = 64 << 20;

/// Runs `work` to its end on a thread with a large stack.
fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, EngineError> {
    let span = tracing::Span::current();
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("stable-diffusion".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, move || span.in_scope(work))
            .map_err(|error| EngineError::Failed(format!("library thread: {error}")))?;
        thread
            .join()
            .map_err(|_| EngineError::Failed("library thread: it panicked".to_owned()))
    })
}

fn hand_over(
    output: &Output,
    made: &Generation,
    sink: &mut dyn ClipSink,
    control: &JobControl,
) -> Result<(), EngineError> {
    let clip = made.clip();
    if clip.audio {
        let Some(heard) = output.sound() else {
            return Err(EngineError::Failed("the library made no sound".to_owned()));
        };
        sink.audio(&sound::for_clip(heard, &clip))?;
    }
    for index in 0..clip.frames {
        let source = made.keep.source(index, made.frames);
        let frame = output
            .frame(source as usize)
            .filter(|(size, _)| *size == made.rendered)
            .and_then(|(size, rgb)| made.crop.cut(rgb, size));
        let Some(frame) = frame else {
            let why = format!("frame {source} is not {}", made.rendered);
            return Err(EngineError::Failed(why));
        };
        sink.frame(&frame)?;
        let share = f64::from(index + 1) / f64::from(clip.frames);
        let whole = HANDING_OVER.end - HANDING_OVER.start;
        control.report(WorkStage::Generating, HANDING_OVER.start + share * whole)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Family;

    #[test]
    fn where_the_vaes_run_is_read_off_the_assignments() {
        let accelerated = cfg!(any(feature = "cuda", feature = "vulkan", feature = "metal"));
        let assigned = |backend: &str| {
            let mut settings = Settings::new(Family::Ltx, "a", "b", "c");
            settings.backend = Some(backend.to_owned());
            vae_on_processor(&settings)
        };
        for backend in ["cpu", "all = CPU", "cuda0,vae=cpu", "vae=cpu,cuda0"] {
            assert!(assigned(backend), "{backend}");
        }
        for backend in ["", "cuda0", "te=cpu", "te=cpu,vae=cuda0", "vae=cuda0,cpu"] {
            assert_eq!(assigned(backend), !accelerated, "{backend}");
        }
    }
}
