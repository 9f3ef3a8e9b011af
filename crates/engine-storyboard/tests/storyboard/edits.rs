//! An edit of a video that cannot be made again changes its light, colours and weather, and nothing else:
//! none of it at 0.0, all at 1.0.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kinora_contract::id::TaskId;
use kinora_contract::{EditSpec, Size, VideoInputs, VideoLength, VideoSpec};
use kinora_engine::{
    ClipPlanner, Engine, EngineError, FrameJob, JobControl, JobMaterials, conformance,
};

use super::support::*;

const FPS: u32 = 30;

/// Three seconds of drifting pictures with cuts at frames 30 and 65.
fn source(size: Size) -> Vec<Vec<u8>> {
    let hues = [0.05, 0.4, 0.75];
    let wide = Size::new(size.width * 2, size.height);
    let pictures = hues.map(|hue| picture(wide, hue));
    let shown = |frame: usize| {
        let picture = &pictures[usize::from(frame >= 30) + usize::from(frame >= 65)];
        let rows = picture.rgb.chunks_exact(wide.width as usize * 3);
        rows.flat_map(|row| row[frame * 3..][..size.width as usize * 3].to_vec())
            .collect()
    };
    (0..90).map(shown).collect()
}

fn job(strength: f64, frames: &[Vec<u8>]) -> (VideoSpec, JobMaterials) {
    job_of("a snowy forest at night, moonlight", strength, frames)
}

fn job_of(prompt: &str, strength: f64, frames: &[Vec<u8>]) -> (VideoSpec, JobMaterials) {
    let spec = VideoSpec {
        generate_audio: false,
        seconds: VideoLength::Auto,
        edit: Some(EditSpec {
            task_id: TaskId::from_parts(1, [3; 10]),
            strength,
        }),
        ..spec(prompt, Size::new(64, 64), 5, 9)
    };
    let materials = JobMaterials {
        source: Some(Arc::new(Memory::new(SMALL, FPS, frames.to_vec()))),
        ..NONE.clone()
    };
    (spec, materials)
}

#[test]
fn size_length_and_pace_are_the_sources() {
    let frames = source(SMALL);
    let (spec, materials) = job(0.6, &frames);
    let clip = engine(1).plan(&spec, &materials).unwrap();
    assert_eq!((clip.size, clip.fps, clip.frames), (SMALL, FPS, 90));
    let plan = engine(1).plan(&spec, &NONE);
    assert!(matches!(plan, Err(EngineError::Failed(_))), "{plan:?}");
}

#[test]
fn strength_leads_from_the_source_to_another_light() {
    let frames = source(SMALL);
    let mut before = -1.0;
    for tenth in [0.0, 0.1, 0.25, 0.4, 0.6, 0.8, 1.0] {
        let (spec, materials) = job(tenth, &frames);
        let tape = whole_of(&spec, &materials);
        sheet(
            &format!("edit_{}", (tenth * 100.0) as u32),
            &tape.frames,
            SMALL,
        );
        let apart = tape.frames.iter().zip(&frames).map(|(a, b)| change(a, b));
        let apart = apart.sum::<f64>() / 90.0;
        assert!(
            apart > before + 1e-9,
            "{tenth}: {apart:.2} after {before:.2}"
        );
        if tenth == 0.0 {
            assert!(tape.frames == frames, "strength 0.0 changes something");
        }
        before = apart;
    }
    assert!(before > 20.0, "strength 1.0 is only {before:.1} away");
}

/// The part of a frame between the slate and the shade on which captions stand.
fn middle(rgb: &[u8]) -> &[u8] {
    let row = SMALL.width as usize * 3;
    &rgb[row * 18..row * 108]
}

/// How steep light is at every place there.
fn edges(rgb: &[u8]) -> Vec<f64> {
    let width = SMALL.width as usize;
    let light = |p: &[u8]| p.iter().map(|part| f64::from(*part)).sum::<f64>();
    let light: Vec<f64> = middle(rgb).chunks_exact(3).map(light).collect();
    (0..light.len() - width - 1)
        .map(|at| (light[at + 1] - light[at]).hypot(light[at + width] - light[at]))
        .collect()
}

