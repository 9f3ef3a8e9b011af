//! Drawing one subject in a test, and measuring what came out.

use tiny_skia::Transform;

use super::{ActMoment, SubjectColours, anchor, draw};
use crate::raster::colour::Rgb;
use crate::raster::pen::Pen;
use crate::subject::{Act, BodyKind, Subject};

/// One pixel, not premultiplied: red, green, blue, opacity.
type Pixel = [u8; 4];

/// A drawn subject with its anchor in the middle.
pub(super) struct Trial {
    side: usize,
    /// Pixels per side of the subject's square.
    scale: f32,
    pub(super) pixels: Vec<Pixel>,
}

pub(super) const LOOK: SubjectColours = SubjectColours::PLAIN;
pub(super) const BY_NIGHT: SubjectColours = SubjectColours { lit: true, ..LOOK };

pub(super) const ACTS: [Act; 20] = [
    Act::Stand,
    Act::Sit,
    Act::Sleep,
    Act::Walk,
    Act::Run,
    Act::Jump,
    Act::Dance,
    Act::Eat,
    Act::Move,
    Act::Fly,
    Act::Land,
    Act::Rise,
    Act::Fall,
    Act::Swim,
    Act::Open,
    Act::Wave,
    Act::Play,
    Act::Read,
    Act::Turn,
    Act::Burn,
];

/// `act` at `t` seconds, moving when the act moves.
pub(super) fn moment(act: Act, t: f32) -> ActMoment {
    ActMoment {
        act,
        t,
        gone: if matches!(act, Act::Move | Act::Run) {
            t * 0.15
        } else {
            0.0
        },
        share: (t / 4.0).min(1.0),
        nth: 0,
        holder: None,
    }
}

/// All subjects of `body` that are drawn.
pub(super) fn subjects(body: BodyKind) -> impl Iterator<Item = Subject> {
    let all = Subject::ALL.iter().copied();
    all.filter(move |one| one.facts().body == body && !one.is_orb())
}

/// Fails unless every act of every subject of `body` draws more than `least` pixels, and the same each time.
pub(super) fn check_every_act(body: BodyKind, least: usize) {
    for subject in subjects(body) {
        for act in ACTS {
            let m = moment(act, 1.7);
            let first = trial(subject, &LOOK, &m, 48, 2.2);
            assert!(first.drawn() > least, "{subject:?} {act:?} is not drawn");
            let again = trial(subject, &LOOK, &m, 48, 2.2);
            assert_eq!(first.pixels, again.pixels, "{subject:?} {act:?}");
        }
    }
}

/// Draws `subject` on nothing, in a picture of `side` pixels that shows `sides` of its squares.
pub(super) fn trial(
    subject: Subject,
    look: &SubjectColours,
    m: &ActMoment,
    side: u32,
    sides: f32,
) -> Trial {
    let scale = side as f32 / sides;
    let middle = side as f32 * 0.5;
    let onto = Transform::from_translate(middle, middle)
        .pre_scale(scale / 100.0, scale / 100.0)
        .pre_translate(-50.0, -anchor(subject));
    let mut pen = Pen::new(side, side, onto).unwrap();
    draw(&mut pen, subject, look, m);
    let pixels = pen.pixmap.pixels().iter().map(|pixel| {
        let plain = pixel.demultiply();
        [plain.red(), plain.green(), plain.blue(), plain.alpha()]
    });
    Trial {
        side: side as usize,
        scale,
        pixels: pixels.collect(),
    }
}

impl Trial {
    /// How many pixels are drawn on.
    pub(super) fn drawn(&self) -> usize {
        self.count(|_| true)
    }

    /// How many drawn pixels `matches` accepts.
    pub(super) fn count(&self, matches: impl Fn(&Pixel) -> bool) -> usize {
        let drawn = self.pixels.iter().filter(|pixel| pixel[3] > 40);
        drawn.filter(|pixel| matches(pixel)).count()
    }

    /// How many pixels are (nearly) `colour`.
    pub(super) fn near(&self, colour: Rgb) -> usize {
        let wanted = [colour.r, colour.g, colour.b].map(|part| part * 255.0);
        self.count(|pixel| {
            let apart = wanted
                .iter()
                .zip(pixel)
                .map(|(a, b)| (a - f32::from(*b)).abs());
            apart.sum::<f32>() < 24.0
        })
    }

    /// The farthest that a clearly drawn pixel is from the anchor, across or down, in sides of the square.
    pub(super) fn farthest(&self) -> f32 {
        let middle = self.side as f32 * 0.5;
        let drawn = self.pixels.iter().enumerate().filter(|(_, p)| p[3] > 40);
        drawn
            .map(|(index, _)| {
                let [x, y] = [index % self.side, index / self.side]
                    .map(|at| (at as f32 + 0.5 - middle).abs());
                x.max(y) / self.scale
            })
            .fold(0.0, f32::max)
    }
}
