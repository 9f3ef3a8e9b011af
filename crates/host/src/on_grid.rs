//! Between an engine that renders on a grid of its own and the clip that was planned: frames are rendered larger and
//! more than needed, and the middle of the first ones is taken.

use kinora_engine::{Clip, Crop, EngineError, Grid, Job, Keep, Sink};

use crate::run::hostile;

/// `clip` as the engine renders it.
pub(crate) fn rendered(clip: Clip, grid: Grid) -> Clip {
    Clip {
        size: grid.size(clip.size),
        frames: grid.frames(clip.frames),
        ..clip
    }
}

/// Takes rendered frames, and passes on those of the clip.
pub(crate) struct OnGrid<'a> {
    sink: &'a mut dyn Sink,
    rendered: Clip,
    crop: Crop,
    keep: Keep,
    taken: u32,
    passed_on: u32,
}

impl<'a> OnGrid<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink, job: &Job<'_>, rendered: Clip) -> Self {
        let frames = job.clip.frames;
        Self {
            sink,
            rendered,
            crop: Crop::middle(job.clip.size, rendered.size),
            // Frames beyond the requested length are cut off, unless the last one was given.
            keep: match job.materials.last_frame {
                Some(_) => Keep::Spread(frames),
                None => Keep::First(frames),
            },
            taken: 0,
            passed_on: 0,
        }
    }
}

impl Sink for OnGrid<'_> {
    fn decide(&mut self, frames: u32) -> Result<(), EngineError> {
        if frames == 0 || frames > self.rendered.frames {
            return Err(hostile(
                "it decided for a length that its job does not allow",
            ));
        }
        if self.taken > 0 {
            return Err(hostile("it decided the length after the first frame"));
        }
        self.rendered.frames = frames;
        self.keep = self.keep.at_most(frames);
        self.sink.decide(self.keep.count())
    }

    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        let index = self.taken;
        if index >= self.rendered.frames {
            return Err(hostile("it sends more frames than its clip has"));
        }
        self.taken += 1;
        let Some(frame) = self.crop.cut(rgb, self.rendered.size) else {
            return Err(hostile("it sends a frame of another size"));
        };
        let wanted = self.keep.source(self.passed_on, self.rendered.frames);
        if self.passed_on < self.keep.count() && wanted == index {
            self.passed_on += 1;
            self.sink.frame(&frame)?;
        }
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        self.sink.audio(pcm)
    }
}
