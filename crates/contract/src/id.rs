//! Identifiers of tasks (`video_` and 26 characters) and of uploaded files (`file_` and the same),
//! sortable by time. Parsing refuses everything else, so a store never receives a malformed id.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Crockford's base 32 in lower case, as the ULID specification uses it: digits sort like values.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const DIGITS: usize = 26;

const NO_DIGIT: u8 = u8::MAX;
/// The value of each byte as a digit; a table, because every poll parses an id.
const WORTH: [u8; 256] = {
    let mut worth = [NO_DIGIT; 256];
    let mut value = 0;
    while value < ALPHABET.len() {
        worth[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    worth
};

/// The identifier of a task: 48 bits of milliseconds since 1970 and 80 random bits,
/// laid out as a ULID (<https://github.com/ulid/spec>), so that ids sort by creation.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(u128);

impl TaskId {
    /// Makes an id from a creation time in milliseconds and ten random bytes.
    pub fn from_parts(created_at_ms: u64, random: [u8; 10]) -> Self {
        Self(number_from_parts(created_at_ms, random))
    }

    /// The id as a number.
    pub const fn number(self) -> u128 {
        self.0
    }

    /// The creation time in the id, in milliseconds since 1970.
    pub fn created_at_ms(self) -> u64 {
        time_of(self.0)
    }

    /// The last id of this millisecond.
    pub const fn last_of(created_at_ms: u64) -> Self {
        Self(((created_at_ms as u128 & 0xffff_ffff_ffff) << 80) | ((1 << 80) - 1))
    }

    /// The id under which a store accepts the task, so that ids sort in the order of acceptance:
    /// this one, unless `newest`, the last accepted id, has the same or a later millisecond. Then
    /// it is `newest` plus a random 32-bit number, so that it cannot be guessed.
    #[must_use]
    pub const fn following(self, newest: Self) -> Self {
        // Example: two processes with clocks 3 ms apart accept tasks of one project. The slower one
        // draws an id that sorts before the newest; it takes the newest plus a random number
        // instead, at most a few milliseconds ahead of its clock.
        let is_absurd = (newest.0 >> 80) > (self.0 >> 80) + ID_AHEAD_MS_MAX as u128;
        if self.0 > newest.0 || is_absurd {
            return self;
        }
        // Carries from the random bits into the milliseconds only after 2^48 such steps on average,
        // and then the id is one millisecond late.
        Self(newest.0.wrapping_add(1 + (self.0 & 0xffff_ffff)))
    }
}

/// An id further ahead of the clock than this comes from a wrong clock, and new ids do not continue
/// from it: otherwise lists would show a wrong year for ever.
pub const ID_AHEAD_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// The identifier of an uploaded file, laid out as a [`TaskId`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(u128);

impl FileId {
    /// Makes an id from a creation time in milliseconds and ten random bytes.
    pub fn from_parts(created_at_ms: u64, random: [u8; 10]) -> Self {
        Self(number_from_parts(created_at_ms, random))
    }

    /// The creation time in the id, in milliseconds since 1970.
    pub fn created_at_ms(self) -> u64 {
        time_of(self.0)
    }
}

fn time_of(number: u128) -> u64 {
    u64::try_from(number >> 80).unwrap_or(0)
}

fn number_from_parts(created_at_ms: u64, random: [u8; 10]) -> u128 {
    let mut low = [0_u8; 16];
    low[6..].copy_from_slice(&random);
    let time = u128::from(created_at_ms & 0xffff_ffff_ffff) << 80;
    time | u128::from_be_bytes(low)
}

/// The text is not an identifier of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an identifier of this kind")]
pub struct IdSyntax;

fn write_id(prefix: &str, number: u128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // On the stack: an id is written several times for each answer.
    let mut digits = [0_u8; DIGITS];
    let mut rest = number;
    for slot in digits.iter_mut().rev() {
        *slot = ALPHABET[(rest & 31) as usize];
        rest >>= 5;
    }
    f.write_str(prefix)?;
    f.write_str(str::from_utf8(&digits).unwrap_or_default())
}

/// The number in the text of an id; `None` if the text is none.
fn parse_id(prefix: &str, text: &str) -> Option<u128> {
    let digits = text.strip_prefix(prefix)?.as_bytes();
    // The first digit holds only the top three bits; a larger one would overflow.
    if digits.len() != DIGITS || digits[0] > b'7' {
        return None;
    }
    digits.iter().try_fold(0_u128, |value, digit| {
        let worth = WORTH[usize::from(*digit)];
        (worth != NO_DIGIT).then(|| (value << 5) | u128::from(worth))
    })
}

/// The text of an id, the same in JSON.
macro_rules! id_text {
    ($id:ident, $prefix:literal) => {
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_id($prefix, self.0, f)
            }
        }

        impl fmt::Debug for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $id {
            type Err = IdSyntax;

            fn from_str(text: &str) -> Result<Self, IdSyntax> {
                parse_id($prefix, text).map(Self).ok_or(IdSyntax)
            }
        }

        impl Serialize for $id {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $id {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?
                    .parse()
                    .map_err(serde::de::Error::custom)
            }
        }
    };
}

