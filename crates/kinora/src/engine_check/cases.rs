//! The jobs that an engine is tried with: one small job for each of its features, and larger ones to
//! be stopped. A cancel shows nothing about an engine that is done before the cancel reaches it, so
//! those grow until one lasts long enough.

use std::fmt;
use std::sync::Arc;

use kinora_contract::limits::SECONDS_MAX;
use kinora_contract::{EditSpec, Size, TaskId, VideoInputs, VideoLength, VideoSpec};
use kinora_engine::{
    EngineCapabilities, EngineError, JobMaterials, RgbPicture, SAMPLE_RATE_HZ, SourceVideo,
    StereoSound, VideoPlayback,
};

use crate::catalog::trial_spec;

/// Larger clips are not tried.
const SIDE_MAX: u32 = 2_048;

/// The size and length of the clips.
#[derive(Clone, Copy)]
pub(super) struct ClipShape {
    pub(super) size: Size,
    pub(super) seconds: u32,
}

impl ClipShape {
    /// A shape of more work: first twice as long, then twice as wide and high. `None`: there is none.
    fn larger(self) -> Option<Self> {
        // Longer before larger: time grows the work without growing the memory that a frame needs.
        if self.seconds < SECONDS_MAX {
            let seconds = (2 * self.seconds).min(SECONDS_MAX);
            return Some(Self { seconds, ..self });
        }
        let size = Size::new(2 * self.size.width, 2 * self.size.height);
        (size.width.max(size.height) <= SIDE_MAX).then_some(Self { size, ..self })
    }
}

impl fmt::Display for ClipShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s at {}", self.seconds, self.size)
    }
}

/// A job and what it is about.
pub(super) struct EngineCase {
    pub(super) name: &'static str,
    pub(super) spec: VideoSpec,
    pub(super) materials: JobMaterials,
    /// The inputs that the clip must follow, by name, and the materials with another one in its place.
    pub(super) others: Vec<(&'static str, JobMaterials)>,
}

/// A case for each feature in `promises`; the plainest first.
pub(super) fn cases_for(promises: EngineCapabilities, shape: ClipShape) -> Vec<EngineCase> {
    let mut cases = CaseBuilder {
        promises,
        shape,
        cases: Vec::new(),
    };
    let can = promises.features;
    let text = trial_spec("checked", shape.size, shape.seconds);
    if can.text_to_video {
        cases.add("text", text.clone(), &JobMaterials::default());
    }
    cases.add_pictures(&text);
    // The plainest request that the engine takes, for what can be added to any.
    // An engine that only animates pictures takes no request without one.
    let (plain, materials) = if can.text_to_video || !can.first_frame {
        (text, JobMaterials::default())
    } else {
        first_frame(&text, shape.size)
    };
    cases.add_variations(&plain, &materials);
    cases.cases
}

struct CaseBuilder {
    promises: EngineCapabilities,
    shape: ClipShape,
    cases: Vec<EngineCase>,
}

impl CaseBuilder {
    fn add(&mut self, name: &'static str, spec: VideoSpec, materials: &JobMaterials) {
        self.add_with_others(name, spec, materials.clone(), Vec::new());
    }

