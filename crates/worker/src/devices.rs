//! Devices that engines share: their memory is not enough for all, so engines load when a task needs them and leave
//! again. The `device_scheduler` decides; this module loads and unloads. A task is claimed only once its engine has
//! room, so no task ever waits for another engine to leave, and an engine that does not leave holds no task up.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use kinora_contract::Clock;
use kinora_store::{DeviceEngine, DeviceEngineState, SharedDevice};
use metrics::{counter, gauge};
use tokio::sync::Notify;

use crate::any_engine::AnyEngine;
use crate::device_scheduler::{DevicePatience, DeviceScheduler, EngineAdmission, LoadState};

/// Unit of the settings, in bytes.
const MEGABYTE: f64 = 1e6;

/// A device, and the engines that share its memory.
pub struct EngineDevice {
    name: String,
    megabytes: u64,
    tenants: Vec<SharingEngine>,
    room: Mutex<DeviceScheduler>,
    /// How often an engine left for another.
    swaps: AtomicU64,
    /// Wakes the claim loop when an engine has left.
    freed: Arc<Notify>,
}

/// An engine that shares a device.
pub struct SharingEngine {
    /// Its name in the configuration.
    pub name: String,
    /// The engine itself.
    pub engine: AnyEngine,
    /// The memory that it needs on the device, at most that of the device.
    pub megabytes: u64,
    /// The models that it serves.
    pub models: Vec<String>,
}

/// Why an engine leaves.
#[derive(Clone, Copy)]
enum UnloadReason {
    /// Another engine needs its room.
    Room,
    /// Nobody has used it for long.
    Idle,
}

impl UnloadReason {
    const fn name(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::Idle => "idle",
        }
    }
}

impl EngineDevice {
    /// An empty device with this memory. `now` is the worker's patience, as steady time.
    pub fn new(
        name: String,
        megabytes: u64,
        patience: DevicePatience,
        tenants: Vec<SharingEngine>,
        now: Duration,
    ) -> Self {
        let needs = tenants.iter().map(|tenant| tenant.megabytes);
        let room = DeviceScheduler::new(megabytes, patience, needs, now);
        let device = Self {
            name,
            megabytes,
            room: Mutex::new(room),
            swaps: AtomicU64::new(0),
            tenants,
            freed: Arc::default(),
        };
        device.measure();
        device
    }

    /// Sets the notification that is sent when an engine has left.
    pub(crate) fn waking(mut self, freed: &Arc<Notify>) -> Self {
        self.freed = freed.clone();
        self
    }

    /// The models of each engine, by its index.
    pub(crate) fn models(&self) -> impl Iterator<Item = (usize, &[String])> {
        let tenants = self.tenants.iter().enumerate();
        tenants.map(|(index, tenant)| (index, tenant.models.as_slice()))
    }

    /// The device and its engines, for operators.
    pub(crate) fn shown(&self) -> SharedDevice {
        let room = self.room();
        let engines = self.tenants.iter().enumerate();
        let engines = engines.map(|(index, tenant)| DeviceEngine {
            engine: tenant.name.clone(),
            models: tenant.models.clone(),
            memory_megabytes: tenant.megabytes,
            state: match room.load_state(index) {
                LoadState::Away => DeviceEngineState::Away,
                LoadState::InUse => DeviceEngineState::Working,
                LoadState::Idle => DeviceEngineState::Idle,
                LoadState::Leaving => DeviceEngineState::Leaving,
            },
        });
        SharedDevice {
            name: self.name.clone(),
            memory_megabytes: self.megabytes,
            swaps: self.swaps.load(Ordering::Relaxed),
            engines: engines.collect(),
        }
    }

    /// Unloads engines that an earlier process may have left loaded. Remote servers keep models loaded
    /// after a worker exits; child processes do not.
    pub(crate) fn clear(self: &Arc<Self>, now: Duration) {
        for (index, tenant) in self.tenants.iter().enumerate() {
            // Engines that make frames live in processes of this worker or in the worker itself:
            // what an earlier one had loaded is gone with it.
            if matches!(tenant.engine, AnyEngine::Film(_)) {
                self.room().clear(index, now);
                self.unload(index);
            }
        }
        self.measure();
    }

