//! Everyday outfits by age. Several rows make several people differ.

use super::base::{
    BLACK, COAT, DRESS, GREY, JEANS, KHAKI, LEATHER, MAN, Outfit, TUNIC, Tint, WOMAN,
};
use crate::art::people::build::Build;
use crate::art::people::cloth::Skirt;

pub(super) const PEOPLE: [Outfit; 8] = [
    Outfit {
        torso: "scarf",
        skirt: COAT,
        hair: "tousled",
        ..MAN
    },
    Outfit {
        torso: "scarf",
        skirt: COAT,
        hair: "bob",
        leg: (["thigh", "shin"], BLACK),
        foot: ("boot", LEATHER),
        ..WOMAN
    },
    Outfit {
        build: Build::TALL,
        torso: "hoodie",
        hair: "crop",
        face: &["brows", "stubble"],
        ..MAN
    },
    Outfit {
        torso: "plain",
        hair: "ponytail",
        leg: (["thigh", "shin"], Tint::Fixed(0x5a_5468)),
        ..WOMAN
    },
    Outfit {
        build: Build::STOUT,
        torso: "shirt",
        hair: "bald",
        face: &["brows", "moustache"],
        leg: (["thigh", "shin"], KHAKI),
        ..MAN
    },
    Outfit {
        hair: "afro",
        leg: (["thigh-bare", "shin-bare"], Tint::Skin),
        ..DRESS
    },
    Outfit {
        build: Build::OLD,
        torso: "coat",
        skirt: TUNIC,
        hair: "short",
        hair_tint: GREY,
        hat: "fedora",
        face: &["brows", "glasses", "wrinkles"],
        leg: (["thigh", "shin"], Tint::Dark),
        ..MAN
    },
    Outfit {
        torso: "hoodie",
        hair: "curly",
        hat: "beanie",
        face: &["brows", "lashes", "glasses"],
        ..WOMAN
    },
];
pub(super) const MEN: [Outfit; 6] = [
    Outfit {
        torso: "shirt",
        ..MAN
    },
    Outfit {
        build: Build::TALL,
        torso: "coat",
        skirt: COAT,
        hair: "crop",
        leg: (["thigh", "shin"], Tint::Dark),
        face: &["brows", "beard"],
        ..MAN
    },
    Outfit {
        build: Build::STOUT,
        torso: "hoodie",
        hat: "cap",
        ..MAN
    },
    Outfit {
        torso: "suit",
        hair: "shaved",
        leg: (["thigh", "shin"], Tint::Deep),
        foot: ("shoe", BLACK),
        ..MAN
    },
    Outfit {
        torso: "scarf",
        hair: "tousled",
        face: &["brows", "glasses"],
        leg: (["thigh", "shin"], KHAKI),
        ..MAN
    },
    Outfit {
        build: Build::TALL,
        torso: "plain",
        hair: "afro",
        ..MAN
    },
];
pub(super) const WOMEN: [Outfit; 6] = [
    DRESS,
    Outfit {
        torso: "coat",
        skirt: COAT,
        hair: "bun",
        leg: (["thigh", "shin"], BLACK),
        foot: ("boot", BLACK),
        ..WOMAN
    },
    Outfit {
        torso: "plain",
        hair: "ponytail",
        ..WOMAN
    },
    Outfit {
        hair: "curly",
        skirt: Some(Skirt {
            length: 0.8,
            flare: 4.6,
            hem: true,
        }),
        ..DRESS
    },
    Outfit {
        build: Build {
            leg: 1.04,
            ..Build::WOMAN
        },
        torso: "scarf",
        skirt: COAT,
        hair: "bob",
        hat: "beret",
        leg: (["thigh", "shin"], Tint::Dark),
        foot: ("boot", LEATHER),
        ..WOMAN
    },
    Outfit {
        torso: "hoodie",
        hair: "bob",
        hat: "headscarf",
        ..WOMAN
    },
];
const CHILD: Outfit = Outfit {
    build: Build::CHILD,
    torso: "tee",
    arm: ["upper-short", "lower-bare"],
    leg: (["thigh-shorts", "shin-bare"], JEANS),
    foot: ("shoe", Tint::Fixed(0xd8_5a48)),
    hair: "tousled",
    ..MAN
};
pub(super) const BOYS: [Outfit; 4] = [
    CHILD,
    Outfit {
        hat: "cap",
        hair: "crop",
        leg: (["thigh-shorts", "shin-bare"], KHAKI),
        ..CHILD
    },
    Outfit {
        torso: "hoodie",
        arm: ["upper", "lower"],
        leg: (["thigh", "shin"], JEANS),
        hair: "curly",
        ..CHILD
    },
    Outfit {
        torso: "overalls",
        sleeve: Tint::Trim,
        hair: "short",
        leg: (["thigh", "shin"], Tint::Main),
        face: &["brows", "glasses"],
        ..CHILD
    },
];
pub(super) const GIRLS: [Outfit; 4] = [
    Outfit {
        torso: "dress",
        skirt: Some(Skirt {
            length: 0.58,
            flare: 5.0,
            hem: false,
        }),
        leg: (["thigh-bare", "shin-bare"], Tint::Skin),
        hair: "pigtails",
        face: &["brows", "lashes"],
        ..CHILD
    },
    Outfit {
        torso: "tee",
        hair: "ponytail",
        face: &["brows", "lashes"],
        ..CHILD
    },
    Outfit {
        torso: "dress",
        skirt: Some(Skirt {
            length: 0.6,
            flare: 5.0,
            hem: true,
        }),
        leg: (["thigh-bare", "shin-bare"], Tint::Skin),
        hair: "afro",
        face: &["brows", "lashes"],
        ..CHILD
    },
    Outfit {
        torso: "hoodie",
        arm: ["upper", "lower"],
        leg: (["thigh", "shin"], JEANS),
        hair: "bob",
        face: &["brows", "lashes", "glasses"],
        ..CHILD
    },
];

pub(super) const BABY: Outfit = Outfit {
    build: Build::BABY,
    torso: "plain",
    leg: (["thigh", "shin"], Tint::Main),
    foot: ("shoe", Tint::Main),
    hair: "tuft",
    face: &[],
    ..MAN
};
pub(super) const OLD_MAN: Outfit = Outfit {
    build: Build::OLD,
    torso: "coat",
    skirt: TUNIC,
    hair: "bald",
    hair_tint: GREY,
    face: &["brows", "wrinkles", "moustache", "glasses"],
    leg: (["thigh", "shin"], Tint::Fixed(0x6a_5c50)),
    held: "cane",
    ..MAN
};
pub(super) const OLD_WOMAN: Outfit = Outfit {
    build: Build {
        girth: 0.98,
        leg: 0.86,
        ..Build::OLD
    },
    torso: "coat",
    skirt: Some(Skirt {
        length: 0.66,
        flare: 2.6,
        hem: false,
    }),
    leg: (["thigh-bare", "shin-bare"], Tint::Skin),
    hair: "bun",
    hair_tint: GREY,
    face: &["brows", "wrinkles", "glasses", "lips"],
    held: "cane",
    ..MAN
};
