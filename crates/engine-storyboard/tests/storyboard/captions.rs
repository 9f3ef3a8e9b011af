//! The letters over the picture, seen from outside: what is set, where, over what, and the options that take them away.

use std::num::NonZeroUsize;

use kinora_contract::id::TaskId;
use kinora_contract::{EditSpec, Size, VideoInputs, VideoSpec};
use kinora_engine::{ClipPlanner, JobMaterials, RgbPicture};
use kinora_engine_storyboard::{Storyboard, StoryboardKind};

use crate::support::{NONE, SMALL, spec, tape_by};

/// A frame of a clip of two seconds in which letters are wholly there.
const SHOWN: usize = 12;

/// The same sentence in the languages that captions must set.
const SENTENCES: [&str; 15] = [
    "A red balloon rises over the green hills.",
    "Ein roter Ballon fährt über die grünen Hügel – schön!",
    "Un globo rojo sube sobre las colinas verdes, ¿verdad?",
    "Une montgolfière s’élève au-dessus des collines où brûle l’été.",
    "Czerwony balon wznosi się nad zielonymi wzgórzami, łąką i źródłem.",
    "Một quả khinh khí cầu đỏ bay lên trên những ngọn đồi xanh.",
    "Красный шар поднимается над зелёными холмами; їжак ґречно дивиться.",
    "Ένα κόκκινο αερόστατο υψώνεται πάνω από τους πράσινους λόφους.",
    "منطاد أحمر يرتفع فوق التلال الخضراء، والشمس تشرق من بعيد.",
    "כדור פורח אדום עולה מעל הגבעות הירוקות, שָׁלוֹם.",
    "एक लाल गुब्बारा हरी पहाड़ियों के ऊपर उठता है।",
    "บอลลูนสีแดงลอยขึ้นเหนือเนินเขาสีเขียว",
    "一只红色的热气球升起在绿色的山丘之上。一隻紅色的熱氣球，升起！",
    "赤い気球が緑の丘の上にゆっくりと昇っていく。",
    "빨간 열기구가 푸른 언덕 위로 천천히 떠오른다.",
];

/// A picture of one colour with an oval of another around `middle` (shares of the frame).
fn oval(size: Size, ground: [u8; 3], colour: [u8; 3], middle: (f64, f64)) -> RgbPicture {
    let mut rgb = Vec::new();
    for index in 0..size.pixels() {
        let x = (index % u64::from(size.width)) as f64 / f64::from(size.width);
        let y = (index / u64::from(size.width)) as f64 / f64::from(size.height);
        let inside = ((x - middle.0) / 0.1).hypot((y - middle.1) / 0.19) < 1.0;
        rgb.extend(if inside { colour } else { ground });
    }
    RgbPicture { size, rgb }
}

/// A request with the given pictures as references; a black one shows letters and nothing else.
pub(crate) fn over(
    pictures: Vec<RgbPicture>,
    prompt: &str,
    size: Size,
) -> (VideoSpec, JobMaterials) {
    let mut asked = spec(prompt, size, 2, 1);
    let url = || "https://example.com/a.png".to_owned();
    asked.inputs = VideoInputs::References {
        images: pictures.iter().map(|_| url()).collect(),
        audios: Vec::new(),
    };
    let materials = JobMaterials {
        images: pictures,
        ..NONE.clone()
    };
    (asked, materials)
}

pub(crate) fn black(size: Size) -> RgbPicture {
    oval(size, [0; 3], [0; 3], (0.5, 0.5))
}

fn engine(change: impl FnOnce(&mut StoryboardKind)) -> Storyboard {
    let mut options = StoryboardKind {
        threads: NonZeroUsize::new(2),
        ..StoryboardKind::default()
    };
    change(&mut options);
    Storyboard::new(options)
}

/// The frame in which letters are shown.
pub(crate) fn shown(engine: &Storyboard, spec: &VideoSpec, materials: &JobMaterials) -> Vec<u8> {
    tape_by(engine, spec, materials, SHOWN + 1)
        .frames
        .remove(SHOWN)
}

/// Pixels of the rows within `down` (shares of the height) that `is_ink` holds for.
fn count(rgb: &[u8], size: Size, down: (f64, f64), is_ink: impl Fn(&[u8]) -> bool) -> usize {
    let row = |share: f64| (share * f64::from(size.height)) as usize * size.width as usize * 3;
    let part = &rgb[row(down.0)..row(down.1)];
    part.chunks_exact(3).filter(|pixel| is_ink(pixel)).count()
}

/// What is said of characters that no font sets.
fn unset(engine: &Storyboard, spec: &VideoSpec, materials: &JobMaterials) -> Vec<String> {
    let warnings = engine.warnings(spec, materials).into_iter();
    let of_characters = warnings.filter(|one| one.code == "characters_not_set");
    of_characters.map(|one| one.message).collect()
}

