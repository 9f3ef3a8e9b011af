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
    let ratio = median(
        ours.iter()
            .zip(theirs)
            .map(|(a, b)| a.per_second / b.per_second),
    );
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

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
