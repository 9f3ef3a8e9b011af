//! Decides which of the engines that share a device are loaded, which may load, and which leave. Pure: the caller passes
//! the time and carries the decisions out. Two things always hold: the engines that are loaded or
//! still leaving need no more than the budget, and an engine in use never leaves.

use std::time::Duration;

/// How long an engine may take to leave before an operator learns of it.
const LEAVING_MAX: Duration = Duration::from_secs(30);

/// The patience of a device with its engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePatience {
    /// An engine that was not used for this long leaves. `None`: only when another needs its room.
    pub idle_max: Option<Duration>,
    /// Tasks of loaded engines go before those of an engine without room for this long; then its tasks go first.
    pub age_max: Duration,
}

/// The state of a device.
#[derive(Debug)]
pub(crate) struct DeviceScheduler {
    budget: u64,
    patience: DevicePatience,
    tenants: Vec<ScheduledEngine>,
}

/// Whether an engine's tasks may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineAdmission {
    /// Yes: it is loaded, or there is room for it.
    Open,
    /// Once others have left, which they can: [`DeviceScheduler::invite`].
    Full,
    /// Not now.
    Closed,
}

/// The state of an engine, for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadState {
    Away,
    Idle,
    InUse,
    Leaving,
}

impl DeviceScheduler {
    /// An empty device with this budget, for engines with these needs. An engine that needs more than the budget never
    /// gets room.
    pub(crate) fn new(
        budget: u64,
        patience: DevicePatience,
        needs: impl IntoIterator<Item = u64>,
        now: Duration,
    ) -> Self {
        let tenants = needs
            .into_iter()
            .map(|need| ScheduledEngine::new(need, now));
        Self {
            budget,
            patience,
            tenants: tenants.collect(),
        }
    }

    /// Whether the engine's tasks may be claimed.
    pub(crate) fn admission(&self, engine: usize, now: Duration) -> EngineAdmission {
        // Example: a device with room for one engine, and two engines, A and B. A is loaded and
        // tasks of B wait: B is `Full`, because A may leave. `invite` promises the room to B, and
        // from then on A is `Closed`. `make_way` unloads A once its runs have ended; while it
        // leaves, its memory is still in use and B is `Closed`. After `record_unloaded`, B is `Open`, and its
        // next claim loads it.
        match self.tenants[engine].place {
            EngineResidency::Loaded { .. } if self.must_yield(engine) => EngineAdmission::Closed,
            EngineResidency::Loaded { .. } => EngineAdmission::Open,
            EngineResidency::Leaving { .. } => EngineAdmission::Closed,
            EngineResidency::Away | EngineResidency::Invited if self.fits(engine) => {
                EngineAdmission::Open
            }
            EngineResidency::Away if self.can_make_way(engine, now) => EngineAdmission::Full,
            EngineResidency::Away | EngineResidency::Invited => EngineAdmission::Closed,
        }
    }

    /// How long ago an engine whose tasks go before all others had its turn: room was made for it, or it has been passed
    /// over for too long.
    pub(crate) fn urgency(&self, engine: usize, now: Duration) -> Option<Duration> {
        let tenant = &self.tenants[engine];
        let passed = now.saturating_sub(tenant.last_turn);
        let is_urgent = match tenant.place {
            EngineResidency::Invited => true,
            EngineResidency::Away => passed >= self.patience.age_max,
            EngineResidency::Loaded { .. } | EngineResidency::Leaving { .. } => false,
        };
        is_urgent.then_some(passed)
    }

    /// Records that the store was asked for tasks of the engine.
    pub(crate) fn record_turn(&mut self, engine: usize, now: Duration) {
        let tenant = &mut self.tenants[engine];
        tenant.last_turn = now;
        if let EngineResidency::Loaded {
            used: Some(used), ..
        } = &mut tenant.place
        {
            // Nothing more is known to wait for the engine. The end of its next run clears the
            // mark.
            used.is_unwanted = true;
        }
    }

