//! The engine of each served model. Built once at the start; a model without an engine is not
//! served.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kinora_contract::{Clock, ModelPreset};
use kinora_engine::Engine;
use kinora_engine::places::{PlaceReport, PlaceState, Places};
use kinora_store::{WorkerPlace, WorkerPlaceState};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::any_engine::AnyEngine;
use crate::devices::{EngineDevice, EnginePlacement, RoomReservation};

/// A served model's engine.
#[derive(Clone)]
pub struct ServedEngine {
    /// The engine itself.
    pub engine: AnyEngine,
    /// A run whose engine reports nothing for this long is stopped.
    pub progress_timeout: Duration,
    /// Maximum number of tasks that the engine takes at a time, one permit each, if that is less
    /// than the slots. All models of the engine share it.
    pub seats: Option<Arc<Semaphore>>,
    /// Device that the engine computes on, as the engine names it; `None` if it chooses itself.
    pub device: Option<String>,
    /// The model's settings, which the engine gets with each of its jobs. Films have none.
    pub preset: Option<Arc<ModelPreset>>,
}

/// Models whose tasks are claimed together, because they share an engine's seats or need none.
pub(crate) struct EngineQueue {
    pub(crate) models: Vec<String>,
    seats: Option<Arc<Semaphore>>,
    /// The engine's places, and the number of its tasks that are there or on their way.
    places: Option<(Arc<Places>, Arc<AtomicUsize>)>,
    /// All seats of the engine, free or not, if it has a limit.
    pub(crate) seats_max: Option<usize>,
    /// The engine's place on the device that it shares with others.
    pub(crate) placement: Option<EnginePlacement>,
}

/// A task's seat at its engine, if the engine has a limit, and the engine's room, if it shares a device.
pub(crate) struct EngineSeat {
    _permit: Option<OwnedSemaphorePermit>,
    _outstanding: Option<OutstandingTask>,
    room: Option<RoomReservation>,
}

/// A task at an engine's places, or on its way there.
struct OutstandingTask(Arc<AtomicUsize>);

impl OutstandingTask {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for OutstandingTask {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl EngineSeat {
    /// Records that the seat is a run's.
    pub(crate) fn begin(&mut self) {
        if let Some(room) = &mut self.room {
            room.begin();
        }
    }
}

impl EngineQueue {
    /// The queue of `served`, one of the models.
    fn for_engine(
        models: Vec<String>,
        served: Option<&ServedEngine>,
        placement: Option<EnginePlacement>,
    ) -> Self {
        let seats = served.and_then(|served| served.seats.clone());
        Self {
            places: served.and_then(counted),
            placement,
            ..Self::new(models, seats)
        }
    }

    /// A queue of models whose engine has these seats, all of them free, and neither places nor a
    /// shared device.
    pub(crate) fn new(models: Vec<String>, seats: Option<Arc<Semaphore>>) -> Self {
        Self {
            models,
            seats_max: seats.as_ref().map(|seats| seats.available_permits()),
            seats,
            places: None,
            placement: None,
        }
    }

    /// Acquires up to `count` free seats. `clock` times the use of a shared device.
    pub(crate) fn free_seats(&self, count: usize, clock: &Arc<dyn Clock>) -> Vec<EngineSeat> {
        // `Relaxed` is enough: the claim loop alone adds to the count, and an end that it does not
        // see yet only delays a claim.
        let vacancies = self.places.as_ref().map_or(usize::MAX, |(places, count)| {
            places.vacancies(count.load(Ordering::Relaxed))
        });
        std::iter::from_fn(|| {
            let permit = match &self.seats {
                None => None,
                Some(seats) => Some(seats.clone().try_acquire_owned().ok()?),
            };
            let room = match &self.placement {
                None => None,
                Some(placement) => Some(placement.hold(clock)?),
            };
            Some(EngineSeat {
                _permit: permit,
                _outstanding: self
                    .places
                    .as_ref()
                    .map(|(_, count)| OutstandingTask::new(count)),
                room,
            })
        })
        .take(count.min(vacancies))
        .collect()
    }

    /// Records that the store was asked for the queue's tasks.
    pub(crate) fn record_turn(&self, now: Duration) {
        if let Some(placement) = &self.placement {
            placement.record_turn(now);
        }
    }

    /// Whether the engine of the queue is the one of `served`, or neither has a limit.
    fn shares(&self, served: &ServedEngine) -> bool {
        let places = self.places.as_ref().map(|(places, _)| places);
        self.placement.is_none()
            && is_same(self.seats.as_ref(), served.seats.as_ref())
            && is_same(places, served.engine.places())
    }
}

impl fmt::Debug for ServedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (progress within {:?})",
            self.engine_name(),
            self.progress_timeout
        )
    }
}

impl ServedEngine {
    /// The engine as clients see it: `name/version`.
    pub fn engine_name(&self) -> String {
        self.engine.describe().full_name()
    }
}

/// An engine that loads before its first task.
#[derive(Clone)]
struct WarmEngine(Arc<dyn Engine>);

impl fmt::Debug for WarmEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.describe().name)
    }
}