    fn add_with_others(
        &mut self,
        name: &'static str,
        spec: VideoSpec,
        materials: JobMaterials,
        others: Vec<(&'static str, JobMaterials)>,
    ) {
        self.cases.push(EngineCase {
            name,
            spec,
            materials,
            others,
        });
    }

    /// Requests that show pictures.
    fn add_pictures(&mut self, text: &VideoSpec) {
        let can = self.promises.features;
        let size = self.shape.size;
        let (with_first, first) = first_frame(text, size);
        if can.last_frame {
            let spec = changed(text, |spec| spec.inputs = frames(Some("last")));
            let last = picture(size, 200);
            let other = changed(&first, |one| one.last_frame = Some(inverted(&last)));
            let materials = changed(&first, |one| one.last_frame = Some(last));
            self.add_with_others("a last frame", spec, materials, vec![("last frame", other)]);
        }
        if can.first_frame {
            let other = changed(&first, |one| {
                one.first_frame = Some(inverted(&picture(size, 30)));
            });
            let others = vec![("first frame", other)];
            self.add_with_others("a first frame", with_first, first, others);
        }
        if can.reference_images_max > 0 || can.reference_audios_max > 0 {
            let (inputs, materials) = references(self.promises, size);
            let spec = changed(text, |spec| {
                spec.inputs = inputs;
                // A reference sound may be heard only, and not seen.
                spec.generate_audio = can.audio_output && !materials.audios.is_empty();
            });
            let others = other_references(&materials);
            self.add_with_others("references", spec, materials, others);
        }
    }

    /// Adds variations of a plain request, such as sound or a draft, and an edit.
    fn add_variations(&mut self, plain: &VideoSpec, materials: &JobMaterials) {
        let can = self.promises.features;
        if can.audio_output {
            let spec = changed(plain, |spec| spec.generate_audio = true);
            self.add("sound", spec, materials);
        }
        if can.auto_duration {
            let spec = changed(plain, |spec| spec.seconds = VideoLength::Auto);
            self.add("a length of its own choice", spec, materials);
        }
        if can.negative_prompt {
            let spec = changed(plain, |spec| {
                spec.negative_prompt = Some("text, logos".to_owned());
            });
            self.add("a negative prompt", spec, materials);
        }
        if can.draft {
            let draft = changed(plain, |spec| spec.draft = true);
            self.add("a draft", draft, materials);
            let spec = changed(plain, |spec| spec.final_of = Some(placeholder_task()));
            let materials = changed(materials, |one| one.source = Some(self.source(false)));
            self.add("the final of a draft", spec, &materials);
        }
        if can.edit {
            let spec = changed(plain, |spec| {
                spec.inputs = VideoInputs::Text;
                spec.edit = Some(EditSpec {
                    task_id: placeholder_task(),
                    strength: 0.5,
                });
            });
            let [materials, other] = [false, true].map(|is_inverted| JobMaterials {
                source: Some(self.source(is_inverted)),
                ..JobMaterials::default()
            });
            self.add_with_others("an edit", spec, materials, vec![("source", other)]);
        }
    }

    /// A video as long as the clip.
    fn source(&self, is_inverted: bool) -> Arc<dyn SourceVideo> {
        Arc::new(TrialFootage {
            size: self.shape.size,
            fps: self.promises.fps,
            frames: self.shape.seconds * self.promises.fps,
            is_inverted,
        })
    }
}

/// A changed copy.
fn changed<T: Clone>(original: &T, change: impl FnOnce(&mut T)) -> T {
    let mut copy = original.clone();
    change(&mut copy);
    copy
}

/// Engines never learn which.
fn placeholder_task() -> TaskId {
    TaskId::from_parts(0, [0; 10])
}

fn frames(last: Option<&str>) -> VideoInputs {
    VideoInputs::Frames {
        first: "first".to_owned(),
        last: last.map(str::to_owned),
    }
}

fn first_frame(text: &VideoSpec, size: Size) -> (VideoSpec, JobMaterials) {
    let spec = changed(text, |spec| spec.inputs = frames(None));
    let materials = JobMaterials {
        first_frame: Some(picture(size, 30)),
        ..JobMaterials::default()
    };
    (spec, materials)
}

/// The names "0", "1" and so on.
fn names(count: u32) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

/// References for a job: as many as the engine supports, up to two images and one sound.
fn references(promises: EngineCapabilities, size: Size) -> (VideoInputs, JobMaterials) {
    let (images, audios) = (
        promises.features.reference_images_max.min(2),
        promises.features.reference_audios_max.min(1),
    );
    let inputs = VideoInputs::References {
        images: names(images),
        audios: names(audios),
    };
    let materials = JobMaterials {
        images: (0..images)
            .map(|number| picture(size, 60 + 100 * number as u8))
            .collect(),
        audios: (0..audios).map(|_| tone(220.0)).collect(),
        ..JobMaterials::default()
    };
    (inputs, materials)
}

/// Variants of `materials`, each with one reference replaced, and the name of that reference.
fn other_references(materials: &JobMaterials) -> Vec<(&'static str, JobMaterials)> {
    let mut others = Vec::new();
    for (index, image) in materials.images.iter().enumerate() {
        let mut other = materials.clone();
        other.images[index] = inverted(image);
        others.push((["first image", "second image"][index], other));
    }
    if !materials.audios.is_empty() {
        let other = JobMaterials {
            audios: vec![tone(330.0)],
            ..materials.clone()
        };
        others.push(("reference sound", other));
    }
    others
}

/// A second of a quiet tone.
fn tone(hz: f32) -> StereoSound {
    StereoSound {
        pcm: (0..SAMPLE_RATE_HZ)
            .flat_map(|sample| {
                let angle = std::f32::consts::TAU * hz * sample as f32 / SAMPLE_RATE_HZ as f32;
                [0.1 * angle.sin(); 2]
            })
            .collect(),
    }
}

/// A picture that is dark at the left and brighter to the right.
fn picture(size: Size, dark: u8) -> RgbPicture {
    RgbPicture {
        size,
        rgb: (0..size.pixels())
            .flat_map(|at| {
                let column = at % u64::from(size.width);
                [dark.saturating_add((column * 50 / u64::from(size.width)) as u8); 3]
            })
            .collect(),
    }
}

/// Returns the picture with dark and bright exchanged.
fn inverted(picture: &RgbPicture) -> RgbPicture {
    RgbPicture {
        size: picture.size,
        rgb: picture.rgb.iter().map(|value| !value).collect(),
    }
}

/// A video that grows brighter; or darker, if it is inverted.
#[derive(Clone, Copy, Debug)]
struct TrialFootage {
    size: Size,
    fps: u32,
    frames: u32,
    is_inverted: bool,
}

impl SourceVideo for TrialFootage {
    fn size(&self) -> Size {
        self.size
    }

