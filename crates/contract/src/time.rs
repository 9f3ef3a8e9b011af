//! Time as a value: code that needs the time takes a [`Clock`]. The binary holds the machine's
//! clock; tests use a [`ManualClock`]. Wall time is for people and retention, steady time for durations;
//! dates are in UTC.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Milliseconds since 1970-01-01 00:00 UTC.
pub type UnixMs = u64;

/// Milliseconds of a clock that is never set, from an arbitrary start. Meaningless in another
/// process.
pub type SteadyMs = u64;

/// Milliseconds of the clock that a store's leases and pauses run by: the steady clock of a process
/// that embeds its store, the server's clock where several processes share a database.
pub type LeaseMs = u64;

/// 2026-01-01, or the day of the last release in `CHANGELOG.md` (a test compares them): a wall
/// clock that shows an earlier time is wrong. A constant in the source, so that builds are
/// reproducible.
pub const RELEASED_MS: UnixMs = 1_767_225_600_000;

/// Provides wall time, which may jump, and steady time, which measures durations.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The current time, in milliseconds since 1970.
    fn now_ms(&self) -> UnixMs;

    /// The current time of the monotonic clock.
    fn steady_ms(&self) -> SteadyMs;

    /// The current time of the monotonic clock, since an arbitrary start.
    fn steady(&self) -> Duration {
        Duration::from_millis(self.steady_ms())
    }
}

/// Measures a duration with a clock's steady time.
#[derive(Clone, Debug)]
pub struct Stopwatch {
    clock: Arc<dyn Clock>,
    begun: Duration,
}

impl Stopwatch {
    /// Starts measuring now.
    pub fn start(clock: &Arc<dyn Clock>) -> Self {
        Self {
            clock: clock.clone(),
            begun: clock.steady(),
        }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.clock.steady().saturating_sub(self.begun)
    }

    /// Starts again now.
    pub fn restart(&mut self) {
        self.begun = self.clock.steady();
    }
}

/// Both clocks at one moment: wall time of the store, steady time of this process, by which a step of
/// the former shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Wall time.
    pub wall_ms: UnixMs,
    /// Steady time.
    pub steady_ms: SteadyMs,
}

impl dyn Clock + '_ {
    /// Both clocks, wall time first.
    pub fn read(&self) -> ClockReading {
        ClockReading {
            wall_ms: self.now_ms(),
            steady_ms: self.steady_ms(),
        }
    }
}

/// A clock that moves only when its methods are called.
#[derive(Debug, Default)]
pub struct ManualClock {
    wall: AtomicU64,
    steady: AtomicU64,
}

impl ManualClock {
    /// A clock stopped at `now_ms`.
    pub const fn at(now_ms: UnixMs) -> Self {
        Self {
            wall: AtomicU64::new(now_ms),
            steady: AtomicU64::new(0),
        }
    }

    /// Sets the wall clock, forward or back; no steady time passes.
    pub fn set(&self, now_ms: UnixMs) {
        self.wall.store(now_ms, Ordering::SeqCst);
    }

    /// Lets time pass on both clocks.
    pub fn advance(&self, by_ms: u64) {
        // Steady first: a reader between the two sees a wall clock that lags, never one that jumped
        // ahead.
        self.steady.fetch_add(by_ms, Ordering::SeqCst);
        self.wall.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> UnixMs {
        self.wall.load(Ordering::SeqCst)
    }

    fn steady_ms(&self) -> SteadyMs {
        self.steady.load(Ordering::SeqCst)
    }
}

/// A manual clock whose steady time also follows another clock. For tests that wait in real time.
pub struct RunningClock {
    manual: ManualClock,
    passed: Box<dyn Fn() -> Duration + Send + Sync>,
}

impl RunningClock {
    /// A clock at `now_ms`; `passed` returns the time since its creation.
    pub fn at(now_ms: UnixMs, passed: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self {
            manual: ManualClock::at(now_ms),
            passed: Box::new(passed),
        }
    }
}

impl fmt::Debug for RunningClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunningClock({:?})", self.manual)
    }
}

impl Deref for RunningClock {
    type Target = ManualClock;

    fn deref(&self) -> &ManualClock {
        &self.manual
    }
}

impl Clock for RunningClock {
    fn now_ms(&self) -> UnixMs {
        self.manual.now_ms()
    }

    fn steady_ms(&self) -> SteadyMs {
        let passed = (self.passed)().as_millis();
        self.manual.steady_ms() + u64::try_from(passed).unwrap_or(u64::MAX)
    }
}

