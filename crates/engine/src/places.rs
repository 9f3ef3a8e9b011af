//! Failure domains. A *place* can break without dying: a process on a device, a server. One
//! [`Places`] keeps, for all places of one engine, their recent outcomes, back-off and quarantine,
//! and chooses the place of the next job.
//!
//! There are two kinds of failures. An *outage* is the place's own: no connection, a server
//! error, a process that dies while it opens. A *failed job* may be the fault of either, so another
//! place judges it: if the job succeeds there, the first place was at fault; if it fails there too,
//! the job was, and counts against neither.
//!
//! This module does no I/O and never waits.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

#[cfg(test)]
mod tests;

/// Maximum number of failed jobs remembered of one place.
const FAILED_JOBS_MAX: usize = 16;

/// Rules common to all places of an engine.
pub struct PlaceRules {
    /// Maximum number of concurrent jobs at one place. `None`: the place has a queue of its own.
    pub jobs_max: Option<usize>,
    /// Number of failures in a row that quarantine a place: it gets one job at a time, after
    /// growing pauses, until one succeeds.
    pub failures_max: u32,
    /// The pause after this many failures in a row, counted from 1.
    pub pause: Box<dyn Fn(u32) -> Duration + Send + Sync>,
    /// Whether a place with too many outages is probed ([`PlaceChoice::Probe`]) before it gets a job.
    pub probes: bool,
    /// Whether other workers use the same places, as they do servers. Devices belong to one worker.
    pub are_shared: bool,
}

/// All places of one engine in this process.
pub struct Places {
    names: Vec<String>,
    rules: PlaceRules,
    now: Box<dyn Fn() -> Duration + Send + Sync>,
    state: Mutex<Vec<PlaceRecord>>,
    changed: watch::Sender<()>,
}

/// One place. All times are of [`Places::now`].
#[derive(Debug, Default)]
struct PlaceRecord {
    running: usize,
    /// Outages in a row.
    outages: u32,
    /// Failures of jobs in a row, including repeated ones of the same job.
    job_failures: u32,
    /// The jobs of these failures, each once.
    failed_jobs: Vec<String>,
    /// No new job before this time, because of an outage or by the server's request.
    held_until: Duration,
    /// No new job before this time, because of failed jobs.
    paused_until: Duration,
    is_probing: bool,
    quarantined_at: Option<Duration>,
    /// Whether the process must be replaced before the next job.
    must_restart: bool,
    /// Restarts since the last success, of an only place.
    restarts: u32,
    attempts: u64,
    failures: u64,
    quarantined: Duration,
    last_error: Option<String>,
}

/// The conditions of a choice.
pub struct PlaceWish<'a> {
    /// The places that may serve this job, by index.
    pub may: &'a dyn Fn(usize) -> bool,
    /// Which of several equally good places is cheaper, by index.
    pub prefers: &'a dyn Fn(usize) -> bool,
    /// Names of places at which the job failed: it goes elsewhere while there is an elsewhere.
    pub avoid: &'a [String],
}

/// Destination of the next job.
#[derive(Debug)]
pub enum PlaceChoice {
    /// This place.
    Take(PlaceVisit),
    /// None until this place was probed; nobody else probes it meanwhile.
    Probe(PlaceProbe),
    /// None now: choose again when something changes, at the latest at the given time.
    Wait(Duration),
}

/// A place at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceReport {
    /// Its name: a device, or the base URL of a server.
    pub name: String,
    /// Whether it takes jobs.
    pub state: PlaceState,
    /// Number of jobs of this process there.
    pub running: usize,
    /// Number of jobs so far.
    pub attempts: u64,
    /// Number of outages and failed jobs so far.
    pub failures: u64,
    /// Time in quarantine so far.
    pub quarantined: Duration,
    /// The error of the last failure.
    pub last_error: Option<String>,
}

/// Whether a place takes jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceState {
    /// It does.
    Available,
    /// Not until a pause ends: it failed, or requested the pause.
    Paused,
    /// It failed too often, and gets one job at a time until one succeeds.
    Quarantined,
}

/// A job's presence at a place; ends when dropped.
#[derive(Debug)]
pub struct PlaceVisit {
    places: Arc<Places>,
    /// Index of the place.
    pub index: usize,
    /// Whether the process must be replaced before this job.
    pub must_restart: bool,
}

/// The right to probe a place; ends when dropped.
#[derive(Debug)]
pub struct PlaceProbe {
    places: Arc<Places>,
    /// Index of the place.
    pub index: usize,
}

/// A failed job.
#[derive(Clone, Copy, Debug)]
pub struct FailedJob<'a> {
    /// Identifies the job in all its attempts.
    pub key: &'a str,
    /// Whether places outside this process could run it.
    pub has_elsewhere: bool,
    /// Whether it has failed at another place before.
    pub has_failed_elsewhere: bool,
    /// The cause, for operators.
    pub error: &'a str,
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Places({})", self.names.join(", "))
    }
}

