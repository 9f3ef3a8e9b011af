//! What the bench renders: clips painted from words in every place, crowded and empty, in every
//! weather, and clips from pictures and from a video. It measures nothing.

use std::sync::Arc;

use kinora_contract::id::TaskId;
use kinora_contract::{EditSpec, FrameSize, Size, VideoInputs, VideoLength, VideoSpec};
use kinora_engine::{EngineError, JobMaterials, RgbPicture, SourceVideo, VideoPlayback};

const SECONDS: u32 = 5;
const PROMPTS: [(&str, &str); 16] = [
    (
        "sea",
        "a sailboat drifts on the sea at golden hour, gulls overhead",
    ),
    (
        "city",
        "a neon city street at night in the rain, a woman with a red umbrella",
    ),
    ("hills", "a red hot-air balloon rises over green hills"),
    (
        "mountains",
        "snowy mountains at dawn, a hiker walks, it snows",
    ),
    ("forest", "a horse in a foggy forest in the morning"),
    (
        "desert",
        "a caravan of five camels crosses the desert at noon",
    ),
    ("lake", "three boats on a calm lake under snowy mountains"),
    ("space", "a rocket flies past a planet in space"),
    ("underwater", "a whale and a school of fish deep underwater"),
    ("room", "a cat sits on a windowsill, rain outside"),
    ("sky", "a plane flies above the clouds at sunset"),
    ("abstract", "the feeling of a Monday morning, abstract"),
    (
        "crowd",
        "a crowd of people and dogs in front of houses, two cars, birds in the sky",
    ),
    (
        "table",
        "a bowl of oranges, a bottle and a cup on a wooden table by a window",
    ),
    ("portrait", "close-up portrait of an old man in the snow"),
    (
        "fireworks",
        "fireworks over a city at night, a storm with lightning",
    ),
];

const OTHERS: [&str; 7] = [
    "sea, draft",
    "first frame",
    "first and last frame",
    "4 images",
    "4 images, draft",
    "2 images of 33 megapixels",
    "edit",
];

/// A picture of `width` by `height` with fine and coarse detail.
fn picture(width: u32, height: u32, phase: u32) -> RgbPicture {
    let texel = |index: u32| {
        let (x, y) = (index % width, index / width);
        [
            x * 255 / width,
            y * 255 / height,
            (x * y / 37 + phase) & 255,
        ]
        .map(|part| part as u8)
    };
    RgbPicture {
        size: Size::new(width, height),
        rgb: (0..width * height).flat_map(texel).collect(),
    }
}

/// A source video: one picture that slides.
#[derive(Clone, Debug)]
struct Sliding {
    picture: Arc<RgbPicture>,
    at: u32,
}

impl SourceVideo for Sliding {
    fn size(&self) -> Size {
        self.picture.size
    }

    fn fps(&self) -> u32 {
        24
    }

    fn frames(&self) -> u32 {
        SECONDS * 24
    }

    fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError> {
        Ok(Box::new(self.clone()))
    }
}

impl VideoPlayback for Sliding {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        self.at += 1;
        let mut rgb = self.picture.rgb.clone();
        rgb.rotate_left(self.at as usize * 3);
        Ok(Some(rgb))
    }
}

/// One clip to render.
pub(crate) struct Case {
    pub(crate) spec: VideoSpec,
    pub(crate) materials: JobMaterials,
}

fn spec(prompt: &str, inputs: VideoInputs, size: Size) -> VideoSpec {
    VideoSpec {
        version: 1,
        model: "storyboard".to_owned(),
        prompt: prompt.to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(SECONDS),
        frame: FrameSize::Fixed(size),
        seed: 42,
        generate_audio: true,
        inputs,
        draft: false,
        final_of: None,
        edit: None,
    }
}

/// The name of every case.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PROMPTS.into_iter().map(|(name, _)| name).chain(OTHERS)
}

/// The case of that name in frames of `size`; only its own pictures are made, since a bench
/// measures memory too.
pub(crate) fn case(name: &str, size: Size) -> Option<Case> {
    let (name, draft) = match name.strip_suffix(", draft") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let (prompt, (inputs, materials)) = match PROMPTS.iter().find(|(one, _)| *one == name) {
        Some((_, prompt)) => (*prompt, (VideoInputs::Text, JobMaterials::default())),
        None => (PROMPTS[0].1, given(name, size)?),
    };
    let mut spec = spec(prompt, inputs, size);
    spec.draft = draft;
    spec.edit = materials.source.as_ref().map(|_| EditSpec {
        task_id: TaskId::from_parts(1, [1; 10]),
        strength: 0.6,
    });
    Some(Case { spec, materials })
}

/// What a case that is not painted from words alone is made from.
fn given(name: &str, size: Size) -> Option<(VideoInputs, JobMaterials)> {
    match name {
        "first frame" => Some(frames(false)),
        "first and last frame" => Some(frames(true)),
        "4 images" => Some(images(4, 1400, 1000)),
        "2 images of 33 megapixels" => Some(images(2, 5800, 5600)),
        "edit" => {
            let source: Arc<dyn SourceVideo> = Arc::new(Sliding {
                picture: Arc::new(picture(size.width, size.height, 0)),
                at: 0,
            });
            let materials = JobMaterials {
                source: Some(source),
                ..JobMaterials::default()
            };
            Some((VideoInputs::Text, materials))
        }
        _ => None,
    }
}

fn url() -> String {
    "https://example.com/a.png".to_owned()
}

fn frames(last: bool) -> (VideoInputs, JobMaterials) {
    let materials = JobMaterials {
        first_frame: Some(picture(1600, 1200, 0)),
        last_frame: last.then(|| picture(1200, 1600, 90)),
        ..JobMaterials::default()
    };
    let inputs = VideoInputs::Frames {
        first: url(),
        last: last.then(url),
    };
    (inputs, materials)
}

fn images(count: u32, width: u32, height: u32) -> (VideoInputs, JobMaterials) {
    let all = (0..count).map(|nth| picture(width, height + nth * 200, nth * 50));
    let materials = JobMaterials {
        images: all.collect(),
        ..JobMaterials::default()
    };
    let inputs = VideoInputs::References {
        images: vec![url(); count as usize],
        audios: Vec::new(),
    };
    (inputs, materials)
}
