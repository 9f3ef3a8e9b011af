//! The colours of a figure under the scene's light: what the words say, else what it has by nature, else
//! the scene's accents.

use super::seat::Seat;
use crate::scenes::Stage;
use crate::scenes::art::Look;
use crate::scenes::colour::Rgb;
use crate::scenes::lexicon::Place;
use crate::scenes::subject::{Body, Subject};

/// Colours of clothes that the words do not name.
const CLOTHES: [u32; 7] = [
    0xc8_5a48, 0x3f_7a94, 0xd0_9a3c, 0x6a_5a8c, 0x4f_8a64, 0xb0_5a7c, 0x50_607c,
];
/// Skin and hair, from light to dark, in no order.
const SKIN: [u32; 5] = [0xd8_a482, 0xf0_c8a8, 0x8a_5a3c, 0xb8_8058, 0x5c_3a28];
const HAIR: [u32; 5] = [0x2a_2630, 0x5a_3a24, 0x1c_1a20, 0x9a_6a34, 0x34_2420];

/// The colours of the figure in `seat`.
pub(super) fn look(stage: &Stage<'_>, seat: &Seat) -> Look {
    let palette = &stage.palette;
    let (subject, nth) = (seat.role.subject, usize::from(seat.nth));
    let facts = subject.facts();
    let mut rng = stage.rng.clone();
    rng.part(facts.noun, -1.0);
    let (skin, hair, cloth) = (
        rng.below(SKIN.len()),
        rng.below(HAIR.len()),
        rng.below(CLOTHES.len()),
    );
    let natural = match (subject, facts.body) {
        (Subject::Tree | Subject::Bush, _) => palette.leaf,
        (_, Body::Person) if facts.colour.is_none() && nth > 0 => {
            Rgb::hex(CLOTHES[(cloth + nth) % CLOTHES.len()])
        }
        (_, Body::Vehicle | Body::Insect | Body::Swimmer) if facts.colour.is_none() && nth > 0 => {
            Rgb::hex(CLOTHES[(cloth + nth) % CLOTHES.len()])
        }
        _ => facts.colour.unwrap_or(palette.accent),
    };
    let main = seat.role.colour.unwrap_or(natural);
    let trim = if subject == Subject::Camel {
        palette.accent
    } else {
        palette.second_accent
    };
    // A subject keeps some light of its own, so that it reads even at night.
    let light = palette
        .light
        .mix(Rgb::WHITE, if palette.is_dark() { 0.42 } else { 0.2 });
    let look = Look {
        main,
        trim,
        dark: Rgb::hex(0x2a_2630),
        pale: Rgb::hex(0xf3_ece0),
        lamp: palette.lamp,
        skin: Rgb::hex(SKIN[(skin + nth) % SKIN.len()]),
        hair: Rgb::hex(HAIR[(hair + nth) % HAIR.len()]),
        lit: palette.is_dark() || stage.place == Place::Space,
        snowy: stage.reading.is_snowy() && !matches!(stage.place, Place::Table | Place::Room),
        light,
        haze: palette.haze,
        mist: 0.0,
    };
    Look {
        main: look.shown(main),
        trim: look.shown(trim),
        dark: look.shown(look.dark),
        pale: look.shown(look.pale),
        skin: look.shown(look.skin),
        hair: look.shown(look.hair),
        ..look
    }
}
