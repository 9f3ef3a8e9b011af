//! Pictures and videos that are given, and whether they have their say.

use std::sync::Arc;

use kinora_contract::{Size, VideoInputs, VideoSpec};
use kinora_engine::{
    Engine, EngineError, JobControl, JobMaterials, RgbPicture, SourceVideo, VideoPlayback,
};

use crate::support::{SIZE, film, frames, make, picture, spec};

/// Clips that start from pictures: others come of other pictures.
pub(crate) fn first_and_last(engine: &dyn Engine) {
    let from = |first: u8, last: Option<u8>| {
        let materials = JobMaterials {
            first_frame: Some(picture(first)),
            last_frame: last.map(picture),
            ..JobMaterials::default()
        };
        let spec = spec(engine, frames(last.is_some()));
        make(engine, &spec, &materials, None, &JobControl::default())
    };
    let dark = from(10, None).unwrap();
    let light = from(200, None).unwrap();
    assert!(dark.frames != light.frames, "the first frame is looked at");
    if !engine.describe().features.last_frame {
        return;
    }
    let ended = match from(10, Some(10)) {
        Err(EngineError::Unsupported(why)) => {
            println!("no last frame: {why}");
            return;
        }
        ended => ended.unwrap(),
    };
    assert!(dark.frames != ended.frames, "a last frame is looked at");
    let other = from(10, Some(200)).unwrap();
    assert!(ended.frames != other.frames, "and which one it is");
}

/// A source of frames of one colour.
#[derive(Debug)]
struct Grey(u8);

impl SourceVideo for Grey {
    fn size(&self) -> Size {
        SIZE
    }

    fn fps(&self) -> u32 {
        3
    }

    fn frames(&self) -> u32 {
        3
    }

    fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError> {
        Ok(Box::new(Shown(self.0, 3)))
    }
}

struct Shown(u8, u32);

impl VideoPlayback for Shown {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        let Some(left) = self.1.checked_sub(1) else {
            return Ok(None);
        };
        self.1 = left;
        Ok(Some(vec![self.0; SIZE.pixels() as usize * 3]))
    }
}

/// A source and a reference image, of VACE.
pub(crate) fn source_and_reference(engine: &dyn Engine) {
    let edited = |grey: u8, strength: f64| {
        let materials = JobMaterials {
            source: Some(Arc::new(Grey(grey))),
            ..JobMaterials::default()
        };
        let edit = kinora_contract::EditSpec {
            task_id: "video_00000000000000000000000000".parse().unwrap(),
            strength,
        };
        let spec = VideoSpec {
            edit: Some(edit),
            ..spec(engine, VideoInputs::Text)
        };
        film(engine, &spec, &materials)
    };
    let (dark, light) = (edited(10, 0.2), edited(240, 0.2));
    assert_eq!((dark.frames.len(), light.frames.len()), (5, 5));
    assert!(dark != light, "the source is looked at");
    assert!(edited(10, 1.0) == edited(240, 1.0), "at 1.0 it is not");

    let referred = |grey: u8| {
        let inputs = VideoInputs::References {
            images: vec!["https://a.example/1.png".to_owned()],
            audios: Vec::new(),
        };
        let picture = RgbPicture {
            size: SIZE,
            rgb: vec![grey; SIZE.pixels() as usize * 3],
        };
        let materials = JobMaterials {
            images: vec![picture],
            ..JobMaterials::default()
        };
        film(engine, &spec(engine, inputs), &materials)
    };
    assert!(referred(10) != referred(240), "the reference is looked at");
}
