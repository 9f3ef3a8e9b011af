//! Places under outages, failed jobs, trials and pauses.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

struct Bench {
    places: Arc<Places>,
    millis: Arc<AtomicU64>,
}

impl Bench {
    fn new(count: usize, jobs_max: Option<usize>) -> Self {
        let millis = Arc::new(AtomicU64::new(100_000));
        let rules = PlaceRules {
            jobs_max,
            failures_max: 3,
            pause: Box::new(|failures| Duration::from_secs(1 << failures.min(6))),
            probes: jobs_max.is_none(),
            are_shared: jobs_max.is_none(),
        };
        let names = (0..count).map(|index| format!("place {index}"));
        let read = millis.clone();
        let now = move || Duration::from_millis(read.load(Ordering::Relaxed));
        Self {
            places: Places::new(names.collect(), rules, now),
            millis,
        }
    }

    fn pass(&self, seconds: u64) {
        self.millis.fetch_add(seconds * 1_000, Ordering::Relaxed);
    }

    fn choose_avoiding(&self, avoid: &[&str]) -> PlaceChoice {
        let avoid: Vec<String> = avoid.iter().map(|&name| name.to_owned()).collect();
        self.places.choose(&PlaceWish {
            may: &|_| true,
            prefers: &|_| false,
            avoid: &avoid,
        })
    }

    fn take(&self) -> PlaceVisit {
        taken(self.choose_avoiding(&[]))
    }

    fn fail(&self, index: usize, job: &str) {
        self.places.record_job_failure(
            index,
            FailedJob {
                key: job,
                has_elsewhere: false,
                has_failed_elsewhere: false,
                error: "it failed",
            },
        );
    }

    fn state(&self, index: usize) -> PlaceState {
        self.places.report()[index].state
    }
}

