//! What the engine draws, for documentation and tests: single subjects on a plain ground, and the contents of a frame by
//! name and place. Films do not use it.

use kinora_contract::VideoSpec;
use kinora_engine::{ClipPlan, ClipPlanner, EngineError, JobMaterials};
use tiny_skia::Transform;

use crate::art::{ActMoment, SubjectColours};
use crate::lexicon::variant_named;
use crate::raster::colour::Rgb;
use crate::raster::pen::Pen;
use crate::scene::Scene;
use crate::script::{Shot, avoided, shots};
use crate::subject::{Act, Subject};
use crate::{Storyboard, art, caption};

const GROUND: u32 = 0xdf_e8ea;

/// The English nouns of everything that can be drawn into a scene, in the order of the catalogue.
pub fn nouns() -> Vec<&'static str> {
    let drawn = Subject::ALL.iter().filter(|subject| !subject.is_orb());
    drawn.map(|subject| subject.facts().noun).collect()
}

/// The subject `noun` on a plain ground at `time_s` of its life, as `[side][side][3] u8`, RGB; doing what
/// is usual for it or what `act` names ("walk", "jump", …). `None` for an unknown noun or act, or a side of
/// 0 or more than 2,048.
pub fn portrait(noun: &str, act: Option<&str>, side: u32, time_s: f32) -> Option<Vec<u8>> {
    let mut known = Subject::ALL.iter().copied();
    let subject = known.find(|subject| subject.facts().noun == noun)?;
    let facts = subject.facts();
    let act = match act {
        None => facts.usual,
        Some(name) => variant_named(name)?,
    };
    if side == 0 || side > 2048 {
        return None;
    }
    let moves = matches!(act, Act::Walk | Act::Run | Act::Move | Act::Jump);
    let moment = ActMoment {
        act,
        t: time_s,
        gone: if moves {
            time_s * facts.speed.max(0.02) / facts.size.max(0.1)
        } else {
            0.0
        },
        share: (time_s / 4.0).clamp(0.0, 1.0),
        nth: 0,
        holder: None,
    };
    let look = SubjectColours {
        main: facts.colour.unwrap_or(SubjectColours::PLAIN.main),
        ..SubjectColours::PLAIN
    };
    // The square, a little more for hats and flames; of long things all of their length.
    let long = matches!(
        subject,
        Subject::Train
            | Subject::SteamTrain
            | Subject::Crowd
            | Subject::Bridge
            | Subject::Flock
            | Subject::School
    );
    let (room, middle) = if long {
        (art::reach(subject) * 104.0, 70.0)
    } else {
        (118.0, 50.0)
    };
    let scale = side as f32 / room;
    let onto = Transform::from_translate(side as f32 * 0.5, side as f32 * 0.5)
        .pre_scale(scale, scale)
        .pre_translate(-50.0, -middle);
    let mut pen = Pen::new(side, side, onto)?;
    let ground = Rgb::hex(GROUND);
    pen.rect(-1000.0, -1000.0, 3000.0, 3000.0, ground);
    art::draw(&mut pen, subject, &look, &moment);
    let pixels = pen.pixmap.data().chunks_exact(4);
    Some(
        pixels
            .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
            .collect(),
    )
}

/// A line of text for pages of pictures: its width and height in pixels, and its coverage
/// `[height][width]`, 0.0 to 1.0, letters being about `size` pixels high. `None` for an empty text.
pub fn label(text: &str, size: f32) -> Option<(usize, usize, Vec<f32>)> {
    caption::text_coverage(text, size)
}

/// A thing that is drawn in a frame.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnFigure {
    /// Its noun in the catalogue, such as `cat` or `hot-air balloon`.
    pub name: &'static str,
    /// Left, top, right and bottom of its drawing as shares of the frame, below 0.0 and above 1.0 where it
    /// passes the frame.
    pub bounds: [f32; 4],
}

/// Lists the things in frame `frame` of the clip of `spec` that its prompt names, in drawing order.
/// The clip is made from words alone.
#[doc(hidden)]
pub fn figures_in_frame(spec: &VideoSpec, frame: u32) -> Result<Vec<DrawnFigure>, EngineError> {
    let (clip, told) = plan_shots(spec)?;
    let Some(shot) = told.iter().find(|shot| frame < shot.end) else {
        return Ok(Vec::new());
    };
    let scene = Scene::paint(shot, &spec.prompt, spec.seed, clip.size, clip.fps);
    let time_s = (frame - shot.appears().min(frame)) as f32 / clip.fps as f32;
    let figures = scene.figures(time_s).into_iter();
    Ok(figures
        .map(|(subject, bounds)| DrawnFigure {
            name: subject.facts().noun,
            bounds,
        })
        .collect())
}

/// The words of the prompt that the clip of `spec` draws.
#[doc(hidden)]
pub fn drawn_words(spec: &VideoSpec) -> Vec<String> {
    let Ok((_, told)) = plan_shots(spec) else {
        return Vec::new();
    };
    told.into_iter()
        .flat_map(|shot| shot.reading.lost.drawn)
        .collect()
}

/// The clip of `spec` and its shots.
fn plan_shots(spec: &VideoSpec) -> Result<(ClipPlan, Vec<Shot>), EngineError> {
    let clip = Storyboard::default().plan(spec, &JobMaterials::default())?;
    let told = shots(&spec.prompt, avoided(spec), &[clip.frames], clip.fps);
    Ok((clip, told))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_noun_has_a_picture() {
        for noun in nouns() {
            let picture = portrait(noun, None, 64, 1.0).unwrap();
            let ground = &picture[..3];
            let drawn = picture.chunks_exact(3).filter(|pixel| *pixel != ground);
            assert!(drawn.count() > 60, "{noun} is not drawn");
        }
    }
}
