//! Dates in UTC, for machines and people.

use crate::time::UnixMs;

/// Days from the start of the calendar below, March 1 of the year 0, to 1970.
const BEFORE_1970: u64 = 719_468;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A date of ISO 8601, to the second: `2026-11-22T03:45:00Z`.
pub fn iso_date(time_ms: UnixMs) -> String {
    let seconds = time_ms / 1000;
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let day = iso_day(time_ms / DAY_MS);
    format!("{day}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A day of ISO 8601, given in days since 1970: `2026-11-22`. The algorithm is
/// <https://howardhinnant.github.io/date_algorithms.html#civil_from_days>.
pub fn iso_day(days: u64) -> String {
    let days = days.saturating_add(BEFORE_1970);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months count from March, so that the leap day is the last day of the year.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = era * 400 + year_of_era + later;
    format!("{year:04}-{month:02}-{day:02}")
}

/// Parses the output of [`iso_day`] into days since 1970; `None` if `text` is not a day.
pub fn parse_iso_day(text: &str) -> Option<u64> {
    let mut parts = text.split('-').map(str::parse);
    let (Some(Ok(year)), Some(Ok(month)), Some(Ok(date)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    days(year, month, date).filter(|found| iso_day(*found) == text)
}

/// The algorithm is <https://howardhinnant.github.io/date_algorithms.html#days_from_civil>.
fn days(year: u64, month: u64, date: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&date) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + date - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(BEFORE_1970)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // By `date -u -d @SECONDS +%FT%TZ`.
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_795_319_101, "2026-11-22T03:45:01Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso_date(seconds * 1000), shown);
        }
    }

    #[test]
    fn a_day_is_read_as_it_is_written() {
        for day in (0..40_000).step_by(7).chain([19_782, 19_783]) {
            assert_eq!(parse_iso_day(&iso_day(day)), Some(day));
        }
        for wrong in [
            "",
            "2026",
            "2026-11",
            "2026-11-31",
            "2026-02-29",
            "2026-1-1",
            "1969-12-31",
            "2026-13-01",
            "2026-11-22-1",
            "22.11.2026",
            "+2026-11-22",
            "2026-00-10",
        ] {
            assert_eq!(parse_iso_day(wrong), None, "{wrong}");
        }
    }
}
