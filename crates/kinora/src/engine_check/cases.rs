//! What an engine is tried with: one small job for each of its features.

use std::sync::Arc;

use kinora_contract::{Edit, FrameSize, Inputs, SPEC_VERSION, Seconds, Size, TaskId, VideoSpec};
use kinora_engine::{
    EngineError, Footage, Materials, Picture, Playback, Promises, SAMPLE_RATE_HZ, Sound,
};

use crate::cli::EngineCheckArgs;

/// A job and what it is about.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) spec: VideoSpec,
    pub(super) materials: Materials,
}

/// A case for each feature in `promises`; the plainest first.
pub(super) fn of(promises: Promises, args: &EngineCheckArgs) -> Vec<Case> {
    let mut cases = Cases {
        promises,
        cases: Vec::new(),
    };
    let (text, can) = (spec(args), promises.features);
    if can.text_to_video {
        cases.add("text", text.clone(), Materials::default());
    }
    cases.add_pictures(&text, args.size);
    // The plainest request that the engine takes, for what can be added to any.
    let (plain, materials) = match can.text_to_video || !can.first_frame {
        true => (text, Materials::default()),
        false => first_frame(&text, args.size),
    };
    cases.add_more(&plain, &materials, args);
    cases.cases
}

struct Cases {
    promises: Promises,
    cases: Vec<Case>,
}

impl Cases {
    fn add(&mut self, name: &'static str, spec: VideoSpec, materials: Materials) {
        self.cases.push(Case {
            name,
            spec,
            materials,
        });
    }

    /// Requests that show pictures.
    fn add_pictures(&mut self, text: &VideoSpec, size: Size) {
        let can = self.promises.features;
        let (with_first, first) = first_frame(text, size);
        if can.last_frame {
            let inputs = Inputs::Frames {
                first: "first".to_owned(),
                last: Some("last".to_owned()),
            };
            let spec = VideoSpec {
                inputs,
                ..text.clone()
            };
            let materials = Materials {
                last_frame: Some(picture(size, 200)),
                ..first.clone()
            };
            self.add("a last frame", spec, materials);
        }
        if can.first_frame {
            self.add("a first frame", with_first, first);
        }
        if can.reference_images_max > 0 {
            let (inputs, materials) = references(self.promises, size);
            let spec = VideoSpec {
                inputs,
                ..text.clone()
            };
            self.add("references", spec, materials);
        }
    }

    /// What can be added to a plain request, and an edit.
    fn add_more(&mut self, plain: &VideoSpec, materials: &Materials, args: &EngineCheckArgs) {
        let can = self.promises.features;
        if can.audio_output {
            let spec = VideoSpec {
                generate_audio: true,
                ..plain.clone()
            };
            self.add("sound", spec, materials.clone());
        }
        if can.auto_duration {
            let spec = VideoSpec {
                seconds: Seconds::Auto,
                ..plain.clone()
            };
            self.add("a length of its own choice", spec, materials.clone());
        }
        if can.negative_prompt {
            let spec = VideoSpec {
                negative_prompt: Some("text, logos".to_owned()),
                ..plain.clone()
            };
            self.add("a negative prompt", spec, materials.clone());
        }
        if can.draft {
            self.add_draft_and_final(plain, materials, args);
        }
        if can.edit {
            let (spec, materials) = edit(plain, self.promises.fps, args);
            self.add("an edit", spec, materials);
        }
    }

    fn add_draft_and_final(
        &mut self,
        plain: &VideoSpec,
        materials: &Materials,
        args: &EngineCheckArgs,
    ) {
        let draft = VideoSpec {
            draft: true,
            ..plain.clone()
        };
        self.add("a draft", draft, materials.clone());
        let spec = VideoSpec {
            final_of: Some(some_task()),
            ..plain.clone()
        };
        let source = source(self.promises.fps, args);
        let materials = Materials {
            source: Some(source),
            ..materials.clone()
        };
        self.add("the final of a draft", spec, materials);
    }
}

/// Engines never learn which.
fn some_task() -> TaskId {
    TaskId::from_parts(0, [0; 10])
}

fn first_frame(text: &VideoSpec, size: Size) -> (VideoSpec, Materials) {
    let inputs = Inputs::Frames {
        first: "first".to_owned(),
        last: None,
    };
    let spec = VideoSpec {
        inputs,
        ..text.clone()
    };
    let materials = Materials {
        first_frame: Some(picture(size, 30)),
        ..Materials::default()
    };
    (spec, materials)
}

fn edit(plain: &VideoSpec, fps: u32, args: &EngineCheckArgs) -> (VideoSpec, Materials) {
    let edit = Edit {
        task_id: some_task(),
        strength: 0.5,
    };
    let spec = VideoSpec {
        edit: Some(edit),
        inputs: Inputs::Text,
        ..plain.clone()
    };
    let materials = Materials {
        source: Some(source(fps, args)),
        ..Materials::default()
    };
    (spec, materials)
}

/// As long as the clip.
fn source(fps: u32, args: &EngineCheckArgs) -> Arc<Source> {
    Arc::new(Source {
        size: args.size,
        fps,
        frames: args.seconds * fps,
    })
}

fn spec(args: &EngineCheckArgs) -> VideoSpec {
    VideoSpec {
        version: SPEC_VERSION,
        model: "checked".to_owned(),
        prompt: "A red balloon drifts over a calm sea at dawn".to_owned(),
        negative_prompt: None,
        seconds: Seconds::Fixed(args.seconds),
        frame: FrameSize::Fixed(args.size),
        seed: 7,
        generate_audio: false,
        inputs: Inputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

/// As many as the engine takes, but no more than a request may have.
fn references(promises: Promises, size: Size) -> (Inputs, Materials) {
    let (images, audios) = (
        promises.features.reference_images_max.min(2),
        promises.features.reference_audios_max.min(1),
    );
    let names = |count: u32| (0..count).map(|number| number.to_string()).collect();
    let inputs = Inputs::References {
        images: names(images),
        audios: names(audios),
    };
    let materials = Materials {
        images: (0..images)
            .map(|number| picture(size, 60 + 100 * number as u8))
            .collect(),
        audios: (0..audios)
            .map(|_| Sound {
                pcm: vec![0.1; SAMPLE_RATE_HZ as usize * 2],
            })
            .collect(),
        ..Materials::default()
    };
    (inputs, materials)
}

/// A picture that is dark at the left and brighter to the right.
fn picture(size: Size, dark: u8) -> Picture {
    let shade = |at: u64| {
        dark.saturating_add((at % u64::from(size.width) * 50 / u64::from(size.width)) as u8)
    };
    Picture {
        size,
        rgb: (0..size.pixels()).flat_map(|at| [shade(at); 3]).collect(),
    }
}

/// A video that grows brighter.
#[derive(Debug)]
struct Source {
    size: Size,
    fps: u32,
    frames: u32,
}

impl Footage for Source {
    fn size(&self) -> Size {
        self.size
    }

    fn fps(&self) -> u32 {
        self.fps
    }

    fn frames(&self) -> u32 {
        self.frames
    }

    fn play(&self) -> Result<Box<dyn Playback>, EngineError> {
        Ok(Box::new(Playing {
            size: self.size,
            left: self.frames,
        }))
    }
}

struct Playing {
    size: Size,
    left: u32,
}

impl Playback for Playing {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        Ok(Some(
            picture(self.size, 200_u8.saturating_sub(left as u8)).rgb,
        ))
    }
}
