//! The parts of an outfit, and the clothes that many outfits share.

use crate::art::people::build::Build;
use crate::art::people::cloth::Skirt;

/// The colour of a garment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::art::people) enum Tint {
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

/// The names of drawings in their sheets; an empty name draws nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::art::people) struct Outfit {
    pub(in crate::art::people) build: Build,
    /// On the chest, and on the back behind everything.
    pub(in crate::art::people) torso: &'static str,
    pub(in crate::art::people) back: &'static str,
    /// Upper arm and forearm.
    pub(in crate::art::people) arm: [&'static str; 2],
    pub(in crate::art::people) sleeve: Tint,
    pub(in crate::art::people) hand: (&'static str, Tint),
    /// Thigh and shin.
    pub(in crate::art::people) leg: ([&'static str; 2], Tint),
    pub(in crate::art::people) foot: (&'static str, Tint),
    pub(in crate::art::people) skirt: Option<Skirt>,
    pub(in crate::art::people) hair: &'static str,
    pub(in crate::art::people) hair_tint: Tint,
    pub(in crate::art::people) hat: &'static str,
    pub(in crate::art::people) face: &'static [&'static str],
    /// In the far hand, upright.
    pub(in crate::art::people) held: &'static str,
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
