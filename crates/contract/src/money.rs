//! Money: amounts, currencies and what a task costs. Amounts are whole millionths of a currency's unit, so sums are
//! exact; nothing here converts between currencies.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Millionths in one unit of a currency.
const MICROS: u64 = 1_000_000;

/// An amount of money, in millionths of a currency's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(u64);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The largest amount that anybody may state: a thousand million units. An `f64` shows every amount up to it
    /// exactly.
    pub const MAX: Self = Self(1_000_000_000 * MICROS);

    /// An amount in millionths, at most [`Amount::MAX`].
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        if micros < Self::MAX.0 {
            Self(micros)
        } else {
            Self::MAX
        }
    }

    /// The amount nearest to a number of units, such as `0.525`; `None` unless it is from 0 to [`Amount::MAX`].
    #[must_use]
    pub fn from_units(units: f64) -> Option<Self> {
        let micros = (units * MICROS as f64).round();
        // NaN is in no range.
        (0.0..=Self::MAX.0 as f64)
            .contains(&micros)
            .then_some(Self(micros as u64))
    }

    /// Whether it is nothing.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// The amount in millionths.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The amount in units, for JSON.
    #[must_use]
    pub const fn units(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }

    /// The sum, at most [`Amount::MAX`].
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self::from_micros(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This amount `count` times, at most [`Amount::MAX`].
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self::from_micros(self.0.saturating_mul(count))
    }
}

/// Plain decimal digits without trailing zeros, but at least two behind the point: `0.525`, `12.00`.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:06}", self.0 % MICROS);
        let kept = digits.trim_end_matches('0').len().max(2);
        write!(f, "{}.{}", self.0 / MICROS, &digits[..kept])
    }
}

/// As a number of units.
impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.units())
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let units = f64::deserialize(deserializer)?;
        Self::from_units(units).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "an amount of money is a number from 0 to {}",
                Self::MAX.0 / MICROS
            ))
        })
    }
}

/// The text is not three capital letters, or no amount of money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoneySyntax {
    /// No currency.
    #[error("a currency is the three capital letters of ISO 4217, for example USD")]
    Currency,
    /// No amount.
    #[error("an amount of money is a number such as 12.5, from 0 to 1000000000")]
    Amount,
}

impl FromStr for Amount {
    type Err = MoneySyntax;

    fn from_str(text: &str) -> Result<Self, MoneySyntax> {
        let units: f64 = text.parse().map_err(|_| MoneySyntax::Amount)?;
        Self::from_units(units).ok_or(MoneySyntax::Amount)
    }
}

/// A currency by its code of ISO 4217, such as `USD`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Currency([u8; 3]);

impl Currency {
    /// The default currency of a service.
    pub const USD: Self = Self(*b"USD");

    /// The code.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Always ASCII letters.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Default for Currency {
    fn default() -> Self {
        Self::USD
    }
}

impl FromStr for Currency {
    type Err = MoneySyntax;

    fn from_str(text: &str) -> Result<Self, MoneySyntax> {
        let code: [u8; 3] = text
            .as_bytes()
            .try_into()
            .map_err(|_| MoneySyntax::Currency)?;
        let is_code = code.iter().all(u8::is_ascii_uppercase);
        is_code.then_some(Self(code)).ok_or(MoneySyntax::Currency)
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// An amount in a currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money {
    /// How much.
    pub amount: Amount,
    /// Of what.
    pub currency: Currency,
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.amount, self.currency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_to_a_millionth_and_bounded() {
        for (units, text) in [
            (0.0, "0.00"),
            (0.525, "0.525"),
            (0.1 + 0.2, "0.30"),
            (12.0, "12.00"),
            (0.000_001, "0.000001"),
            (1e9, "1000000000.00"),
        ] {
            let amount = Amount::from_units(units).unwrap();
            assert_eq!(amount.to_string(), text);
            assert_eq!(text.parse(), Ok(amount));
            let json = serde_json::to_string(&amount).unwrap();
            assert_eq!(serde_json::from_str::<Amount>(&json).unwrap(), amount);
        }
        for wrong in [-0.01, f64::NAN, f64::INFINITY, -f64::INFINITY, 1e9 + 1.0] {
            assert_eq!(Amount::from_units(wrong), None, "{wrong}");
        }
        assert_eq!(Amount::from_micros(u64::MAX), Amount::MAX);
        assert_eq!(Amount::MAX.plus(Amount::MAX), Amount::MAX);
        assert_eq!(Amount::MAX.times(u64::MAX), Amount::MAX);
        assert_eq!(Amount::from_micros(1).minus(Amount::MAX), Amount::ZERO);
        for wrong in ["", "ten", "-1", "NaN", "inf", "1e10"] {
            assert_eq!(wrong.parse::<Amount>(), Err(MoneySyntax::Amount), "{wrong}");
        }
    }

    #[test]
    fn a_currency_is_three_capital_letters() {
        assert_eq!("EUR".parse::<Currency>().unwrap().as_str(), "EUR");
        for wrong in ["", "eur", "EURO", "E1R", "€", "US "] {
            assert_eq!(wrong.parse::<Currency>(), Err(MoneySyntax::Currency));
        }
        let money = Money {
            amount: Amount::from_micros(525_000),
            currency: Currency::default(),
        };
        assert_eq!(money.to_string(), "0.525 USD");
    }
}
