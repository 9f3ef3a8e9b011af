//! Where a plane shows: for each two neighbouring rows of texels the stretches that hide what lies
//! behind them and those that let it through. Clear parts cost nothing.

/// A stretch of a row that is not clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The first texel.
    pub(crate) from: usize,
    /// Behind the last texel.
    pub(crate) to: usize,
    /// Whether all of it is opaque.
    pub(crate) solid: bool,
}

/// Opaque stretches and gaps of fewer texels are blended with their neighbours.
const SHORT: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Clear,
    Mixed,
    Solid,
}

/// The spans of a plane's rows, each row together with the one below it.
#[derive(Debug)]
pub(crate) struct Spans {
    spans: Vec<Span>,
    /// Behind the last span of each row.
    ends: Vec<usize>,
    width: usize,
}

impl Spans {
    /// Of `texels: [height][width][4] u8`, premultiplied.
    pub(crate) fn of(texels: &[u8], width: usize) -> Self {
        let rows: Vec<&[[u8; 4]]> = texels
            .as_chunks::<4>()
            .0
            .chunks_exact(width.max(1))
            .collect();
        let mut spans = Vec::new();
        let mut ends = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let below = rows.get(at + 1).unwrap_or(row);
            spans.extend(along(row, below));
            ends.push(spans.len());
        }
        spans.shrink_to_fit();
        Self { spans, ends, width }
    }

    /// The spans of row `row` and the one below it, from left to right.
    pub(crate) fn row(&self, row: usize) -> &[Span] {
        let first = row.checked_sub(1).map_or(0, |above| self.ends[above]);
        &self.spans[first..self.ends[row]]
    }

    /// Whether the row and the one below it are opaque from end to end.
    pub(crate) fn hides(&self, row: usize) -> bool {
        matches!(self.row(row), [span] if span.solid && span.from == 0 && span.to == self.width)
    }
}

/// The spans of two rows.
fn along(upper: &[[u8; 4]], lower: &[[u8; 4]]) -> Vec<Span> {
    let mut runs: Vec<(Kind, usize)> = Vec::new();
    for (upper, lower) in upper.iter().zip(lower) {
        let kind = match (upper[3], lower[3]) {
            (0, 0) => Kind::Clear,
            (255, 255) => Kind::Solid,
            _ => Kind::Mixed,
        };
        extend(&mut runs, kind, 1);
    }
    let mut plain = Vec::new();
    for (kind, long) in runs {
        let kind = if long < SHORT { Kind::Mixed } else { kind };
        extend(&mut plain, kind, long);
    }
    let mut at = 0;
    let spans = plain.into_iter().map(|(kind, long)| {
        at += long;
        (kind, at - long, at)
    });
    spans
        .filter(|(kind, ..)| *kind != Kind::Clear)
        .map(|(kind, from, to)| Span {
            from,
            to,
            solid: kind == Kind::Solid,
        })
        .collect()
}

fn extend(runs: &mut Vec<(Kind, usize)>, kind: Kind, more: usize) {
    match runs.last_mut() {
        Some((last, long)) if *last == kind => *long += more,
        _ => runs.push((kind, more)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(parts: &[(u8, usize)]) -> Vec<u8> {
        let texel = |alpha: u8| [alpha / 2, alpha, 0, alpha];
        parts
            .iter()
            .flat_map(|(alpha, long)| vec![texel(*alpha); *long])
            .flatten()
            .collect()
    }

    fn span(from: usize, to: usize, solid: bool) -> Span {
        Span { from, to, solid }
    }

    #[test]
    fn clear_stretches_are_left_out_and_opaque_ones_told_apart() {
        let spans = Spans::of(
            &row(&[(0, 20), (255, 30), (9, 5), (0, 20), (80, 1), (0, 14)]),
            90,
        );
        let expected = [span(20, 50, true), span(50, 55, false), span(75, 76, false)];
        assert_eq!(spans.row(0), expected);
        assert!(!spans.hides(0));
    }

    #[test]
    fn short_ones_join_what_is_beside_them() {
        let spans = Spans::of(
            &row(&[(0, 20), (90, 6), (255, 5), (0, 4), (7, 1), (0, 20)]),
            56,
        );
        assert_eq!(spans.row(0), [span(20, 36, false)]);
    }

    #[test]
    fn a_row_counts_with_the_one_below_it() {
        let mut texels = row(&[(255, 40)]);
        texels.extend(row(&[(255, 40)]));
        texels.extend(row(&[(0, 40)]));
        let spans = Spans::of(&texels, 40);
        assert!(spans.hides(0));
        assert!(!spans.hides(1));
        assert_eq!(spans.row(1), [span(0, 40, false)]);
        assert_eq!(spans.row(2), []);
    }
}
