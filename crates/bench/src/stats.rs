//! Windows of measurement and their summary: medians, and the ratio pair by pair.

use std::time::Duration;

/// What one window gave.
pub(crate) struct Window {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

impl Window {
    /// Of the latencies of all answers within `time`.
    pub(crate) fn of(mut latencies: Vec<Duration>, time: Duration) -> Self {
        latencies.sort_unstable();
        let at = |share: f64| {
            let index = (latencies.len() as f64 * share) as usize;
            latencies
                .get(index.min(latencies.len().saturating_sub(1)))
                .copied()
                .unwrap_or_default()
        };
        Self {
            per_second: latencies.len() as f64 / time.as_secs_f64(),
            p50: at(0.50),
            p99: at(0.99),
        }
    }
}

/// The cells of a row: ours, theirs, the median of the ratios of neighbours, latencies.
pub(crate) fn summary(ours: &[Window], theirs: &[Window]) -> String {
    let rate = |windows: &[Window]| median(windows.iter().map(|window| window.per_second));
    let ratio = median(ratios(ours, theirs));
    let ms = |windows: &[Window], pick: fn(&Window) -> Duration| {
        format!(
            "{:.2}",
            median(
                windows
                    .iter()
                    .map(|window| pick(window).as_secs_f64() * 1e3)
            )
        )
    };
    format!(
        "{:.0} | {:.0} | {ratio:.2} | {} | {} | {} | {}",
        rate(ours),
        rate(theirs),
        ms(ours, |window| window.p50),
        ms(ours, |window| window.p99),
        ms(theirs, |window| window.p50),
        ms(theirs, |window| window.p99),
    )
}

/// The ratio of each window to its neighbour of the other side.
pub(crate) fn ratios(ours: &[Window], theirs: &[Window]) -> Vec<f64> {
    let pairs = ours.iter().zip(theirs);
    pairs.map(|(a, b)| a.per_second / b.per_second).collect()
}

pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// The value below which this share of all lies.
pub(crate) fn quantile(values: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * share) as usize;
    values.get(place).copied().unwrap_or(0.0)
}
