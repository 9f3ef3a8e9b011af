//! The contents of a frame, by name and place, for tests that count. It paints nothing.

use kinora_contract::VideoSpec;
use kinora_engine::{EngineError, Materials, Planner};

use super::Storyboard;
use super::scene::Scene;
use super::script::shots;

/// A thing that is drawn in a frame.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Its noun in the catalogue, such as `cat` or `hot-air balloon`.
    pub name: &'static str,
    /// Left, top, right and bottom of its drawing as shares of the frame, below 0.0 and above 1.0 where it
    /// passes the frame.
    pub bounds: [f32; 4],
}

/// The things that frame `frame` of the clip of `spec` shows, of those that its prompt names, in drawing
/// order. The clip is made from words alone.
///
/// # Errors
/// Those of [`Planner::plan`].
#[doc(hidden)]
pub fn seen(spec: &VideoSpec, frame: u32) -> Result<Vec<Seen>, EngineError> {
    let clip = Storyboard::default().plan(spec, &Materials::default())?;
    let avoid = spec.negative_prompt.as_deref().unwrap_or_default();
    let told = shots(&spec.prompt, avoid, &[clip.frames], clip.fps);
    let Some(shot) = told.iter().find(|shot| frame < shot.end) else {
        return Ok(Vec::new());
    };
    let scene = Scene::paint(shot, &spec.prompt, spec.seed, clip.size, clip.fps);
    let time_s = (frame - shot.appears().min(frame)) as f32 / clip.fps as f32;
    let figures = scene.figures(time_s).into_iter();
    Ok(figures
        .map(|(subject, bounds)| Seen {
            name: subject.facts().noun,
            bounds,
        })
        .collect())
}

/// The words of the prompt that the clip of `spec` draws.
#[doc(hidden)]
pub fn drawn_words(spec: &VideoSpec) -> Vec<String> {
    let frames = Storyboard::default().plan(spec, &Materials::default());
    let Ok(clip) = frames else {
        return Vec::new();
    };
    let avoid = spec.negative_prompt.as_deref().unwrap_or_default();
    let told = shots(&spec.prompt, avoid, &[clip.frames], clip.fps);
    told.into_iter()
        .flat_map(|shot| shot.reading.lost.drawn)
        .collect()
}
