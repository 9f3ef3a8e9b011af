//! Model cards: each model is one declarative record. Validation, `GET /v1/models`, the OpenAPI
//! document and the table in the docs derive from it; no other code depends on a particular model.
//!
//! Cards are TOML records ([`CardRecord`]). The built-in ones (`crates/contract/cards`) and those of an
//! operator's configuration (`[[models]]`) have the same format and pass the same checks.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::limits::{
    MODEL_CHARS_MAX, PIXELS_MAX, REFERENCES_MAX, SECONDS_DEFAULT, SECONDS_MAX, SECONDS_MIN,
    SIDE_MAX, SIDE_MIN,
};
use crate::money::Currency;
use crate::prices::{PriceRecord, Prices, TaskCost};
use crate::size::{AspectRatio, Resolution, Size, listed_sizes};
use crate::spec::VideoSpec;

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
    /// Its prices, if it has any.
    pub prices: Option<Prices>,
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
type FeatureAmount = fn(&Features) -> u32;

/// Every feature, by name.
const AMOUNTS: [(&str, FeatureAmount); 10] = [
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
    pub fn exceeding(&self, other: Self) -> Vec<&'static str> {
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
        // 720p is the documented default. A model without it gets the cheaper neighbour, not the
        // larger one.
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
            // A card with sizes of its own, such as the native sizes of a model: none of them is
            // listed.
            Some(first) if !self.sizes.contains(&listed) => *first,
            _ => listed,
        }
    }
}

impl ModelCard {
    /// The expected cost of this spec's video, at its longest; `None` for a model without prices.
    #[must_use]
    pub fn estimate(&self, spec: &VideoSpec, currency: Currency) -> Option<TaskCost> {
        let prices = self.prices.as_ref()?;
        Some(prices.estimate(spec, self.capabilities.seconds_max, currency))
    }

    /// Whether `name` is this model's identifier or an alias.
    pub fn is_called(&self, name: &str) -> bool {
        self.id == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// The models of one deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCatalog {
    cards: Vec<ModelCard>,
    currency: Currency,
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

impl ModelCatalog {
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
            // An alias may not be another model's identifier either: a request would mean two
            // models.
            if !seen.insert(name) {
                return Err(CatalogError::NameTwice(name.clone()));
            }
        }
        Ok(Self {
            cards,
            currency: Currency::default(),
        })
    }

    /// The model called `name`, by identifier or alias.
    pub fn find(&self, name: &str) -> Option<&ModelCard> {
        self.cards.iter().find(|card| card.is_called(name))
    }

    /// The same models, with prices in this currency.
    #[must_use]
    pub const fn with_currency(mut self, currency: Currency) -> Self {
        self.currency = currency;
        self
    }

    /// The currency of all prices.
    pub const fn currency(&self) -> Currency {
        self.currency
    }

    /// All models, in the configured order.
    pub fn cards(&self) -> &[ModelCard] {
        &self.cards
    }
}

/// The built-in cards, one line for each.
const BUILT_IN: &[&str] = &[
    include_str!("../cards/kinora-a1.toml"),
    include_str!("../cards/kinora-b1.toml"),
];

/// The settings of a model, which its engine gets with each job. Operators write them, and clients never see them.
pub type ModelPreset = Map<String, Value>;

