//! Gaps: creation times of tasks that a copy of the store may have accepted, while the store itself
//! was closed or before an older copy was restored.

use kinora_contract::ID_AHEAD_MS_MAX;

use super::bench::Bench;
use super::fixtures::id;
use super::{Harness, Site};
use crate::Gap;
use crate::gap::GAPS_MAX;

/// Whether a copy of the store may have accepted a task with this number.
async fn may_be_unknown(site: &Site, number: u64) -> bool {
    holds(&gaps_of(site).await, number)
}

async fn gaps_of(site: &Site) -> Vec<Gap> {
    site.chores.gaps().await.unwrap()
}

fn holds(gaps: &[Gap], number: u64) -> bool {
    gaps.iter().any(|gap| gap.holds(id(number)))
}

/// The tasks among these that may be unknown; both handles agree on them.
async fn unknown<const N: usize>(sites: &[Site; 2], numbers: [u64; N]) -> Vec<u64> {
    let unknown = async |site| {
        let gaps = gaps_of(site).await;
        let unknown = numbers.iter().filter(|one| holds(&gaps, **one));
        unknown.copied().collect::<Vec<_>>()
    };
    let (first, second) = (unknown(&sites[0]).await, unknown(&sites[1]).await);
    assert_eq!(first, second, "the handles disagree");
    first
}

/// A later task changes nothing; one with an earlier creation time narrows the gap further.
pub async fn an_accepted_task_ends_the_gap_since_the_opening(harness: &impl Harness) {
    let sites = harness.open_both("store").await;
    assert_eq!(unknown(&sites, [1, 9, 99]).await, [1, 9, 99]);
    sites[0].submit(10, "one").await;
    assert_eq!(unknown(&sites, [1, 9, 10, 11, 99]).await, [1, 9]);
    sites[1].submit(20, "two").await;
    assert_eq!(unknown(&sites, [1, 9, 15, 20, 99]).await, [1, 9]);
    sites[1].submit(7, "three").await;
    assert_eq!(unknown(&sites, [1, 6, 7, 8, 15, 99]).await, [1, 6]);
    drop(sites);

    let sites = harness.open_both("store").await;
    assert_eq!(unknown(&sites, [6, 7, 15, 20, 21, 99]).await, [6, 21, 99]);
    sites[1].submit(40, "one").await;
    assert_eq!(
        unknown(&sites, [6, 7, 20, 21, 39, 40, 99]).await,
        [6, 21, 39]
    );
}

/// Neither a task dated earlier, by a clock that was set back, nor a deletion moves the start back.
pub async fn a_gap_begins_at_the_newest_task_ever_accepted(harness: &impl Harness) {
    let site = harness.open("store").await;
    site.submit(40, "one").await;
    site.submit(3, "two").await;
    drop(site);
    let site = harness.open("store").await;
    assert!(!may_be_unknown(&site, 35).await && may_be_unknown(&site, 41).await);
    site.submit(50, "one").await;
    // It was known, although it is gone now.
    site.tasks.delete("one", id(50)).await.unwrap();
    drop(site);
    let site = harness.open("store").await;
    assert!(may_be_unknown(&site, 49).await && !may_be_unknown(&site, 50).await);
    assert!(may_be_unknown(&site, 51).await);
}

/// If the store followed that clock, later gaps would contain nothing until real time caught up.
pub async fn a_task_of_a_clock_that_was_far_ahead_hides_no_gap(harness: &impl Harness) {
    for (name, ahead_ms, is_followed) in [
        ("near", ID_AHEAD_MS_MAX, true),
        ("far", ID_AHEAD_MS_MAX + 1, false),
    ] {
        let site = harness.open(name).await;
        site.submit(1 + ahead_ms, "one").await;
        site.submit(1, "two").await;
        drop(site);
        let site = harness.open(name).await;
        assert_eq!(may_be_unknown(&site, 2).await, !is_followed, "{name}");
        assert!(may_be_unknown(&site, 2 + ahead_ms).await);
    }
}

/// On all handles and after a restart. Later tasks do not record it again, and other gaps stay.
pub async fn a_closed_gap_stays_closed(harness: &impl Harness) {
    let site = harness.open("store").await;
    site.submit(10, "one").await;
    drop(site);
    let sites = harness.open_both("store").await;
    sites[0].submit(20, "one").await;
    let gaps = gaps_of(&sites[0]).await;
    let is_second = |gap: &Gap| gap.holds(id(15));
    let second: Vec<_> = gaps.into_iter().filter(is_second).collect();
    sites[1].chores.close_gaps(&second).await.unwrap();
    assert_eq!(unknown(&sites, [9, 15, 21]).await, [9]);
    drop(sites);

    let sites = harness.open_both("store").await;
    assert_eq!(unknown(&sites, [9, 15, 21]).await, [9, 21]);
    // Including the current one, in which no task has been accepted yet.
    let gaps = gaps_of(&sites[0]).await;
    sites[0].chores.close_gaps(&gaps).await.unwrap();
    sites[1].submit(30, "one").await;
    assert!(unknown(&sites, [9, 15, 21, 31]).await.is_empty());
    drop(sites);
    let sites = harness.open_both("store").await;
    assert_eq!(unknown(&sites, [9, 15, 21, 29, 31]).await, [31]);
}

/// The oldest gaps are merged into one, which covers all of them and is closed as one.
pub async fn gaps_are_bounded_in_number(harness: &impl Harness) {
    let openings = 2 * GAPS_MAX as u64;
    for opening in 1..=openings {
        let site = harness.open("store").await;
        site.submit(10 * opening, "one").await;
    }
    let site = harness.open("store").await;
    let gaps = gaps_of(&site).await;
    assert!(gaps.len() <= GAPS_MAX + 1, "{}", gaps.len());
    for opening in 1..=openings {
        assert!(holds(&gaps, 10 * opening - 1), "{opening}");
    }
    site.chores.close_gaps(&gaps).await.unwrap();
    drop(site);
    let site = harness.open("store").await;
    for opening in 1..=openings {
        assert!(!may_be_unknown(&site, 10 * opening - 1).await, "{opening}");
    }
}
