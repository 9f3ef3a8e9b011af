//! Allowances that all processes share.

use async_trait::async_trait;

use super::super::PostgresStore;
use super::super::allowances::{ask, read};
use crate::{Allowances, StoreError, Taken, Time};

#[async_trait]
impl Allowances for PostgresStore {
    async fn take(&self, key: &str, per_minute: u32, wanted: u32) -> Result<Taken, StoreError> {
        let by_clock = self.shared.options.time == Time::Clock;
        let now_ms = by_clock.then(|| self.shared.clock.now_ms());
        let ask = ask(key, per_minute, wanted, now_ms);
        Ok(read(&self.reader.query(ask).await?, per_minute)?)
    }
}