/// A card in its file format.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardRecord {
    /// The identifier that tasks carry.
    pub id: String,
    /// Other names under which the model is accepted.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The engine that serves the model, by its configured name.
    pub engine: String,
    /// The built-in card that supplies the omitted fields. Without it, the defaults are every
    /// listed size, every allowed length, and the engine's features.
    pub card: Option<String>,
    /// Allowed sizes; excludes `resolutions` and `aspect_ratios`.
    pub sizes: Option<Vec<Size>>,
    /// Only the listed sizes of these resolutions. Empty: all resolutions.
    #[serde(default)]
    pub resolutions: Vec<Resolution>,
    /// Only the listed sizes of these shapes. Empty: all shapes.
    #[serde(default)]
    pub aspect_ratios: Vec<AspectRatio>,
    /// Allowed lengths in seconds; excludes `seconds_min` and `seconds_max`.
    pub seconds: Option<Vec<u32>>,
    /// Shortest video in seconds.
    pub seconds_min: Option<u32>,
    /// Longest video in seconds.
    pub seconds_max: Option<u32>,
    /// Default length in seconds.
    pub seconds_default: Option<u32>,
    /// Features beyond text. Features omitted from the table are off.
    pub features: Option<Features>,
    /// Prices. Without them, tasks of the model have no cost.
    pub prices: Option<PriceRecord>,
    /// What the engine gets with each job of the model. Empty: nothing.
    #[serde(default)]
    settings: ModelPreset,
}

/// The file format of [`Features`]; their public form always has every field.
#[derive(Deserialize)]
#[serde(
    remote = "Features",
    default = "Features::default",
    deny_unknown_fields
)]
struct FeaturesRecord {
    text_to_video: bool,
    first_frame: bool,
    last_frame: bool,
    reference_images_max: u32,
    reference_audios_max: u32,
    audio_output: bool,
    auto_duration: bool,
    negative_prompt: bool,
    draft: bool,
    edit: bool,
}

/// Omitted fields are off, and unknown ones are an error.
impl<'de> Deserialize<'de> for Features {
    fn deserialize<D: Deserializer<'de>>(table: D) -> Result<Self, D::Error> {
        FeaturesRecord::deserialize(table)
    }
}

