//! Prices of a model, from its card; what a task of it will cost by them, and what it has cost. The cost travels with
//! the task, with the prices of the day of its submit, so a changed price changes no task.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::money::{Amount, Currency, Money};
use crate::size::{Resolution, Size};
use crate::spec::{FrameSize, VideoInputs, VideoLength, VideoSpec};

/// The largest price, a bound on typing errors.
const PRICE_MAX: Amount = Amount::from_micros(10_000_000_000);
/// A provider's charge above this many times the estimate is taken for an error of its answer: one such number would
/// use up a budget for a month.
const CHARGE_TIMES_MAX: u64 = 100;

/// The prices of a model; also sent as `prices` by `GET /v1/models`. A clip costs the sum of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Prices {
    /// Price of a second of video, by resolution (`720p`); by size (`1152x640`) where a size has no resolution.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, f64>))]
    pub per_second: BTreeMap<String, Amount>,
    /// Price of a video, whatever its length.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub per_clip: Amount,
    /// Price of each picture of the request.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub per_input_image: Amount,
}

/// The name under which a size has a price.
fn price_name(size: Size) -> String {
    match size.named() {
        Some((resolution, _)) => resolution.name().to_owned(),
        None => size.to_string(),
    }
}

impl Prices {
    /// The price of a second of this spec's video. Total: an edit may have the size of another model's video, which
    /// costs what the dearest size does.
    fn second(&self, spec: &VideoSpec) -> Amount {
        let full = match spec.frame {
            FrameSize::Fixed(size) => price_name(size),
            FrameSize::Adaptive(resolution) => resolution.name().to_owned(),
        };
        let rendered = if spec.draft {
            Resolution::P480.name()
        } else {
            full.as_str()
        };
        let price = self.per_second.get(rendered);
        let price = price.or_else(|| self.per_second.get(&full));
        let dearest = || self.per_second.values().copied().max();
        price.copied().or_else(dearest).unwrap_or_default()
    }

    /// The expected cost of this spec's video; `seconds_max` is the model's longest.
    pub(crate) fn estimate(
        &self,
        spec: &VideoSpec,
        seconds_max: u32,
        currency: Currency,
    ) -> TaskCost {
        let seconds = match spec.seconds {
            VideoLength::Fixed(seconds) => seconds,
            VideoLength::Auto => seconds_max,
        };
        let images = match &spec.inputs {
            VideoInputs::Text => 0,
            VideoInputs::Frames { last, .. } => 1 + usize::from(last.is_some()),
            VideoInputs::References { images, .. } => images.len(),
        };
        let images = self.per_input_image.times(images as u64);
        let fixed = self.per_clip.plus(images);
        let per_second = self.second(spec);
        TaskCost {
            amount: fixed.plus(per_second.times(seconds.into())),
            currency,
            is_estimated: true,
            fixed,
            per_second,
            charged: None,
            charged_before: Amount::ZERO,
            reserved: None,
        }
    }
}

/// What a task costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskCost {
    /// The amount: the estimate until the end, then the cost.
    pub amount: Amount,
    /// The currency of the service at the submit.
    pub currency: Currency,
    /// Whether the task has not ended.
    pub is_estimated: bool,
    /// The part that does not depend on the length.
    pub fixed: Amount,
    /// The price of a second.
    pub per_second: Amount,
    /// What the provider said that it charges, in this currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charged: Option<Amount>,
    /// What providers charge for earlier jobs of the task, which failed.
    #[serde(default, skip_serializing_if = "Amount::is_zero")]
    pub charged_before: Amount,
    /// The budgets that the amount counts against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<CostReservation>,
}

/// Where the cost of a task counts: in the budgets of its project and of a key, in the periods of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostReservation {
    /// Id of the budget of the key that submitted the task: of the first of the keys that replaced each other.
    pub key: String,
    /// The day of the submit, in days since 1970 (UTC).
    pub day: u64,
}

impl TaskCost {
    /// Sets the final amount of a task that has ended, with a video of this length or without one: what the provider
    /// said, or else the price of the video that was made. Without a video, a task costs nothing.
    pub(crate) fn settle(&mut self, video_seconds: Option<f64>) {
        // The length that the task object shows, so that anybody can check the amount; at most the estimate, since a
        // server may make more than it was asked for.
        let price = |seconds: f64| {
            let of_length = self.per_second.times(seconds.round() as u64);
            self.fixed.plus(of_length).min(self.amount)
        };
        let price = video_seconds.map_or(Amount::ZERO, price);
        self.amount = self.charged_before.plus(self.charged.unwrap_or(price));
        self.is_estimated = false;
    }

    /// What an unfinished task costs if its client ends it now: what the provider said, or else the estimate if a job
    /// is at a server. Many providers cannot stop a job, and charge for it; if a cancel were free, submits and cancels
    /// by turns would cost any amount in spite of a budget.
    pub(crate) fn if_withdrawn(&self, is_at_server: bool) -> Amount {
        let estimate = if is_at_server {
            self.amount
        } else {
            Amount::ZERO
        };
        self.charged_before.plus(self.charged.unwrap_or(estimate))
    }

