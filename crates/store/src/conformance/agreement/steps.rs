//! Operations that need only a handle.

use kinora_contract::Clock as _;

use super::super::Site;
use super::super::fixtures::sweep_at;
use crate::{ExpiryCursor, PostponeRequest, PostponedExpiry, SweepRequest};

/// How long ended tasks are kept.
pub(super) const RETENTION_MS: u64 = 60_000;

pub(super) async fn sweep(site: &Site, after_ms: u64, trusts: bool) -> String {
    let now_ms = site.clock.now_ms();
    let sweep = SweepRequest {
        due_ms: trusts.then_some(now_ms),
        waiting_ms_max: (after_ms < 5_000).then_some(60_000),
        retention_ms: RETENTION_MS,
        ..sweep_at(now_ms)
    };
    format!("{:?}", site.chores.sweep(sweep).await.unwrap())
}

/// Postpones ended tasks, one at a time, so that the cursor of a postponement matters.
pub(super) async fn postpone(site: &Site) -> String {
    let mut below = Some(ExpiryCursor::END);
    while let Some(place) = below {
        let postpone = PostponeRequest {
            from_ms: 0,
            before_ms: u64::MAX,
            by: PostponedExpiry::By(60_000),
            retention_ms: RETENTION_MS,
            below: place,
            batch: 1,
        };
        below = site.chores.postpone(postpone).await.unwrap();
    }
    String::new()
}