    /// Promises room to an engine for which tasks wait. Follow with [`DeviceScheduler::make_way`].
    pub(crate) fn invite(&mut self, engine: usize, now: Duration) {
        if self.admission(engine, now) == EngineAdmission::Full {
            let tenant = &mut self.tenants[engine];
            tenant.place = EngineResidency::Invited;
            tenant.is_guest = true;
        }
    }

    /// The engines to unload now so that the invited ones get their room: unused ones, the longest unused first, but
    /// last those that may have further tasks. If they are not enough, engines in use follow when their runs have ended,
    /// and get no others until then.
    pub(crate) fn make_way(&mut self, now: Duration) -> Vec<usize> {
        let mut leaving = Vec::new();
        while self.excess() > 0
            && let Some(engine) = self.first_idle(|used| (!used.is_unwanted, used.last))
        {
            self.dismiss(engine, now);
            leaving.push(engine);
        }
        leaving
    }

    /// The engines to unload because they have been idle for too long.
    pub(crate) fn dismiss_idle(&mut self, now: Duration) -> Vec<usize> {
        let Some(idle_max) = self.patience.idle_max else {
            return Vec::new();
        };
        let mut leaving = Vec::new();
        while let Some(engine) = self.first_idle(|used| used.last)
            && let Some(used) = self.tenants[engine].idle()
            && now.saturating_sub(used.last) >= idle_max
        {
            self.dismiss(engine, now);
            leaving.push(engine);
        }
        leaving
    }

    /// Dismisses an engine that is not known to be loaded: an earlier process may have left it there.
    pub(crate) fn clear(&mut self, engine: usize, now: Duration) {
        if self.tenants[engine].place == EngineResidency::Away {
            self.dismiss(engine, now);
        }
    }

    /// Records that an engine is unloaded.
    pub(crate) fn record_unloaded(&mut self, engine: usize) {
        let tenant = &mut self.tenants[engine];
        if matches!(tenant.place, EngineResidency::Leaving { .. }) {
            tenant.place = EngineResidency::Away;
        }
    }

    /// Records that an engine could not begin to leave: it is idle as before.
    pub(crate) fn cancel_departure(&mut self, engine: usize) {
        let tenant = &mut self.tenants[engine];
        if let EngineResidency::Leaving { since, used, .. } = tenant.place {
            let idle = EngineUse {
                first: since,
                last: since,
                is_unwanted: true,
            };
            tenant.place = EngineResidency::Loaded {
                users: 0,
                used: Some(used.unwrap_or(idle)),
            };
        }
    }

    /// The engines that have been leaving for too long, each once.
    pub(crate) fn stuck(&mut self, now: Duration) -> Vec<usize> {
        let mut stuck = Vec::new();
        for (engine, tenant) in self.tenants.iter_mut().enumerate() {
            if let EngineResidency::Leaving { since, is_told, .. } = &mut tenant.place
                && !*is_told
                && now.saturating_sub(*since) >= LEAVING_MAX
            {
                *is_told = true;
                stuck.push(engine);
            }
        }
        stuck
    }

    /// Reserves the engine's room for a claim; false if there is none now.
    pub(crate) fn reserve(&mut self, engine: usize, now: Duration) -> bool {
        if self.admission(engine, now) != EngineAdmission::Open {
            return false;
        }
        let place = &mut self.tenants[engine].place;
        match place {
            EngineResidency::Loaded { users, .. } => *users += 1,
            _ => {
                *place = EngineResidency::Loaded {
                    users: 1,
                    used: None,
                }
            }
        }
        true
    }

    /// Records that a hold became a run; true if that loads the engine.
    pub(crate) fn begin_run(&mut self, engine: usize, now: Duration) -> bool {
        let tenant = &mut self.tenants[engine];
        match &mut tenant.place {
            EngineResidency::Loaded { used, .. } if used.is_none() => {
                (tenant.is_guest, tenant.unused_invitations) = (false, 0);
                tenant.barred_until = Duration::ZERO;
                *used = Some(EngineUse {
                    first: now,
                    last: now,
                    is_unwanted: false,
                });
                true
            }
            _ => false,
        }
    }

