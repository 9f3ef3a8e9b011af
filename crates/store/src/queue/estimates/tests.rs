//! Clients that obey and clients that do not, on the test's own clock.

use std::collections::{BTreeMap, VecDeque};

use kinora_contract::lifecycle::{StoredLease, TaskEvent};
use kinora_contract::limits::RETRY_AFTER_SECONDS_MAX;
use kinora_contract::spec::SPEC_VERSION;
use kinora_contract::{
    Artifact, Clock as _, FrameSize, ManualClock, Priority, Size, StoredFile, Task, TaskId,
    TaskState, VideoInputs, VideoLength, VideoSpec,
};

use super::*;

fn waiting_task(seq: u64, project: &str) -> TaskRecord {
    let spec = VideoSpec {
        version: SPEC_VERSION,
        model: "model".to_owned(),
        prompt: "a boat".to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(5),
        frame: FrameSize::Fixed(Size::new(1280, 720)),
        seed: 1,
        generate_audio: false,
        inputs: VideoInputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    };
    let task = Task {
        id: TaskId::from_parts(seq, [1; 10]),
        project: project.to_owned(),
        spec,
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
    };
    TaskRecord::accepted(seq, task)
}

fn changed(record: &TaskRecord, event: TaskEvent) -> Arc<TaskRecord> {
    Arc::new(record.apply(event).unwrap().after.unwrap())
}

fn running(waiting: &TaskRecord) -> Arc<TaskRecord> {
    let held = StoredLease {
        token: 1,
        until_ms: 0,
        ends_ms: 0,
        worker: String::new(),
    };
    changed(waiting, TaskEvent::Claimed { held, now_ms: 0 })
}

#[test]
fn a_service_time_is_known_by_progress_before_the_first_task_ends() {
    let clock = Arc::new(ManualClock::at(0));
    let estimates = QueueEstimates::new(clock.clone());
    let waiting = waiting_task(1, "one");
    let begun = running(&waiting);
    let changed_to = |before: &Arc<TaskRecord>, after: Arc<TaskRecord>| RecordChange {
        id: after.task.id,
        before: Some(before.clone()),
        after: Some(after),
    };
    estimates.apply(&changed_to(&Arc::new(waiting), begun.clone()));
    let usual_ms = estimates.board().interval_ms();
    clock.advance(60_000);
    let mut reported = TaskRecord::clone(&begun);
    Arc::make_mut(&mut reported.task).progress = 10;
    estimates.apply(&changed_to(&begun, Arc::new(reported)));
    let told_ms = estimates.board().interval_ms();
    assert!(usual_ms < 60_000.0, "{usual_ms}");
    assert!((told_ms - 600_000.0).abs() < 1.0, "{told_ms}");
}

#[test]
fn a_place_of_an_own_project_comes_after_a_turn_of_each_other_one() {
    let estimates = QueueEstimates::new(Arc::new(ManualClock::at(0)));
    for (seq, project) in [(1, "one"), (2, "one"), (3, "two"), (4, "three")] {
        let record = Arc::new(waiting_task(seq, project));
        estimates.apply(&RecordChange {
            id: record.task.id,
            before: None,
            after: Some(record),
        });
    }
    let own = estimates.free_for_project("one", 2);
    let of_queue = estimates.free_in_queue(5);
    assert_eq!((own.free, of_queue.free), (0, 1));
    assert_eq!(own.interval_ms, 3 * of_queue.interval_ms);
}

fn completed(running: &TaskRecord) -> Arc<TaskRecord> {
    let file = || StoredFile {
        key: String::new(),
        bytes: 1,
        sha256: String::new(),
    };
    let artifact = Artifact {
        video: file(),
        thumbnail: file(),
        spritesheet: file(),
        first_frame: None,
        last_frame: None,
        duration_seconds: 5.0,
        fps: 24.0,
        frames: 120,
        width: 1280,
        height: 720,
        has_audio: false,
    };
    let finished = TaskEvent::Finished {
        token: 1,
        outcome: Box::new(Ok(artifact)),
        now_ms: 0,
        retention_ms: 0,
    };
    changed(running, finished)
}

