//! Which of two states is shown.

use kinora_contract::{ManualClock, TaskState};

use super::*;
use crate::conformance::fixtures::{NOW, id, task};

/// A cache, and the task with this number in some state.
fn cache() -> (Arc<ManualClock>, PollCache) {
    let clock = Arc::new(ManualClock::at(NOW));
    let options = PostgresOptions {
        cached_ms_max: 1_000,
        polled_ms_max: 200,
        ..PostgresOptions::default()
    };
    (clock.clone(), PollCache::new(clock, &options))
}

fn seen(progress: u8) -> Arc<TaskRecord> {
    let mut task = task(1, "one").accepted(id(1), NOW);
    task.progress = progress;
    Arc::new(TaskRecord::accepted(1, task))
}

fn ended() -> Arc<TaskRecord> {
    let mut task = task(1, "one").accepted(id(1), NOW);
    task.state = TaskState::Expired;
    Arc::new(TaskRecord::accepted(1, task))
}

fn progress(cache: &PollCache) -> Option<u8> {
    Some(cache.poll(id(1))?.0?.task.progress)
}

/// The query that a poll is told to begin.
fn refresh(cache: &PollCache) -> Option<ReadStamp> {
    cache.poll(id(1))?.1
}

/// A poll that finds this.
fn poll(cache: &PollCache, found: Arc<TaskRecord>) {
    cache.reserve(id(1));
    let begun = cache.begin();
    cache.store_result(id(1), Some(found), begun);
}

fn commit(cache: &PollCache, after: Option<Arc<TaskRecord>>, begun: ReadStamp) {
    let change = RecordChange {
        id: id(1),
        before: None,
        after,
    };
    cache.store_changes(&[change], begun);
}

#[test]
fn an_unfinished_task_is_shown_for_its_time_to_polls_alone() {
    let (clock, cache) = cache();
    poll(&cache, seen(1));
    assert_eq!(progress(&cache), Some(1));
    assert!(cache.get(id(1)).is_none());
    clock.advance(199);
    assert_eq!(progress(&cache), Some(1));
    clock.advance(1);
    assert_eq!(progress(&cache), None);
    assert!(cache.last_known(id(1)).is_none());
}

#[test]
fn one_query_replaces_an_unfinished_task_before_its_time_ends() {
    let (clock, cache) = cache();
    poll(&cache, seen(1));
    clock.advance(99);
    assert!(refresh(&cache).is_none());
    clock.advance(1);
    let begun = refresh(&cache).unwrap();
    assert!(refresh(&cache).is_none());
    clock.advance(50);
    assert_eq!(progress(&cache), Some(1));
    cache.store_result(id(1), Some(seen(2)), begun);
    // Its age counts from the start of the query.
    clock.advance(49);
    assert!(refresh(&cache).is_none());
    clock.advance(1);
    assert!(refresh(&cache).is_some());
    // That one has no answer.
    clock.advance(99);
    assert_eq!(progress(&cache), Some(2));
    clock.advance(1);
    assert_eq!(progress(&cache), None);
}

#[test]
fn a_query_that_began_before_a_commit_refreshes_nothing() {
    let (clock, cache) = cache();
    poll(&cache, seen(1));
    clock.advance(100);
    let begun = refresh(&cache).unwrap();
    commit(&cache, Some(seen(2)), cache.begin());
    cache.store_result(id(1), Some(seen(1)), begun);
    assert_ne!(progress(&cache), Some(1));
    // What cannot change needs no query.
    commit(&cache, Some(ended()), cache.begin());
    clock.advance(100);
    assert!(refresh(&cache).is_none());
}

#[test]
fn one_that_nobody_polled_is_not_kept() {
    let (_, cache) = cache();
    let begun = cache.begin();
    cache.store_result(id(1), Some(seen(1)), begun);
    commit(&cache, Some(seen(2)), cache.begin());
    assert_eq!(progress(&cache), None);
}

#[test]
fn what_this_process_does_is_shown_at_once() {
    let (_, cache) = cache();
    poll(&cache, seen(1));
    commit(&cache, Some(seen(2)), cache.begin());
    assert_eq!(progress(&cache), Some(2));
    commit(&cache, Some(ended()), cache.begin());
    assert!(matches!(cache.get(id(1)), Some(Some(_))));
    commit(&cache, None, cache.begin());
    assert!(matches!(cache.poll(id(1)), Some((None, _))));
}

#[test]
fn an_answer_that_was_asked_for_before_a_commit_does_not_replace_it() {
    let (_, cache) = cache();
    cache.reserve(id(1));
    let early = cache.begin();
    commit(&cache, Some(seen(2)), cache.begin());
    cache.store_result(id(1), Some(seen(1)), early);
    assert_ne!(progress(&cache), Some(1));
    // Nor after it was forgotten meanwhile.
    poll(&cache, seen(2));
    let early = cache.begin();
    cache.invalidate(Some(&[id(1)]));
    cache.store_result(id(1), Some(seen(1)), early);
    assert_eq!(progress(&cache), None);
    cache.invalidate(None);
    cache.reserve(id(1));
    cache.store_result(id(1), Some(seen(1)), early);
    assert_eq!(progress(&cache), None);
    let late = cache.begin();
    cache.store_result(id(1), Some(seen(2)), late);
    assert_eq!(progress(&cache), Some(2));
}

