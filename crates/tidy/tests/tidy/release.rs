//! The day of the last release, by which a wrong clock is recognised, is that of the changelog.

use std::fs;

use kinora_contract::RELEASED_MS;

use crate::files::root;

/// 2026-01-01: what the constant is until a release has a date.
const FIRST_MS: u64 = 1_767_225_600_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

#[test]
fn a_clock_is_wrong_before_the_last_release_of_the_changelog() {
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let last = changelog.lines().filter_map(released_ms).max();
    assert_eq!(RELEASED_MS, last.unwrap_or(FIRST_MS));
}

/// The date of a heading like `## [1.2.3] - 2026-12-01`.
fn released_ms(line: &str) -> Option<u64> {
    let (_, date) = line.strip_prefix("## [")?.split_once("] - ")?;
    let mut parts = date.split('-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    Some(days(year, month, day) * DAY_MS)
}

/// Days since 1970 (Fliegel and van Flandern, 1968).
const fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469
}

#[test]
fn a_date_of_a_release_is_read() {
    for (line, ms) in [
        ("## [1.0.0] - 1970-01-01", Some(0)),
        ("## [1.0.0] - 2000-02-29", Some(951_782_400_000)),
        ("## [1.0.0] - 2026-01-01", Some(FIRST_MS)),
        ("## [Unreleased]", None),
        ("- a line", None),
    ] {
        assert_eq!(released_ms(line), ms, "{line}");
    }
}
