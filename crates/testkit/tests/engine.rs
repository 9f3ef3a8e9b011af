//! The engine's contract, with each kind of input.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should stop"
)]

use std::sync::Arc;

use kinora_contract::{EditSpec, FrameSize, Size, TaskId, VideoInputs, VideoLength, VideoSpec};
use kinora_engine::{
    CHANNELS, EngineError, JobMaterials, RgbPicture, SAMPLE_RATE_HZ, SourceVideo, StereoSound,
    VideoPlayback, conformance,
};
use kinora_testkit::engine::BarsEngine;

const SIZE: Size = Size {
    width: 64,
    height: 48,
};

fn spec(inputs: VideoInputs) -> VideoSpec {
    VideoSpec {
        version: 1,
        model: "bars".to_owned(),
        prompt: "A red balloon. It drifts.".to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(2),
        frame: FrameSize::Fixed(SIZE),
        seed: 7,
        generate_audio: true,
        inputs,
        draft: false,
        final_of: None,
        edit: None,
    }
}

fn picture(grey: u8) -> RgbPicture {
    let size = Size {
        width: 100,
        height: 80,
    };
    RgbPicture {
        size,
        rgb: vec![grey; size.pixels() as usize * 3],
    }
}

/// A grey video of one second.
#[derive(Debug)]
struct Grey;

struct Playing(u32);

impl SourceVideo for Grey {
    fn size(&self) -> Size {
        SIZE
    }

    fn fps(&self) -> u32 {
        24
    }

    fn frames(&self) -> u32 {
        24
    }

    fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError> {
        Ok(Box::new(Playing(24)))
    }
}

impl VideoPlayback for Playing {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        let next = self.0.checked_sub(1);
        self.0 = next.unwrap_or(0);
        Ok(next.map(|_| vec![90; SIZE.pixels() as usize * 3]))
    }
}

#[test]
fn every_kind_of_input_keeps_the_contract_of_engines() {
    let frames = VideoInputs::Frames {
        first: "first".to_owned(),
        last: Some("last".to_owned()),
    };
    let references = VideoInputs::References {
        images: vec!["one".to_owned(), "two".to_owned()],
        audios: vec!["sound".to_owned()],
    };
    let sound = StereoSound {
        pcm: vec![0.5; (SAMPLE_RATE_HZ * u32::from(CHANNELS)) as usize],
    };
    let with_frames = JobMaterials {
        first_frame: Some(picture(10)),
        last_frame: Some(picture(240)),
        ..JobMaterials::default()
    };
    let with_references = JobMaterials {
        images: vec![picture(10), picture(240)],
        audios: vec![sound],
        ..JobMaterials::default()
    };
    let with_source = JobMaterials {
        source: Some(Arc::new(Grey)),
        ..JobMaterials::default()
    };
    let auto = VideoSpec {
        seconds: VideoLength::Auto,
        ..spec(VideoInputs::Text)
    };
    let edit = VideoSpec {
        edit: Some(EditSpec {
            task_id: TaskId::from_parts(1, [0; 10]),
            strength: 0.5,
        }),
        ..spec(VideoInputs::Text)
    };
    let none = JobMaterials::default();
    for (spec, materials) in [
        (&spec(VideoInputs::Text), &none),
        (&auto, &none),
        (&spec(frames), &with_frames),
        (&spec(references), &with_references),
        (&edit, &with_source),
    ] {
        conformance::check(&BarsEngine::default(), spec, materials).unwrap();
    }
}