    /// Whether an unfinished task may cost what a provider says: an amount in the currency of the task, at most a
    /// hundred times the estimate, or if that is 0, the largest price.
    #[must_use]
    pub fn accepts(&self, charged: Money) -> bool {
        let bound = match self.amount {
            Amount::ZERO => PRICE_MAX,
            estimate => estimate.times(CHARGE_TIMES_MAX),
        };
        charged.currency == self.currency && charged.amount <= bound
    }

    /// Takes over what a provider said, if it is acceptable.
    pub(crate) fn record_charge(&mut self, charged: Money) {
        if self.accepts(charged) {
            self.charged = Some(charged.amount);
        }
    }

    /// The task goes on with another job, whose charge adds to those before.
    pub(crate) fn begin_next_job(&mut self) {
        let charged = self.charged.take().unwrap_or_default();
        self.charged_before = self.charged_before.plus(charged);
    }
}

/// The cost of a task as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Cost))]
pub struct CostObject {
    /// The amount, in units of the currency.
    #[cfg_attr(feature = "openapi", schema(value_type = f64, example = 0.525))]
    pub amount: Amount,
    /// The currency, by its code of ISO 4217.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "USD"))]
    pub currency: Currency,
    /// `true` until the task has ended: then the amount is final.
    pub estimated: bool,
}

impl From<&TaskCost> for CostObject {
    fn from(cost: &TaskCost) -> Self {
        Self {
            amount: cost.amount,
            currency: cost.currency,
            estimated: cost.is_estimated,
        }
    }
}

/// The prices of a card in its file format (`[models.prices]`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceRecord {
    /// Price of a second: one for all sizes, or one for each resolution.
    pub per_second: Option<SecondPrices>,
    /// Price of a video, whatever its length.
    #[serde(default)]
    pub per_clip: Amount,
    /// Price of each picture of a request.
    #[serde(default)]
    pub per_input_image: Amount,
}

/// Prices of a second of video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecondPrices {
    /// The same for all sizes.
    One(Amount),
    /// By resolution or size.
    BySize(BTreeMap<String, Amount>),
}

impl PriceRecord {
    /// The prices of a model that makes these sizes, and drafts if `draft`.
    ///
    /// # Errors
    /// A sentence about the first contradiction, without a full stop.
    pub(crate) fn prices(&self, sizes: &[Size], draft: bool) -> Result<Prices, String> {
        let names: Vec<String> = sizes.iter().copied().map(price_name).collect();
        let per_second: BTreeMap<String, Amount> = match &self.per_second {
            None => BTreeMap::new(),
            Some(SecondPrices::One(price)) => {
                names.iter().map(|name| (name.clone(), *price)).collect()
            }
            Some(SecondPrices::BySize(prices)) => {
                if let Some(name) = names.iter().find(|name| !prices.contains_key(*name)) {
                    return Err(format!("prices.per_second has no price for {name}"));
                }
                let is_known = |name: &String| {
                    names.contains(name) || draft && *name == Resolution::P480.name()
                };
                if let Some(name) = prices.keys().find(|name| !is_known(name)) {
                    return Err(format!(
                        "prices.per_second has a price for {name:?}, which the model does not make"
                    ));
                }
                prices.clone()
            }
        };
        let all = per_second.values();
        if all
            .chain([&self.per_clip, &self.per_input_image])
            .any(|one| *one > PRICE_MAX)
        {
            return Err(format!("a price must be at most {PRICE_MAX}"));
        }
        Ok(Prices {
            per_second,
            per_clip: self.per_clip,
            per_input_image: self.per_input_image,
        })
    }
}

impl<'de> Deserialize<'de> for SecondPrices {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecondPricesVisitor)
    }
}

/// Not derived as an untagged enum, whose errors would not say what is wrong.
struct SecondPricesVisitor;

impl<'de> Visitor<'de> for SecondPricesVisitor {
    type Value = SecondPrices;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a price, or a table of prices such as { \"480p\" = 0.05, \"720p\" = 0.1 }")
    }

    fn visit_f64<E: serde::de::Error>(self, units: f64) -> Result<SecondPrices, E> {
        let price = Amount::from_units(units);
        let price = price.ok_or_else(|| E::custom("a price must be a number of at least 0"))?;
        Ok(SecondPrices::One(price))
    }

    fn visit_i64<E: serde::de::Error>(self, units: i64) -> Result<SecondPrices, E> {
        self.visit_f64(units as f64)
    }

    fn visit_u64<E: serde::de::Error>(self, units: u64) -> Result<SecondPrices, E> {
        self.visit_f64(units as f64)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<SecondPrices, A::Error> {
        let mut prices = BTreeMap::new();
        while let Some((name, price)) = table.next_entry()? {
            prices.insert(name, price);
        }
        Ok(SecondPrices::BySize(prices))
    }
}

#[cfg(test)]
#[path = "prices_tests.rs"]
mod tests;