id_text!(TaskId, "video_");
id_text!(FileId, "file_");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_760_000_000_000;

    #[test]
    fn ids_of_one_millisecond_sort_as_they_were_accepted() {
        let mut newest = TaskId::from_parts(NOW, [9; 10]);
        for random in [[200; 10], [0; 10], [9; 10], [255; 10], [1; 10]] {
            let next = TaskId::from_parts(NOW, random).following(newest);
            assert!(next > newest, "{random:?}");
            newest = next;
        }
        let next = TaskId::from_parts(NOW, [0; 10]).following(TaskId::last_of(NOW));
        assert_eq!(next.created_at_ms(), NOW + 1);
    }

    #[test]
    fn ids_sort_as_they_were_accepted_after_a_step_back_of_the_clock() {
        let mut newest = TaskId::from_parts(NOW, [3; 10]);
        for back_ms in [1, 7_200_000, ID_AHEAD_MS_MAX] {
            let next = TaskId::from_parts(NOW - back_ms, [1; 10]).following(newest);
            assert!(next > newest, "{back_ms}");
            newest = next;
        }
        // Following a clock that was years ahead would give that time for years.
        let fresh = TaskId::from_parts(NOW - ID_AHEAD_MS_MAX - 1, [0; 10]);
        assert_eq!(fresh.following(newest), fresh);
    }

    proptest! {
        #[test]
        fn an_id_survives_its_text(time in 0_u64..1 << 48, random: [u8; 10]) {
            let id = TaskId::from_parts(time, random);
            prop_assert_eq!(id.to_string().parse::<TaskId>(), Ok(id));
            prop_assert_eq!(id.created_at_ms(), time);
        }

        #[test]
        fn text_order_is_time_order(a in 0_u64..1 << 48, b in 0_u64..1 << 48, random: [u8; 10]) {
            let (x, y) = (TaskId::from_parts(a, random), TaskId::from_parts(b, random));
            prop_assert_eq!(x.to_string().cmp(&y.to_string()), a.cmp(&b));
        }

        #[test]
        fn any_text_parses_to_an_id_that_prints_it_back_or_to_nothing(text: String) {
            if let Ok(id) = text.parse::<TaskId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }

    #[test]
    fn near_misses_are_refused() {
        let good = TaskId::from_parts(1_760_000_000_000, [7; 10]).to_string();
        assert!(good.parse::<TaskId>().is_ok());
        assert!(good.replace("video_", "file_").parse::<FileId>().is_ok());
        for wrong in [
            good.to_uppercase(),
            good.replace("video_", "file_"),
            good.replace("video_", "task_"),
            format!("{good}0"),
            good[..good.len() - 1].to_owned(),
            good.replace("video_0", "video_8"),
            format!("video_{}", "u".repeat(DIGITS)),
        ] {
            assert!(wrong.parse::<TaskId>().is_err(), "{wrong}");
        }
    }
}