/// Duration of a task, in milliseconds; each varies by up to a tenth.
const TASK_MS: u64 = 4_000;
/// Interval of time steps.
const TICK_MS: u64 = 20;

#[derive(Clone, Copy)]
enum Bound {
    /// Of the tasks of each project, waiting or running.
    Own(u64),
    /// Of all that wait.
    Queue(u64),
}

/// One slot, with its queue and clients.
struct Service {
    bound: Bound,
    clock: Arc<ManualClock>,
    estimates: QueueEstimates,
    random: u64,
    seq: u64,
    waiting: VecDeque<Arc<TaskRecord>>,
    running: Option<(Arc<TaskRecord>, u64)>,
}

impl Service {
    /// A service that has run a task, and knows its duration.
    fn new(bound: Bound, seed: u64) -> Self {
        let clock = Arc::new(ManualClock::at(1_000_000));
        let mut service = Self {
            bound,
            estimates: QueueEstimates::new(clock.clone()),
            clock,
            random: seed,
            seq: 0,
            waiting: VecDeque::new(),
            running: None,
        };
        assert!(service.submit("newcomer").is_ok());
        while service.running.is_some() || !service.waiting.is_empty() {
            service.tick();
        }
        service
    }

    /// A number below `limit` (Knuth's MMIX generator).
    fn random(&mut self, limit: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % limit
    }

    fn change(&mut self, before: Option<Arc<TaskRecord>>, after: Arc<TaskRecord>) {
        let (id, after) = (after.task.id, Some(after));
        let change = RecordChange { id, before, after };
        self.estimates.apply(&change);
    }

    /// Returns the seconds to wait if there is no room.
    fn submit(&mut self, project: &str) -> Result<(), u64> {
        let now_ms = self.clock.now_ms();
        let estimates = &self.estimates;
        let (bounds, full) = match self.bound {
            Bound::Own(max) => {
                let is_full = estimates.free_for_project(project, max).free == 0;
                let bounds = QueueBounds {
                    project_unfinished_max: max,
                    ..QueueBounds::NONE
                };
                (bounds, is_full.then_some(ExceededLimit::Project))
            }
            Bound::Queue(max) => {
                let free = estimates.free_in_queue(max).free;
                let is_full = free <= estimates.reserved(project, now_ms);
                let bounds = QueueBounds {
                    waiting_max: max,
                    ..QueueBounds::NONE
                };
                (bounds, is_full.then_some(ExceededLimit::Queue))
            }
        };
        if let Some(full) = full {
            let refused = estimates.refuse(project, now_ms, bounds, full);
            let (InsertOutcome::QueueFull(after) | InsertOutcome::ProjectFull(after)) = refused
            else {
                panic!("{refused:?}");
            };
            return Err(after.millis.div_ceil(1000));
        }
        estimates.admitted(project, now_ms);
        self.seq += 1;
        let record = Arc::new(waiting_task(self.seq, project));
        self.waiting.push_back(record.clone());
        self.change(None, record);
        Ok(())
    }

    fn tick(&mut self) {
        self.clock.advance(TICK_MS);
        let now_ms = self.clock.now_ms();
        if let Some((record, _)) = self.running.take_if(|(_, end_ms)| *end_ms <= now_ms) {
            let ended = completed(&record);
            self.change(Some(record), ended);
        }
        if self.running.is_none()
            && let Some(next) = self.waiting.pop_front()
        {
            let took_ms = TASK_MS * (90 + self.random(21)) / 100;
            let begun = running(&next);
            self.change(Some(next), begun.clone());
            self.running = Some((begun, now_ms + took_ms));
        }
    }
}