    /// Ends a hold. An engine is idle from the end of its last run; a claim without a task changes nothing, but others
    /// do not soon leave again for an engine that was invited for it.
    pub(crate) fn release(&mut self, engine: usize, has_run: bool, now: Duration) {
        let tenant = &mut self.tenants[engine];
        let EngineResidency::Loaded { users, used } = &mut tenant.place else {
            return;
        };
        *users = users.saturating_sub(1);
        match used {
            Some(used) if has_run => {
                used.last = now;
                used.is_unwanted = false;
            }
            None if *users == 0 => {
                tenant.place = EngineResidency::Away;
                // Another worker was faster, or the task was cancelled: others have left for
                // nothing.
                if std::mem::take(&mut tenant.is_guest) {
                    tenant.record_unused_invitation(now, self.patience.age_max);
                }
            }
            _ => {}
        }
    }

    /// The state of the engine, for operators.
    pub(crate) fn load_state(&self, engine: usize) -> LoadState {
        match self.tenants[engine].place {
            EngineResidency::Loaded { used: None, .. }
            | EngineResidency::Away
            | EngineResidency::Invited => LoadState::Away,
            EngineResidency::Loaded { users: 0, .. } => LoadState::Idle,
            EngineResidency::Loaded { .. } => LoadState::InUse,
            EngineResidency::Leaving { .. } => LoadState::Leaving,
        }
    }

    fn dismiss(&mut self, engine: usize, now: Duration) {
        let tenant = &mut self.tenants[engine];
        // Its wait begins now: otherwise two engines with many tasks would replace each other for every task.
        tenant.last_turn = now;
        tenant.place = EngineResidency::Leaving {
            since: now,
            is_told: false,
            used: tenant.idle(),
        };
    }

    /// The sum of the needs of the engines for which `is_such` holds.
    fn sum(&self, is_such: impl Fn(&ScheduledEngine) -> bool) -> u64 {
        let such = self.tenants.iter().filter(|tenant| is_such(tenant));
        such.map(|tenant| tenant.need).sum()
    }

    fn promised(&self) -> u64 {
        self.sum(|tenant| tenant.place == EngineResidency::Invited)
    }

    fn loaded(&self) -> u64 {
        self.sum(ScheduledEngine::is_loaded)
    }

    /// How much of the loaded engines must leave for the invited ones.
    fn excess(&self) -> u64 {
        (self.loaded() + self.promised()).saturating_sub(self.budget)
    }

    /// Whether an engine without room could load now: in the memory that is free, beside the engines that were invited
    /// before.
    fn fits(&self, engine: usize) -> bool {
        let ScheduledEngine { need, place, .. } = self.tenants[engine];
        // The room that engines leave is the room that others were promised, so the larger of the
        // two is reserved and not their sum. An engine's own promise does not stand in its way.
        let own_promise = if place == EngineResidency::Invited {
            need
        } else {
            0
        };
        let leaving = self.sum(|tenant| matches!(tenant.place, EngineResidency::Leaving { .. }));
        let promised = self.promised() - own_promise;
        self.loaded() + leaving.max(promised) + need <= self.budget
    }

    /// Whether room for the engine can be made: by engines that are idle and have no task or, if it has been passed over
    /// for too long, by any. Not soon after others left for it and it began no run.
    fn can_make_way(&self, engine: usize, now: Duration) -> bool {
        if now < self.tenants[engine].barred_until {
            return false;
        }
        // An engine with further tasks would be loaded again at once, so it stays, until the other
        // has been passed over for too long.
        let staying = match self.urgency(engine, now) {
            Some(_) => 0,
            None => self.sum(|tenant| {
                tenant.is_loaded() && tenant.idle().is_none_or(|used| !used.is_unwanted)
            }),
        };
        staying + self.promised() + self.tenants[engine].need <= self.budget
    }

