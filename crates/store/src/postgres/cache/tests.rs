//! Which of two states is shown.

use kinora_contract::{ManualClock, State};

use super::*;
use crate::conformance::fixtures::{NOW, id, task};

/// A cache, and the task with this number in some state.
fn cache() -> (Arc<ManualClock>, Cache) {
    let clock = Arc::new(ManualClock::at(NOW));
    let options = PostgresOptions {
        cached_ms_max: 1_000,
        polled_ms_max: 200,
        ..PostgresOptions::default()
    };
    (clock.clone(), Cache::new(clock, &options))
}

fn seen(progress: u8, version: u64) -> Seen {
    let mut task = task(1, "one").accepted(id(1), NOW);
    task.progress = progress;
    Seen {
        record: Arc::new(Record::accepted(1, task)),
        version: Some(Version::of_transaction(version)),
    }
}

fn ended(version: u64) -> Seen {
    let mut task = task(1, "one").accepted(id(1), NOW);
    task.state = State::Expired;
    Seen {
        record: Arc::new(Record::accepted(1, task)),
        version: Some(Version::of_transaction(version)),
    }
}

fn progress(cache: &Cache) -> Option<u8> {
    Some(cache.poll(id(1))??.task.progress)
}

/// A poll that finds this.
fn poll(cache: &Cache, found: Seen) {
    cache.expect(id(1));
    let begun = cache.begin();
    cache.offer(id(1), Some(found), begun);
}

fn commit(cache: &Cache, after: Option<Seen>, begun: Begun) {
    let version = after.as_ref().and_then(|seen| seen.version);
    let change = Change {
        id: id(1),
        before: None,
        after: after.map(|seen| seen.record),
    };
    cache.put_all(&[change], version, begun);
}

#[test]
fn an_unfinished_task_is_shown_for_its_time_to_polls_alone() {
    let (clock, cache) = cache();
    poll(&cache, seen(1, 7));
    assert_eq!(progress(&cache), Some(1));
    assert!(cache.get(id(1)).is_none());
    clock.advance(199);
    assert_eq!(progress(&cache), Some(1));
    clock.advance(1);
    assert_eq!(progress(&cache), None);
    assert!(cache.get_last(id(1)).is_none());
}

#[test]
fn one_that_nobody_polled_is_not_kept() {
    let (_, cache) = cache();
    let begun = cache.begin();
    cache.offer(id(1), Some(seen(1, 7)), begun);
    commit(&cache, Some(seen(2, 8)), cache.begin());
    assert_eq!(progress(&cache), None);
}

#[test]
fn what_this_process_does_is_shown_at_once() {
    let (_, cache) = cache();
    poll(&cache, seen(1, 7));
    commit(&cache, Some(seen(2, 8)), cache.begin());
    assert_eq!(progress(&cache), Some(2));
    commit(&cache, Some(ended(9)), cache.begin());
    assert!(matches!(cache.get(id(1)), Some(Some(_))));
    commit(&cache, None, cache.begin());
    assert!(matches!(cache.poll(id(1)), Some(None)));
}

#[test]
fn an_answer_that_was_asked_for_before_a_commit_does_not_replace_it() {
    let (_, cache) = cache();
    cache.expect(id(1));
    let early = cache.begin();
    commit(&cache, Some(seen(2, 8)), cache.begin());
    cache.offer(id(1), Some(seen(1, 7)), early);
    assert_ne!(progress(&cache), Some(1));
    // Nor after it was forgotten meanwhile.
    poll(&cache, seen(2, 8));
    let early = cache.begin();
    cache.forget(Some(&[id(1)]));
    cache.offer(id(1), Some(seen(1, 7)), early);
    assert_eq!(progress(&cache), None);
    cache.forget(None);
    cache.expect(id(1));
    cache.offer(id(1), Some(seen(1, 7)), early);
    assert_eq!(progress(&cache), None);
    let late = cache.begin();
    cache.offer(id(1), Some(seen(2, 8)), late);
    assert_eq!(progress(&cache), Some(2));
}

/// As by a poll that is on its way when the notice of the end that it finds arrives.
#[test]
fn an_end_is_kept_that_was_read_while_the_time_before_it_was_forgotten() {
    let (_, kept) = cache();
    kept.expect(id(1));
    let begun = kept.begin();
    kept.forget_unfinished(&[id(1)]);
    assert!(kept.offer(id(1), Some(ended(7)), begun).is_some());
    assert!(matches!(kept.get(id(1)), Some(Some(_))));
    // So is one that was read while this process wrote an unfinished state: that was before the end.
    let (_, kept) = cache();
    poll(&kept, seen(1, 7));
    let begun = kept.begin();
    commit(&kept, Some(seen(2, 8)), kept.begin());
    kept.offer(id(1), Some(ended(9)), begun);
    assert!(matches!(kept.get(id(1)), Some(Some(_))));
    // But not one that was changed after its end.
    for changed in [
        |cache: &Cache| cache.forget(Some(&[id(1)])),
        |cache: &Cache| cache.forget(None),
        |cache: &Cache| commit(cache, None, cache.begin()),
    ] {
        let (_, kept) = cache();
        kept.expect(id(1));
        let begun = kept.begin();
        changed(&kept);
        kept.offer(id(1), Some(ended(7)), begun);
        assert!(!matches!(kept.get(id(1)), Some(Some(_))));
    }
}