fn taken(choice: PlaceChoice) -> PlaceVisit {
    match choice {
        PlaceChoice::Take(visit) => visit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_least_busy_is_chosen_and_a_visit_ends_when_dropped() {
    let bench = Bench::new(3, None);
    let mut visits: Vec<PlaceVisit> = (0..6).map(|_| bench.take()).collect();
    let chosen: Vec<usize> = visits.iter().map(|visit| visit.index).collect();
    assert_eq!(chosen, [0, 1, 2, 0, 1, 2]);
    drop(visits.remove(4));
    assert_eq!(bench.take().index, 1);
    let _resumed = bench.places.record_visit(1);
    assert_eq!(bench.take().index, 0);
}

#[test]
fn a_place_that_asks_for_a_pause_gets_it() {
    let bench = Bench::new(2, None);
    bench.places.record_pause(0, Some(Duration::from_mins(1)));
    assert_eq!(bench.take().index, 1);
    bench.places.record_pause(1, Some(Duration::from_secs(90)));
    let PlaceChoice::Wait(until) = bench.choose_avoiding(&[]) else {
        panic!("both are held");
    };
    assert_eq!(until, Duration::from_secs(160));
    bench.pass(60);
    assert_eq!(bench.take().index, 0);
    assert!(matches!(bench.places.choose_only(1), PlaceChoice::Wait(_)));
}

#[test]
fn a_server_with_outages_is_asked_by_one_and_the_others_go_elsewhere_or_wait_for_the_answer() {
    let bench = Bench::new(2, None);
    for _ in 0..3 {
        bench.places.record_outage(0, "status 500");
    }
    bench.pass(100);
    let PlaceChoice::Probe(probe) = bench.choose_avoiding(&[]) else {
        panic!("it is due");
    };
    assert_eq!(bench.take().index, 1, "one probe at a time");
    let mut changes = bench.places.changes();
    changes.mark_unchanged();
    bench.places.record_recovery(0);
    assert!(changes.has_changed().unwrap(), "waiting jobs are woken");
    drop(probe);
    let both = [bench.take(), bench.take()];
    assert!(both.iter().any(|visit| visit.index == 0));
}

#[test]
fn a_probe_that_is_given_up_blocks_no_later_one() {
    let bench = Bench::new(1, None);
    bench.places.record_breakage(0, "status 401");
    assert!(matches!(bench.choose_avoiding(&[]), PlaceChoice::Wait(_)));
    bench.pass(100);
    for _ in 0..2 {
        assert!(matches!(bench.choose_avoiding(&[]), PlaceChoice::Probe(_)));
    }
    bench.places.record_answer(0);
    assert_eq!(bench.take().index, 0);
}

#[test]
fn a_place_whose_jobs_succeed_elsewhere_is_quarantined_until_one_succeeds_there() {
    let bench = Bench::new(2, Some(1));
    for (job, state) in [
        ("a", PlaceState::Paused),
        ("b", PlaceState::Paused),
        ("c", PlaceState::Quarantined),
    ] {
        let visit = taken(bench.choose_avoiding(&["place 1"]));
        assert_eq!(visit.index, 0, "the other place is the one to avoid");
        drop(visit);
        bench.fail(0, job);
        bench.places.record_success(1);
        assert_eq!(bench.state(0), state, "{job}");
        bench.pass(8);
    }
    let (first, second) = (bench.take(), bench.take());
    assert_eq!((first.index, second.index), (0, 1), "one job tries it");
    assert!(first.must_restart, "its process is replaced before");
    drop((first, second));
    bench.fail(0, "d");
    assert_eq!(bench.places.vacancies(0), 1, "after a pause of its own");
    bench.pass(16);
    assert_eq!(taken(bench.choose_avoiding(&["place 1"])).index, 0);
    assert_eq!(bench.places.vacancies(0), 2, "a trial is due");
    bench.places.record_success(0);
    assert_eq!(bench.state(0), PlaceState::Available);
    let report = &bench.places.report()[0];
    assert_eq!(report.quarantined, Duration::from_secs(24));
    assert_eq!(report.last_error.as_deref(), Some("it failed"));
}

#[test]
fn a_failed_job_goes_to_a_place_that_is_not_in_quarantine_even_if_it_must_wait_for_it() {
    let bench = Bench::new(3, Some(1));
    for job in ["a", "b", "c"] {
        bench.fail(2, job);
    }
    bench.pass(100);
    let busy = taken(bench.choose_avoiding(&["place 0"]));
    assert_eq!(busy.index, 1);
    assert!(matches!(
        bench.choose_avoiding(&["place 0"]),
        PlaceChoice::Wait(_)
    ));
    drop(busy);
    assert_eq!(taken(bench.choose_avoiding(&["place 0"])).index, 1);
    let only = Bench::new(1, Some(1));
    assert_eq!(taken(only.choose_avoiding(&["place 0"])).index, 0);
}

#[test]
fn a_job_that_fails_at_two_places_counts_against_neither() {
    let bench = Bench::new(2, Some(1));
    for round in 0..20 {
        let job = format!("bad {round}");
        bench.fail(round % 2, &job);
        bench.fail(1 - round % 2, &job);
        let states = [bench.state(0), bench.state(1)];
        assert_eq!(states, [PlaceState::Available; 2], "{round}");
    }
    // Judged by another worker.
    for round in 0..20 {
        bench.places.record_job_failure(
            0,
            FailedJob {
                key: &format!("bad elsewhere {round}"),
                has_elsewhere: true,
                has_failed_elsewhere: true,
                error: "it failed",
            },
        );
    }
    assert_eq!(bench.state(0), PlaceState::Available);
}

#[test]
fn the_same_failing_job_quarantines_no_place() {
    let bench = Bench::new(2, Some(1));
    for _ in 0..10 {
        bench.fail(0, "the same");
    }
    assert_eq!(bench.state(0), PlaceState::Paused);
}

#[test]
fn an_only_place_is_never_paused_by_jobs_but_its_process_is_replaced_ever_more_seldom() {
    let bench = Bench::new(1, Some(1));
    let mut restarts = Vec::new();
    for job in 0..40 {
        if bench.take().must_restart {
            restarts.push(job);
        }
        bench.fail(0, &format!("job {job}"));
    }
    assert_eq!(restarts, [3, 9, 21, 33]);
    bench.places.record_success(0);
    assert_eq!(bench.state(0), PlaceState::Available);
    let elsewhere = FailedJob {
        key: "a",
        has_elsewhere: true,
        has_failed_elsewhere: false,
        error: "it failed",
    };
    bench.places.record_job_failure(0, elsewhere);
    assert_eq!(bench.state(0), PlaceState::Paused, "another worker can");
}

#[test]
fn vacancies_count_what_the_places_take_now() {
    let bench = Bench::new(2, Some(1));
    assert_eq!(bench.places.vacancies(0), 2);
    assert_eq!(bench.places.vacancies(1), 1);
    bench.places.record_outage(0, "exited while it opened");
    assert_eq!(bench.places.vacancies(0), 1);
    for _ in 0..2 {
        bench.places.record_outage(0, "exited while it opened");
        bench.places.record_breakage(1, "exited while it opened");
    }
    assert!(!bench.places.are_usable());
    assert_eq!(bench.places.vacancies(0), 0);
    bench.pass(100);
    assert_eq!(bench.places.vacancies(0), 2, "one probe each");
    let servers = Bench::new(1, None);
    servers.places.record_pause(0, Some(Duration::from_mins(9)));
    assert_eq!(servers.places.vacancies(7), usize::MAX);
    servers.places.record_breakage(0, "status 401");
    assert_eq!(servers.places.vacancies(0), 0);
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Take { avoid: Option<usize> },
        Succeed(usize),
        Fail(usize, u8),
        Outage(usize),
        Back(usize),
        Pass(u64),
        Leave,
    }

    fn step() -> impl Strategy<Value = Step> {
        let place = 0..3_usize;
        prop_oneof![
            prop::option::of(place.clone()).prop_map(|avoid| Step::Take { avoid }),
            place.clone().prop_map(Step::Succeed),
            (place.clone(), 0..6_u8).prop_map(|(place, job)| Step::Fail(place, job)),
            place.clone().prop_map(Step::Outage),
            place.prop_map(Step::Back),
            (0..90_u64).prop_map(Step::Pass),
            Just(Step::Leave),
        ]
    }

    proptest! {
        /// Whatever happens, no place gets more jobs than it takes, a retry goes elsewhere, and
        /// after a long enough pause and the end of all jobs every place takes one again.
        #[test]
        fn no_place_is_overfull_and_none_is_left_out_for_ever(
            steps in prop::collection::vec(step(), 0..60),
            shared in any::<bool>(),
        ) {
            let bench = Bench::new(3, if shared { None } else { Some(1) });
            let mut visits = Vec::new();
            for step in steps {
                match step {
                    Step::Take { avoid } => {
                        let name = avoid.map(|index| format!("place {index}"));
                        let names: Vec<&str> = name.iter().map(String::as_str).collect();
                        if let PlaceChoice::Take(visit) = bench.choose_avoiding(&names) {
                            prop_assert_ne!(Some(visit.index), avoid);
                            visits.push(visit);
                        }
                    }
                    Step::Succeed(index) => bench.places.record_success(index),
                    Step::Fail(index, job) => bench.fail(index, &format!("job {job}")),
                    Step::Outage(index) => bench.places.record_outage(index, "no answer"),
                    Step::Back(index) => bench.places.record_recovery(index),
                    Step::Pass(seconds) => bench.pass(seconds),
                    Step::Leave => drop(visits.pop()),
                }
                if !shared {
                    prop_assert!(bench.places.report().iter().all(|place| place.running <= 1));
                }
            }
            visits.clear();
            bench.pass(90);
            for index in 0..3 {
                let only = |one: usize| one == index;
                let wish = PlaceWish { may: &only, prefers: &|_| false, avoid: &[] };
                match bench.places.choose(&wish) {
                    PlaceChoice::Wait(_) => prop_assert!(false, "place {} is left out", index),
                    PlaceChoice::Probe(_) | PlaceChoice::Take(_) => {}
                }
            }
        }
    }
}
