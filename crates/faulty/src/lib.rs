//! Which calls of a wrapped store go wrong, and how: by rate, by number, or all of them. Equal
//! seeds and equal calls give equal faults. For tests: it knows no store, only the names that a
//! wrapper gives to its methods and what its errors are made of.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How a call goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not done, and says so.
    Before,
    /// It is done, and says that it was not: an answer lost on its way.
    After,
}

/// How often calls go wrong, in parts per million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Calls that fail without having been done.
    pub before_ppm: u32,
    /// Calls that fail after having been done.
    pub after_ppm: u32,
    /// Calls that let others go first, before and after they are done.
    pub delay_ppm: u32,
}

const ALL_PPM: u32 = 1_000_000;
/// Turns that a delayed call lets others have, at most, on either side.
const YIELDS_MAX: u64 = 8;

impl Rates {
    /// Nothing goes wrong.
    pub const NONE: Self = Self {
        before_ppm: 0,
        after_ppm: 0,
        delay_ppm: 0,
    };

    /// Nothing is done any more.
    pub const AWAY: Self = Self {
        before_ppm: ALL_PPM,
        ..Self::NONE
    };

    /// So many parts per million of each kind.
    pub const fn each(ppm: u32) -> Self {
        Self {
            before_ppm: ppm,
            after_ppm: ppm,
            delay_ppm: ppm,
        }
    }
}

/// What went wrong so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Injected {
    /// Calls that failed without having been done.
    pub before: u64,
    /// Calls that failed after having been done.
    pub after: u64,
    /// Calls that were held back.
    pub delays: u64,
}

/// The plan for a store whose methods are named by `M`. Changed and read from any thread.
#[derive(Debug)]
pub struct Plan<M>(Mutex<State<M>>);

#[derive(Debug)]
struct State<M> {
    random: u64,
    rates: Rates,
    rates_of: BTreeMap<M, Rates>,
    /// Calls that fail by their number.
    numbered: BTreeMap<(M, u64), Fault>,
    calls: BTreeMap<M, u64>,
    injected: Injected,
}

/// What shall happen to one call.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    /// How it goes wrong, if it does.
    pub fault: Option<Fault>,
    yields: u32,
}

impl Decision {
    /// Lets others go first, if this call is held back: before it is done, and after.
    pub async fn pause(self) {
        for _ in 0..self.yields {
            tokio::task::yield_now().await;
        }
    }
}

impl<M: Copy + Ord> Plan<M> {
    /// A plan under which nothing goes wrong yet.
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

    /// From now on so many calls go wrong, of every method that has no rates of its own.
    pub fn set(&self, rates: Rates) {
        self.state().rates = rates;
    }

    /// From now on so many calls of `method` go wrong; `None` for as many as of the others.
    pub fn set_of(&self, method: M, rates: Option<Rates>) {
        let mut state = self.state();
        match rates {
            Some(rates) => state.rates_of.insert(method, rates),
            None => state.rates_of.remove(&method),
        };
    }

    /// Call number `number` of `method`, the first being 1, goes wrong whatever the rates.
    pub fn fail_call(&self, method: M, number: u64, fault: Fault) {
        self.state().numbered.insert((method, number), fault);
    }

    /// The next `count` calls of `method` go wrong whatever the rates.
    pub fn fail_next(&self, method: M, count: u64, fault: Fault) {
        let done = self.calls(method);
        for number in 1..=count {
            self.fail_call(method, done + number, fault);
        }
    }

    /// Calls of `method` so far.
    pub fn calls(&self, method: M) -> u64 {
        self.state().calls.get(&method).copied().unwrap_or(0)
    }

    /// What went wrong so far.
    pub fn injected(&self) -> Injected {
        self.state().injected
    }

    /// Does `call`, which is not begun before it is awaited, as the plan says of `method`.
    ///
    /// # Errors
    /// Those of `call`, and what `injected` makes of a few words about the fault.
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

    /// Counts a call of `method` and says what shall happen to it: for wrappers whose call is
    /// more than one answer.
    pub fn decide(&self, method: M) -> Decision {
        let mut state = self.state();
        let number = state.calls.entry(method).or_default();
        *number += 1;
        let number = *number;
        let rates = state.rates_of.get(&method).copied().unwrap_or(state.rates);
        // As many draws for every call, so that a changed rate does not move later faults.
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
