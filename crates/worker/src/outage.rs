//! A call that is made again and again while a store is away: its failures are logged once, and counted.

use std::error::Error;

/// How such a call fares.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    failures: u64,
}

impl Outage {
    /// What the call gave; `None` after an error, which is logged as `what` if it is the first in a row.
    pub(crate) fn note<T>(&mut self, what: &str, result: Result<T, impl Error>) -> Option<T> {
        match result {
            Ok(given) => {
                if self.failures > 0 {
                    tracing::info!(failures = self.failures, "{what}: works again");
                }
                self.failures = 0;
                Some(given)
            }
            Err(error) => {
                if self.failures == 0 {
                    tracing::warn!(%error, "{what}: fails; trying again until it works");
                }
                self.failures += 1;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn failures_in_a_row_are_counted_until_one_call_works() {
        let mut outage = Outage::default();
        let away = || Err::<u8, _>(Error::from(ErrorKind::StorageFull));
        for failures in 1..=3 {
            assert_eq!(outage.note("claiming", away()), None);
            assert_eq!(outage.failures, failures);
        }
        assert_eq!(outage.note("claiming", Ok::<_, Error>(7)), Some(7));
        assert_eq!(outage.failures, 0);
    }
}