#[test]
fn a_deleted_task_is_not_shown_again_by_an_answer_from_before() {
    let (_, cache) = cache();
    let deleting = cache.begin();
    // Too old to be kept.
    cache.forget(None);
    let reading = cache.begin();
    commit(&cache, None, deleting);
    cache.offer(id(1), Some(ended(7)), reading);
    assert!(cache.get(id(1)).is_none());
    // A later answer counts.
    let reading = cache.begin();
    cache.offer(id(1), Some(ended(8)), reading);
    assert!(cache.get(id(1)).is_some());
}

#[test]
fn of_two_transactions_at_the_same_time_neither_is_believed() {
    let (_, cache) = cache();
    poll(&cache, seen(1, 7));
    let (one, other) = (cache.begin(), cache.begin());
    commit(&cache, Some(seen(3, 9)), other);
    commit(&cache, Some(seen(2, 8)), one);
    assert_eq!(progress(&cache), None);
    poll(&cache, seen(3, 9));
    assert_eq!(progress(&cache), Some(3));
}

#[test]
fn a_transaction_that_changes_a_task_twice_shows_the_last_change() {
    let (_, cache) = cache();
    poll(&cache, seen(1, 7));
    let change = |progress| Change {
        id: id(1),
        before: None,
        after: Some(seen(progress, 8).record),
    };
    let version = seen(0, 8).version;
    cache.put_all(&[change(2), change(3)], version, cache.begin());
    assert_eq!(progress(&cache), Some(3));
}

#[test]
fn a_confirmed_task_is_shown_on_as_the_same_record() {
    let (clock, cache) = cache();
    poll(&cache, seen(1, 7));
    let first = cache.poll(id(1)).unwrap().unwrap();
    let watched = cache.watched();
    assert_eq!(watched.len(), 1);
    clock.advance(150);
    cache.confirm(watched.into_iter(), cache.begin());
    clock.advance(150);
    let same = cache.poll(id(1)).unwrap().unwrap();
    assert!(Arc::ptr_eq(&first, &same));
    // Read again, it is the same as well; in another version it is not.
    let begun = cache.begin();
    let same = cache.offer(id(1), Some(seen(1, 7)), begun).unwrap();
    assert!(Arc::ptr_eq(&first, &same));
    clock.advance(200);
    let version = Version::of_transaction(6);
    cache.confirm([(id(1), version)].into_iter(), cache.begin());
    assert_eq!(progress(&cache), None);
}

#[test]
fn a_task_is_looked_after_while_it_is_polled() {
    let (_, cache) = cache();
    assert!(cache.watched().is_empty());
    poll(&cache, seen(1, 7));
    assert!(cache.watched().is_empty());
    progress(&cache);
    assert_eq!(cache.watched().len(), 1);
    assert_eq!(cache.watched().len(), 1);
    assert!(cache.watched().is_empty());
}

#[test]
fn another_version_that_was_shown_ends_an_entry() {
    let (_, cache) = cache();
    poll(&cache, seen(1, 7));
    cache.compare([(id(1), seen(1, 7).version)].into_iter());
    assert_eq!(progress(&cache), Some(1));
    cache.compare([(id(1), seen(1, 8).version)].into_iter());
    assert_eq!(progress(&cache), None);
    poll(&cache, seen(1, 8));
    cache.forget_versions();
    assert_eq!(progress(&cache), None);
}

#[test]
fn p08_the_cache_is_bounded_in_bytes() {
    let clock = Arc::new(ManualClock::at(NOW));
    let options = PostgresOptions {
        cached_bytes_max: 100_000,
        ..PostgresOptions::default()
    };
    let cache = Cache::new(clock, &options);
    let mut kept = 0;
    for number in 0..10_000 {
        cache.expect(id(number));
        let begun = cache.begin();
        cache.offer(id(number), Some(seen(1, number)), begun);
    }
    for number in 0..10_000 {
        kept += u32::from(cache.poll(id(number)).is_some());
    }
    assert!((1..1_000).contains(&kept), "{kept}");
    // Nor does it keep tasks that are not there.
    for number in 20_000..21_000 {
        cache.expect(id(number));
        let begun = cache.begin();
        cache.offer(id(number), None, begun);
        assert!(cache.poll(id(number)).is_none());
    }
}
