//! Many lives, on all cores, each from its own seed; and the report of one that broke a promise.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};

use crate::base::Base;
use crate::clocks::SimClock;
use crate::moment::at_one_moment;
use crate::world::{HOUR_MS, NOW_MS, Trace, World};

const SEEDS: u64 = 1_200;
/// `./soak sim` has 200, and 200 times as many lives.
const OPERATIONS: u64 = 40;
/// Each call of a life over PostgreSQL is a round trip or two.
const POSTGRES_SEEDS: u64 = 3;

/// So many lives see everything that a life can see.
const LIVES_FOR_ALL: u64 = 200;

/// What must have happened, so that a simulation which has gone idle is found out.
const EVENTS: &[&str] = &[
    "Waiting to Running ",
    "Running to Waiting ",
    "Running to Completed ",
    "Completed to Expired ",
    "Failed to Expired ",
    "Waiting to Failed cancelled",
    "Waiting to Failed reference_unreachable",
    "Running to Failed cancelled",
    "Running to Failed generation_failed",
    "Running to Failed generation_timeout",
    "Running to Failed out_of_memory",
    "Running to Failed worker_lost",
    "finish raced",
    "ticket followed",
    "upstream job called off",
    "given back for a fault of the service",
    "stale fetch refused",
    "host hiccuped",
    "orphan removed",
    "lease ran out unrenewed",
    "file removed as a chore",
    "chore taken again after its lease",
    "chore settled after its lease",
    "final replayed without its draft",
    "submit 200",
    "submit 400",
    "submit 410",
    "submit 422",
    "submit 429",
    "submit 503",
    "submit 503, disk full",
];

/// What a life came to, for the summary.
#[derive(Clone, Debug, Default)]
struct Sums {
    lives: u64,
    tasks: u64,
    /// Turns of tasks and answers to submits, by name.
    seen: BTreeMap<String, u64>,
    faults: [u64; 2],
    orphans: u64,
}

fn setting(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number"))
    })
}

async fn live(seed: u64, operations: u64, wrong_ms_max: u64, base: Base, trace: Trace) -> Sums {
    let clock = Arc::new(SimClock::at(NOW_MS));
    let mut world = at_one_moment(World::new(seed, clock, wrong_ms_max, base, trace));
    world.begin_all();
    for _ in 0..operations {
        world.operate().await;
    }
    world.come_to_rest().await;
    let faults = world.injected();
    world.trace().push(format!("faults {faults:?}"));
    let book = std::mem::take(&mut *world.book());
    Sums {
        lives: 1,
        tasks: book.gone.len() as u64,
        seen: book.seen,
        faults,
        orphans: world.orphans,
    }
}

thread_local! {
    /// The last panic of the thread: that of a worker's task ends that task alone.
    static PANICKED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The last panic of this life's thread.
pub(crate) fn panicked() -> Option<String> {
    PANICKED.with_borrow_mut(Option::take)
}

/// A runtime with one thread, in virtual time.
fn runtime() -> Runtime {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICKED.with_borrow_mut(|text| _ = text.get_or_insert_with(|| info.to_string()));
            report(info);
        }));
    });
    panicked();
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    runtime.unwrap()
}

/// One life; its story when it broke a promise.
fn try_to_live(seed: u64, operations: u64, base: Base) -> Result<Sums, String> {
    let test = match base {
        Base::Sqlite => "every_promise",
        Base::Postgres(_) => "postgres",
    };
    let trace = Trace::default();
    let lived = catch_unwind(AssertUnwindSafe(|| {
        runtime().block_on(live(seed, operations, HOUR_MS, base, trace.clone()))
    }));
    lived.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let mut story = format!("seed {seed} broke a promise after these operations:\n");
        for (number, line) in trace.lines().iter().enumerate() {
            let _ = writeln!(story, "{number:4} {line}");
        }
        let _ = write!(
            story,
            "{}\nreplay: KINORA_SIM_FIRST_SEED={seed} KINORA_SIM_SEEDS=1 \
             KINORA_SIM_OPERATIONS={operations} cargo test -p kinora-test-sim {test}",
            text.unwrap_or_default()
        );
        story
    })
}