/// A client that waits as long as `Retry-After` says.
struct Obedient {
    project: String,
    next_ms: u64,
    refused: u32,
    let_in: bool,
}

/// How often each client was refused until all were admitted, in addition to one that never waits,
/// if there is one.
fn refusals(bound: Bound, projects: &[&str], never_waits: Option<&str>, seed: u64) -> Vec<u32> {
    let mut service = Service::new(bound, seed);
    if let Some(hostile) = never_waits {
        while service.submit(hostile).is_ok() {}
    }
    let mut clients: Vec<Obedient> = projects
        .iter()
        .map(|project| Obedient {
            project: (*project).to_owned(),
            next_ms: service.clock.now_ms() + service.random(200),
            refused: 0,
            let_in: false,
        })
        .collect();
    while clients.iter().any(|client| !client.let_in) {
        service.tick();
        if let Some(hostile) = never_waits {
            let _ = service.submit(hostile);
        }
        for client in &mut clients {
            if client.let_in || client.next_ms > service.clock.now_ms() {
                continue;
            }
            match service.submit(&client.project) {
                Ok(()) => client.let_in = true,
                Err(seconds) => {
                    assert!(
                        (1..=RETRY_AFTER_SECONDS_MAX).contains(&seconds),
                        "{seconds}"
                    );
                    client.refused += 1;
                    let late_ms = service.random(300);
                    client.next_ms = service.clock.now_ms() + seconds * 1000 + late_ms;
                }
            }
        }
    }
    clients.iter().map(|client| client.refused).collect()
}

/// A client that was refused once must be admitted the next time, in nine of ten cases.
fn assert_let_in(refusals: &[u32]) {
    let refused = refusals.iter().filter(|times| **times > 0).count();
    let again = refusals.iter().filter(|times| **times > 1).count();
    assert!(refused > 0, "there was always room");
    assert!(again * 10 <= refused, "{refusals:?}");
}

#[test]
fn who_obeys_gets_in_beside_others_of_its_project() {
    for seed in 0..20 {
        assert_let_in(&refusals(Bound::Own(2), &["one"; 20], None, seed));
    }
}

#[test]
fn who_obeys_gets_in_beside_other_projects() {
    let names: Vec<String> = (0..20).map(|number| format!("p{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for seed in 0..20 {
        assert_let_in(&refusals(Bound::Queue(2), &names, None, seed));
    }
}

#[test]
fn who_obeys_gets_in_beside_one_that_never_waits() {
    let names: Vec<String> = (0..18).map(|number| format!("p{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for seed in 0..20 {
        assert_let_in(&refusals(Bound::Queue(2), &names, Some("hostile"), seed));
    }
}

#[test]
fn who_comes_when_a_place_is_free_comes_late_enough() {
    let after = |free, ahead| {
        let interval_ms = 2_000;
        FreePlaces { free, interval_ms }.after_ms(ahead)
    };
    assert_eq!(
        [0, 1, 2].map(|ahead| after(0, ahead)),
        [2_900, 5_300, 7_700]
    );
    // Places that came free since the refusal are there at once.
    assert_eq!([0, 1].map(|ahead| after(1, ahead)), [LATENCY_MS, 2_900]);
    assert_eq!(after(u64::MAX, 5), LATENCY_MS);
    assert_eq!(after(0, 1_000_000), AFTER_MAX_MS);
}

#[test]
fn nobody_is_told_the_same_time_as_one_that_an_older_estimate_told() {
    let vacancies = FreePlaces {
        free: 0,
        interval_ms: 2_000,
    };
    let due = |ahead, last_ms| vacancies.due_ms(ahead, last_ms, 100_000);
    assert_eq!(due(0, None), 102_900);
    assert_eq!(due(1, Some(102_900)), 105_300);
    assert_eq!(due(1, Some(150_000)), 152_000);
    assert_eq!(due(1, Some(219_999)), 100_000 + AFTER_MAX_MS);
}
