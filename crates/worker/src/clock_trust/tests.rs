//! Tests of the wall clock's trust, by tables of readings.

use super::*;

const NOW: UnixMs = RELEASED_MS + 300 * 24 * HOUR;
const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const YEAR: u64 = 365 * 24 * HOUR;
const SETTLE: u64 = 10 * MINUTE;

/// A trust, and a wall clock that can be set.
struct Bench {
    trust: ClockTrust,
    reading: ClockReading,
}

impl Bench {
    fn at(wall_ms: UnixMs) -> Self {
        Self {
            trust: ClockTrust::new(SETTLE),
            reading: ClockReading {
                wall_ms,
                steady_ms: 7 * HOUR,
            },
        }
    }

    /// Lets time pass with a sweep every five seconds, and carries out each sweep's requests.
    fn pass(&mut self, ms: u64) -> (bool, Vec<ExpiryMove>) {
        let mut moves = Vec::new();
        let mut verdict = self.trust.evaluate(self.reading);
        for _ in 0..ms / (5 * SECOND) {
            self.reading.wall_ms += 5 * SECOND;
            self.reading.steady_ms += 5 * SECOND;
            verdict = self.trust.evaluate(self.reading);
            while let Some(next) = self.trust.next_move() {
                assert!(!verdict.trusts_wall, "nothing expires before it is moved");
                moves.push(next);
                self.trust.confirm_move();
                verdict = self.trust.evaluate(self.reading);
            }
        }
        (verdict.trusts_wall, moves)
    }

    fn set(&mut self, by_ms: i64) {
        self.reading.wall_ms = self.reading.wall_ms.saturating_add_signed(by_ms);
    }

    /// Sets the wall clock forward.
    fn forward(&mut self, by_ms: u64) {
        self.set(signed(by_ms));
    }

    fn lag(&self, span_ms: u64) -> u64 {
        self.trust.lag_ms(self.reading.steady_ms, span_ms)
    }