/// Lives the seeds from `first` on, two or more at a time, each on a base of its own; the first broken promise ends it.
fn live_all(
    first: u64,
    count: u64,
    operations: u64,
    base: impl Fn() -> Base + Sync,
) -> Result<Sums, String> {
    let next = AtomicU64::new(0);
    let live_some = || -> Result<Sums, String> {
        let mut sums = Sums::default();
        loop {
            let number = next.fetch_add(1, Ordering::SeqCst);
            if number >= count {
                return Ok(sums);
            }
            let life = try_to_live(first + number, operations, base()).inspect_err(|_| {
                next.store(count, Ordering::SeqCst);
            })?;
            sums = sums.and(life);
        }
    };
    // A life often waits for one of its store's threads.
    let threads = 2 * std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(live_some)).collect();
        let mut all = Sums::default();
        for thread in threads {
            all = all.and(thread.join().expect("a life's panic is caught")?);
        }
        Ok(all)
    })
}

impl Sums {
    fn and(mut self, other: Self) -> Self {
        for (what, times) in other.seen {
            *self.seen.entry(what).or_default() += times;
        }
        Self {
            seen: self.seen,
            lives: self.lives + other.lives,
            tasks: self.tasks + other.tasks,
            faults: [0, 1].map(|at| self.faults[at] + other.faults[at]),
            orphans: self.orphans + other.orphans,
        }
    }
}

#[test]
fn every_promise_holds_after_every_operation_of_every_life() {
    let first = setting("KINORA_SIM_FIRST_SEED", 1);
    let operations = setting("KINORA_SIM_OPERATIONS", OPERATIONS);
    let began = Instant::now();
    let seeds = setting("KINORA_SIM_SEEDS", SEEDS);
    match live_all(first, seeds, operations, || Base::Sqlite) {
        Ok(sums) => {
            println!("from seed {first} in {:.1?}: {sums:#?}", began.elapsed());
            if sums.lives >= LIVES_FOR_ALL {
                let missed = EVENTS.iter().filter(|what| !sums.seen.contains_key(**what));
                let missed: Vec<_> = missed.collect();
                assert!(missed.is_empty(), "never happened: {missed:?}");
            }
        }
        Err(story) => panic!("{story}"),
    }
}

/// The processes die and begin anew, and the database stays: leases of the dead run out.
#[test]
fn every_promise_holds_over_postgres_which_outlives_its_processes() {
    let first = setting("KINORA_SIM_FIRST_SEED", 1);
    let operations = setting("KINORA_SIM_OPERATIONS", OPERATIONS);
    let seeds = setting("KINORA_SIM_POSTGRES_SEEDS", POSTGRES_SEEDS);
    let began = Instant::now();
    match live_all(first, seeds, operations, Base::new_database) {
        Ok(sums) => println!("from seed {first} in {:.1?}: {sums:#?}", began.elapsed()),
        Err(story) => panic!("{story}"),
    }
}

/// What happens in the life of a seed, with the workers' own clocks as wrong as that.
fn story(seed: u64, wrong_ms_max: u64) -> Vec<String> {
    let trace = Trace::default();
    runtime().block_on(live(
        seed,
        OPERATIONS,
        wrong_ms_max,
        Base::Sqlite,
        trace.clone(),
    ));
    trace.lines()
}

fn assert_same_lives(seeds: std::ops::RangeInclusive<u64>, wrong_ms_max: [u64; 2]) {
    for seed in seeds {
        let [one, other] = wrong_ms_max.map(|max| story(seed, max));
        assert_eq!(one.len(), other.len(), "seed {seed}");
        for (number, (one, other)) in one.iter().zip(other).enumerate() {
            assert_eq!(*one, other, "seed {seed}, operation {number}");
        }
    }
}

#[test]
fn a_seed_lives_the_same_life_every_time() {
    assert_same_lives(1..=5, [HOUR_MS, HOUR_MS]);
}

#[test]
fn wrong_clocks_of_workers_change_nothing() {
    assert_same_lives(6..=25, [0, HOUR_MS]);
}