impl Drop for PlaceVisit {
    fn drop(&mut self) {
        self.places.lock()[self.index].running -= 1;
        self.places.notify();
    }
}

impl Drop for PlaceProbe {
    fn drop(&mut self) {
        self.places.lock()[self.index].is_probing = false;
        self.places.notify();
    }
}

impl Places {
    /// Places with these names, all available. `now` is a steady time.
    pub fn new(
        names: Vec<String>,
        rules: PlaceRules,
        now: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Arc<Self> {
        let state = names.iter().map(|_| PlaceRecord::default()).collect();
        Arc::new(Self {
            names,
            rules,
            now: Box::new(now),
            state: Mutex::new(state),
            changed: watch::Sender::new(()),
        })
    }

    /// The name of the place with this index.
    pub fn name(&self, index: usize) -> &str {
        &self.names[index]
    }

    /// Number of places.
    pub const fn count(&self) -> usize {
        self.names.len()
    }

    /// Whether other workers use the same places.
    pub const fn are_shared(&self) -> bool {
        self.rules.are_shared
    }

    /// Receives a message when a choice may have another result.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Chooses the place for a job now: one in quarantine that is due for a trial, otherwise the least
    /// busy one.
    pub fn choose(self: &Arc<Self>, wish: &PlaceWish<'_>) -> PlaceChoice {
        let now = (self.now)();
        let mut state = self.lock();
        // A place that is due is probed before anything else, although others may be free: only
        // a probe can bring it back.
        let due = (0..state.len())
            .find(|&index| (wish.may)(index) && state[index].is_due_for_probe(&self.rules, now));
        if let Some(index) = due {
            state[index].is_probing = true;
            drop(state);
            return PlaceChoice::Probe(PlaceProbe {
                places: Arc::clone(self),
                index,
            });
        }
        let eligible = self.eligible(&state, wish);
        let free = eligible
            .iter()
            .filter(|&&index| state[index].takes_job(&self.rules, now));
        let best = free.min_by_key(|&&index| {
            let place = &state[index];
            // A new job tries a place in quarantine as soon as its pause is over: it loses little,
            // and the place may be mended.
            let is_trial = wish.avoid.is_empty() && place.is_quarantined(&self.rules);
            let is_suspect = place.is_suspect();
            // The smallest tuple wins: a trial first, then the least busy place, then one
            // without recent failures, then the cheaper one. `false` sorts before `true`.
            (!is_trial, place.running, is_suspect, !(wish.prefers)(index))
        });
        if let Some(&index) = best {
            return PlaceChoice::Take(self.begin_visit(&mut state, index));
        }
        let held = eligible.iter().map(|&index| state[index].held_until());
        PlaceChoice::Wait(held.filter(|until| *until > now).min().unwrap_or(now))
    }

    /// Chooses this place once it is available, without regard to its failures.
    pub fn choose_only(self: &Arc<Self>, index: usize) -> PlaceChoice {
        let mut state = self.lock();
        let held_until = state[index].held_until;
        if held_until > (self.now)() {
            return PlaceChoice::Wait(held_until);
        }
        PlaceChoice::Take(self.begin_visit(&mut state, index))
    }

    /// Records that a job is at this place, for example since an earlier process.
    pub fn record_visit(self: &Arc<Self>, index: usize) -> PlaceVisit {
        self.begin_visit(&mut self.lock(), index)
    }

    fn begin_visit(self: &Arc<Self>, state: &mut [PlaceRecord], index: usize) -> PlaceVisit {
        state[index].running += 1;
        state[index].attempts += 1;
        PlaceVisit {
            places: Arc::clone(self),
            index,
            must_restart: std::mem::take(&mut state[index].must_restart),
        }
    }

    /// Places for this job: none where it failed while there are others, and then none in
    /// quarantine while there are others.
    fn eligible(&self, state: &[PlaceRecord], wish: &PlaceWish<'_>) -> Vec<usize> {
        let all: Vec<usize> = (0..state.len())
            .filter(|&index| (wish.may)(index))
            .collect();
        if wish.avoid.is_empty() {
            return all;
        }
        let others = filter_or_all(&all, &|index| !wish.avoid.contains(&self.names[index]));
        filter_or_all(&others, &|index| !state[index].is_quarantined(&self.rules))
    }

    /// How many jobs the places take at this time, in addition to `outstanding` ones that run or
    /// are on their way.
    pub fn vacancies(&self, outstanding: usize) -> usize {
        let now = (self.now)();
        let state = self.lock();
        // A server that requested a pause still queues jobs.
        if state
            .iter()
            .any(|place| self.rules.are_shared && !place.is_quarantined(&self.rules))
        {
            return usize::MAX;
        }
        let capacity = state.iter().map(|place| place.capacity(&self.rules, now));
        let capacity = capacity.fold(0_usize, usize::saturating_add);
        capacity.saturating_sub(outstanding)
    }

    /// Whether at least one place is not in quarantine.
    pub fn are_usable(&self) -> bool {
        let state = self.lock();
        state.is_empty() || state.iter().any(|place| !place.is_quarantined(&self.rules))
    }

    /// Records a usable answer of the place itself.
    pub fn record_answer(&self, index: usize) {
        let now = (self.now)();
        let mut state = self.lock();
        state[index].outages = 0;
        self.update_quarantine(&mut state[index], index, now);
    }

    /// Like [`Self::record_answer`], and the place is available immediately.
    pub fn record_recovery(&self, index: usize) {
        self.lock()[index].held_until = Duration::ZERO;
        self.record_answer(index);
        self.notify();
    }

    /// Records a failure of the place itself.
    pub fn record_outage(&self, index: usize, error: &str) {
        let now = (self.now)();
        let mut state = self.lock();
        let place = &mut state[index];
        place.outages = place.outages.saturating_add(1);
        place.failures += 1;
        place.last_error = Some(error.to_owned());
        let until = now + (self.rules.pause)(place.outages);
        place.held_until = place.held_until.max(until);
        self.update_quarantine(place, index, now);
        drop(state);
        self.notify();
    }

    /// Quarantines a place at once: it will fail until an operator fixes it.
    pub fn record_breakage(&self, index: usize, error: &str) {
        let all_but_one = self.rules.failures_max.saturating_sub(1);
        let mut state = self.lock();
        // `record_outage` below adds the last one, and with it the pause and the log entry.
        state[index].outages = state[index].outages.max(all_but_one);
        drop(state);
        self.record_outage(index, error);
    }

    /// Records that a working place requested a pause of this length; it lasts at least the
    /// first pause.
    pub fn record_pause(&self, index: usize, wish: Option<Duration>) {
        let wait = wish.unwrap_or_default().max((self.rules.pause)(1));
        let now = (self.now)();
        let mut state = self.lock();
        let place = &mut state[index];
        place.outages = 0;
        place.held_until = place.held_until.max(now + wait);
    }

    /// Records that the place completed a job.
    pub fn record_success(&self, index: usize) {
        let now = (self.now)();
        let mut state = self.lock();
        let place = &mut state[index];
        place.outages = 0;
        place.restarts = 0;
        place.forget_failed_jobs();
        self.update_quarantine(place, index, now);
        drop(state);
        self.notify();
    }

    /// Records that a job failed at the place, unless the job is known to be at fault.
    pub fn record_job_failure(&self, index: usize, job: FailedJob<'_>) {
        let now = (self.now)();
        let mut state = self.lock();
        state[index].failures += 1;
        state[index].last_error = Some(job.error.to_owned());
        // The first failure of a job puts its place under suspicion. A second one, at another
        // place, shows that the job is at fault: the first place is acquitted, and the second is
        // not suspected. Example: job J fails at A (A has 1 failed job), then at B. A goes back
        // to 0, and B gets none.
        let is_judged = self.clear_elsewhere(&mut state, index, job.key, now);
        if job.has_failed_elsewhere || is_judged {
            let place = &mut state[index];
            // The places agree, so an earlier failure here may have been the job's as well.
            place.failed_jobs.pop();
            place.job_failures = place.job_failures.saturating_sub(1);
            self.update_quarantine(place, index, now);
        } else {
            let has_others = self.count() > 1 || (job.has_elsewhere && !self.rules.are_shared);
            self.count_job_failure(&mut state[index], index, job.key, has_others, now);
        }
        drop(state);
        self.notify();
    }

    /// Clears the other places of this job's failure; returns whether there was one.
    fn clear_elsewhere(
        &self,
        state: &mut [PlaceRecord],
        here: usize,
        job: &str,
        now: Duration,
    ) -> bool {
        let mut is_known = false;
        for (index, place) in state.iter_mut().enumerate() {
            let before = place.failed_jobs.len();
            if index != here {
                place.failed_jobs.retain(|one| one != job);
            }
            if place.failed_jobs.len() < before {
                is_known = true;
                place.job_failures = place.job_failures.saturating_sub(1);
                if place.failed_jobs.is_empty() {
                    place.forget_failed_jobs();
                }
                self.update_quarantine(place, index, now);
            }
        }
        is_known
    }

    /// Counts a failed job against a place.
    fn count_job_failure(
        &self,
        place: &mut PlaceRecord,
        index: usize,
        job: &str,
        has_others: bool,
        now: Duration,
    ) {
        place.job_failures = place.job_failures.saturating_add(1);
        let is_new = !place.failed_jobs.iter().any(|one| one == job);
        if is_new && place.failed_jobs.len() < FAILED_JOBS_MAX {
            place.failed_jobs.push(job.to_owned());
        }
        let limit = self.rules.failures_max as usize;
        if has_others {
            place.paused_until = now + (self.rules.pause)(place.job_failures);
            // Several different jobs failed here and none was judged yet: a fresh process costs
            // less than the next job.
            place.must_restart |= place.failed_jobs.len() >= limit;
        } else if place.failed_jobs.len() >= limit << place.restarts.min(2) {
            // With a single place, no other place can show whether its jobs are at fault. Replace its
            // process, but less and less often, because the jobs may be.
            place.must_restart = true;
            place.restarts += 1;
            place.forget_failed_jobs();
        }
        self.update_quarantine(place, index, now);
    }

    /// Begins or ends the quarantine of a place, and logs it.
    fn update_quarantine(&self, place: &mut PlaceRecord, index: usize, now: Duration) {
        // Quarantine follows from the counters and has no flag of its own. This compares it with
        // the last known state, so that each change is timed and logged once.
        match (place.is_quarantined(&self.rules), place.quarantined_at) {
            (true, None) => {
                place.quarantined_at = Some(now);
                let error = place.last_error.as_deref().unwrap_or_default();
                tracing::warn!(place = self.names[index], error, "place quarantined");
            }
            (false, Some(since)) => {
                place.quarantined_at = None;
                place.quarantined += now.saturating_sub(since);
                let seconds = now.saturating_sub(since).as_secs();
                tracing::info!(place = self.names[index], seconds, "place back at work");
            }
            _ => {}
        }
    }

    /// All places, in the order of their indices.
    pub fn report(&self) -> Vec<PlaceReport> {
        let now = (self.now)();
        let state = self.lock();
        let places = state.iter().zip(&self.names);
        let reports = places.map(|(place, name)| {
            let current = place
                .quarantined_at
                .map_or(Duration::ZERO, |since| now.saturating_sub(since));
            PlaceReport {
                name: name.clone(),
                state: if place.is_quarantined(&self.rules) {
                    PlaceState::Quarantined
                } else if place.held_until() > now {
                    PlaceState::Paused
                } else {
                    PlaceState::Available
                },
                running: place.running,
                attempts: place.attempts,
                failures: place.failures,
                quarantined: place.quarantined + current,
                last_error: place.last_error.clone(),
            }
        });
        reports.collect()
    }

    /// Nothing panics while holding the lock, so a poisoned lock is still valid.
    fn lock(&self) -> MutexGuard<'_, Vec<PlaceRecord>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self) {
        self.changed.send_replace(());
    }
}

