//! `Range` requests for a single range of bytes (RFC 9110, section 14). A request for several
//! ranges gets the whole file, as the RFC allows.

use std::ops::Range;

/// The part of a file to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stretch {
    /// All of it, with 200.
    Whole,
    /// These bytes, with 206.
    Part(Range<u64>),
    /// Nothing: 416.
    Unsatisfiable,
}

/// Parses the header for a file of `length` bytes. Ranges it does not understand are ignored.
pub(crate) fn stretch(header: Option<&str>, length: u64) -> Stretch {
    let Some(spec) = header.and_then(|text| text.strip_prefix("bytes=")) else {
        return Stretch::Whole;
    };
    let Some((first, last)) = spec.trim().split_once('-') else {
        return Stretch::Whole;
    };
    match (position(first), position(last)) {
        (Position::At(first), Position::At(last)) if first > last => Stretch::Whole,
        (Position::At(first), Position::At(last)) => part(first..last.saturating_add(1), length),
        (Position::At(first), Position::Open) => part(first..u64::MAX, length),
        (Position::Open, Position::At(0)) => Stretch::Unsatisfiable,
        (Position::Open, Position::At(tail)) => part(length.saturating_sub(tail)..length, length),
        _ => Stretch::Whole,
    }
}

fn part(wanted: Range<u64>, length: u64) -> Stretch {
    if wanted.start >= length {
        return Stretch::Unsatisfiable;
    }
    Stretch::Part(wanted.start..wanted.end.min(length))
}

enum Position {
    At(u64),
    Open,
    Malformed,
}

fn position(text: &str) -> Position {
    if text.is_empty() {
        return Position::Open;
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Position::Malformed;
    }
    // A number too large for `u64` is past the end of any file.
    Position::At(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_forms_of_the_rfc_are_understood() {
        for (header, expected) in [
            (None, Stretch::Whole),
            (Some("bytes=0-499"), Stretch::Part(0..500)),
            (Some("bytes=500-999"), Stretch::Part(500..1000)),
            (Some("bytes=500-"), Stretch::Part(500..1000)),
            (Some("bytes=-1"), Stretch::Part(999..1000)),
            (Some("bytes=-5000"), Stretch::Part(0..1000)),
            (Some("bytes=999-5000"), Stretch::Part(999..1000)),
            (Some("bytes=1000-"), Stretch::Unsatisfiable),
            (
                Some("bytes=99999999999999999999999-"),
                Stretch::Unsatisfiable,
            ),
            (Some("bytes=-0"), Stretch::Unsatisfiable),
            (Some("bytes=9-1"), Stretch::Whole),
            (Some("bytes=0-1,5-6"), Stretch::Whole),
            (Some("bytes=-"), Stretch::Whole),
            (Some("bytes=a-b"), Stretch::Whole),
            (Some("bytes=+1-2"), Stretch::Whole),
            (Some("chapters=1-2"), Stretch::Whole),
        ] {
            assert_eq!(stretch(header, 1000), expected, "{header:?}");
        }
    }

    proptest! {
        #[test]
        fn a_part_lies_within_the_file(header: String, first: u64, last: u64, length in 0_u64..5000) {
            for text in [header, format!("bytes={first}-{last}"), format!("bytes=-{last}")] {
                if let Stretch::Part(part) = stretch(Some(&text), length) {
                    prop_assert!(part.start < part.end && part.end <= length);
                }
            }
        }
    }
}