/// Why a record is not a valid card: a sentence without the model's name and without a full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// Clients could not send this name, or people could not read it.
    #[error(
        "{0:?} is no name for a model: 1 to {MODEL_CHARS_MAX} characters, no control characters, \
         and no spaces around them"
    )]
    Name(String),
    /// There is no such built-in card.
    #[error("there is no card '{0}'; there are: {1}")]
    UnknownCard(String, String),
    /// The two settings contradict each other.
    #[error("{0} and {1} exclude each other")]
    Excluded(&'static str, &'static str),
    /// The list must not be empty.
    #[error("{0} is empty")]
    Empty(&'static str),
    /// The list contains an entry twice.
    #[error("{0} names {1} twice")]
    Twice(&'static str, String),
    /// The size is not supported.
    #[error(
        "the size {0} cannot be served: sides are even and from {SIDE_MIN} to {SIDE_MAX} pixels, and a \
         frame has at most {PIXELS_MAX}"
    )]
    Size(Size),
    /// The length is out of range or out of order.
    #[error("{0} must be from {1} to {2}")]
    Length(&'static str, u32, u32),
    /// The default is not among the model's lengths.
    #[error("seconds_default must be one of the lengths that the model makes, and is {0}")]
    Default(u32),
    /// The first feature requires the second.
    #[error("{0} needs {1}")]
    Needs(&'static str, &'static str),
    /// More references than a request may carry.
    #[error("{0} must be at most {REFERENCES_MAX}")]
    References(&'static str),
    /// The model could serve no request.
    #[error("one of text_to_video, first_frame, reference_images_max and edit must be there")]
    Useless,
    /// `"auto"` could produce a length that the card does not allow.
    #[error("auto_duration needs every length from {SECONDS_MIN} to {SECONDS_MAX} s")]
    Auto,
    /// A price is missing, unknown or too large.
    #[error("{0}")]
    Price(String),
    /// The record promises a feature that the engine lacks.
    #[error("its engine '{0}' cannot do what the features say: {1}")]
    Engine(String, String),
}

/// The built-in models, before an operator or an engine restricts them. Parsed once.
pub fn built_in_cards() -> Vec<ModelCard> {
    // A test parses every text, so none is skipped here.
    static CARDS: LazyLock<Vec<ModelCard>> = LazyLock::new(|| {
        let records = BUILT_IN.iter().filter_map(|text| toml::from_str(text).ok());
        let cards = records.filter_map(|record: CardRecord| record.card(Features::ALL).ok());
        cards.collect()
    });
    CARDS.clone()
}

impl CardRecord {
    /// The model's settings, if it has any.
    pub fn preset(&self) -> Option<&ModelPreset> {
        (!self.settings.is_empty()).then_some(&self.settings)
    }

    /// The card that this record describes, for an engine with the features `engine`.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn card(&self, engine: Features) -> Result<ModelCard, CardError> {
        for name in std::iter::once(&self.id).chain(&self.aliases) {
            check_name(name)?;
        }
        let mut can = self.base(engine)?;
        can.sizes = self.sizes(can.sizes)?;
        self.set_lengths(&mut can)?;
        can.features = self.features(&can, engine)?;
        let prices = self.prices.as_ref().map(|prices| {
            let prices = prices.prices(&can.sizes, can.features.draft);
            prices.map_err(CardError::Price)
        });
        Ok(ModelCard {
            id: self.id.clone(),
            aliases: self.aliases.clone(),
            engine: self.engine.clone(),
            capabilities: can,
            prices: prices.transpose()?,
        })
    }

    /// The defaults for omitted fields.
    fn base(&self, engine: Features) -> Result<Capabilities, CardError> {
        let Some(name) = &self.card else {
            return Ok(Capabilities {
                sizes: listed_sizes(),
                seconds_min: SECONDS_MIN,
                seconds_max: SECONDS_MAX,
                seconds_default: SECONDS_DEFAULT,
                seconds: None,
                features: engine,
            });
        };
        let cards = built_in_cards();
        let found = cards.iter().find(|card| card.id == *name);
        found.map(|card| card.capabilities.clone()).ok_or_else(|| {
            let names: Vec<&str> = cards.iter().map(|card| &*card.id).collect();
            CardError::UnknownCard(name.clone(), names.join(", "))
        })
    }

    /// The sizes; all sizes of the base unless some are named.
    fn sizes(&self, mut base: Vec<Size>) -> Result<Vec<Size>, CardError> {
        let Some(sizes) = &self.sizes else {
            base.retain(|size| {
                size.named().is_some_and(|(resolution, ratio)| {
                    has(&self.resolutions, resolution) && has(&self.aspect_ratios, ratio)
                })
            });
            return Ok(base);
        };
        if !self.resolutions.is_empty() {
            return Err(CardError::Excluded("sizes", "resolutions"));
        }
        if !self.aspect_ratios.is_empty() {
            return Err(CardError::Excluded("sizes", "aspect_ratios"));
        }
        check_list("sizes", sizes)?;
        match sizes.iter().find(|size| !is_servable(**size)) {
            Some(size) => Err(CardError::Size(*size)),
            None => Ok(sizes.clone()),
        }
    }

    /// Replaces the base's lengths.
    fn set_lengths(&self, can: &mut Capabilities) -> Result<(), CardError> {
        if let Some(lengths) = &self.seconds {
            if self.seconds_min.is_some() || self.seconds_max.is_some() {
                return Err(CardError::Excluded(
                    "seconds",
                    "seconds_min and seconds_max",
                ));
            }
            check_list("seconds", lengths)?;
            let lengths: BTreeSet<u32> = lengths.iter().copied().collect();
            can.seconds_min = lengths.first().copied().unwrap_or(can.seconds_min);
            can.seconds_max = lengths.last().copied().unwrap_or(can.seconds_max);
            // The list is sorted, so its ends are in range exactly if all of it is.
            within("seconds", can.seconds_min, SECONDS_MIN)?;
            within("seconds", can.seconds_max, SECONDS_MIN)?;
            can.seconds = Some(lengths.into_iter().collect());
        } else {
            can.seconds_min = self.seconds_min.unwrap_or(can.seconds_min);
            can.seconds_max = self.seconds_max.unwrap_or(can.seconds_max);
            within("seconds_min", can.seconds_min, SECONDS_MIN)?;
            within("seconds_max", can.seconds_max, can.seconds_min)?;
        }
        can.seconds_default = match self.seconds_default {
            Some(wanted) if can.makes(wanted) => wanted,
            Some(wanted) => return Err(CardError::Default(wanted)),
            None => can.longest_up_to(can.seconds_default),
        };
        Ok(())
    }

    fn features(&self, base: &Capabilities, engine: Features) -> Result<Features, CardError> {
        // With `"auto"` the engine chooses the length, and no code checks its choice against the
        // card. So the card must allow every length that any engine may choose.
        let any_length = (SECONDS_MIN..=SECONDS_MAX).all(|length| base.makes(length));
        // Without a table the card silently follows its engine. With one, each named feature is a
        // promise to clients: an engine that lacks it is a mistake in the configuration.
        let Some(wanted) = self.features else {
            let mut can = base.features.restricted_to(engine);
            can.auto_duration &= any_length;
            return Ok(can);
        };
        check_features(wanted)?;
        if wanted.auto_duration && !any_length {
            return Err(CardError::Auto);
        }
        let lacking = wanted.exceeding(engine);
        if lacking.is_empty() {
            return Ok(wanted);
        }
        Err(CardError::Engine(self.engine.clone(), lacking.join(", ")))
    }
}

