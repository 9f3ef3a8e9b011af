//! Model cards: each model is one declarative record. Validation, `GET /v1/models`, the OpenAPI
//! document and the table in the docs derive from it; no other code depends on a particular model.
//! [`crate::record`] defines the file format of a card.

use serde::Serialize;

use crate::size::{AspectRatio, Resolution, Size};

/// A served model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCard {
    /// The identifier that tasks carry.
    pub id: String,
    /// Other names for the model in requests.
    pub aliases: Vec<String>,
    /// The engine that serves the model, by its configured name.
    pub engine: String,
    /// The model's capabilities.
    pub capabilities: Capabilities,
}

/// The capabilities of a model; also sent as `capabilities` by `GET /v1/models`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Capabilities {
    /// Allowed values of `size`.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub sizes: Vec<Size>,
    /// Shortest video in seconds.
    pub seconds_min: u32,
    /// Longest video in seconds.
    pub seconds_max: u32,
    /// Default length in seconds.
    pub seconds_default: u32,
    /// Allowed lengths in seconds, ascending, unless every whole second from the shortest to the
    /// longest is allowed. The OpenAPI document includes it only if a model has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub seconds: Option<Vec<u32>>,
    /// Features, which the engine may restrict.
    #[serde(flatten)]
    pub features: Features,
}

/// Features of a model or an engine beyond text. A card is restricted to its engine's features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Features {
    /// Works from text alone; otherwise an image is required.
    pub text_to_video: bool,
    /// Takes `first_frame` (and `input_reference`).
    pub first_frame: bool,
    /// Takes `last_frame` in addition to the first.
    pub last_frame: bool,
    /// Maximum number of `reference_images`.
    pub reference_images_max: u32,
    /// Maximum number of `reference_audios`.
    pub reference_audios_max: u32,
    /// Makes a sound track (`generate_audio`).
    pub audio_output: bool,
    /// Takes `seconds: "auto"`.
    pub auto_duration: bool,
    /// Takes `negative_prompt`.
    pub negative_prompt: bool,
    /// Takes `draft` and `draft_task_id`.
    pub draft: bool,
    /// Takes `edit_task_id` and `edit_strength`.
    pub edit: bool,
}

/// Returns the amount of a feature.
type Amount = fn(&Features) -> u32;

/// Every feature, by name.
const AMOUNTS: [(&str, Amount); 10] = [
    ("text_to_video", |can| can.text_to_video.into()),
    ("first_frame", |can| can.first_frame.into()),
    ("last_frame", |can| can.last_frame.into()),
    ("reference_images_max", |can| can.reference_images_max),
    ("reference_audios_max", |can| can.reference_audios_max),
    ("audio_output", |can| can.audio_output.into()),
    ("auto_duration", |can| can.auto_duration.into()),
    ("negative_prompt", |can| can.negative_prompt.into()),
    ("draft", |can| can.draft.into()),
    ("edit", |can| can.edit.into()),
];

impl Features {
    /// Every feature, without bounds.
    pub const ALL: Self = Self {
        text_to_video: true,
        first_frame: true,
        last_frame: true,
        reference_images_max: u32::MAX,
        reference_audios_max: u32::MAX,
        audio_output: true,
        auto_duration: true,
        negative_prompt: true,
        draft: true,
        edit: true,
    };

    /// The names of the features of which `other` has less.
    #[must_use]
    pub fn beyond(&self, other: Self) -> Vec<&'static str> {
        let more = AMOUNTS
            .iter()
            .filter(|(_, amount)| amount(self) > amount(&other));
        more.map(|(name, _)| *name).collect()
    }

    /// The features that both have.
    #[must_use]
    pub fn restricted_to(self, other: Self) -> Self {
        Self {
            text_to_video: self.text_to_video && other.text_to_video,
            first_frame: self.first_frame && other.first_frame,
            last_frame: self.last_frame && other.last_frame,
            reference_images_max: self.reference_images_max.min(other.reference_images_max),
            reference_audios_max: self.reference_audios_max.min(other.reference_audios_max),
            audio_output: self.audio_output && other.audio_output,
            auto_duration: self.auto_duration && other.auto_duration,
            negative_prompt: self.negative_prompt && other.negative_prompt,
            draft: self.draft && other.draft,
            edit: self.edit && other.edit,
        }
    }

    /// Whether the model takes any image, so that the shape can follow it.
    pub const fn takes_images(self) -> bool {
        self.first_frame || self.reference_images_max > 0
    }
}