    fn verdict(&mut self) -> ClockVerdict {
        self.trust.evaluate(self.reading)
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap()
}

fn past(wall_ms: UnixMs) -> ExpiryMove {
    ExpiryMove {
        from_ms: 0,
        before_ms: RELEASED_MS,
        by: PostponedExpiry::From(wall_ms),
    }
}

#[test]
fn a_clock_is_believed_after_it_has_agreed_for_a_while() {
    let mut bench = Bench::at(NOW);
    assert!(!bench.pass(SETTLE - 5 * SECOND).0);
    assert_eq!(bench.pass(5 * SECOND), (true, vec![past(NOW + SETTLE)]));
    assert_eq!(bench.pass(24 * HOUR), (true, Vec::new()));
}

#[test]
fn a_step_is_a_step_from_a_minute_on() {
    for (by_ms, believed) in [
        (signed(MINUTE), true),
        (signed(MINUTE) + 1, false),
        (-signed(MINUTE), true),
        (-signed(MINUTE) - 1, false),
        (signed(HOUR), false),
        (signed(10 * YEAR), false),
    ] {
        let mut bench = Bench::at(NOW);
        bench.pass(SETTLE);
        bench.set(by_ms);
        assert_eq!(bench.verdict().trusts_wall, believed, "{by_ms}");
    }
}

#[test]
fn many_small_steps_are_a_step() {
    let mut bench = Bench::at(NOW);
    assert!(bench.pass(SETTLE).0);
    for small in 0..3 {
        bench.forward(30 * SECOND);
        assert_eq!(bench.pass(5 * SECOND).0, small < 2, "{small}");
    }
}

#[test]
fn a_clock_that_is_wrong_for_a_moment_moves_nothing() {
    for by_ms in [signed(10 * YEAR), signed(25 * HOUR), -signed(2 * HOUR)] {
        let mut bench = Bench::at(NOW);
        bench.pass(SETTLE);
        bench.set(by_ms);
        assert_eq!(bench.pass(MINUTE), (false, Vec::new()), "{by_ms}");
        bench.set(-by_ms);
        assert!(!bench.verdict().trusts_wall, "{by_ms}");
        let (trusted, moves) = bench.pass(SETTLE);
        assert!(trusted, "{by_ms}");
        // Results of the first period keep their clock; those of a clock behind it catch up.
        let late = moves.iter().filter(|one| one.before_ms != RELEASED_MS);
        assert_eq!(late.count(), usize::from(by_ms < 0), "{by_ms}: {moves:?}");
    }
}

#[test]
fn results_of_before_a_step_that_stays_are_kept_as_much_longer() {
    let mut bench = Bench::at(NOW);
    bench.pass(2 * HOUR);
    bench.forward(YEAR);
    let set_at = bench.reading.wall_ms;
    let (trusted, moves) = bench.pass(SETTLE);
    let moved = ExpiryMove {
        from_ms: NOW,
        before_ms: NOW + 2 * HOUR,
        by: PostponedExpiry::By(YEAR),
    };
    assert_eq!((trusted, moves), (true, vec![past(set_at + SETTLE), moved]));

    // Another step postpones them further, and those of the time between by itself.
    bench.forward(HOUR);
    let (_, moves) = bench.pass(SETTLE);
    let by = moves.iter().map(|one| (one.from_ms, one.by));
    let again = [
        (0, PostponedExpiry::From(bench.reading.wall_ms)),
        (NOW, PostponedExpiry::By(YEAR + HOUR)),
        (set_at, PostponedExpiry::By(HOUR)),
    ];
    assert_eq!(by.collect::<Vec<_>>(), again);
}

#[test]
fn a_clock_before_the_release_is_never_believed_and_what_it_stamped_is_kept() {
    let mut bench = Bench::at(946_684_800_000);
    assert_eq!(bench.pass(24 * HOUR), (false, Vec::new()));
    bench.forward(NOW - bench.reading.wall_ms);
    let set_at = bench.reading.wall_ms;
    assert!(!bench.pass(SETTLE - 5 * SECOND).0);
    let (trusted, moves) = bench.pass(5 * SECOND);
    assert_eq!((trusted, moves), (true, vec![past(set_at + SETTLE)]));
    assert_eq!(bench.verdict().waiting_from.from_ms, set_at);
}

#[test]
fn a_step_back_that_stays_moves_nothing() {
    let mut bench = Bench::at(NOW);
    bench.pass(2 * HOUR);
    bench.set(-signed(HOUR));
    let (trusted, moves) = bench.pass(SETTLE);
    assert_eq!((trusted, moves.len()), (true, 1));
    assert_eq!(bench.lag(24 * HOUR), 0);
}

#[test]
fn what_is_to_end_after_a_span_is_kept_longer_by_the_steps_forward_within_it() {
    let mut bench = Bench::at(NOW);
    bench.pass(HOUR);
    assert_eq!(bench.lag(24 * HOUR), 0);
    bench.forward(YEAR);
    bench.verdict();
    assert_eq!(bench.lag(24 * HOUR), YEAR);
    bench.pass(10 * HOUR);
    bench.forward(2 * HOUR);
    bench.verdict();
    assert_eq!(bench.lag(24 * HOUR), YEAR + 2 * HOUR);
    bench.pass(14 * HOUR);
    assert_eq!(bench.lag(24 * HOUR), YEAR + 2 * HOUR);
    // Waits that began before the first step end first, then those from before the second.
    bench.pass(5 * SECOND);
    assert_eq!(bench.lag(24 * HOUR), 2 * HOUR);
    bench.pass(10 * HOUR);
    assert_eq!(bench.lag(24 * HOUR), 0);
    assert_eq!(bench.lag(48 * HOUR), YEAR + 2 * HOUR);
}

#[test]
fn a_clock_that_is_set_every_night_delays_nothing_for_ever() {
    let mut bench = Bench::at(NOW);
    for night in 0..100 {
        bench.pass(23 * HOUR + 55 * MINUTE);
        assert!(bench.lag(24 * HOUR) <= 10 * MINUTE, "{night}");
        assert!(bench.verdict().trusts_wall, "{night}");
        bench.forward(5 * MINUTE);
        bench.verdict();
    }
}

#[test]
fn a_step_that_is_no_longer_remembered_counts_while_its_span_lasts() {
    let mut bench = Bench::at(NOW);
    bench.verdict();
    for steps in 1..=50 {
        bench.forward(HOUR);
        bench.pass(5 * SECOND);
        assert_eq!(bench.lag(24 * HOUR), steps * HOUR);
    }
}

#[test]
fn steps_that_are_remembered_are_bounded() {
    let mut bench = Bench::at(NOW);
    for _ in 0..1_000 {
        bench.forward(HOUR);
        bench.pass(5 * SECOND);
    }
    assert_eq!(bench.trust.eras.len(), ERAS_MAX);
    let (trusted, moves) = bench.pass(SETTLE);
    assert!(trusted && moves.len() <= ERAS_MAX, "{moves:?}");
}