/// Days from the start of the calendar below, March 1 of the year 0, to 1970.
const BEFORE_1970: u64 = 719_468;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A date of ISO 8601, to the second: `2026-11-22T03:45:00Z`.
pub fn iso_date(time_ms: UnixMs) -> String {
    let seconds = time_ms / 1000;
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let day = iso_day(time_ms / DAY_MS);
    format!("{day}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A day of ISO 8601, given in days since 1970: `2026-11-22`.
pub fn iso_day(days: u64) -> String {
    let (year, month, date) = civil(days);
    format!("{year:04}-{month:02}-{date:02}")
}

/// The day of a moment, in whole days since 1970 (UTC).
pub const fn day_of(time_ms: UnixMs) -> u64 {
    time_ms / DAY_MS
}

/// The moment at which a day begins (UTC).
pub const fn day_begins_ms(day: u64) -> UnixMs {
    day.saturating_mul(DAY_MS)
}

/// The month of a day: 12 times the year, and the months of the year before it.
pub const fn month_of(day: u64) -> u64 {
    let (year, month, _) = civil(day);
    12 * year + month - 1
}

/// The first day after the month of a day.
pub const fn next_month(day: u64) -> u64 {
    let (.., date) = civil(day);
    // A month has at most 31 days, so the first of the next one is within 31 days of the first of this one, and 31 days
    // after the first is in the next month.
    let first = day - (date - 1);
    let (.., over) = civil(first + 31);
    first + 31 - (over - 1)
}

/// Year, month and date of a day. The algorithm is
/// <https://howardhinnant.github.io/date_algorithms.html#civil_from_days>.
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days.saturating_add(BEFORE_1970);
    // Eras of 400 years have the same number of days each, which confines the leap years to one
    // era.
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months count from March, so that the leap day is the last day of the year.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year_of_era + later, month, day)
}

/// Parses the output of [`iso_day`] into days since 1970; `None` if `text` is not a day.
pub fn parse_iso_day(text: &str) -> Option<u64> {
    let mut parts = text.split('-').map(str::parse);
    let (Some(Ok(year)), Some(Ok(month)), Some(Ok(date)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    // Rejects days that do not exist and other spellings of those that do, such as `2026-1-1`.
    days(year, month, date).filter(|found| iso_day(*found) == text)
}

/// The algorithm is <https://howardhinnant.github.io/date_algorithms.html#days_from_civil>.
fn days(year: u64, month: u64, date: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&date) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + date - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(BEFORE_1970)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_is_set_apart_from_the_time_that_passes() {
        let clock = ManualClock::at(1_000);
        clock.advance(5);
        clock.set(400);
        clock.advance(7);
        assert_eq!((clock.now_ms(), clock.steady_ms()), (407, 12));
    }

    #[test]
    fn a_stopwatch_follows_the_steady_time_alone() {
        let manual = Arc::new(ManualClock::at(1_000));
        let clock: Arc<dyn Clock> = manual.clone();
        let mut watch = Stopwatch::start(&clock);
        manual.advance(5);
        manual.set(400_000);
        assert_eq!(watch.elapsed(), Duration::from_millis(5));
        watch.restart();
        manual.set(0);
        assert_eq!(watch.elapsed(), Duration::ZERO);
    }

    #[test]
    fn a_running_clock_passes_with_another_and_by_hand() {
        let clock = RunningClock::at(1_000, || Duration::from_millis(40));
        clock.advance(2);
        assert_eq!((clock.now_ms(), clock.steady_ms()), (1_002, 42));
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // By `date -u -d @SECONDS +%FT%TZ`.
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_795_319_101, "2026-11-22T03:45:01Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso_date(seconds * 1000), shown);
        }
    }

    #[test]
    fn months_begin_on_their_first_day() {
        for (day, first_of_next) in [
            ("2026-11-29", "2026-12-01"),
            ("2026-12-01", "2027-01-01"),
            ("2026-12-31", "2027-01-01"),
            ("2027-01-31", "2027-02-01"),
            ("2027-02-28", "2027-03-01"),
            ("2028-02-01", "2028-03-01"),
            ("2028-02-29", "2028-03-01"),
        ] {
            let day = parse_iso_day(day).unwrap();
            let next = next_month(day);
            assert_eq!(iso_day(next), first_of_next);
            assert_eq!(month_of(next), month_of(day) + 1);
            assert_eq!(month_of(next - 1), month_of(day));
            assert_eq!(day_of(day_begins_ms(day)), day);
            assert_eq!(day_of(day_begins_ms(day) - 1), day - 1);
        }
    }

    #[test]
    fn a_day_is_read_as_it_is_written() {
        for day in (0..40_000).step_by(7).chain([19_782, 19_783]) {
            assert_eq!(parse_iso_day(&iso_day(day)), Some(day));
        }
        for wrong in [
            "",
            "2026",
            "2026-11",
            "2026-11-31",
            "2026-02-29",
            "2026-1-1",
            "1969-12-31",
            "2026-13-01",
            "2026-11-22-1",
            "22.11.2026",
            "+2026-11-22",
            "2026-00-10",
        ] {
            assert_eq!(parse_iso_day(wrong), None, "{wrong}");
        }
    }
}