impl Capabilities {
    /// Whether a video may have this length, in seconds.
    pub fn makes(&self, seconds: u32) -> bool {
        match &self.seconds {
            Some(lengths) => lengths.contains(&seconds),
            None => (self.seconds_min..=self.seconds_max).contains(&seconds),
        }
    }

    /// The longest allowed length of at most `seconds`, or else the shortest.
    pub(crate) fn longest_up_to(&self, seconds: u32) -> u32 {
        let mut lengths = (self.seconds_min..=self.seconds_max.min(seconds)).rev();
        lengths
            .find(|length| self.makes(*length))
            .unwrap_or(self.seconds_min)
    }

    /// Whether any size of this resolution is allowed.
    pub fn offers(&self, resolution: Resolution) -> bool {
        AspectRatio::ALL
            .iter()
            .any(|ratio| self.has(resolution, *ratio))
    }

    /// Whether every shape of this resolution is allowed, so that a shape can follow an image.
    pub fn adapts(&self, resolution: Resolution) -> bool {
        AspectRatio::ALL
            .iter()
            .all(|ratio| self.has(resolution, *ratio))
    }

    /// Whether the listed size of this resolution and shape is allowed.
    pub fn has(&self, resolution: Resolution, ratio: AspectRatio) -> bool {
        self.sizes.contains(&resolution.size(ratio))
    }

    /// The default resolution: 720p, or else the smallest one that `fits`.
    pub(crate) fn resolution_default(&self, fits: impl Fn(Resolution) -> bool) -> Resolution {
        let mut wished = [Resolution::P720, Resolution::P480, Resolution::P1080].into_iter();
        wished.find(|one| fits(*one)).unwrap_or(Resolution::P720)
    }

    /// The default shape: 16:9, or else the first one that the resolution has.
    pub(crate) fn ratio_default(&self, resolution: Resolution) -> AspectRatio {
        let mut ratios = AspectRatio::ALL.into_iter();
        ratios
            .find(|ratio| self.has(resolution, *ratio))
            .unwrap_or(AspectRatio::R16x9)
    }

    /// The default size: that of a listed resolution, or else the first size.
    pub(crate) fn size_default(&self) -> Size {
        let resolution = self.resolution_default(|one| self.offers(one));
        let listed = resolution.size(self.ratio_default(resolution));
        match self.sizes.first() {
            Some(first) if !self.sizes.contains(&listed) => *first,
            _ => listed,
        }
    }
}

impl ModelCard {
    /// Whether `name` is this model's identifier or an alias.
    pub fn is_called(&self, name: &str) -> bool {
        self.id == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// The models of one deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalog {
    cards: Vec<ModelCard>,
}

/// Why cards do not form a catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// Two models share this name.
    #[error("the model name {0:?} is used twice")]
    NameTwice(String),
    /// There is no card.
    #[error("no model is configured")]
    Empty,
}

impl Catalog {
    /// Creates a catalog of `cards`.
    ///
    /// # Errors
    /// [`CatalogError`] when a name is ambiguous or there is no card.
    pub fn new(cards: Vec<ModelCard>) -> Result<Self, CatalogError> {
        if cards.is_empty() {
            return Err(CatalogError::Empty);
        }
        let mut seen = std::collections::BTreeSet::new();
        for name in cards
            .iter()
            .flat_map(|card| std::iter::once(&card.id).chain(&card.aliases))
        {
            if !seen.insert(name) {
                return Err(CatalogError::NameTwice(name.clone()));
            }
        }
        Ok(Self { cards })
    }

    /// The model called `name`, by identifier or alias.
    pub fn find(&self, name: &str) -> Option<&ModelCard> {
        self.cards.iter().find(|card| card.is_called(name))
    }

    /// All models, in the configured order.
    pub fn cards(&self) -> &[ModelCard] {
        &self.cards
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::built_in_cards;

    #[test]
    fn a_name_means_one_model() {
        let mut cards = built_in_cards();
        cards[1].aliases.push("kinora-a1".to_owned());
        assert_eq!(
            Catalog::new(cards),
            Err(CatalogError::NameTwice("kinora-a1".to_owned()))
        );
        assert_eq!(Catalog::new(Vec::new()), Err(CatalogError::Empty));
    }

    #[test]
    fn a_card_is_never_widened_by_its_engine() {
        for card in built_in_cards() {
            let own = card.capabilities.features;
            assert_eq!(own.restricted_to(Features::ALL), own);
            assert_eq!(own.restricted_to(Features::default()), Features::default());
        }
    }
}