#[test]
fn every_shape_stays_where_it_was_and_light_and_colour_change() {
    let frames = source(SMALL);
    let all = |rgb: &[u8]| mean(rgb, SMALL, (0.0, 1.0), (0.1, 0.6));
    for (words, brighter, warmer) in [
        ("at night", 0.3..0.7, 0.3..1.05),
        ("golden hour", 0.6..1.3, 1.1..3.0),
        ("everything purple", 0.6..1.3, 0.5..1.1),
        ("a dark storm", 0.5..0.95, 0.3..3.0),
        ("a dog on the beach at night", 0.3..0.7, 0.3..1.05),
    ] {
        let (spec, materials) = job_of(words, 1.0, &frames);
        let tape = whole_of(&spec, &materials);
        sheet(&format!("edit_{words}"), &tape.frames, SMALL);
        for frame in [10, 50, 80] {
            let (old, new) = (&frames[frame], &tape.frames[frame]);
            if words != "a dark storm" {
                let same = correlation(&edges(old), &edges(new));
                assert!(same > 0.9, "{words} {frame}: {same:.3}");
            }
            let (old, new) = (all(old), all(new));
            let green = |rgb: [f64; 3]| rgb[1] / rgb.iter().sum::<f64>();
            if words == "everything purple" {
                assert!(green(new) < 0.95 * green(old), "{frame}");
            }
            let light = new.iter().sum::<f64>() / old.iter().sum::<f64>();
            assert!(brighter.contains(&light), "{words} {frame}: {light:.2}");
            let warmth = (new[0] / new[2]) / (old[0] / old[2]);
            assert!(warmer.contains(&warmth), "{words} {frame}: {warmth:.2}");
        }
    }
}

#[test]
fn snow_and_rain_fall_before_the_source() {
    // A source that stands still: what moves is what falls.
    let frames = vec![source(SMALL)[0].clone(); 24];
    let moves = |words: &str| {
        let (spec, materials) = job_of(words, 1.0, &frames);
        let tape = whole_of(&spec, &materials).frames;
        change(middle(&tape[10]), middle(&tape[11]))
    };
    assert!(moves("at noon") < 1e-9);
    for words in ["snow falls", "the rain", "a thunderstorm"] {
        assert!(moves(words) > 0.05, "{words}: {}", moves(words));
    }
}

#[test]
fn words_that_say_nothing_of_light_leave_every_pixel() {
    let frames = source(SMALL);
    for words in ["once more", "add a dog", "remove the moon"] {
        let (spec, materials) = job_of(words, 1.0, &frames);
        let tape = whole_of(&spec, &materials);
        let same = tape
            .frames
            .iter()
            .zip(&frames)
            .all(|(a, b)| middle(a) == middle(b));
        assert!(same, "{words}");
    }
}

#[test]
fn strength_is_even() {
    let frames = source(SMALL);
    let apart = |strength| {
        let (spec, materials) = job_of("at night, snow falls", strength, &frames);
        let tape = whole_of(&spec, &materials);
        let each = tape.frames.iter().zip(&frames);
        each.map(|(a, b)| change(middle(a), middle(b))).sum::<f64>()
    };
    let all = apart(1.0);
    for share in [0.02, 0.25, 0.5, 0.75] {
        let part = apart(share) / all;
        assert!((part - share).abs() < 0.03, "{share}: {part:.3}");
    }
}

#[test]
fn cuts_stay_where_they_were() {
    let (spec, materials) = job(1.0, &source(SMALL));
    let frames = whole_of(&spec, &materials).frames;
    let steps: Vec<f64> = frames
        .windows(2)
        .map(|two| change(&two[0], &two[1]))
        .collect();
    let mut order: Vec<usize> = (0..steps.len()).collect();
    order.sort_by(|a, b| steps[*b].total_cmp(&steps[*a]));
    let mut cuts = [order[0] + 1, order[1] + 1];
    cuts.sort_unstable();
    assert_eq!(cuts, [30, 65]);
    assert!(steps[order[1]] > 2.0 * steps[order[2]]);
}

#[test]
fn reference_images_of_an_edit_are_shown() {
    let frames = source(SMALL);
    let (mut spec, mut materials) = job(1.0, &frames);
    spec.inputs = VideoInputs::References {
        images: vec!["https://example.com/a.png".to_owned()],
        audios: Vec::new(),
    };
    let size = Size::new(320, 240);
    let rgb = [200, 60, 30].repeat(size.pixels() as usize);
    materials.images = vec![kinora_engine::RgbPicture { size, rgb }];
    let tape = whole_of(&spec, &materials);
    let own = mean(&tape.frames[40], SMALL, (0.3, 0.7), (0.2, 0.6));
    assert!(own[0] > 1.8 * own[1] && own[1] > 1.3 * own[2], "{own:?}");
}

#[test]
fn edits_conform() {
    let frames = source(SMALL);
    for strength in [0.3, 1.0] {
        // Snow falls by chance: light alone is the same for every seed.
        let (spec, materials) = job_of("a forest at night, snow falls", strength, &frames);
        conformance::check(&engine(2), &spec, &materials).unwrap();
    }
    let (spec, materials) = job(0.0, &frames);
    conformance::outline(&engine(2), &spec, &materials).unwrap();
    conformance::obeys_cancel(&engine(2), &spec, &materials).unwrap();
    conformance::returns_sink_errors(&engine(2), &spec, &materials).unwrap();
}

