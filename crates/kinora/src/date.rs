//! Times for people: dates, and times of day, in UTC.

use kinora_contract::{iso_date, parse_iso_day};

/// `2026-11-22 03:45`, in UTC.
pub(crate) fn date(time_ms: u64) -> String {
    let iso = iso_date(time_ms);
    let to_the_minute = iso.rsplit_once(':').map_or(&*iso, |(minutes, _)| minutes);
    to_the_minute.replace('T', " ")
}

/// Parses a day such as `2026-11-22` into days since 1970.
///
/// # Errors
/// The expected form.
pub(crate) fn parse_day(text: &str) -> Result<u64, String> {
    parse_iso_day(text).ok_or_else(|| {
        format!(
            "'{}' is not a day; write it like 2026-11-22",
            text.escape_debug()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_shown_to_the_minute() {
        assert_eq!(date(1_795_319_141_000), "2026-11-22 03:45");
    }

    #[test]
    fn what_is_no_day_is_refused_with_an_example() {
        let refused = parse_day("tomorrow").unwrap_err();
        assert!(refused.contains("2026-11-22"), "{refused}");
    }
}
