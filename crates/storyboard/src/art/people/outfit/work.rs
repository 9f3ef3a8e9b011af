//! Outfits for work, sport and music.

use super::base::{BLACK, COAT, KHAKI, LEATHER, MAN, Outfit, TUNIC, Tint, WOMAN};
use crate::art::people::build::Build;
use crate::art::people::cloth::Skirt;

pub(super) const SKIER: Outfit = Outfit {
    torso: "hoodie",
    hand: ("hand", Tint::Dark),
    leg: (["thigh", "shin"], Tint::Dark),
    foot: ("boot", Tint::Trim),
    hat: "bobble",
    hair: "crop",
    face: &["goggles"],
    ..MAN
};
pub(super) const CYCLIST: Outfit = Outfit {
    torso: "tee",
    arm: ["upper-short", "lower-bare"],
    leg: (["thigh-shorts", "shin-bare"], BLACK),
    hat: "bike-helmet",
    hair: "crop",
    ..MAN
};
pub(super) const RIDER: Outfit = Outfit {
    torso: "coat",
    leg: (["thigh", "shin"], KHAKI),
    foot: ("boot", BLACK),
    hat: "straw",
    ..MAN
};
pub(super) const DIVER: Outfit = Outfit {
    torso: "wetsuit",
    back: "tank-back",
    hand: ("hand", Tint::Dark),
    leg: (["thigh", "shin"], Tint::Main),
    foot: ("fin", Tint::Trim),
    face: &["mask", "regulator"],
    ..MAN
};
pub(super) const FISHERMAN: Outfit = Outfit {
    torso: "fisher",
    hat: "bucket",
    face: &["brows", "beard"],
    hair_tint: Tint::Fixed(0x8a_7868),
    leg: (["thigh", "shin"], KHAKI),
    foot: ("boot", Tint::Fixed(0x4a_5a3c)),
    held: "rod",
    ..MAN
};
pub(super) const DANCER: Outfit = Outfit {
    torso: "tutu",
    arm: ["upper-bare", "lower-bare"],
    leg: (["thigh", "shin"], Tint::Fixed(0xf0_d0cc)),
    foot: ("shoe", Tint::Main),
    skirt: Some(Skirt {
        length: 0.36,
        flare: 9.0,
        hem: false,
    }),
    hair: "bun",
    ..WOMAN
};
pub(super) const MUSICIAN: Outfit = Outfit {
    torso: "vest",
    arm: ["upper", "lower"],
    hat: "fedora",
    face: &["brows", "stubble"],
    hair: "short",
    ..MAN
};
pub(super) const PAINTER: Outfit = Outfit {
    torso: "smock",
    skirt: COAT,
    hat: "beret",
    hair: "bob",
    face: &["brows", "moustache"],
    held: "brush",
    ..MAN
};
pub(super) const CHEF: Outfit = Outfit {
    torso: "chef",
    leg: (["thigh", "shin"], Tint::Fixed(0x4a_5060)),
    foot: ("shoe", BLACK),
    build: Build::HEAVY,
    face: &["brows", "moustache"],
    hat: "toque",
    held: "pan",
    ..MAN
};
pub(super) const DOCTOR: Outfit = Outfit {
    torso: "doctor",
    skirt: Some(Skirt {
        length: 0.42,
        flare: 1.6,
        hem: false,
    }),
    leg: (["thigh", "shin"], Tint::Fixed(0x5a_94a0)),
    foot: ("shoe", Tint::Pale),
    hair: "ponytail",
    face: &["brows", "glasses"],
    build: Build::WOMAN,
    ..MAN
};
pub(super) const FARMER: Outfit = Outfit {
    torso: "overalls",
    sleeve: Tint::Trim,
    leg: (["thigh", "shin"], Tint::Main),
    foot: ("boot", LEATHER),
    hat: "straw",
    face: &["brows", "stubble"],
    held: "pitchfork",
    ..MAN
};
pub(super) const FIREFIGHTER: Outfit = Outfit {
    torso: "fire",
    build: Build::HEAVY,
    arm: ["upper", "lower-cuff"],
    hand: ("hand", Tint::Dark),
    leg: (["thigh", "shin"], Tint::Main),
    foot: ("boot", BLACK),
    skirt: TUNIC,
    hat: "fire-helmet",
    ..MAN
};
pub(super) const POLICE: Outfit = Outfit {
    torso: "uniform",
    leg: (["thigh", "shin"], Tint::Deep),
    foot: ("shoe", BLACK),
    hat: "police-cap",
    ..MAN
};
pub(super) const SOLDIER: Outfit = Outfit {
    torso: "camo",
    back: "pack-back",
    leg: (["thigh", "shin"], Tint::Main),
    foot: ("boot", LEATHER),
    hair: "crop",
    hat: "soldier-helmet",
    ..MAN
};
pub(super) const ASTRONAUT: Outfit = Outfit {
    torso: "space",
    back: "pack-back",
    build: Build {
        head: 0.92,
        ..Build::HEAVY
    },
    arm: ["upper-puff", "lower-puff"],
    hand: ("hand", Tint::Fixed(0x6a_7684)),
    leg: (["thigh-puff", "shin-puff"], Tint::Main),
    foot: ("moon-boot", Tint::Fixed(0x6a_7684)),
    hat: "space-helm",
    ..MAN
};
pub(super) const ROBOT: Outfit = Outfit {
    torso: "tank",
    arm: ["upper-tube", "lower-tube"],
    hand: ("hand-claw", Tint::Main),
    leg: (["thigh-tube", "shin-tube"], Tint::Main),
    foot: ("moon-boot", Tint::Main),
    hair: "",
    face: &["robot-head"],
    ..MAN
};
