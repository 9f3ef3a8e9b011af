//! Plans the faults of a wrapped store: by rate, by call number, or for all calls. Equal seeds and
//! equal calls give equal faults. For tests: it knows no store, only a wrapper's method names and
//! how to build its errors.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call is not executed and fails.
    Before,
    /// The call is executed but fails: a lost answer.
    After,
}

/// Fault rates, in parts per million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Calls that fail without being executed.
    pub before_ppm: u32,
    /// Calls that fail after being executed.
    pub after_ppm: u32,
    /// Calls that yield to others, before and after they are executed.
    pub delay_ppm: u32,
}

const ALL_PPM: u32 = 1_000_000;
/// Maximum number of yields of a delayed call, on either side.
const YIELDS_MAX: u64 = 8;

impl Rates {
    /// No faults.
    pub const NONE: Self = Self {
        before_ppm: 0,
        after_ppm: 0,
        delay_ppm: 0,
    };

    /// Every call fails without being executed.
    pub const AWAY: Self = Self {
        before_ppm: ALL_PPM,
        ..Self::NONE
    };

    /// The same rate for each kind of fault.
    pub const fn each(ppm: u32) -> Self {
        Self {
            before_ppm: ppm,
            after_ppm: ppm,
            delay_ppm: ppm,
        }
    }
}

/// The faults injected so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Injected {
    /// Calls that failed without being executed.
    pub before: u64,
    /// Calls that failed after being executed.
    pub after: u64,
    /// Calls that were delayed.
    pub delays: u64,
}

/// The fault plan of a store with methods `M`. Shared by any number of threads.
#[derive(Debug)]
pub struct Plan<M>(Mutex<State<M>>);

#[derive(Debug)]
struct State<M> {
    random: u64,
    rates: Rates,
    rates_of: BTreeMap<M, Rates>,
    /// Calls that fail by number.
    numbered: BTreeMap<(M, u64), Fault>,
    calls: BTreeMap<M, u64>,
    injected: Injected,
}

/// The plan for one call.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    /// The fault, if any.
    pub fault: Option<Fault>,
    yields: u32,
}

impl Decision {
    /// Yields to others if this call is delayed; call it before and after the call.
    pub async fn pause(self) {
        for _ in 0..self.yields {
            tokio::task::yield_now().await;
        }
    }
}

impl<M: Copy + Ord> Plan<M> {
    /// A plan without faults so far.
    pub const fn seeded(seed: u64) -> Self {
        Self(Mutex::new(State {
            random: seed,
            rates: Rates::NONE,
            rates_of: BTreeMap::new(),
            numbered: BTreeMap::new(),
            calls: BTreeMap::new(),
            injected: Injected {
                before: 0,
                after: 0,
                delays: 0,
            },
        }))
    }

    /// Sets the rates of all methods that have none of their own.
    pub fn set(&self, rates: Rates) {
        self.state().rates = rates;
    }

    /// Sets the rates of `method`; `None` restores the common ones.
    pub fn set_of(&self, method: M, rates: Option<Rates>) {
        let mut state = self.state();
        match rates {
            Some(rates) => state.rates_of.insert(method, rates),
            None => state.rates_of.remove(&method),
        };
    }

    /// Makes call number `number` of `method` fail, counted from 1, whatever the rates.
    pub fn fail_call(&self, method: M, number: u64, fault: Fault) {
        self.state().numbered.insert((method, number), fault);
    }

    /// Makes the next `count` calls of `method` fail, whatever the rates.
    pub fn fail_next(&self, method: M, count: u64, fault: Fault) {
        let done = self.calls(method);
        for number in 1..=count {
            self.fail_call(method, done + number, fault);
        }
    }

    /// The number of calls of `method` so far.
    pub fn calls(&self, method: M) -> u64 {
        self.state().calls.get(&method).copied().unwrap_or(0)
    }

    /// The faults injected so far.
    pub fn injected(&self) -> Injected {
        self.state().injected
    }

    /// Runs `call`, which must not start before it is awaited, as planned for `method`.
    ///
    /// # Errors
    /// The errors of `call`, and what `injected` builds from a short description of the fault.
    pub async fn call<T, E>(
        &self,
        method: M,
        call: impl Future<Output = Result<T, E>>,
        injected: impl FnOnce(&'static str) -> E,
    ) -> Result<T, E> {
        let decision = self.decide(method);
        decision.pause().await;
        if decision.fault == Some(Fault::Before) {
            return Err(injected("not done"));
        }
        let done = call.await;
        decision.pause().await;
        match decision.fault {
            Some(_) => Err(injected("done, and its answer lost")),
            None => done,
        }
    }

    /// Counts a call of `method` and returns the plan for it: for wrappers of calls with more than
    /// one answer.
    pub fn decide(&self, method: M) -> Decision {
        let mut state = self.state();
        let number = state.calls.entry(method).or_default();
        *number += 1;
        let number = *number;
        let rates = state.rates_of.get(&method).copied().unwrap_or(state.rates);
        // The same number of draws per call, so changing a rate does not move later faults.
        let [fault, delay, yields] = [state.draw(), state.draw(), state.draw()];
        let by_rate = match fault % u64::from(ALL_PPM) {
            part if part < u64::from(rates.before_ppm) => Some(Fault::Before),
            part if part < u64::from(rates.before_ppm) + u64::from(rates.after_ppm) => {
                Some(Fault::After)
            }
            _ => None,
        };
        let fault = state.numbered.remove(&(method, number)).or(by_rate);
        let held_back = delay % u64::from(ALL_PPM) < u64::from(rates.delay_ppm);
        match fault {
            Some(Fault::Before) => state.injected.before += 1,
            Some(Fault::After) => state.injected.after += 1,
            None => {}
        }
        state.injected.delays += u64::from(held_back);
        let yields = if held_back {
            1 + yields % YIELDS_MAX
        } else {
            0
        };
        Decision {
            fault,
            yields: yields as u32,
        }
    }

    fn state(&self) -> MutexGuard<'_, State<M>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> State<M> {
    /// SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
    const fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
