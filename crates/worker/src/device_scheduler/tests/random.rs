//! The rules of a device under random operations.

use proptest::prelude::*;

use super::*;

/// What can happen to a device, with the engine that it happens to.
#[derive(Clone, Copy, Debug)]
enum Step {
    Claim(usize),
    ClaimNothing(usize),
    EndRun(usize),
    Invite(usize),
    /// Others leave for the engine, and there is no task for it.
    InviteInVain(usize),
    MakeWay,
    Left(usize),
    Stay(usize),
    Look,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let engine = 0..4_usize;
    prop_oneof![
        4 => engine.clone().prop_map(Step::Claim),
        1 => engine.clone().prop_map(Step::ClaimNothing),
        4 => engine.clone().prop_map(Step::EndRun),
        2 => engine.clone().prop_map(Step::Invite),
        2 => engine.clone().prop_map(Step::InviteInVain),
        2 => Just(Step::MakeWay),
        3 => engine.clone().prop_map(Step::Left),
        1 => engine.prop_map(Step::Stay),
        1 => Just(Step::Look),
        2 => (1..100_u64).prop_map(Step::Wait),
    ]
}

/// A device beside what the test knows of it.
struct Watched {
    room: DeviceScheduler,
    needs: Vec<u64>,
    runs: Vec<usize>,
    last: Vec<Duration>,
    started: Vec<usize>,
    /// Invitations in a row that led to no run, and the time of the last one.
    in_vain: Vec<(u32, Duration)>,
    now: Duration,
}

impl Watched {
    /// All engines have tasks, and this one waits for room: a turn of claims, and the end of all runs.
    fn turn(&mut self, waiting: usize) {
        self.now += AGE;
        let mut turns: Vec<usize> = (0..4).collect();
        turns.sort_by_key(|engine| std::cmp::Reverse(self.room.urgency(*engine, self.now)));
        for engine in turns {
            self.take(Step::Claim(engine));
        }
        self.take(Step::Invite(waiting));
        for engine in (0..4)
            .flat_map(|engine| vec![engine; self.runs[engine]])
            .collect::<Vec<_>>()
        {
            self.take(Step::EndRun(engine));
            self.check();
        }
        self.take(Step::MakeWay);
        self.check();
        (0..4).for_each(|engine| self.take(Step::Left(engine)));
    }

    fn take(&mut self, step: Step) {
        let now = self.now;
        match step {
            Step::Claim(engine) => {
                if self.room.reserve(engine, now) {
                    self.room.record_turn(engine, now);
                    self.room.begin_run(engine, now);
                    self.runs[engine] += 1;
                    self.started[engine] += 1;
                    self.in_vain[engine] = (0, now);
                }
            }
            Step::ClaimNothing(engine) => {
                let is_invited = self.is_invited(engine);
                if self.room.reserve(engine, now) {
                    self.room.record_turn(engine, now);
                    self.room.release(engine, false, now);
                    if is_invited {
                        self.in_vain[engine] = (self.in_vain[engine].0 + 1, now);
                    }
                }
            }
            Step::EndRun(engine) => {
                if self.runs[engine] > 0 {
                    self.runs[engine] -= 1;
                    self.last[engine] = now;
                    self.room.release(engine, true, now);
                }
            }
            Step::Invite(engine) => {
                let was_invited = self.is_invited(engine);
                self.room.invite(engine, now);
                let (times, last) = self.in_vain[engine];
                if times > 0 && !was_invited && self.is_invited(engine) {
                    let waited = now - last;
                    assert!(waited >= AGE * 2_u32.pow(times - 1).min(8), "{waited:?}");
                }
            }
            Step::InviteInVain(engine) => {
                self.take(Step::Invite(engine));
                self.take(Step::MakeWay);
                (0..4).for_each(|other| self.take(Step::Left(other)));
                self.take(Step::ClaimNothing(engine));
            }
            Step::MakeWay => self.leave(DeviceScheduler::make_way, true),
            Step::Left(engine) => self.room.record_unloaded(engine),
            Step::Stay(engine) => self.room.cancel_departure(engine),
            Step::Look => self.leave(DeviceScheduler::dismiss_idle, false),
            Step::Wait(seconds) => self.now += at(seconds),
        }
    }

    fn is_invited(&self, engine: usize) -> bool {
        self.room.tenants[engine].place == EngineResidency::Invited
    }

    /// Nobody in use leaves, and the longest unused one leaves first; make_way spares those that may have tasks.
    fn leave(
        &mut self,
        decide: fn(&mut DeviceScheduler, Duration) -> Vec<usize>,
        spares_wanted: bool,
    ) {
        let idle =
            |room: &DeviceScheduler, engine: usize| room.load_state(engine) == LoadState::Idle;
        let mut before: Vec<usize> = (0..4).filter(|one| idle(&self.room, *one)).collect();
        let is_wanted = |engine: usize| {
            let used = self.room.tenants[engine].idle();
            used.is_some_and(|used| !used.is_unwanted)
        };
        before.sort_by_key(|engine| {
            let last = spares_wanted && is_wanted(*engine);
            (last, self.last[*engine], *engine)
        });
        let leaving = decide(&mut self.room, self.now);
        assert_eq!(leaving, before[..leaving.len()], "the longest unused first");
        assert!(leaving.iter().all(|engine| self.runs[*engine] == 0));
    }

    fn check(&self) {
        let standing = |engine| self.room.load_state(engine);
        let there = (0..4).filter(|engine| standing(*engine) != LoadState::Away);
        let there: u64 = there.map(|engine| self.needs[engine]).sum();
        assert!(there <= self.room.budget, "{there}: {:?}", self.room);
        for engine in 0..4 {
            let is_used = standing(engine) == LoadState::InUse;
            assert_eq!(is_used, self.runs[engine] > 0, "{engine}: {:?}", self.room);
        }
    }
}

proptest! {
    #[test]
    fn the_budget_holds_and_no_engine_in_use_leaves(
        needs in prop::collection::vec(1..=100_u64, 4),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut watched = Watched {
            room: room(100, &needs),
            needs,
            runs: vec![0; 4],
            last: vec![at(0); 4],
            started: vec![0; 4],
            in_vain: vec![(0, at(0)); 4],
            now: at(0),
        };
        for step in steps {
            watched.take(step);
            watched.check();
        }
        // From any state, tasks of each engine start in the end, although the others always have tasks, and although it
        // was invited in vain.
        for engine in 0..4 {
            let before = watched.started[engine];
            let rounds = (0..20).take_while(|_| {
                watched.turn(engine);
                watched.started[engine] == before
            });
            prop_assert!(rounds.count() < 20, "{} starves: {:?}", engine, watched.room);
        }
    }
}
