//! The pictures of a job at the rendered size. A control video is held in memory as a whole,
//! because a request contains all of it.

use kinora_engine::{EngineError, JobControl, JobMaterials, RgbPicture, SourceVideo, WorkStage};

use crate::generation::{Generation, Given};
use crate::picture;

/// Pictures for the server, each of size [`Generation::rendered`].
#[derive(Debug)]
pub(crate) struct Pictures {
    pub initial: Option<RgbPicture>,
    pub end: Option<RgbPicture>,
    pub control: Vec<RgbPicture>,
}

impl Pictures {
    pub(crate) fn of(
        made: &Generation,
        materials: &JobMaterials,
        control: &JobControl,
    ) -> Result<Self, EngineError> {
        let given = |given: Option<Given>| {
            let picture = given.and_then(|given| given.of(materials));
            picture
                .map(|picture| picture::fit(picture, made.crop, made.rendered))
                .transpose()
        };
        let control = match (&materials.source, made.control) {
            (Some(source), true) => frames(made, source.as_ref(), control)?,
            _ => Vec::new(),
        };
        Ok(Self {
            initial: given(made.initial)?,
            end: given(made.end)?,
            control,
        })
    }
}

fn broken() -> EngineError {
    EngineError::Failed("the source video ends early".to_owned())
}

fn frames(
    made: &Generation,
    source: &dyn SourceVideo,
    control: &JobControl,
) -> Result<Vec<RgbPicture>, EngineError> {
    let mut playback = source.play()?;
    let mut frames: Vec<RgbPicture> = Vec::with_capacity(made.frames as usize);
    let mut next = 0;
    for index in 0..made.frames {
        let wanted = made.control_frame(index, source.fps(), source.frames());
        if wanted < next {
            // This frame of the source covers more than one frame of the clip.
            let last = frames.last().ok_or_else(broken)?.clone();
            frames.push(last);
            continue;
        }
        // Playback only goes forwards: skip the source frames between the last one used and this
        // one.
        let mut shown = None;
        while next <= wanted {
            shown = playback.next_frame()?;
            next += 1;
        }
        let picture = RgbPicture {
            size: source.size(),
            rgb: shown.ok_or_else(broken)?,
        };
        frames.push(picture::fit(&picture, made.crop, made.rendered)?);
        let share = f64::from(index + 1) / f64::from(made.frames);
        control.report(WorkStage::Preparing, share)?;
    }
    Ok(frames)
}
