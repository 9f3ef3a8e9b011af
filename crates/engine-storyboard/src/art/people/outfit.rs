//! Outfits: one row for each role, and several rows for roles whose people should differ. It names drawings and draws
//! none.

use super::cloth::Skirt;
use super::skeleton::BodyBuild;
use crate::subject::Subject;

/// The colour of a garment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum GarmentTint {
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
pub(super) struct Outfit {
    pub(super) build: BodyBuild,
    /// Drawings on the chest, and on the back behind everything.
    pub(super) torso: &'static str,
    pub(super) back: &'static str,
    /// Upper arm and forearm.
    pub(super) arm: [&'static str; 2],
    pub(super) sleeve: GarmentTint,
    pub(super) hand: (&'static str, GarmentTint),
    /// Thigh and shin.
    pub(super) leg: ([&'static str; 2], GarmentTint),
    pub(super) foot: (&'static str, GarmentTint),
    pub(super) skirt: Option<Skirt>,
    pub(super) hair: &'static str,
    pub(super) hair_tint: GarmentTint,
    pub(super) hat: &'static str,
    pub(super) face: &'static [&'static str],
    /// Thing in the far hand, upright.
    pub(super) held: &'static str,
}

/// Row `nth` of `rows`, modulo their number.
fn pick<const N: usize>(rows: &[Outfit; N], nth: u8) -> Outfit {
    rows[usize::from(nth) % N]
}

/// `worn`, with other `hair` for every second person.
fn with_other_hair(worn: Outfit, hair: &'static str, nth: u8) -> Outfit {
    pick(&[worn, Outfit { hair, ..worn }], nth)
}

/// The outfit of the `nth` person of `subject`.
pub(super) fn outfit(subject: Subject, nth: u8) -> Outfit {
    match subject {
        Subject::Man => pick(&MEN, nth),
        Subject::Woman => pick(&WOMEN, nth),
        Subject::Boy => pick(&BOYS, nth),
        Subject::Girl => pick(&GIRLS, nth),
        Subject::Baby => BABY,
        Subject::OldMan => OLD_MAN,
        Subject::OldWoman => OLD_WOMAN,
        Subject::Umbrella => Outfit {
            held: "umbrella",
            ..pick(&PEOPLE, nth % 2)
        },
        Subject::King => KING,
        Subject::Queen => QUEEN,
        Subject::Wizard => WIZARD,
        Subject::Witch => WITCH,
        Subject::Knight => KNIGHT,
        Subject::Pirate => PIRATE,
        Subject::Bride => BRIDE,
        Subject::Clown => CLOWN,
        Subject::Mermaid => MERMAID,
        Subject::Monk => MONK,
        Subject::Skier => SKIER,
        Subject::Cyclist => CYCLIST,
        Subject::Rider => RIDER,
        Subject::Diver => DIVER,
        Subject::Fisherman => FISHERMAN,
        Subject::Dancer => DANCER,
        Subject::Chef => CHEF,
        Subject::Farmer => FARMER,
        Subject::Firefighter => FIREFIGHTER,
        Subject::Police => POLICE,
        Subject::Soldier => SOLDIER,
        Subject::Astronaut => ASTRONAUT,
        Subject::Robot => ROBOT,
        Subject::Musician => with_other_hair(MUSICIAN, "curly", nth),
        Subject::Painter => with_other_hair(PAINTER, "crop", nth),
        Subject::Doctor => with_other_hair(DOCTOR, "crop", nth),
        _ => pick(&PEOPLE, nth),
    }
}

// Clothes that many outfits share.

/// A skirt over the share `length` of the leg, `flare` away from it at its end.
const fn skirt(length: f32, flare: f32) -> Option<Skirt> {
    Some(Skirt {
        length,
        flare,
        hem: false,
    })
}

/// The same with a hem of the second colour.
const fn hemmed(length: f32, flare: f32) -> Option<Skirt> {
    Some(Skirt {
        length,
        flare,
        hem: true,
    })
}

const GREY: GarmentTint = GarmentTint::Fixed(0xc8_c8cc);
const LEATHER: GarmentTint = GarmentTint::Fixed(0x5a_3a28);
const BLACK: GarmentTint = GarmentTint::Fixed(0x2a_2a32);
const JEANS: GarmentTint = GarmentTint::Fixed(0x3c_4c6c);
const KHAKI: GarmentTint = GarmentTint::Fixed(0x8a_7a5c);

// The outfit that all others start from: a row names only what differs, so that it reads as a
// description of the role.
const MAN: Outfit = Outfit {
    build: BodyBuild::MAN,
    torso: "plain",
    back: "",
    arm: ["upper", "lower"],
    sleeve: GarmentTint::Main,
    hand: ("hand", GarmentTint::Skin),
    leg: (["thigh", "shin"], JEANS),
    foot: ("shoe", LEATHER),
    skirt: None,
    hair: "short",
    hair_tint: GarmentTint::Hair,
    hat: "",
    face: &["brows"],
    held: "",
};

const WOMAN: Outfit = Outfit {
    build: BodyBuild::WOMAN,
    torso: "slim",
    hair: "long",
    face: &["brows", "lashes", "lips"],
    ..MAN
};

const DRESS: Outfit = Outfit {
    torso: "dress",
    arm: ["upper-short", "lower-bare"],
    leg: (["thigh-bare", "shin-bare"], GarmentTint::Skin),
    skirt: skirt(0.52, 4.0),
    ..WOMAN
};

const GOWN: Option<Skirt> = hemmed(0.97, 8.0);

const ROBE: Outfit = Outfit {
    torso: "robe",
    arm: ["upper-wide", "lower-wide"],
    leg: (["thigh", "shin"], GarmentTint::Deep),
    skirt: hemmed(0.96, 4.2),
    ..MAN
};

const COAT: Option<Skirt> = skirt(0.34, 2.4);

const TUNIC: Option<Skirt> = skirt(0.2, 1.6);

// Everyday outfits by age. Several rows make several people differ.

// For "person" and roles without a row: men and women in turn, so that a group is mixed.
const PEOPLE: [Outfit; 8] = [
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
        build: BodyBuild::TALL,
        torso: "hoodie",
        hair: "crop",
        face: &["brows", "stubble"],
        ..MAN
    },
    Outfit {
        torso: "plain",
        hair: "ponytail",
        leg: (["thigh", "shin"], GarmentTint::Fixed(0x5a_5468)),
        ..WOMAN
    },
    Outfit {
        build: BodyBuild::STOUT,
        torso: "shirt",
        hair: "bald",
        face: &["brows", "moustache"],
        leg: (["thigh", "shin"], KHAKI),
        ..MAN
    },
    Outfit {
        hair: "afro",
        ..DRESS
    },
    Outfit {
        build: BodyBuild::OLD,
        torso: "coat",
        skirt: TUNIC,
        hair_tint: GREY,
        hat: "fedora",
        face: &["brows", "glasses", "wrinkles"],
        leg: (["thigh", "shin"], GarmentTint::Dark),
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
const MEN: [Outfit; 6] = [
    Outfit {
        torso: "shirt",
        ..MAN
    },
    Outfit {
        build: BodyBuild::TALL,
        torso: "coat",
        skirt: COAT,
        hair: "crop",
        leg: (["thigh", "shin"], GarmentTint::Dark),
        face: &["brows", "beard"],
        ..MAN
    },
    Outfit {
        build: BodyBuild::STOUT,
        torso: "hoodie",
        hat: "cap",
        ..MAN
    },
    Outfit {
        torso: "suit",
        hair: "shaved",
        leg: (["thigh", "shin"], GarmentTint::Deep),
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
        build: BodyBuild::TALL,
        hair: "afro",
        ..MAN
    },
];
const WOMEN: [Outfit; 6] = [
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
        skirt: hemmed(0.8, 4.6),
        ..DRESS
    },
    Outfit {
        build: BodyBuild {
            leg: 1.04,
            ..BodyBuild::WOMAN
        },
        torso: "scarf",
        skirt: COAT,
        hair: "bob",
        hat: "beret",
        leg: (["thigh", "shin"], GarmentTint::Dark),
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
    build: BodyBuild::CHILD,
    torso: "tee",
    arm: ["upper-short", "lower-bare"],
    leg: (["thigh-shorts", "shin-bare"], JEANS),
    foot: ("shoe", GarmentTint::Fixed(0xd8_5a48)),
    hair: "tousled",
    ..MAN
};
const BOYS: [Outfit; 4] = [
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
        sleeve: GarmentTint::Trim,
        hair: "short",
        leg: (["thigh", "shin"], GarmentTint::Main),
        face: &["brows", "glasses"],
        ..CHILD
    },
];
const GIRLS: [Outfit; 4] = [
    Outfit {
        torso: "dress",
        skirt: skirt(0.58, 5.0),
        leg: (["thigh-bare", "shin-bare"], GarmentTint::Skin),
        hair: "pigtails",
        face: &["brows", "lashes"],
        ..CHILD
    },
    Outfit {
        hair: "ponytail",
        face: &["brows", "lashes"],
        ..CHILD
    },
    Outfit {
        torso: "dress",
        skirt: hemmed(0.6, 5.0),
        leg: (["thigh-bare", "shin-bare"], GarmentTint::Skin),
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

const BABY: Outfit = Outfit {
    build: BodyBuild::BABY,
    leg: (["thigh", "shin"], GarmentTint::Main),
    foot: ("shoe", GarmentTint::Main),
    hair: "tuft",
    face: &[],
    ..MAN
};
const OLD_MAN: Outfit = Outfit {
    build: BodyBuild::OLD,
    torso: "coat",
    skirt: TUNIC,
    hair: "bald",
    hair_tint: GREY,
    face: &["brows", "wrinkles", "moustache", "glasses"],
    leg: (["thigh", "shin"], GarmentTint::Fixed(0x6a_5c50)),
    held: "cane",
    ..MAN
};
const OLD_WOMAN: Outfit = Outfit {
    build: BodyBuild {
        girth: 0.98,
        leg: 0.86,
        ..BodyBuild::OLD
    },
    torso: "coat",
    skirt: skirt(0.66, 2.6),
    leg: (["thigh-bare", "shin-bare"], GarmentTint::Skin),
    hair: "bun",
    hair_tint: GREY,
    face: &["brows", "wrinkles", "glasses", "lips"],
    held: "cane",
    ..MAN
};

// Outfits for work, sport and music.

const SKIER: Outfit = Outfit {
    torso: "hoodie",
    hand: ("hand", GarmentTint::Dark),
    leg: (["thigh", "shin"], GarmentTint::Dark),
    foot: ("boot", GarmentTint::Trim),
    hat: "bobble",
    hair: "crop",
    face: &["goggles"],
    ..MAN
};
const CYCLIST: Outfit = Outfit {
    torso: "tee",
    arm: ["upper-short", "lower-bare"],
    leg: (["thigh-shorts", "shin-bare"], BLACK),
    hat: "bike-helmet",
    hair: "crop",
    ..MAN
};
const RIDER: Outfit = Outfit {
    torso: "coat",
    leg: (["thigh", "shin"], KHAKI),
    foot: ("boot", BLACK),
    hat: "straw",
    ..MAN
};
const DIVER: Outfit = Outfit {
    torso: "wetsuit",
    back: "tank-back",
    hand: ("hand", GarmentTint::Dark),
    leg: (["thigh", "shin"], GarmentTint::Main),
    foot: ("fin", GarmentTint::Trim),
    face: &["mask", "regulator"],
    ..MAN
};
const FISHERMAN: Outfit = Outfit {
    torso: "fisher",
    hat: "bucket",
    face: &["brows", "beard"],
    hair_tint: GarmentTint::Fixed(0x8a_7868),
    leg: (["thigh", "shin"], KHAKI),
    foot: ("boot", GarmentTint::Fixed(0x4a_5a3c)),
    held: "rod",
    ..MAN
};
const DANCER: Outfit = Outfit {
    torso: "tutu",
    arm: ["upper-bare", "lower-bare"],
    leg: (["thigh", "shin"], GarmentTint::Fixed(0xf0_d0cc)),
    foot: ("shoe", GarmentTint::Main),
    skirt: skirt(0.36, 9.0),
    hair: "bun",
    ..WOMAN
};
const MUSICIAN: Outfit = Outfit {
    torso: "vest",
    hat: "fedora",
    face: &["brows", "stubble"],
    ..MAN
};
const PAINTER: Outfit = Outfit {
    torso: "smock",
    skirt: COAT,
    hat: "beret",
    hair: "bob",
    face: &["brows", "moustache"],
    held: "brush",
    ..MAN
};
const CHEF: Outfit = Outfit {
    torso: "chef",
    leg: (["thigh", "shin"], GarmentTint::Fixed(0x4a_5060)),
    foot: ("shoe", BLACK),
    build: BodyBuild::HEAVY,
    face: &["brows", "moustache"],
    hat: "toque",
    held: "pan",
    ..MAN
};
const DOCTOR: Outfit = Outfit {
    torso: "doctor",
    skirt: skirt(0.42, 1.6),
    leg: (["thigh", "shin"], GarmentTint::Fixed(0x5a_94a0)),
    foot: ("shoe", GarmentTint::Pale),
    hair: "ponytail",
    face: &["brows", "glasses"],
    build: BodyBuild::WOMAN,
    ..MAN
};
const FARMER: Outfit = Outfit {
    torso: "overalls",
    sleeve: GarmentTint::Trim,
    leg: (["thigh", "shin"], GarmentTint::Main),
    foot: ("boot", LEATHER),
    hat: "straw",
    face: &["brows", "stubble"],
    held: "pitchfork",
    ..MAN
};
const FIREFIGHTER: Outfit = Outfit {
    torso: "fire",
    build: BodyBuild::HEAVY,
    arm: ["upper", "lower-cuff"],
    hand: ("hand", GarmentTint::Dark),
    leg: (["thigh", "shin"], GarmentTint::Main),
    foot: ("boot", BLACK),
    skirt: TUNIC,
    hat: "fire-helmet",
    ..MAN
};
const POLICE: Outfit = Outfit {
    torso: "uniform",
    leg: (["thigh", "shin"], GarmentTint::Deep),
    foot: ("shoe", BLACK),
    hat: "police-cap",
    ..MAN
};
const SOLDIER: Outfit = Outfit {
    torso: "camo",
    back: "pack-back",
    leg: (["thigh", "shin"], GarmentTint::Main),
    foot: ("boot", LEATHER),
    hair: "crop",
    hat: "soldier-helmet",
    ..MAN
};
const ASTRONAUT: Outfit = Outfit {
    torso: "space",
    back: "pack-back",
    build: BodyBuild {
        head: 0.92,
        ..BodyBuild::HEAVY
    },
    arm: ["upper-puff", "lower-puff"],
    hand: ("hand", GarmentTint::Fixed(0x6a_7684)),
    leg: (["thigh-puff", "shin-puff"], GarmentTint::Main),
    foot: ("moon-boot", GarmentTint::Fixed(0x6a_7684)),
    hat: "space-helm",
    ..MAN
};
const ROBOT: Outfit = Outfit {
    torso: "tank",
    arm: ["upper-tube", "lower-tube"],
    hand: ("hand-claw", GarmentTint::Main),
    leg: (["thigh-tube", "shin-tube"], GarmentTint::Main),
    foot: ("moon-boot", GarmentTint::Main),
    hair: "",
    face: &["robot-head"],
    ..MAN
};

// Outfits of people in tales and at feasts.

const KING: Outfit = Outfit {
    torso: "king",
    back: "cape-back",
    skirt: hemmed(0.5, 3.0),
    leg: (["thigh", "shin"], GarmentTint::Deep),
    foot: ("boot", LEATHER),
    hair: "crop",
    face: &["brows", "beard"],
    hat: "crown",
    held: "scepter",
    ..MAN
};
const QUEEN: Outfit = Outfit {
    torso: "bodice",
    arm: ["upper-puff", "lower"],
    skirt: GOWN,
    leg: (["thigh", "shin"], GarmentTint::Deep),
    hair: "bun",
    hat: "crown",
    ..WOMAN
};
const WIZARD: Outfit = Outfit {
    hair: "long",
    hair_tint: GREY,
    face: &["brows", "beard-long"],
    hat: "wizard",
    held: "staff",
    ..ROBE
};
const WITCH: Outfit = Outfit {
    build: BodyBuild::WOMAN,
    hair_tint: GarmentTint::Fixed(0x8a_4428),
    face: &["brows", "lashes", "lips"],
    hair: "long",
    hat: "witch",
    held: "broom",
    foot: ("boot", BLACK),
    ..ROBE
};
const KNIGHT: Outfit = Outfit {
    torso: "plate",
    arm: ["upper-plate", "lower-plate"],
    hand: ("hand", GarmentTint::Deep),
    leg: (["thigh", "shin-plate"], GarmentTint::Deep),
    foot: ("boot", GarmentTint::Main),
    skirt: TUNIC,
    hair: "",
    hat: "knight-helm",
    held: "sword",
    ..MAN
};
const PIRATE: Outfit = Outfit {
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
const BRIDE: Outfit = Outfit {
    torso: "bodice",
    arm: ["upper-short", "lower-bare"],
    skirt: skirt(0.98, 12.0),
    leg: (["thigh", "shin"], GarmentTint::Deep),
    foot: ("shoe", GarmentTint::Pale),
    hair: "bun",
    hat: "veil",
    held: "bouquet",
    ..WOMAN
};
const CLOWN: Outfit = Outfit {
    torso: "clown",
    arm: ["upper-puff", "lower-puff"],
    hand: ("hand", GarmentTint::Pale),
    leg: (["thigh-puff", "shin-puff"], GarmentTint::Main),
    foot: ("clog", GarmentTint::Fixed(0xd8_3a3a)),
    hair: "",
    hat: "clown-hair",
    face: &["clown-face"],
    ..MAN
};
const MERMAID: Outfit = Outfit {
    torso: "bare",
    arm: ["upper-bare", "lower-bare"],
    hair_tint: GarmentTint::Fixed(0xc8_5030),
    ..WOMAN
};
const MONK: Outfit = Outfit {
    torso: "monk",
    arm: ["upper-wide", "lower-bare"],
    skirt: skirt(0.9, 3.0),
    leg: (["thigh-bare", "shin-bare"], GarmentTint::Skin),
    foot: ("sandal", LEATHER),
    hair: "shaved",
    held: "walking-staff",
    ..MAN
};
