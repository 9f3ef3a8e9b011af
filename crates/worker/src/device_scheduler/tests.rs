//! The rules of a device, one by one.

mod random;

use super::*;

const AGE: Duration = Duration::from_secs(120);
const IDLE: Duration = Duration::from_secs(300);

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn room(budget: u64, needs: &[u64]) -> DeviceScheduler {
    let patience = DevicePatience {
        idle_max: Some(IDLE),
        age_max: AGE,
    };
    DeviceScheduler::new(budget, patience, needs.iter().copied(), at(0))
}

/// Runs the only task from `from` to `to`.
fn run(room: &mut DeviceScheduler, engine: usize, from: u64, to: u64) {
    start(room, engine, from);
    room.release(engine, true, at(to));
    room.record_turn(engine, at(to));
}

fn start(room: &mut DeviceScheduler, engine: usize, from: u64) {
    assert!(room.reserve(engine, at(from)), "no room for {engine}");
    room.record_turn(engine, at(from));
    room.begin_run(engine, at(from));
}

#[test]
fn engines_that_fit_together_stay_together() {
    let mut room = room(100, &[60, 40, 1]);
    run(&mut room, 0, 0, 1);
    run(&mut room, 1, 1, 2);
    assert_eq!(room.admission(0, at(2)), EngineAdmission::Open);
    assert_eq!(room.admission(1, at(2)), EngineAdmission::Open);
    assert_eq!(room.admission(2, at(2)), EngineAdmission::Full);
}

#[test]
fn the_longest_unused_engine_leaves_first_and_no_more_than_needed() {
    let mut room = room(100, &[30, 30, 40, 50]);
    run(&mut room, 0, 0, 9);
    run(&mut room, 1, 1, 2);
    run(&mut room, 2, 2, 5);
    room.invite(3, at(10));
    assert_eq!(room.make_way(at(10)), [1, 2]);
    assert_eq!(room.make_way(at(10)), [0; 0]);
    assert_eq!(room.admission(3, at(10)), EngineAdmission::Closed);
    room.record_unloaded(1);
    assert!(!room.reserve(3, at(10)), "40 are still there");
    room.record_unloaded(2);
    assert!(room.reserve(3, at(10)));
    assert_eq!(room.load_state(0), LoadState::Idle);
}

#[test]
fn room_in_use_is_not_taken_before_the_age_limit() {
    let mut room = room(100, &[60, 60]);
    start(&mut room, 0, 0);
    assert_eq!(room.admission(1, at(119)), EngineAdmission::Closed);
    room.invite(1, at(119));
    assert_eq!(room.make_way(at(119)), [0; 0]);
    assert!(room.reserve(0, at(119)), "the first goes on");
}

#[test]
fn after_the_age_limit_an_engine_in_use_gets_no_further_task_and_leaves_after_its_last() {
    let mut room = room(100, &[60, 60]);
    start(&mut room, 0, 0);
    start(&mut room, 0, 1);
    assert_eq!(room.admission(1, at(120)), EngineAdmission::Full);
    room.invite(1, at(120));
    assert_eq!(room.make_way(at(120)), [0; 0]);
    assert!(!room.reserve(0, at(120)));
    room.release(0, true, at(121));
    assert_eq!(room.make_way(at(121)), [0; 0], "one run is left");
    room.release(0, true, at(122));
    assert_eq!(room.make_way(at(122)), [0]);
    room.record_unloaded(0);
    assert_eq!(room.admission(0, at(122)), EngineAdmission::Closed);
    start(&mut room, 1, 122);
    assert_eq!(room.admission(0, at(241)), EngineAdmission::Closed);
    assert_eq!(
        room.admission(0, at(242)),
        EngineAdmission::Full,
        "now it waits"
    );
}

#[test]
fn an_idle_engine_that_may_have_further_tasks_stays_until_the_age_limit() {
    let mut room = room(100, &[60, 60]);
    start(&mut room, 0, 0);
    room.release(0, true, at(1));
    assert_eq!(room.admission(1, at(1)), EngineAdmission::Closed);
    room.record_turn(0, at(1));
    assert_eq!(room.admission(1, at(1)), EngineAdmission::Full);
    start(&mut room, 0, 2);
    room.release(0, true, at(3));
    assert_eq!(room.admission(1, at(119)), EngineAdmission::Closed);
    assert_eq!(room.admission(1, at(120)), EngineAdmission::Full);
}

