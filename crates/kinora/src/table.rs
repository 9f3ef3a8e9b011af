//! Tables for people: aligned columns, and text without control sequences for the terminal.

/// Between two columns.
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
    text.chars().map(cells).sum()
}

/// The start of `text` that takes at most `max` columns, with an ellipsis where it is cut.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    if columns(text) <= max {
        return text.to_owned();
    }
    let mut left = max.saturating_sub(1);
    let kept = text.chars().take_while(|c| {
        let fits = cells(*c) <= left;
        left = left.saturating_sub(cells(*c));
        fits
    });
    kept.chain(['…']).collect()
}

/// The columns of a character: two for those of East Asia and emoji, none for marks that join the
/// one before them.
const fn cells(c: char) -> usize {
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
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\\')
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
            ("kite", 0, "…"),
        ] {
            assert_eq!(shortened(text, max), wanted);
        }
    }
}
