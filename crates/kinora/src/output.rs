//! What commands write: results on standard output, messages on standard error; and how values look
//! to people there: aligned tables, dates, counts and sizes, without control sequences.

use std::io::Write;

use kinora_contract::{iso_date, parse_iso_day};

/// Prints a command's output. A reader that closes the pipe (`| head`) is not an error.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints a message for the person at the terminal.
pub(crate) fn print_message(text: &str) {
    // Nothing can report that standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "kinora: {text}");
}

/// Space between two columns of a table.
pub(crate) const GAP: &str = "  ";

/// One line per row, with every column as wide as its widest cell.
pub(crate) fn aligned<R: AsRef<[String]>>(rows: &[R]) -> String {
    let widths = widths(rows);
    rows.iter()
        .map(|row| {
            let cells = row.as_ref().iter().zip(&widths).map(|(cell, width)| {
                let space = width.saturating_sub(columns(cell));
                format!("{cell}{}", " ".repeat(space))
            });
            format!("{}\n", cells.collect::<Vec<_>>().join(GAP).trim_end())
        })
        .collect()
}

/// A table of these rows below their heads.
pub(crate) fn table<const N: usize>(
    heads: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut all = vec![heads.map(str::to_owned)];
    all.extend(rows);
    aligned(&all)
}

/// The width of each column: that of its widest cell.
pub(crate) fn widths<R: AsRef<[String]>>(rows: &[R]) -> Vec<usize> {
    let mut widths = Vec::new();
    for row in rows {
        let cells = row.as_ref();
        widths.resize(widths.len().max(cells.len()), 0);
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = columns(cell).max(*width);
        }
    }
    widths
}

/// The columns of a terminal that `text` takes.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// The start of `text` that takes at most `max` columns, with an ellipsis where it is cut.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    if columns(text) <= max {
        return text.to_owned();
    }
    // One column is for the ellipsis.
    let mut left = max.saturating_sub(1);
    let kept = text.chars().take_while(|c| {
        let fits = char_columns(*c) <= left;
        left = left.saturating_sub(char_columns(*c));
        fits
    });
    kept.chain((max > 0).then_some('…')).collect()
}

/// The columns of a character: two for those of East Asia and emoji, none for marks that join the
/// one before them.
const fn char_columns(c: char) -> usize {
    // A part of Unicode's East Asian Width (UAX #11) and of its combining marks. A rare character
    // that is misjudged shifts one row of a table and harms nothing else, which is not worth a
    // table of 3,000 ranges.
    match c {
        '\u{300}'..='\u{36f}'
        | '\u{483}'..='\u{489}'
        | '\u{591}'..='\u{5bd}'
        | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe20}'..='\u{fe2f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// Escapes characters that would move the cursor, recolour the terminal or reverse the text.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        if is_hidden(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The backslash too: an escaped character must not look like text that a client wrote so.
fn is_hidden(c: char) -> bool {
    c.is_control()
        // Zero-width characters and controls of the writing direction: with them a name could show
        // as another one ("Trojan Source", CVE-2021-42574).
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\\')
}

/// "1 task", "2 tasks": the plural of `noun` must end in a plain s.
pub(crate) fn count(number: impl Into<u64>, noun: &str) -> String {
    match number.into() {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

/// Maximum number of names in an error.
const NAMED_MAX: usize = 5;

/// The first of several names, for an error.
pub(crate) fn first_names(all: &[String]) -> String {
    let more = if all.len() > NAMED_MAX { ", ..." } else { "" };
    format!("{}{more}", all[..all.len().min(NAMED_MAX)].join(", "))
}

/// Unix seconds, for JSON.
pub(crate) fn unix_seconds(time_ms: Option<u64>) -> Option<u64> {
    time_ms.map(|time_ms| time_ms / 1000)
}

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

/// "2.8 GB", "254 MB", "12 kB", "7 bytes".
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns_and_marks_none() {
        for (text, wanted) in [
            ("kite", 4),
            ("雨中", 4),
            ("e\u{301}", 1),
            ("🎈", 2),
            ("한", 2),
        ] {
            assert_eq!(columns(text), wanted, "{text}");
        }
        let table = aligned(&[["雨中", "x"], ["kite", "y"]].map(|row| row.map(str::to_owned)));
        assert_eq!(table, "雨中  x\nkite  y\n");
    }

    #[test]
    fn a_text_is_cut_where_it_no_longer_fits() {
        for (text, max, wanted) in [
            ("kite", 4, "kite"),
            ("kites", 4, "kit…"),
            ("雨中飞驰", 8, "雨中飞驰"),
            ("雨中飞驰", 6, "雨中…"),
            ("kite", 0, ""),
        ] {
            assert_eq!(shortened(text, max), wanted);
        }
    }
}

#[cfg(test)]
mod count_tests {
    use super::count;

    #[test]
    fn one_is_no_plural() {
        let counted = [0_u64, 1, 2].map(|number| count(number, "key"));
        assert_eq!(counted, ["0 keys", "1 key", "2 keys"]);
    }
}

#[cfg(test)]
mod date_tests {
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

#[cfg(test)]
mod size_tests {
    use super::size;

    #[test]
    fn sizes_have_a_fitting_unit() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (12_300, "12 kB"),
            (253_815_318, "254 MB"),
            (2_838_303_560, "2.8 GB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
