//! Model cards: each model is one declarative record. Validation, `GET /v1/models`, the OpenAPI
//! document and the table in the docs derive from it; nothing else asks which model it has.

use serde::Serialize;

use crate::limits::{SECONDS_DEFAULT, SECONDS_MAX, SECONDS_MIN};
use crate::size::{Resolution, Size, listed_sizes};

/// One model as served.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCard {
    /// The identifier that tasks carry.
    pub id: String,
    /// Other names under which it is accepted.
    pub aliases: Vec<String>,
    /// The engine that serves it, by its configured name.
    pub engine: String,
    /// A run whose engine reports nothing for so long is given up.
    pub progress_timeout_seconds: u32,
    /// What it can do.
    pub capabilities: Capabilities,
}

/// What a model can do; also sent as the `capabilities` of `GET /v1/models`.
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
    /// Length in seconds when none is asked for.
    pub seconds_default: u32,
    /// Whatever else depends on the engine as well.
    #[serde(flatten)]
    pub features: Features,
}

/// What a model or an engine can take beyond text. A card is restricted to its engine's features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Features {
    /// Works from text alone; else an image must be given.
    pub text_to_video: bool,
    /// Takes `first_frame` (and `input_reference`).
    pub first_frame: bool,
    /// Takes `last_frame` beside the first.
    pub last_frame: bool,
    /// Takes up to so many `reference_images`.
    pub reference_images_max: u32,
    /// Takes up to so many `reference_audios`.
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

impl Features {
    /// What both can do.
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

    /// Whether any image can be given, so that a shape can follow it.
    pub const fn takes_images(self) -> bool {
        self.first_frame || self.reference_images_max > 0
    }
}

impl Capabilities {
    /// Whether any size of this resolution is allowed.
    pub fn offers(&self, resolution: Resolution) -> bool {
        let is_of = |size: &Size| size.named().is_some_and(|(named, _)| named == resolution);
        self.sizes.iter().any(is_of)
    }

    /// The resolution when none is asked for: 720p, or else what is offered, the smaller first.
    pub fn resolution_default(&self) -> Resolution {
        let mut wished = [Resolution::P720, Resolution::P480, Resolution::P1080].into_iter();
        wished
            .find(|one| self.offers(*one))
            .unwrap_or(Resolution::P720)
    }

    fn of(features: Features) -> Self {
        Self {
            sizes: listed_sizes(),
            seconds_min: SECONDS_MIN,
            seconds_max: SECONDS_MAX,
            seconds_default: SECONDS_DEFAULT,
            features,
        }
    }
}

impl ModelCard {
    /// Whether `name` means this model.
    pub fn is_called(&self, name: &str) -> bool {
        self.id == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// The two models of the specification, as they are before an operator or an engine
/// restricts them.
pub fn built_in_cards() -> Vec<ModelCard> {
    let card = |id: &str, features| ModelCard {
        id: id.to_owned(),
        aliases: Vec::new(),
        engine: "storyboard".to_owned(),
        progress_timeout_seconds: 60,
        capabilities: Capabilities::of(features),
    };
    vec![
        card(
            "kinora-a1",
            Features {
                text_to_video: true,
                first_frame: true,
                last_frame: true,
                reference_images_max: 9,
                reference_audios_max: 3,
                audio_output: true,
                auto_duration: false,
                negative_prompt: true,
                draft: true,
                edit: false,
            },
        ),
        card(
            "kinora-b1",
            Features {
                text_to_video: true,
                first_frame: true,
                last_frame: true,
                reference_images_max: 4,
                reference_audios_max: 0,
                audio_output: false,
                auto_duration: true,
                negative_prompt: true,
                draft: false,
                edit: true,
            },
        ),
    ]
}

/// The models of one deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalog {
    cards: Vec<ModelCard>,
}

/// Two models share a name, or there is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// A name means two models.
    #[error("the model name {0:?} is used twice")]
    NameTwice(String),
    /// Nothing to serve.
    #[error("no model is configured")]
    Empty,
}

impl Catalog {
    /// A catalog of `cards`.
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
        let all = Features {
            text_to_video: true,
            first_frame: true,
            last_frame: true,
            reference_images_max: 99,
            reference_audios_max: 99,
            audio_output: true,
            auto_duration: true,
            negative_prompt: true,
            draft: true,
            edit: true,
        };
        for card in built_in_cards() {
            let own = card.capabilities.features;
            assert_eq!(own.restricted_to(all), own);
            assert_eq!(own.restricted_to(Features::default()), Features::default());
        }
    }
}