#[test]
fn an_end_stays_when_the_time_before_it_is_forgotten_and_goes_with_a_change_after_it() {
    let (_, kept) = cache();
    poll(&kept, ended());
    kept.invalidate_unfinished(&[id(1)]);
    assert!(matches!(kept.get(id(1)), Some(Some(_))));
    for changed in [
        |cache: &PollCache| cache.invalidate(Some(&[id(1)])),
        |cache: &PollCache| cache.invalidate(None),
        |cache: &PollCache| commit(cache, None, cache.begin()),
    ] {
        let (_, kept) = cache();
        kept.reserve(id(1));
        let begun = kept.begin();
        changed(&kept);
        kept.store_result(id(1), Some(ended()), begun);
        assert!(!matches!(kept.get(id(1)), Some(Some(_))));
    }
}

#[test]
fn a_deleted_task_is_not_shown_again_by_an_answer_from_before() {
    let (_, cache) = cache();
    let deleting = cache.begin();
    // Too old to be kept.
    cache.invalidate(None);
    let reading = cache.begin();
    commit(&cache, None, deleting);
    cache.store_result(id(1), Some(ended()), reading);
    assert!(cache.get(id(1)).is_none());
    // A later answer counts.
    let reading = cache.begin();
    cache.store_result(id(1), Some(ended()), reading);
    assert!(cache.get(id(1)).is_some());
}

#[test]
fn of_two_transactions_at_the_same_time_neither_is_believed() {
    let (_, cache) = cache();
    poll(&cache, seen(1));
    let (one, other) = (cache.begin(), cache.begin());
    commit(&cache, Some(seen(3)), other);
    commit(&cache, Some(seen(2)), one);
    assert_eq!(progress(&cache), None);
    poll(&cache, seen(3));
    assert_eq!(progress(&cache), Some(3));
}

#[test]
fn a_transaction_that_changes_a_task_twice_shows_the_last_change() {
    let (_, cache) = cache();
    poll(&cache, seen(1));
    let change = |progress| RecordChange {
        id: id(1),
        before: None,
        after: Some(seen(progress)),
    };
    cache.store_changes(&[change(2), change(3)], cache.begin());
    assert_eq!(progress(&cache), Some(3));
}

#[test]
fn of_two_answers_at_the_same_time_equal_ones_count() {
    let (clock, cache) = cache();
    cache.reserve(id(1));
    let (one, other) = (cache.begin(), cache.begin());
    let first = cache.store_result(id(1), Some(seen(1)), one).unwrap();
    let same = cache.store_result(id(1), Some(seen(1)), other).unwrap();
    assert!(Arc::ptr_eq(&first, &same));
    assert_eq!(progress(&cache), Some(1));
    // Read again later, it is the same record, and younger.
    clock.advance(150);
    poll(&cache, seen(1));
    clock.advance(150);
    assert!(Arc::ptr_eq(&first, &cache.poll(id(1)).unwrap().0.unwrap()));
    // Of different ones nobody knows the later.
    let (one, other) = (cache.begin(), cache.begin());
    cache.store_result(id(1), Some(seen(3)), other);
    cache.store_result(id(1), Some(seen(2)), one);
    assert_eq!(progress(&cache), None);
}

#[test]
fn another_state_that_was_shown_ends_an_entry() {
    let (_, cache) = cache();
    poll(&cache, seen(1));
    let glance = |progress| (id(1), TaskGlance::from_task(&seen(progress).task));
    cache.drop_outdated([glance(1)].into_iter());
    assert_eq!(progress(&cache), Some(1));
    cache.drop_outdated([glance(2)].into_iter());
    assert_eq!(progress(&cache), None);
    poll(&cache, seen(2));
    cache.drop_outdated([(id(1), None)].into_iter());
    assert_eq!(progress(&cache), None);
}

#[test]
fn p08_the_cache_is_bounded_in_bytes() {
    let clock = Arc::new(ManualClock::at(NOW));
    let options = PostgresOptions {
        cached_bytes_max: 100_000,
        ..PostgresOptions::default()
    };
    let cache = PollCache::new(clock, &options);
    let mut kept = 0;
    for number in 0..10_000 {
        cache.reserve(id(number));
        let begun = cache.begin();
        cache.store_result(id(number), Some(seen(1)), begun);
    }
    for number in 0..10_000 {
        kept += u32::from(cache.poll(id(number)).is_some());
    }
    assert!((1..1_000).contains(&kept), "{kept}");
    // Nor does it keep tasks that are not there.
    for number in 20_000..21_000 {
        cache.reserve(id(number));
        let begun = cache.begin();
        cache.store_result(id(number), None, begun);
        assert!(cache.poll(id(number)).is_none());
    }
}