#[test]
fn a_cancel_is_obeyed_while_the_source_is_looked_through() {
    #[derive(Debug)]
    struct Endless(JobControl);
    impl kinora_engine::SourceVideo for Endless {
        fn size(&self) -> Size {
            SMALL
        }
        fn fps(&self) -> u32 {
            FPS
        }
        fn frames(&self) -> u32 {
            u32::MAX
        }
        fn play(&self) -> Result<Box<dyn kinora_engine::VideoPlayback>, EngineError> {
            Ok(Box::new(Turning(self.0.clone(), 0)))
        }
    }
    struct Turning(JobControl, u32);
    impl kinora_engine::VideoPlayback for Turning {
        fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
            self.1 += 1;
            assert!(self.1 < 6, "read on after the cancel");
            if self.1 == 5 {
                self.0.cancel.cancel();
            }
            Ok(Some(vec![9; SMALL.pixels() as usize * 3]))
        }
    }
    let control = JobControl::default();
    let (spec, _) = job(0.5, &[]);
    let materials = JobMaterials {
        source: Some(Arc::new(Endless(control.clone()))),
        ..NONE.clone()
    };
    let (_, result) = generate(&engine(1), &spec, &materials, 0, &control);
    assert!(matches!(result, Err(EngineError::Cancelled)));
}

/// Footage that counts the frames it gave, and a sink that counts those it got.
#[derive(Debug)]
struct Counted {
    given: Arc<AtomicUsize>,
    got: usize,
    lead_max: usize,
}

impl kinora_engine::SourceVideo for Counted {
    fn size(&self) -> Size {
        SMALL
    }

    fn fps(&self) -> u32 {
        FPS
    }

    fn frames(&self) -> u32 {
        120
    }

    fn play(&self) -> Result<Box<dyn kinora_engine::VideoPlayback>, EngineError> {
        self.given.store(0, Ordering::SeqCst);
        Ok(Box::new(Counting(Arc::clone(&self.given))))
    }
}

struct Counting(Arc<AtomicUsize>);

impl kinora_engine::VideoPlayback for Counting {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Some(vec![90; SMALL.pixels() as usize * 3]))
    }
}

impl kinora_engine::ClipSink for Counted {
    fn frame(&mut self, _: &[u8]) -> Result<(), EngineError> {
        let given = self.given.load(Ordering::SeqCst);
        self.lead_max = self.lead_max.max(given.saturating_sub(self.got));
        self.got += 1;
        Ok(())
    }

    fn audio(&mut self, _: &[f32]) -> Result<(), EngineError> {
        Ok(())
    }
}

#[test]
fn the_source_is_read_only_as_fast_as_its_edit_is_made() {
    let counted = |given: &Arc<AtomicUsize>| Counted {
        given: Arc::clone(given),
        got: 0,
        lead_max: 0,
    };
    for strength in [0.0, 0.6] {
        let given = Arc::new(AtomicUsize::new(0));
        let (spec, mut materials) = job(strength, &[]);
        materials.source = Some(Arc::new(counted(&given)));
        let clip = engine(2).plan(&spec, &materials).unwrap();
        let job = FrameJob {
            spec: &spec,
            materials: &materials,
            clip,
            preset: None,
        };
        let mut sink = counted(&given);
        engine(2)
            .generate(&job, &mut sink, &JobControl::default())
            .unwrap();
        assert_eq!((sink.got, given.load(Ordering::SeqCst)), (120, 120));
        assert!((1..=4).contains(&sink.lead_max), "{}", sink.lead_max);
    }
}

/// A source that comes up from black: what is new comes up with it.
#[test]
fn a_fade_of_the_source_stays_a_fade() {
    let mut frames = source(SMALL);
    for (frame, rgb) in frames.iter_mut().take(10).enumerate() {
        rgb.iter_mut()
            .for_each(|part| *part = (usize::from(*part) * frame / 10) as u8);
    }
    for strength in [0.6, 1.0] {
        let (spec, materials) = job(strength, &frames);
        let tape = whole_of(&spec, &materials);
        let light = |frame: usize| {
            let all = mean(&tape.frames[frame], SMALL, (0.0, 1.0), (0.0, 1.0));
            all.iter().sum::<f64>()
        };
        assert!(light(0) < 0.4 * light(20), "{strength}");
        assert!(light(0) < light(3) && light(3) < light(9), "{strength}");
    }
}

#[test]
fn a_source_that_ends_early_is_a_failure_in_words() {
    for strength in [0.0, 0.5, 1.0] {
        let (spec, mut materials) = job(strength, &[]);
        let mut memory = Memory::new(SMALL, FPS, source(SMALL)[..20].to_vec());
        memory.claims = 40;
        materials.source = Some(Arc::new(memory));
        let control = JobControl::default();
        let (_, result) = generate(&engine(2), &spec, &materials, usize::MAX, &control);
        assert!(matches!(result, Err(EngineError::Failed(_))), "{result:?}");
    }
}