#[test]
fn every_character_of_many_languages_is_set_and_shown() {
    for sentence in SENTENCES {
        let engine = engine(|_| {});
        let (asked, materials) = over(vec![black(SMALL)], sentence, SMALL);
        assert_eq!(
            unset(&engine, &asked, &materials),
            [] as [String; 0],
            "{sentence}"
        );
        let frame = shown(&engine, &asked, &materials);
        let letters = count(&frame, SMALL, (0.5, 1.0), |pixel| pixel[0] > 100);
        assert!(letters > 150, "{letters} pixels of {sentence}");
    }
}

#[test]
fn characters_that_no_font_sets_are_told_once_by_name_and_only_with_captions() {
    let asked = spec(
        "A fox \u{e001} and \u{13000}, then \u{e001} again 🦊",
        SMALL,
        2,
        1,
    );
    let messages = unset(&engine(|_| {}), &asked, &NONE);
    assert_eq!(messages.len(), 1);
    let message = &messages[0];
    assert_eq!(message.matches("U+E001").count(), 1, "{message}");
    assert!(
        message.contains("U+13000") && !message.contains("U+1F98A"),
        "{message}"
    );
    let silent = engine(|options| options.caption = false);
    assert_eq!(unset(&silent, &asked, &NONE), [] as [String; 0]);
    let faint = VideoSpec {
        edit: Some(EditSpec {
            task_id: TaskId::from_parts(1, [1; 10]),
            strength: 0.0,
        }),
        ..asked
    };
    assert_eq!(
        unset(&engine(|_| {}), &faint, &NONE),
        [] as [String; 0],
        "such an edit shows no letters"
    );
}

#[test]
fn without_caption_and_mark_a_frame_has_no_letters() {
    let asked = spec("a red balloon over green hills at noon", SMALL, 2, 1);
    let frame = |caption, mark| {
        let engine = engine(|options| (options.caption, options.mark) = (caption, mark));
        shown(&engine, &asked, &NONE)
    };
    let (bare, both) = (frame(false, false), frame(true, true));
    let (captioned, marked) = (frame(true, false), frame(false, true));
    // Each letter comes with its own option, and where they stand the rest is the bare picture.
    let half = bare.len() / 2;
    assert_eq!(captioned[..half], bare[..half]);
    assert_eq!(marked[half..], bare[half..]);
    assert_ne!(captioned[half..], bare[half..]);
    assert_ne!(marked[..half], bare[..half]);
    assert_eq!(both[..half], marked[..half]);
    assert_eq!(both[half..], captioned[half..]);
    let (dark, materials) = over(vec![black(SMALL)], "a red balloon", SMALL);
    let engine = engine(|options| options.caption = false);
    assert!(
        shown(&engine, &dark, &materials)
            .iter()
            .all(|byte| *byte < 8)
    );
}

#[test]
fn the_mark_says_what_the_operator_wants() {
    let asked = spec("a red balloon over green hills at noon", SMALL, 2, 7);
    let frame = |text: &str| {
        let engine = engine(|options| options.mark_text = text.to_owned());
        shown(&engine, &asked, &NONE)
    };
    assert_eq!(frame("Studio {seed}"), frame("Studio 7"));
    assert_ne!(frame("Studio {seed}"), frame("Studio 8"));
}

#[test]
fn given_pictures_carry_no_mark() {
    let (references, images) = over(vec![black(SMALL), black(SMALL)], "a quiet night", SMALL);
    let mut frames = spec("a quiet night", SMALL, 2, 1);
    let url = "https://example.com/a.png".to_owned();
    frames.inputs = VideoInputs::Frames {
        first: url.clone(),
        last: Some(url),
    };
    let ends = JobMaterials {
        first_frame: Some(black(SMALL)),
        last_frame: Some(black(SMALL)),
        ..NONE.clone()
    };
    for (asked, materials) in [(references, images), (frames, ends)] {
        // Letters come in after a given frame.
        let frame = tape_by(&engine(|_| {}), &asked, &materials, 25)
            .frames
            .remove(24);
        assert_eq!(count(&frame, SMALL, (0.0, 0.5), |pixel| pixel[0] > 8), 0);
        assert!(count(&frame, SMALL, (0.5, 1.0), |pixel| pixel[0] > 100) > 50);
    }
}

#[test]
fn a_caption_leaves_a_face_low_in_a_given_picture_free_with_any_threads() {
    let (ground, skin) = ([40, 90, 150], [224, 172, 140]);
    let white = |pixel: &[u8]| pixel.iter().all(|byte| *byte > 215);
    for (middle, caption_above) in [((0.5, 0.78), true), ((0.5, 0.35), false)] {
        let face = oval(SMALL, ground, skin, middle);
        let (asked, materials) = over(vec![face], "a woman who smiles", SMALL);
        let frames: Vec<Vec<u8>> = [1, 2, 3]
            .map(|threads| {
                let engine = engine(|options| options.threads = NonZeroUsize::new(threads));
                shown(&engine, &asked, &materials)
            })
            .into();
        let above = count(&frames[0], SMALL, (0.0, 0.3), white);
        let below = count(&frames[0], SMALL, (0.7, 1.0), white);
        assert_eq!(above > below, caption_above, "{above} above, {below} below");
        assert!(above.max(below) > 50 && above.min(below) == 0);
        assert!(frames.iter().all(|frame| *frame == frames[0]));
    }
}
