//! The rule on its own: what a claim may take after any starts.

use std::collections::BTreeMap;

use kinora_contract::spec::SPEC_VERSION;
use kinora_contract::{
    FrameSize, Priority, Size, TaskId, TaskState, VideoInputs, VideoLength, VideoSpec,
};
use proptest::prelude::*;
use tokio::sync::Semaphore;

use crate::slots::*;

const MEMORY: Duration = Duration::from_secs(600);
/// Seconds of tasks.
const LONG: u32 = 15;
const SHORT: u32 = 2;

fn task(project: &str, model: &str, seconds: u32) -> Task {
    Task {
        id: TaskId::from_parts(1, [1; 10]),
        project: project.to_owned(),
        spec: VideoSpec {
            version: SPEC_VERSION,
            model: model.to_owned(),
            prompt: "a boat".to_owned(),
            negative_prompt: None,
            seconds: VideoLength::Fixed(seconds),
            frame: FrameSize::Fixed(Size::new(1280, 720)),
            seed: 1,
            generate_audio: false,
            inputs: VideoInputs::Text,
            draft: false,
            final_of: None,
            edit: None,
        },
        metadata: BTreeMap::new(),
        priority: Priority::Normal,
        state: TaskState::Waiting,
        progress: 0,
        created_at_ms: 0,
        started_at_ms: None,
        finished_at_ms: None,
        expires_at_ms: None,
        attempt: 0,
        engine: None,
        warnings: Vec::new(),
        trace: None,
        cost: None,
    }
}

/// Of models `a` and `b`, whose engine has this many seats.
fn queue(seats: Option<usize>) -> EngineQueue {
    EngineQueue::new(
        vec!["a".to_owned(), "b".to_owned()],
        seats.map(|seats| Arc::new(Semaphore::new(seats))),
    )
}

fn start(slot: &mut ShortSlot, project: &str, seconds: u32, at: Duration) -> RunningCost {
    slot.start(&task(project, "a", seconds), at)
}

fn long_tasks(slot: &mut ShortSlot, at: Duration) -> Option<LongTasks> {
    slot.long_tasks(&queue(None), at)
}

/// Starts tasks while the rule lets them; returns those that run.
fn start_all(slot: &mut ShortSlot, queue: &EngineQueue, tasks: &[(&str, u32)]) -> Vec<RunningCost> {
    let mut running = Vec::new();
    for (project, seconds) in tasks {
        let task = task(project, "a", *seconds);
        let long = slot.long_tasks(queue, Duration::ZERO);
        let waits = long.is_some_and(|long| task.spec.cost() > long.cost_over && long.count == 0);
        if running.len() < slot.slots && !waits {
            running.push(slot.start(&task, Duration::ZERO));
        }
    }
    running
}

#[test]
fn a_project_alone_with_equal_tasks_uses_all_slots() {
    for slots in [1, 2, 8] {
        let mut slot = ShortSlot::new(slots, MEMORY);
        let running = start_all(&mut slot, &queue(None), &[("one", LONG); 20]);
        assert_eq!(running.len(), slots);
    }
}

#[test]
fn tasks_that_differ_by_a_reference_or_a_second_are_equal() {
    let mut slot = ShortSlot::new(2, MEMORY);
    drop(start(&mut slot, "one", 5, Duration::ZERO));
    let running = start_all(&mut slot, &queue(None), &[("one", 6), ("one", 7)]);
    assert_eq!(running.len(), 2);
}

#[test]
fn p15_long_tasks_leave_a_slot_once_a_short_one_came() {
    for slots in [2, 8] {
        let mut slot = ShortSlot::new(slots, MEMORY);
        drop(start(&mut slot, "other", SHORT, Duration::ZERO));
        let mut running = start_all(&mut slot, &queue(None), &[("one", LONG); 20]);
        assert_eq!(running.len(), slots - 1, "however many of them came");
        // Short tasks use the slot, also those of the same project, and a long one waits for a long one.
        let short = start(&mut slot, "one", SHORT, Duration::ZERO);
        let full = |slot: &mut ShortSlot| long_tasks(slot, Duration::ZERO).unwrap().count == 0;
        assert!(full(&mut slot));
        drop(short);
        assert!(full(&mut slot));
        running.pop();
        assert!(!full(&mut slot));
    }
}

#[test]
fn one_slot_and_no_memory_have_no_long_tasks() {
    for (slots, memory) in [(1, MEMORY), (8, Duration::ZERO)] {
        let mut slot = ShortSlot::new(slots, memory);
        drop(start(&mut slot, "other", SHORT, Duration::ZERO));
        assert_eq!(long_tasks(&mut slot, Duration::ZERO), None);
    }
    assert_eq!(long_tasks(&mut ShortSlot::new(2, MEMORY), MEMORY), None);
}

#[test]
fn long_tasks_leave_a_seat_of_an_engine_with_several() {
    // Another engine has a long task, too.
    for (seats, wanted) in [(1, 6), (2, 1), (4, 3), (7, 6), (8, 6)] {
        let mut slot = ShortSlot::new(8, MEMORY);
        drop(start(&mut slot, "other", SHORT, Duration::ZERO));
        let _elsewhere = slot.start(&task("one", "c", LONG), Duration::ZERO);
        let own = start_all(&mut slot, &queue(Some(seats)), &[("one", LONG); 20]);
        assert_eq!(own.len(), wanted, "{seats} seats");
    }
}

#[test]
fn what_came_long_ago_is_forgotten() {
    let mut slot = ShortSlot::new(2, MEMORY);
    drop(start(&mut slot, "other", SHORT, Duration::ZERO));
    let long = long_tasks(&mut slot, MEMORY - Duration::from_millis(1)).unwrap();
    let cost = task("other", "a", SHORT).spec.cost();
    assert_eq!((long.cost_over, long.count), (cost + cost / 2, 1));
    assert_eq!(long_tasks(&mut slot, MEMORY), None);
    assert!(slot.recent.is_empty());
}

proptest! {
    /// Whatever comes: memory is bounded, usual tasks may have every slot, and others all but one.
    #[test]
    fn the_rule_holds_for_any_starts(
        slots in 1..9_usize,
        starts in proptest::collection::vec((0..100_u16, 1..16_u32, any::<bool>()), 1..300),
    ) {
        let mut slot = ShortSlot::new(slots, MEMORY);
        let mut running = Vec::new();
        for (second, (project, seconds, ends)) in (0..).zip(starts) {
            let now = Duration::from_secs(second);
            if ends && !running.is_empty() {
                running.remove(0);
            }
            let usual = slot.cost_over(now);
            if let Some(long) = long_tasks(&mut slot, now) {
                let costs: Vec<u64> = slot.recent.values().flatten().map(|start| start.cost).collect();
                prop_assert!(costs.iter().any(|cost| *cost <= long.cost_over));
                prop_assert_eq!(Some(long.cost_over), usual);
                prop_assert!(long.count < slots);
                let held = running.iter().filter(|one: &&RunningCost| one.own.cost > long.cost_over);
                prop_assert_eq!(long.count, (slots - 1).saturating_sub(held.count()));
            }
            running.push(start(&mut slot, &project.to_string(), seconds, now));
            prop_assert!(slot.recent.len() <= PROJECTS_MAX);
            prop_assert!(slot.recent.values().all(|starts| starts.len() <= COSTS_MAX));
            prop_assert_eq!(lock(&slot.running).len(), running.len());
        }
        drop(running);
        prop_assert!(lock(&slot.running).is_empty());
    }
}
