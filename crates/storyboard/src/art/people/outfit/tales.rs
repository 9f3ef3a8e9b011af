//! Outfits of people in tales and at feasts.

use super::base::{BLACK, COAT, GOWN, GREY, LEATHER, MAN, Outfit, ROBE, TUNIC, Tint, WOMAN};
use crate::art::people::build::Build;
use crate::art::people::cloth::Skirt;

pub(super) const KING: Outfit = Outfit {
    torso: "king",
    back: "cape-back",
    skirt: Some(Skirt {
        length: 0.5,
        flare: 3.0,
        hem: true,
    }),
    leg: (["thigh", "shin"], Tint::Deep),
    foot: ("boot", LEATHER),
    hair: "crop",
    face: &["brows", "beard"],
    hat: "crown",
    held: "scepter",
    ..MAN
};
pub(super) const QUEEN: Outfit = Outfit {
    torso: "bodice",
    arm: ["upper-puff", "lower"],
    skirt: GOWN,
    leg: (["thigh", "shin"], Tint::Deep),
    hair: "bun",
    hat: "crown",
    face: &["brows", "lashes", "lips"],
    ..WOMAN
};
pub(super) const WIZARD: Outfit = Outfit {
    hair: "long",
    hair_tint: GREY,
    face: &["brows", "beard-long"],
    hat: "wizard",
    held: "staff",
    ..ROBE
};
pub(super) const WITCH: Outfit = Outfit {
    build: Build::WOMAN,
    hair_tint: Tint::Fixed(0x8a_4428),
    face: &["brows", "lashes", "lips"],
    hair: "long",
    hat: "witch",
    held: "broom",
    foot: ("boot", BLACK),
    ..ROBE
};
pub(super) const KNIGHT: Outfit = Outfit {
    torso: "plate",
    arm: ["upper-plate", "lower-plate"],
    hand: ("hand", Tint::Deep),
    leg: (["thigh", "shin-plate"], Tint::Deep),
    foot: ("boot", Tint::Main),
    skirt: TUNIC,
    hair: "",
    hat: "knight-helm",
    held: "sword",
    ..MAN
};
pub(super) const PIRATE: Outfit = Outfit {
    torso: "pirate",
    skirt: COAT,
    leg: (["thigh", "shin"], BLACK),
    foot: ("boot", LEATHER),
    hair: "long",
    hat: "tricorn",
    face: &["brows", "stubble", "patch", "moustache"],
    held: "cutlass",
    ..MAN
};
pub(super) const BRIDE: Outfit = Outfit {
    torso: "bodice",
    arm: ["upper-short", "lower-bare"],
    skirt: Some(Skirt {
        length: 0.98,
        flare: 12.0,
        hem: false,
    }),
    leg: (["thigh", "shin"], Tint::Deep),
    foot: ("shoe", Tint::Pale),
    hair: "bun",
    hat: "veil",
    held: "bouquet",
    ..WOMAN
};
pub(super) const CLOWN: Outfit = Outfit {
    torso: "clown",
    arm: ["upper-puff", "lower-puff"],
    hand: ("hand", Tint::Pale),
    leg: (["thigh-puff", "shin-puff"], Tint::Main),
    foot: ("clog", Tint::Fixed(0xd8_3a3a)),
    hair: "",
    hat: "clown-hair",
    face: &["clown-face"],
    ..MAN
};
pub(super) const MERMAID: Outfit = Outfit {
    torso: "bare",
    arm: ["upper-bare", "lower-bare"],
    hair_tint: Tint::Fixed(0xc8_5030),
    hat: "",
    ..WOMAN
};
pub(super) const MONK: Outfit = Outfit {
    torso: "monk",
    arm: ["upper-wide", "lower-bare"],
    skirt: Some(Skirt {
        length: 0.9,
        flare: 3.0,
        hem: false,
    }),
    leg: (["thigh-bare", "shin-bare"], Tint::Skin),
    foot: ("sandal", LEATHER),
    hair: "shaved",
    held: "walking-staff",
    ..MAN
};
