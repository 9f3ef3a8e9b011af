//! Wraps a store, and makes calls fail before or after they take effect, or delays them, according
//! to its [`Plan`]. For tests: it changes nothing else.

#[cfg(test)]
mod tests;

mod roles;

use std::sync::Arc;

pub use kinora_faulty::{Fault, Injected, Plan, Rates};
use tokio::sync::watch;

use crate::{StoreError, Stores};

/// The methods that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// [`crate::Tasks::insert`].
    Insert,
    /// [`crate::Tasks::find_twin`].
    FindTwin,
    /// [`crate::Tasks::get`].
    Get,
    /// [`crate::Reads::task`].
    Task,
    /// [`crate::Tasks::list`].
    List,
    /// [`crate::Tasks::positions`].
    Positions,
    /// [`crate::Tasks::glance`].
    Glance,
    /// [`crate::Tasks::unfinished`].
    Unfinished,
    /// [`crate::Tasks::ended`].
    Ended,
    /// [`crate::Tasks::preview`].
    Preview,
    /// [`crate::Tasks::cancel`].
    Cancel,
    /// [`crate::Tasks::delete`].
    Delete,
    /// [`crate::Tasks::settle_deleted`].
    SettleDeleted,
    /// [`crate::Tasks::usage`].
    Usage,
    /// [`crate::Tasks::counts`].
    Counts,
    /// [`crate::Work::take_fetches`].
    TakeFetches,
    /// [`crate::Work::settle_fetch`].
    SettleFetch,
    /// [`crate::Work::charge_references`].
    ChargeReferences,
    /// [`crate::Work::claim`].
    Claim,
    /// [`crate::Work::has_claimable`].
    HasClaimable,
    /// [`crate::Work::renew`].
    Renew,
    /// The same with a ticket to keep.
    KeepTicket,
    /// [`crate::Work::put_preview`].
    PutPreview,
    /// [`crate::Work::lost`].
    Lost,
    /// [`crate::Work::finish`].
    Finish,
    /// [`crate::Work::release`].
    Release,
    /// [`crate::Work::settle`].
    Settle,
    /// [`crate::Chores::clock`].
    Clock,
    /// [`crate::Chores::sweep`].
    Sweep,
    /// [`crate::Chores::postpone`].
    Postpone,
    /// [`crate::Chores::take_chores`].
    TakeChores,
    /// [`crate::Chores::settle_chores`].
    SettleChores,
    /// [`crate::Chores::known`].
    Known,
    /// [`crate::Workers::announce`].
    Announce,
    /// [`crate::Workers::withdraw`].
    Withdraw,
    /// [`crate::Workers::living`].
    Living,
    /// [`crate::Workers::served_models`].
    ServedModels,
}

impl Method {
    /// The methods that only read.
    pub const READS: [Self; 17] = [
        Self::Task,
        Self::FindTwin,
        Self::Get,
        Self::List,
        Self::Positions,
        Self::Glance,
        Self::Unfinished,
        Self::Ended,
        Self::Preview,
        Self::Usage,
        Self::Counts,
        Self::HasClaimable,
        Self::Lost,
        Self::Clock,
        Self::Known,
        Self::Living,
        Self::ServedModels,
    ];
}

/// A store with faults.
#[derive(Debug)]
pub struct FaultyStore {
    inner: Stores,
    plan: Arc<Plan<Method>>,
    /// Whether its handle receives no hints.
    deaf: bool,
}

impl FaultyStore {
    /// Wraps `inner` with the faults of `plan`. API keys, webhooks, operators' queries, shared
    /// secrets and allowances work normally.
    pub fn wrap(inner: Stores, plan: Arc<Plan<Method>>) -> Stores {
        Self::around(inner, plan, false)
    }

    /// The same for a handle that receives no hints, as if a connection for notifications were
    /// down: polling must be enough.
    pub fn wrap_deaf(inner: Stores, plan: Arc<Plan<Method>>) -> Stores {
        Self::around(inner, plan, true)
    }

    fn around(inner: Stores, plan: Arc<Plan<Method>>, deaf: bool) -> Stores {
        let (keys, secrets) = (inner.keys.clone(), inner.secrets.clone());
        let webhooks = inner.webhooks.clone();
        let operations = inner.operations.clone();
        let (holds, allowances) = (inner.holds.clone(), inner.allowances.clone());
        let faulty = Arc::new(Self { inner, plan, deaf });
        Stores {
            tasks: faulty.clone(),
            work: faulty.clone(),
            chores: faulty.clone(),
            workers: faulty,
            operations,
            keys,
            webhooks,
            secrets,
            allowances,
            holds,
        }
    }

    /// Runs `call`, which starts only when awaited, according to the plan.
    async fn call<T>(
        &self,
        method: Method,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.plan.call(method, call, injected).await
    }

    fn hints(&self, hints: watch::Receiver<u64>) -> watch::Receiver<u64> {
        if self.deaf { silence() } else { hints }
    }
}

/// Hints that never come, since their sender is dropped.
fn silence() -> watch::Receiver<u64> {
    watch::Sender::new(0).subscribe()
}

fn injected(how: &str) -> StoreError {
    StoreError::Unavailable(format!("an injected fault: {how}").into())
}