    fn fps(&self) -> u32 {
        self.fps
    }

    fn frames(&self) -> u32 {
        self.frames
    }

    fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError> {
        Ok(Box::new(TrialPlayback {
            source: *self,
            left: self.frames,
        }))
    }
}

struct TrialPlayback {
    source: TrialFootage,
    left: u32,
}

impl VideoPlayback for TrialPlayback {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        let shown = picture(self.source.size, 200_u8.saturating_sub(left as u8));
        Ok(Some(if self.source.is_inverted {
            inverted(&shown).rgb
        } else {
            shown.rgb
        }))
    }
}

/// Checks refuse or cancel the frames before this one.
pub(super) const FRAMES_MIN: u32 = 4;

/// The job that checks stop, and larger ones of its kind.
pub(super) struct StoppedJobs<'c> {
    plainest: &'c EngineCase,
    promises: EngineCapabilities,
    shape: ClipShape,
    /// The larger job in place of the plainest.
    larger: Option<EngineCase>,
    is_largest: bool,
}

impl<'c> StoppedJobs<'c> {
    /// `plainest` is the first case of this shape.
    pub(super) const fn new(
        plainest: &'c EngineCase,
        promises: EngineCapabilities,
        shape: ClipShape,
    ) -> Self {
        Self {
            plainest,
            promises,
            shape,
            larger: None,
            is_largest: false,
        }
    }

    /// The job to stop.
    pub(super) fn current(&self) -> &EngineCase {
        self.larger.as_ref().unwrap_or(self.plainest)
    }

    /// The shape of a job that is larger than the plainest.
    pub(super) fn larger_shape(&self) -> Option<ClipShape> {
        self.larger.as_ref().map(|_| self.shape)
    }

    /// Switches to a larger job that the engine `makes`. Returns false if there is none, and
    /// switches back to the plainest.
    pub(super) fn enlarge(&mut self, makes: impl FnOnce(&EngineCase) -> bool) -> bool {
        let shape = self.shape.larger().filter(|_| !self.is_largest);
        let larger = shape.and_then(|shape| {
            let case = cases_for(self.promises, shape).into_iter().next()?;
            makes(&case).then_some((shape, case))
        });
        match larger {
            Some((shape, case)) => {
                self.shape = shape;
                self.larger = Some(case);
                true
            }
            None => {
                self.larger = None;
                self.is_largest = true;
                false
            }
        }
    }
}