    /// Unloads unused engines whose room others were promised.
    pub(crate) fn make_way(self: &Arc<Self>, now: Duration) {
        let leaving = self.room().make_way(now);
        self.unload_all(leaving, UnloadReason::Room);
    }

    /// Unloads engines that have been idle for too long, and reports those that do not leave.
    pub(crate) fn unload_idle(self: &Arc<Self>, now: Duration) {
        // The lock is free again before engines are told to unload: their departures take it when
        // they end.
        let (leaving, stuck) = {
            let mut room = self.room();
            (room.dismiss_idle(now), room.stuck(now))
        };
        self.unload_all(leaving, UnloadReason::Idle);
        for index in stuck {
            tracing::warn!(
                device = self.name,
                engine = self.tenants[index].name,
                "engine does not leave its device; engines that need its room stay without tasks"
            );
        }
    }

    /// Unloads each of these engines, which may take long, on a thread of its own.
    fn unload_all(self: &Arc<Self>, leaving: Vec<usize>, reason: UnloadReason) {
        if leaving.is_empty() {
            return;
        }
        for index in leaving {
            if !self.unload(index) {
                continue;
            }
            let engine = &self.tenants[index].name;
            tracing::info!(
                device = self.name,
                engine,
                reason = reason.name(),
                "unloading engine"
            );
            let labels = [
                ("device", self.name.clone()),
                ("engine", engine.clone()),
                ("reason", reason.name().to_owned()),
            ];
            counter!("kinora_device_unloads_total", &labels).increment(1);
            if matches!(reason, UnloadReason::Room) {
                self.swaps.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.measure();
    }

    /// Begins to unload an engine, on a thread of its own if that blocks; false if there is no thread.
    fn unload(self: &Arc<Self>, index: usize) -> bool {
        let tenant = &self.tenants[index];
        let mut departure = self.departure(index);
        match tenant.engine.clone() {
            AnyEngine::Frames(engine) => {
                // Such an engine unloads with a blocking call, which may take seconds. If there is
                // no thread for it, the closure is dropped, and with it `departure`, which takes
                // the dismissal back.
                let thread = thread::Builder::new().name(format!("unload-{}", tenant.name));
                let spawned = thread.spawn(move || {
                    departure.begin();
                    engine.unload();
                    drop(departure);
                });
                if let Err(error) = spawned {
                    let (device, engine) = (&self.name, &tenant.name);
                    tracing::warn!(device, engine, %error, "could not start unload thread; engine stays loaded");
                    return false;
                }
            }
            AnyEngine::Film(engine) => {
                tokio::spawn(async move {
                    departure.begin();
                    engine.unload().await;
                    drop(departure);
                });
            }
        }
        true
    }

    fn departure(self: &Arc<Self>, index: usize) -> EngineDeparture {
        EngineDeparture {
            device: self.clone(),
            index,
            has_begun: false,
        }
    }

    /// Updates the gauges of the device.
    fn measure(&self) {
        let shown = self.shown();
        for (kind, megabytes) in [
            ("budget", shown.memory_megabytes),
            ("used", shown.used_megabytes()),
        ] {
            gauge!("kinora_device_room_bytes", "device" => self.name.clone(), "kind" => kind)
                .set(megabytes as f64 * MEGABYTE);
        }
        for one in shown.engines {
            let labels = [("device", self.name.clone()), ("engine", one.engine)];
            let is_there = u8::from(one.state.is_there());
            gauge!("kinora_device_engine_loaded", &labels).set(is_there);
        }
    }

    fn room(&self) -> MutexGuard<'_, DeviceScheduler> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for EngineDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("name", &self.name)
            .field("room", &self.room)
            .finish_non_exhaustive()
    }
}

/// An engine on its way out. Once this is dropped, its room is free; if it has not begun by then, the engine stays.
struct EngineDeparture {
    device: Arc<EngineDevice>,
    index: usize,
    has_begun: bool,
}

impl EngineDeparture {
    const fn begin(&mut self) {
        self.has_begun = true;
    }
}

impl Drop for EngineDeparture {
    fn drop(&mut self) {
        if !self.has_begun {
            self.device.room().cancel_departure(self.index);
            return;
        }
        self.device.room().record_unloaded(self.index);
        self.device.measure();
        self.device.freed.notify_one();
    }
}

/// The place of an engine on its device.
#[derive(Clone, Debug)]
pub(crate) struct EnginePlacement {
    pub(crate) device: Arc<EngineDevice>,
    pub(crate) index: usize,
}

impl EnginePlacement {
    /// Whether the engine's tasks may be claimed.
    pub(crate) fn admission(&self, now: Duration) -> EngineAdmission {
        self.device.room().admission(self.index, now)
    }