/// Checks that a length is at least `min` and at most the maximum of any video.
fn within(name: &'static str, seconds: u32, min: u32) -> Result<(), CardError> {
    let is_within = (min..=SECONDS_MAX).contains(&seconds);
    let error = CardError::Length(name, min, SECONDS_MAX);
    is_within.then_some(()).ok_or(error)
}

/// Whether `list` contains `item`; an empty list contains everything.
fn has<T: PartialEq>(list: &[T], item: T) -> bool {
    list.is_empty() || list.contains(&item)
}

fn check_name(name: &str) -> Result<(), CardError> {
    let is_good = !name.is_empty()
        && name.chars().count() <= MODEL_CHARS_MAX
        && name.trim() == name
        && !name.contains(char::is_control);
    is_good
        .then_some(())
        .ok_or_else(|| CardError::Name(name.to_owned()))
}

fn check_list<T: Ord + ToString>(name: &'static str, list: &[T]) -> Result<(), CardError> {
    if list.is_empty() {
        return Err(CardError::Empty(name));
    }
    let mut seen = BTreeSet::new();
    match list.iter().find(|item| !seen.insert(*item)) {
        Some(item) => Err(CardError::Twice(name, item.to_string())),
        None => Ok(()),
    }
}

/// Whether frames of this size can be encoded; only such sizes were tested.
fn is_servable(size: Size) -> bool {
    let has_good_sides = [size.width, size.height]
        .iter()
        .all(|side| side.is_multiple_of(2) && (SIDE_MIN..=SIDE_MAX).contains(side));
    has_good_sides && size.pixels() <= PIXELS_MAX
}

fn check_features(can: Features) -> Result<(), CardError> {
    let most = REFERENCES_MAX as u32;
    if can.last_frame && !can.first_frame {
        return Err(CardError::Needs("last_frame", "first_frame"));
    }
    // Sound accompanies reference images in a request; a model that takes sound alone could never
    // get any.
    if can.reference_audios_max > 0 && can.reference_images_max == 0 {
        let (audios, images) = ("reference_audios_max", "reference_images_max");
        return Err(CardError::Needs(audios, images));
    }
    if can.reference_images_max > most {
        return Err(CardError::References("reference_images_max"));
    }
    if can.reference_audios_max > most {
        return Err(CardError::References("reference_audios_max"));
    }
    if can.text_to_video || can.takes_images() || can.edit {
        return Ok(());
    }
    Err(CardError::Useless)
}

#[cfg(test)]
#[path = "card_tests.rs"]
mod tests;
