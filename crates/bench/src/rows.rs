//! Rows of the tables: two servers measured in turn.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::load::{Load, measure};
use crate::outcome::Outcome;
use crate::stats::summary;

/// Connections at a time.
pub(crate) const CONNECTIONS: [usize; 3] = [1, 64, 256];
/// Windows of each side; the result is their median.
pub(crate) const ROUNDS: usize = 7;
pub(crate) const WINDOW: Duration = Duration::from_millis(1500);
/// Tasks that are polled, in turn.
pub(crate) const POLLED_TASKS: usize = 1_000;

/// Measures two fixed servers in turn.
pub(crate) async fn pairs(
    connections: usize,
    ours: (&[SocketAddr], &Arc<Load>),
    theirs: (&[SocketAddr], &Arc<Load>),
) -> Outcome<String> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let one = measure(ours.0, ours.1, connections, WINDOW).await?;
        let other = measure(theirs.0, theirs.1, connections, WINDOW).await?;
        if round > 0 {
            left.push(one);
            right.push(other);
        }
    }
    Ok(summary(&left, &right))
}

/// Prints a line.
#[expect(clippy::print_stdout, reason = "the table is the product")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}