    /// How long ago the engine had its turn, if its tasks go before those of others.
    pub(crate) fn urgency(&self, now: Duration) -> Option<Duration> {
        self.device.room().urgency(self.index, now)
    }

    /// Records that the store was asked for the engine's tasks.
    pub(crate) fn record_turn(&self, now: Duration) {
        self.device.room().record_turn(self.index, now);
    }

    /// Makes room for the engine.
    pub(crate) fn invite(&self, now: Duration) {
        let leaving = {
            let mut room = self.device.room();
            room.invite(self.index, now);
            room.make_way(now)
        };
        self.device.unload_all(leaving, UnloadReason::Room);
    }

    /// Reserves the engine's room for one task; `None` if there is none now.
    pub(crate) fn hold(&self, clock: &Arc<dyn Clock>) -> Option<RoomReservation> {
        let is_held = self.device.room().reserve(self.index, clock.steady());
        is_held.then(|| RoomReservation {
            placement: self.clone(),
            clock: clock.clone(),
            has_run: false,
        })
    }
}

/// The room of a run's engine; the engine stays loaded while it is held.
pub(crate) struct RoomReservation {
    placement: EnginePlacement,
    clock: Arc<dyn Clock>,
    has_run: bool,
}

impl RoomReservation {
    /// Records that there is a run, which loads its engine if it is not loaded yet.
    pub(crate) fn begin(&mut self) {
        self.has_run = true;
        let EnginePlacement { device, index } = &self.placement;
        if !device.room().begin_run(*index, self.clock.steady()) {
            return;
        }
        let engine = &device.tenants[*index].name;
        tracing::info!(device = device.name, engine, "loading engine");
        let labels = [("device", device.name.clone()), ("engine", engine.clone())];
        counter!("kinora_device_loads_total", &labels).increment(1);
        device.measure();
    }
}

impl Drop for RoomReservation {
    fn drop(&mut self) {
        let now = self.clock.steady();
        let EnginePlacement { device, index } = &self.placement;
        device.room().release(*index, self.has_run, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn a_departure_that_never_began_gives_no_room_away() {
        let patience = DevicePatience {
            idle_max: None,
            age_max: Duration::from_secs(120),
        };
        let mut device = EngineDevice::new("gpu0".to_owned(), 100, patience, Vec::new(), NOW);
        let mut room = DeviceScheduler::new(100, patience, [60, 60], NOW);
        assert!(room.reserve(0, NOW) && room.begin_run(0, NOW));
        room.release(0, true, NOW);
        room.record_turn(0, NOW);
        room.invite(1, NOW);
        assert_eq!(room.make_way(NOW), [0]);
        device.room = Mutex::new(room);
        let device = Arc::new(device);
        // As a thread does that cannot be started.
        drop(device.departure(0));
        assert_eq!(device.room().load_state(0), LoadState::Idle);
        assert_eq!(device.room().admission(1, NOW), EngineAdmission::Closed);
    }
}