/// The indices for which `keep` is true; all of them if that leaves none: a bad place is better than
/// none.
fn filter_or_all(from: &[usize], keep: &dyn Fn(usize) -> bool) -> Vec<usize> {
    let kept: Vec<usize> = from.iter().copied().filter(|&index| keep(index)).collect();
    if kept.is_empty() { from.to_vec() } else { kept }
}

impl PlaceRecord {
    const fn is_out(&self, rules: &PlaceRules) -> bool {
        self.outages >= rules.failures_max
    }

    const fn is_quarantined(&self, rules: &PlaceRules) -> bool {
        self.is_out(rules) || self.failed_jobs.len() >= rules.failures_max as usize
    }

    const fn is_suspect(&self) -> bool {
        self.outages > 0 || !self.failed_jobs.is_empty()
    }

    fn held_until(&self) -> Duration {
        self.held_until.max(self.paused_until)
    }

    fn is_due_for_probe(&self, rules: &PlaceRules, now: Duration) -> bool {
        rules.probes && self.is_out(rules) && !self.is_probing && self.held_until() <= now
    }

    /// Whether the place takes another job now.
    fn takes_job(&self, rules: &PlaceRules, now: Duration) -> bool {
        let waits_for_probe = rules.probes && self.is_out(rules);
        !waits_for_probe && self.capacity(rules, now) > self.running
    }

    /// Maximum number of concurrent jobs at this time, including the running ones.
    fn capacity(&self, rules: &PlaceRules, now: Duration) -> usize {
        if self.held_until() > now {
            self.running
        } else if self.is_quarantined(rules) {
            self.running.max(1)
        } else {
            rules.jobs_max.unwrap_or(usize::MAX)
        }
    }

    fn forget_failed_jobs(&mut self) {
        self.failed_jobs.clear();
        self.job_failures = 0;
        self.paused_until = Duration::ZERO;
    }
}
