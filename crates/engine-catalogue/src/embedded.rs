//! The texts of the catalogue and of the cards that it names. A test compares the lists with the folder and the entries.

/// Embeds `folder/NAME.toml` for each name.
macro_rules! texts {
    ($folder:literal, $($name:literal),+ $(,)?) => {
        &[$(include_str!(concat!($folder, $name, ".toml"))),+]
    };
}

/// The same, with the names.
macro_rules! named_texts {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../models/", $name, ".toml")))),+]
    };
}

/// One text for each model, sorted by name.
pub(crate) const ENTRIES: &[&str] = texts![
    "../catalogue/",
    "cogvideox-5b",
    "hunyuanvideo-1.5",
    "ltx-2",
    "ltx-2.3",
    "ltx-2.3-distilled",
    "minimax-h3",
    "wan2.1-flf2v-14b",
    "wan2.1-i2v-14b",
    "wan2.1-t2v-1.3b",
    "wan2.1-t2v-14b",
    "wan2.1-vace-1.3b",
    "wan2.1-vace-14b",
    "wan2.2-i2v-a14b",
    "wan2.2-i2v-a14b-lightning",
    "wan2.2-t2v-a14b",
    "wan2.2-t2v-a14b-lightning",
    "wan2.2-ti2v-5b",
];

/// Ready-made cards: `diffusers/NAME` is `models/diffusers/NAME.toml`.
pub(crate) const CARDS: &[(&str, &str)] = named_texts![
    "diffusers/cogvideox-5b",
    "diffusers/hunyuanvideo-1.5",
    "diffusers/ltx-2",
    "diffusers/ltx-2.3",
    "diffusers/ltx-2.3-distilled",
    "diffusers/minimax-h3",
    "diffusers/wan2.1-t2v-1.3b",
    "diffusers/wan2.1-t2v-14b",
    "diffusers/wan2.1-vace-1.3b",
    "diffusers/wan2.1-vace-14b",
    "diffusers/wan2.2-i2v-a14b",
    "diffusers/wan2.2-i2v-a14b-lightning",
    "diffusers/wan2.2-t2v-a14b",
    "diffusers/wan2.2-t2v-a14b-lightning",
    "diffusers/wan2.2-ti2v-5b",
    "wan2.1-flf2v-14b",
    "wan2.1-i2v-14b",
    "wan2.1-t2v-1.3b",
    "wan2.1-t2v-14b",
    "wan2.1-vace-1.3b",
    "wan2.1-vace-14b",
    "wan2.2-i2v-a14b",
    "wan2.2-t2v-a14b",
    "wan2.2-ti2v-5b",
];