    /// Whether an engine in use gets no further tasks, because an invited one waits for its room. Those that have been
    /// loaded the longest go first.
    fn must_yield(&self, engine: usize) -> bool {
        let mut excess = self.excess();
        if excess == 0 {
            return false;
        }
        let loaded = self.tenants.iter().enumerate();
        let mut loaded: Vec<_> = loaded.filter(|(_, tenant)| tenant.is_loaded()).collect();
        // Unused ones leave before any other.
        loaded.sort_by_key(|(_, tenant)| (tenant.idle().is_none(), tenant.loaded_at()));
        for (other, tenant) in loaded {
            if other == engine {
                return excess > 0;
            }
            excess = excess.saturating_sub(tenant.need);
        }
        false
    }

    /// The idle engine that comes first in this order.
    fn first_idle<K: Ord>(&self, order: impl Fn(EngineUse) -> K) -> Option<usize> {
        let tenants = self.tenants.iter().enumerate();
        let idle = tenants.filter_map(|(engine, tenant)| Some((order(tenant.idle()?), engine)));
        idle.min().map(|(_, engine)| engine)
    }
}

#[cfg(test)]
mod tests;

// An engine in a room, with its place there.

/// Maximum number of times that the pause before the next invitation doubles.
const DOUBLINGS_MAX: u32 = 3;

/// One engine; the caller refers to it by its index.
#[derive(Debug)]
struct ScheduledEngine {
    /// The part of the budget that it takes.
    need: u64,
    place: EngineResidency,
    /// When it last had its turn: the store was asked for its tasks.
    last_turn: Duration,
    /// Whether others were to leave for it, and it has begun no run since.
    is_guest: bool,
    /// How often in a row others left for it and it began no run.
    unused_invitations: u32,
    /// It gets no invitation before this time.
    barred_until: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EngineResidency {
    Away,
    /// Others make room for it, because tasks wait for it.
    Invited,
    /// It has room.
    Loaded {
        /// Runs, and claims in progress that may become runs.
        users: usize,
        /// When its first run began and its last one ended. `None`: so far there were only claims in progress.
        used: Option<EngineUse>,
    },
    /// It is being unloaded: its room is not free yet.
    Leaving {
        since: Duration,
        is_told: bool,
        /// Its use while it was loaded; `None` if an earlier process loaded it.
        used: Option<EngineUse>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EngineUse {
    first: Duration,
    last: Duration,
    /// Whether the store had no further task for it since then.
    is_unwanted: bool,
}

impl ScheduledEngine {
    const fn new(need: u64, now: Duration) -> Self {
        Self {
            need,
            place: EngineResidency::Away,
            last_turn: now,
            is_guest: false,
            unused_invitations: 0,
            barred_until: Duration::ZERO,
        }
    }

    const fn is_loaded(&self) -> bool {
        matches!(self.place, EngineResidency::Loaded { .. })
    }

    /// The runs of a loaded engine that has no users.
    const fn idle(&self) -> Option<EngineUse> {
        match self.place {
            EngineResidency::Loaded { users: 0, used } => used,
            _ => None,
        }
    }

    /// Records that others left for it and it began no run: after each time in a row, it is invited again after twice
    /// as long a pause, up to a bound.
    fn record_unused_invitation(&mut self, now: Duration, pause_min: Duration) {
        // With a minute at first: 1, 2, 4, and then 8 minutes each time.
        let pause = pause_min.saturating_mul(1 << self.unused_invitations.min(DOUBLINGS_MAX));
        self.unused_invitations = self.unused_invitations.saturating_add(1);
        self.barred_until = now.saturating_add(pause);
    }

    /// The start of its first run; engines without one come last.
    fn loaded_at(&self) -> Duration {
        match self.place {
            EngineResidency::Loaded {
                used: Some(used), ..
            } => used.first,
            _ => Duration::MAX,
        }
    }
}
