//! What people wear and carry: one row for each role, and rows to choose from where several of a kind
//! should differ. It names drawings and draws none.

mod everyday;
mod tales;
mod work;

use super::build::Build;
use super::cloth::Skirt;
use crate::subject::Subject;

/// The colour of a garment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tint {
    Main,
    /// The main colour, darker.
    Deep,
    Trim,
    Dark,
    Pale,
    Skin,
    Hair,
    Fixed(u32),
}

/// The names of drawings, in their sheets; an empty name is nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outfit {
    pub(super) build: Build,
    /// On the chest, and on the back behind everything.
    pub(super) torso: &'static str,
    pub(super) back: &'static str,
    /// Upper arm and forearm.
    pub(super) arm: [&'static str; 2],
    pub(super) sleeve: Tint,
    pub(super) hand: (&'static str, Tint),
    /// Thigh and shin.
    pub(super) leg: ([&'static str; 2], Tint),
    pub(super) foot: (&'static str, Tint),
    pub(super) skirt: Option<Skirt>,
    pub(super) hair: &'static str,
    pub(super) hair_tint: Tint,
    pub(super) hat: &'static str,
    pub(super) face: &'static [&'static str],
    /// In the far hand, upright.
    pub(super) held: &'static str,
}

pub(super) const GREY: Tint = Tint::Fixed(0xc8_c8cc);
pub(super) const LEATHER: Tint = Tint::Fixed(0x5a_3a28);
pub(super) const BLACK: Tint = Tint::Fixed(0x2a_2a32);
pub(super) const JEANS: Tint = Tint::Fixed(0x3c_4c6c);
pub(super) const KHAKI: Tint = Tint::Fixed(0x8a_7a5c);

pub(super) const MAN: Outfit = Outfit {
    build: Build::MAN,
    torso: "plain",
    back: "",
    arm: ["upper", "lower"],
    sleeve: Tint::Main,
    hand: ("hand", Tint::Skin),
    leg: (["thigh", "shin"], JEANS),
    foot: ("shoe", LEATHER),
    skirt: None,
    hair: "short",
    hair_tint: Tint::Hair,
    hat: "",
    face: &["brows"],
    held: "",
};
pub(super) const WOMAN: Outfit = Outfit {
    build: Build::WOMAN,
    torso: "slim",
    hair: "long",
    face: &["brows", "lashes", "lips"],
    ..MAN
};
pub(super) const DRESS: Outfit = Outfit {
    torso: "dress",
    arm: ["upper-short", "lower-bare"],
    leg: (["thigh-bare", "shin-bare"], Tint::Skin),
    skirt: Some(Skirt {
        length: 0.52,
        flare: 4.0,
        hem: false,
    }),
    ..WOMAN
};
pub(super) const GOWN: Option<Skirt> = Some(Skirt {
    length: 0.97,
    flare: 8.0,
    hem: true,
});
pub(super) const ROBE: Outfit = Outfit {
    torso: "robe",
    arm: ["upper-wide", "lower-wide"],
    leg: (["thigh", "shin"], Tint::Deep),
    skirt: Some(Skirt {
        length: 0.96,
        flare: 4.2,
        hem: true,
    }),
    ..MAN
};
pub(super) const COAT: Option<Skirt> = Some(Skirt {
    length: 0.34,
    flare: 2.4,
    hem: false,
});
pub(super) const TUNIC: Option<Skirt> = Some(Skirt {
    length: 0.2,
    flare: 1.6,
    hem: false,
});

/// The outfit of that row, counted around.
fn pick<const N: usize>(rows: &[Outfit; N], nth: u8) -> Outfit {
    rows[usize::from(nth) % N]
}

/// The same with other hair, for every second one.
fn or(worn: Outfit, hair: &'static str, nth: u8) -> Outfit {
    pick(&[worn, Outfit { hair, ..worn }], nth)
}

/// The clothes of the `nth` of these people.
pub(super) fn outfit(subject: Subject, nth: u8) -> Outfit {
    match subject {
        Subject::Man => pick(&everyday::MEN, nth),
        Subject::Woman => pick(&everyday::WOMEN, nth),
        Subject::Boy => pick(&everyday::BOYS, nth),
        Subject::Girl => pick(&everyday::GIRLS, nth),
        Subject::Baby => everyday::BABY,
        Subject::OldMan => everyday::OLD_MAN,
        Subject::OldWoman => everyday::OLD_WOMAN,
        Subject::Umbrella => Outfit {
            held: "umbrella",
            ..pick(&everyday::PEOPLE, nth % 2)
        },
        Subject::King => tales::KING,
        Subject::Queen => tales::QUEEN,
        Subject::Wizard => tales::WIZARD,
        Subject::Witch => tales::WITCH,
        Subject::Knight => tales::KNIGHT,
        Subject::Pirate => tales::PIRATE,
        Subject::Bride => tales::BRIDE,
        Subject::Clown => tales::CLOWN,
        Subject::Mermaid => tales::MERMAID,
        Subject::Monk => tales::MONK,
        Subject::Skier => work::SKIER,
        Subject::Cyclist => work::CYCLIST,
        Subject::Rider => work::RIDER,
        Subject::Diver => work::DIVER,
        Subject::Fisherman => work::FISHERMAN,
        Subject::Dancer => work::DANCER,
        Subject::Chef => work::CHEF,
        Subject::Farmer => work::FARMER,
        Subject::Firefighter => work::FIREFIGHTER,
        Subject::Police => work::POLICE,
        Subject::Soldier => work::SOLDIER,
        Subject::Astronaut => work::ASTRONAUT,
        Subject::Robot => work::ROBOT,
        Subject::Musician => or(work::MUSICIAN, "curly", nth),
        Subject::Painter => or(work::PAINTER, "crop", nth),
        Subject::Doctor => or(work::DOCTOR, "crop", nth),
        _ => pick(&everyday::PEOPLE, nth),
    }
}