#[test]
fn an_engine_that_waits_for_its_turn_is_urgent_until_it_has_had_it() {
    let mut room = room(100, &[60, 60]);
    start(&mut room, 0, 0);
    assert_eq!(room.urgency(1, at(119)), None);
    assert_eq!(room.urgency(1, at(121)), Some(at(121)));
    room.record_turn(1, at(121));
    assert_eq!(room.urgency(1, at(122)), None);
    assert_eq!(room.urgency(0, at(1000)), None, "it is loaded");
}

#[test]
fn an_invitation_without_a_task_is_over_and_the_engine_never_was_loaded() {
    let mut room = room(100, &[60, 60]);
    run(&mut room, 0, 0, 1);
    room.invite(1, at(2));
    assert_eq!(room.make_way(at(2)), [0]);
    room.record_unloaded(0);
    assert!(room.reserve(1, at(3)));
    assert_eq!(room.load_state(1), LoadState::Away);
    room.release(1, false, at(3));
    assert_eq!(room.admission(0, at(3)), EngineAdmission::Open);
}

/// Others leave for the engine, and the store has no task for it after all.
fn invite_in_vain(room: &mut DeviceScheduler, engine: usize, now: u64) {
    room.invite(engine, at(now));
    assert_eq!(room.make_way(at(now)), [0]);
    room.record_unloaded(0);
    assert!(room.reserve(engine, at(now)));
    room.record_turn(engine, at(now));
    room.release(engine, false, at(now));
}

#[test]
fn an_engine_that_was_invited_in_vain_waits_twice_as_long_each_time_up_to_a_bound() {
    let mut room = room(100, &[60, 60]);
    let mut now = 0;
    for turns in [0, 1, 2, 4, 8, 8, 8] {
        // The other one runs a task, and has no further one.
        run(&mut room, 0, now, now);
        let until = now + turns * AGE.as_secs();
        if turns > 0 {
            assert_eq!(room.admission(1, at(until - 1)), EngineAdmission::Closed);
        }
        now = until;
        assert_eq!(room.admission(1, at(now)), EngineAdmission::Full, "{turns}");
        invite_in_vain(&mut room, 1, now);
    }
}

#[test]
fn a_run_ends_the_wait_of_an_engine_that_was_invited_in_vain() {
    let mut room = room(100, &[60, 60]);
    run(&mut room, 0, 0, 0);
    invite_in_vain(&mut room, 1, 0);
    // It needs no invitation while the other is away.
    run(&mut room, 1, 1, 1);
    assert_eq!(room.admission(0, at(1)), EngineAdmission::Full);
    room.invite(0, at(1));
    assert_eq!(room.make_way(at(1)), [1]);
    room.record_unloaded(1);
    run(&mut room, 0, 2, 2);
    assert_eq!(room.admission(1, at(2)), EngineAdmission::Full);
    invite_in_vain(&mut room, 1, 2);
    run(&mut room, 0, 2, 2);
    assert_eq!(room.admission(1, at(121)), EngineAdmission::Closed);
    assert_eq!(room.admission(1, at(122)), EngineAdmission::Full);
}

#[test]
fn an_engine_that_could_not_begin_to_leave_is_idle_as_before() {
    let mut room = room(100, &[60, 60]);
    run(&mut room, 0, 0, 1);
    room.invite(1, at(2));
    assert_eq!(room.make_way(at(2)), [0]);
    room.cancel_departure(0);
    assert_eq!(room.load_state(0), LoadState::Idle);
    assert!(!room.reserve(1, at(2)), "its room is not free");
    assert!(!room.reserve(0, at(2)), "it is to leave");
    assert_eq!(room.make_way(at(3)), [0], "at the next try");
    room.record_unloaded(0);
    assert!(room.reserve(1, at(3)));
    // One that an earlier process may have left.
    room.clear(0, at(4));
    room.cancel_departure(0);
    assert_eq!(room.load_state(0), LoadState::Idle);
    assert_eq!(room.dismiss_idle(at(304)), [0]);
}