/// The served models by canonical identifier, and the devices that their engines share.
#[derive(Clone, Debug, Default)]
pub struct EngineLineup {
    served: BTreeMap<String, ServedEngine>,
    devices: Vec<Arc<EngineDevice>>,
    /// Engines that load before their first task.
    warm: Vec<WarmEngine>,
    /// Wakes the claim loop when a slot, a seat or room on a device is free.
    pub(crate) freed: Arc<Notify>,
}

impl EngineLineup {
    /// Creates a lineup of models by canonical identifier.
    pub fn new(models: impl IntoIterator<Item = (String, ServedEngine)>) -> Self {
        Self {
            served: models.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Adds the devices that engines share. Each engine has one device at most.
    pub fn sharing(mut self, devices: impl IntoIterator<Item = EngineDevice>) -> Self {
        let devices = devices.into_iter();
        self.devices = devices
            .map(|device| Arc::new(device.waking(&self.freed)))
            .collect();
        self
    }

    /// Sets the engines that load at the worker's start instead of with their first task.
    pub fn warming(mut self, engines: impl IntoIterator<Item = Arc<dyn Engine>>) -> Self {
        self.warm = engines.into_iter().map(WarmEngine).collect();
        self
    }

    /// Whether engines load at the worker's start.
    pub fn warms_up(&self) -> bool {
        !self.warm.is_empty()
    }

    /// The engines that load at the worker's start.
    pub(crate) fn warm_engines(&self) -> impl Iterator<Item = &Arc<dyn Engine>> {
        self.warm.iter().map(|WarmEngine(engine)| engine)
    }

    /// The devices that engines share.
    pub(crate) fn devices(&self) -> &[Arc<EngineDevice>] {
        &self.devices
    }

    /// All served models.
    pub(crate) fn models(&self) -> Vec<String> {
        self.served.keys().cloned().collect()
    }

    /// The models whose engine delivers films, which other servers may have begun.
    pub(crate) fn film_models(&self) -> Vec<String> {
        let films = self
            .served
            .iter()
            .filter(|(_, served)| matches!(served.engine, AnyEngine::Film(_)));
        films.map(|(model, _)| model.clone()).collect()
    }

    /// Every model with its engine.
    pub(crate) fn served(&self) -> impl Iterator<Item = (&String, &ServedEngine)> {
        self.served.iter()
    }

    /// The models whose engines can work.
    pub(crate) fn usable_models(&self) -> Vec<&String> {
        let usable = self
            .served
            .iter()
            .filter(|(_, served)| served.engine.is_usable());
        usable.map(|(model, _)| model).collect()
    }

    /// The places of all engines, each once.
    pub(crate) fn places(&self) -> Vec<WorkerPlace> {
        let mut engines: Vec<(&Arc<Places>, &str)> = Vec::new();
        for served in self.served.values() {
            let Some(places) = served.engine.places() else {
                continue;
            };
            if !engines.iter().any(|(known, _)| Arc::ptr_eq(known, places)) {
                engines.push((places, &served.engine.describe().name));
            }
        }
        let announced = engines.iter().flat_map(|(places, engine)| {
            let reports = places.report().into_iter();
            reports.map(|report| announced(engine, report))
        });
        announced.collect()
    }

    /// Whether the engine of at least one model can work.
    pub(crate) fn is_usable(&self) -> bool {
        let mut served = self.served.values();
        self.served.is_empty() || served.any(|served| served.engine.is_usable())
    }

    pub(crate) fn find(&self, model: &str) -> Option<&ServedEngine> {
        self.served.get(model)
    }

    /// The models, grouped by the engine that they share, all of whose seats must be free.
    pub(crate) fn queues(&self) -> Vec<EngineQueue> {
        let mut queues: Vec<EngineQueue> = Vec::new();
        let mut lodged = BTreeSet::new();
        // Engines on a device come first and get a queue each: whether tasks may be claimed depends
        // on the one engine. The others are grouped by what they share.
        for device in &self.devices {
            for (index, models) in device.models() {
                let served = models.iter().find_map(|model| self.find(model));
                lodged.extend(models);
                queues.push(EngineQueue::for_engine(
                    models.to_vec(),
                    served,
                    Some(EnginePlacement {
                        device: device.clone(),
                        index,
                    }),
                ));
            }
        }
        for (model, served) in &self.served {
            if lodged.contains(model) {
                continue;
            }
            match queues.iter_mut().find(|queue| queue.shares(served)) {
                Some(queue) => queue.models.push(model.clone()),
                None => queues.push(EngineQueue::for_engine(
                    vec![model.clone()],
                    Some(served),
                    None,
                )),
            }
        }
        queues
    }
}

fn is_same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    }
}

/// The places of an engine, with a new count.
fn counted(served: &ServedEngine) -> Option<(Arc<Places>, Arc<AtomicUsize>)> {
    let places = served.engine.places()?;
    Some((places.clone(), Arc::default()))
}

fn announced(engine: &str, report: PlaceReport) -> WorkerPlace {
    WorkerPlace {
        engine: engine.to_owned(),
        name: report.name,
        state: match report.state {
            PlaceState::Available => WorkerPlaceState::Available,
            PlaceState::Paused => WorkerPlaceState::Paused,
            PlaceState::Quarantined => WorkerPlaceState::Quarantined,
        },
        running: report.running as u64,
        attempts: report.attempts,
        failures: report.failures,
        quarantined_seconds: report.quarantined.as_secs(),
        last_error: report.last_error,
    }
}
