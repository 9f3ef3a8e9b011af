//! The random operations.

use kinora_contract::{Clock as _, ManualClock};
use proptest::prelude::*;

/// Ways to settle a fetch.
pub(super) const SETTLED: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(super) enum FileOperation {
    /// With one of a few contents.
    Add {
        project: usize,
        content: u64,
        key: Option<u8>,
    },
    Confirm {
        file: u64,
    },
    Delete {
        file: u64,
        project: usize,
    },
}

#[derive(Clone, Debug)]
pub(super) enum Operation {
    Insert {
        project: usize,
        model: usize,
        key: Option<u8>,
        images: usize,
        priority: usize,
        /// Names this uploaded file.
        file: Option<u64>,
    },
    /// On uploaded files.
    File(FileOperation),
    TakeFetches {
        count: usize,
    },
    /// Settles one of the last fetches, counted from the newest, whatever its state.
    SettleFetch {
        fetch: usize,
        how: usize,
    },
    /// By one of two workers with this many slots; `models` is a set of bits.
    Claim {
        worker: u8,
        count: usize,
        models: usize,
        slots: usize,
        project_slots_max: usize,
        /// Limits the tasks that cost more than a plain one.
        long: Option<usize>,
    },
    /// With a preview.
    Renew {
        run: usize,
        progress: u8,
    },
    Finish {
        run: usize,
        well: bool,
    },
    Release {
        run: usize,
        attempt: usize,
    },
    Cancel {
        task: u64,
        project: usize,
    },
    Delete {
        task: u64,
        project: usize,
    },
    Sweep {
        after_ms: u64,
        trusts: bool,
    },
    /// Sets the wall clock by this many hours.
    SetClock {
        hours: i64,
    },
    /// Does all chores.
    Chores,
    /// Deletes every task, as its owner.
    DeleteAll,
    /// Keeps results that have ended by now for a minute longer.
    Postpone,
    ChargeReferences {
        task: u64,
        bytes: u64,
    },
}

impl Operation {
    /// The change of the clock before the operation.
    pub(super) fn pass_time(&self, clock: &ManualClock) {
        match self {
            Self::Sweep { after_ms, .. } => clock.advance(*after_ms),
            // Everything that may need time has had it.
            Self::DeleteAll => clock.advance(100 * 3_600_000),
            Self::SetClock { hours } => {
                clock.set(clock.now_ms().saturating_add_signed(hours * 3_600_000));
            }
            _ => {}
        }
    }
}

/// Sequences of up to 40, after which everything ends.
pub(super) fn operations() -> impl Strategy<Value = Vec<Operation>> {
    proptest::collection::vec(operation(), 1..40).prop_map(|mut operations| {
        let late = Operation::Sweep {
            after_ms: 70_000,
            trusts: true,
        };
        operations.extend([Operation::Chores, late.clone(), late.clone(), late]);
        operations.extend([Operation::Chores, Operation::DeleteAll, Operation::Chores]);
        operations
    })
}

fn file_operation() -> impl Strategy<Value = FileOperation> {
    use FileOperation::{Add, Confirm, Delete};
    prop_oneof![
        3 => (0..2_usize, 0..3_u64, proptest::option::of(0..2_u8))
            .prop_map(|(project, content, key)| Add { project, content, key }),
        3 => (0..6_u64).prop_map(|file| Confirm { file }),
        2 => (0..6_u64, 0..2_usize).prop_map(|(file, project)| Delete { file, project }),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::{
        Cancel, ChargeReferences, Chores, Claim, Delete, File, Finish, Insert, Postpone, Release,
        Renew, SetClock, SettleFetch, Sweep, TakeFetches,
    };
    prop_oneof![
        6 => (
            0..3_usize,
            0..2_usize,
            proptest::option::of(0..3_u8),
            0..3_usize,
            0..3_usize,
            proptest::option::weighted(0.3, 0..6_u64),
        )
            .prop_map(|(project, model, key, images, priority, file)| Insert {
                project,
                model,
                key,
                images,
                priority,
                file,
            }),
        8 => file_operation().prop_map(File),
        2 => (1..4_usize).prop_map(|count| TakeFetches { count }),
        3 => (0..3_usize, 0..SETTLED).prop_map(|(fetch, how)| SettleFetch { fetch, how }),
        4 => (0..2_u8, 0..3_usize, 1..4_usize, 1..5_usize, 0..3_usize, proptest::option::of(0..2_usize)).prop_map(
            |(worker, count, models, slots, project_slots_max, long)| Claim {
                worker,
                count,
                models,
                slots,
                project_slots_max,
                long,
            }
        ),
        2 => (0..8_usize, any::<u8>()).prop_map(|(run, progress)| Renew { run, progress }),
        3 => (0..8_usize, any::<bool>()).prop_map(|(run, well)| Finish { run, well }),
        1 => (0..8_usize, 0..3_usize).prop_map(|(run, attempt)| Release { run, attempt }),
        1 => (0..20_u64, 0..3_usize).prop_map(|(task, project)| Cancel { task, project }),
        1 => (0..20_u64, 0..3_usize).prop_map(|(task, project)| Delete { task, project }),
        2 => (0..40_000_u64, any::<bool>())
            .prop_map(|(after_ms, trusts)| Sweep { after_ms, trusts }),
        1 => (-2..3_i64).prop_map(|hours| SetClock { hours }),
        1 => Just(Postpone),
        2 => Just(Chores),
        1 => (0..20_u64, 0..9_u64).prop_map(|(task, bytes)| ChargeReferences { task, bytes }),
    ]
}