#[test]
fn a_claim_without_a_task_does_not_make_an_idle_engine_younger() {
    let mut room = room(100, &[60]);
    run(&mut room, 0, 0, 1);
    for second in 2..301 {
        assert!(room.reserve(0, at(second)));
        assert_eq!(room.dismiss_idle(at(second)), [0; 0]);
        room.release(0, false, at(second));
    }
    assert_eq!(room.dismiss_idle(at(300)), [0; 0]);
    assert_eq!(room.dismiss_idle(at(301)), [0]);
    assert_eq!(room.admission(0, at(301)), EngineAdmission::Closed);
}

#[test]
fn an_engine_that_does_not_leave_keeps_its_room_and_is_reported_once() {
    let mut room = room(100, &[60, 60, 30]);
    run(&mut room, 0, 0, 1);
    room.invite(1, at(2));
    assert_eq!(room.make_way(at(2)), [0]);
    assert_eq!(room.stuck(at(31)), [0; 0]);
    assert_eq!(room.stuck(at(32)), [0]);
    assert_eq!(room.stuck(at(99)), [0; 0]);
    assert!(!room.reserve(1, at(99)));
    assert!(room.reserve(2, at(99)), "the rest of the device is used");
}

#[test]
fn what_an_earlier_process_left_takes_room_until_it_is_gone() {
    let mut room = room(100, &[60, 60, 40]);
    room.clear(0, at(0));
    assert_eq!(room.load_state(0), LoadState::Leaving);
    assert_eq!(room.admission(0, at(0)), EngineAdmission::Closed);
    assert!(!room.reserve(1, at(0)), "60 may still be there");
    assert!(room.reserve(2, at(0)));
    room.record_unloaded(0);
    assert_eq!(room.load_state(0), LoadState::Away);
    room.begin_run(2, at(0));
    room.clear(2, at(0));
    assert_eq!(room.load_state(2), LoadState::InUse);
}

#[test]
fn an_idle_time_without_a_limit_never_ends() {
    let patience = DevicePatience {
        idle_max: None,
        age_max: AGE,
    };
    let mut room = DeviceScheduler::new(100, patience, [60], at(0));
    run(&mut room, 0, 0, 1);
    assert_eq!(room.dismiss_idle(Duration::MAX), [0; 0]);
}

#[test]
fn of_three_engines_with_many_tasks_each_waits_for_the_age_limit_and_a_task_of_each_other() {
    const TASK: u64 = 10;
    const HOUR: u64 = 3600;
    let mut room = room(100, &[60, 60, 60]);
    let (mut ends, mut last, mut loads) = ([None; 3], [0; 3], [0; 3]);
    let mut longest = 0;
    for second in 0..HOUR {
        let now = at(second);
        for engine in (0..3).filter(|engine| ends[*engine] == Some(second)) {
            room.release(engine, true, now);
        }
        for engine in room.make_way(now) {
            room.record_unloaded(engine);
        }
        let mut turns = [0, 1, 2];
        turns.sort_by_key(|engine| std::cmp::Reverse(room.urgency(*engine, now)));
        for engine in turns {
            room.invite(engine, now);
            let is_free = ends[engine].is_none_or(|end| end <= second);
            if is_free && room.reserve(engine, now) {
                room.record_turn(engine, now);
                loads[engine] += u64::from(room.begin_run(engine, now));
                longest = longest.max(second - last[engine]);
                last[engine] = second + TASK;
                ends[engine] = Some(second + TASK);
            }
        }
    }
    assert!(longest <= AGE.as_secs() + 3 * TASK, "{longest}");
    let turns = HOUR / AGE.as_secs();
    assert!(loads.iter().all(|loads| *loads <= turns), "{loads:?}");
    assert!(loads.iter().all(|loads| *loads >= turns / 2), "{loads:?}");
}
