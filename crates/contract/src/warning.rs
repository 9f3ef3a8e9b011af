//! Parts of a request that an engine did not or could not satisfy although the task continues. The
//! task reports them by a stable code. If the task cannot continue, it gets a [`crate::Failure`]
//! instead.

use serde::{Deserialize, Serialize};

/// Why a result differs from the request. Stable: clients branch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarningCode {
    /// The engine ignores the seed.
    SeedIgnored,
    /// Some words of the prompt were not drawn.
    NotDrawn,
    /// Some words of the prompt were drawn as something near.
    Approximated,
    /// Some styles, qualities or relations of the prompt were not drawn.
    StyleNotDrawn,
    /// Captions omit characters that no font has.
    CharactersNotSet,
    /// The colour profile of a picture was not applied.
    ColourProfileIgnored,
}

impl WarningCode {
    /// Every code.
    pub const ALL: &'static [Self] = &[
        Self::SeedIgnored,
        Self::NotDrawn,
        Self::Approximated,
        Self::StyleNotDrawn,
        Self::CharactersNotSet,
        Self::ColourProfileIgnored,
    ];

    /// The code as sent.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SeedIgnored => "seed_ignored",
            Self::NotDrawn => "not_drawn",
            Self::Approximated => "approximated",
            Self::StyleNotDrawn => "style_not_drawn",
            Self::CharactersNotSet => "characters_not_set",
            Self::ColourProfileIgnored => "colour_profile_ignored",
        }
    }

    /// The public sentence, unless a warning has its own.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::SeedIgnored => {
                "The engine takes no seed: the same request may give another video."
            }
            Self::NotDrawn => "The engine drew nothing for some words of the prompt.",
            Self::Approximated => "The engine drew something near for some words of the prompt.",
            Self::StyleNotDrawn => {
                "The engine does not draw some styles, qualities or relations of the prompt."
            }
            Self::CharactersNotSet => {
                "Captions leave out characters of the prompt that no font here has."
            }
            Self::ColourProfileIgnored => {
                "The colour profile of a picture cannot be converted: its colours may look different."
            }
        }
    }
}

/// A part of the request that the engine ignored, as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Warning {
    /// A stable code, such as `seed_ignored`.
    #[cfg_attr(feature = "openapi", schema(example = "seed_ignored"))]
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

impl Warning {
    /// A warning with a more specific sentence than its code's.
    pub fn new(code: WarningCode, message: impl Into<String>) -> Self {
        Self {
            code: code.as_str().to_owned(),
            message: message.into(),
        }
    }
}

impl From<WarningCode> for Warning {
    fn from(code: WarningCode) -> Self {
        Self::new(code, code.sentence())
    }
}
