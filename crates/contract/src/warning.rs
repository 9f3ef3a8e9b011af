//! What an engine did not or could not do of a request, although the task goes on: told with the
//! task, by a stable code. What cannot be done at all is a [`crate::Failure`] instead.

use serde::{Deserialize, Serialize};

/// Why a result is not all that was asked for. Stable: clients branch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarningCode {
    /// The engine takes no seed.
    SeedIgnored,
    /// Nothing was drawn for words of the prompt.
    NotDrawn,
    /// Captions leave out characters that no font sets.
    CharactersNotSet,
}

impl WarningCode {
    /// Every code.
    pub const ALL: &'static [Self] = &[Self::SeedIgnored, Self::NotDrawn, Self::CharactersNotSet];

    /// The code as sent.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SeedIgnored => "seed_ignored",
            Self::NotDrawn => "not_drawn",
            Self::CharactersNotSet => "characters_not_set",
        }
    }

    /// The public sentence when nothing more particular is known.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::SeedIgnored => {
                "The engine takes no seed: the same request may give another video."
            }
            Self::NotDrawn => "The engine drew nothing for some words of the prompt.",
            Self::CharactersNotSet => {
                "Captions leave out characters of the prompt that no font here has."
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
    /// A warning that says more than the usual sentence of its code.
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
