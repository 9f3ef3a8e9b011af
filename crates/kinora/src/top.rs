//! `kinora top`: an overview of a service, beside its processes. On a terminal it refreshes every
//! second until q or Ctrl-C, on a separate screen that it restores afterwards; elsewhere it prints
//! once.

use std::io::{IsTerminal, Read, Write};
use std::time::Duration;

use kinora_api::Operations as Shown;
use kinora_store::{
    LivingWorker, OperatorStore, Pause, RunningTask, ServiceOverview, SharedDevice,
};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::cli::TopArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::output::{date, print, printable, shortened, table};
use crate::progress::{is_dumb, minutes_and_seconds};
use crate::store_access;
use crate::workers::{place_table, served_parts};

/// Refresh interval.
const PAUSE: Duration = Duration::from_secs(1);

/// Shows the service once, or until the user quits.
pub(crate) fn run(args: &TopArgs) -> Result<(), Failure> {
    let config = Config::load(&args.home)?;
    let place = if kinora_store::is_shared(&config.store_url()) {
        // The URL may contain a password.
        "PostgreSQL".to_owned()
    } else {
        config.data.display().to_string()
    };
    let watches = std::io::stdout().is_terminal() && !is_dumb() && !args.once && !args.json;
    store_access::runtime()?.block_on(async {
        let operations = store_access::open_operations(&args.home, "top").await?;
        if watches {
            return watch(&*operations, &place).await;
        }
        let overview = operations.overview().await?;
        if args.json {
            let json = serde_json::to_value(Shown::from(overview));
            let json = json.map_err(|error| {
                Failure::because("The reading cannot be written as JSON", error)
            })?;
            print(&format!("{json:#}\n"));
        } else {
            let reading = OverviewReading {
                place: &place,
                overview: &overview,
                trouble: None,
            };
            print(&lines(&reading, None).join("\n"));
            print("\n");
        }
        Ok(())
    })
}

/// Events that quit or redraw the view.
struct ViewEvents {
    keys: KeyPresses,
    ends: [Signal; 3],
    resized: Signal,
    tick: tokio::time::Interval,
}

enum ViewEvent {
    Tick,
    Resized,
    End,
}

impl ViewEvents {
    fn listen() -> std::io::Result<Self> {
        let mut tick = tokio::time::interval(PAUSE);
        // After a slow reading, wait for a whole pause instead of catching up: a store in trouble
        // needs no burst of overviews.
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            keys: KeyPresses::listen(),
            ends: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            ],
            resized: signal(SignalKind::window_change())?,
            tick,
        })
    }

    async fn next(&mut self) -> ViewEvent {
        let [interrupt, terminate, hangup] = &mut self.ends;
        tokio::select! {
            // The signals and q come first: with a store that answers slowly, a tick is always due,
            // and quitting would have to win a draw.
            biased;
            _ = interrupt.recv() => ViewEvent::End,
            _ = terminate.recv() => ViewEvent::End,
            _ = hangup.recv() => ViewEvent::End,
            () = self.keys.wait_for_quit() => ViewEvent::End,
            _ = self.resized.recv() => ViewEvent::Resized,
            _ = self.tick.tick() => ViewEvent::Tick,
        }
    }
}

async fn watch(operations: &dyn OperatorStore, place: &str) -> Result<(), Failure> {
    // Before taking the screen: the handler is what restores it.
    let mut events = ViewEvents::listen()
        .map_err(|error| Failure::because("The command could not start", error))?;
    let screen = TerminalScreen::open();
    let mut overview = operations.overview().await?;
    let mut trouble = None;
    loop {
        let reading = OverviewReading {
            place,
            overview: &overview,
            trouble: trouble.as_deref(),
        };
        screen.draw(&lines(&reading, Some(screen.size())));
        match events.next().await {
            ViewEvent::End => return Ok(()),
            ViewEvent::Resized => {}
            ViewEvent::Tick => {
                match operations.overview().await {
                    Ok(read) => (overview, trouble) = (read, None),
                    // The last reading stays on the screen.
                    Err(error) => trouble = Some(error.to_string()),
                }
            }
        }
    }
}

/// Minimum number of lines for running tasks, however small the terminal is.
const RUNNING_MIN: usize = 1;

/// The contents of the view.
struct OverviewReading<'a> {
    /// The name of the store.
    place: &'a str,
    overview: &'a ServiceOverview,
    /// Why later readings of the store failed, if they did.
    trouble: Option<&'a str>,
}

/// The lines, uncut, or cut to a terminal of this size.
fn lines(reading: &OverviewReading<'_>, size: Option<ScreenSize>) -> Vec<String> {
    let overview = reading.overview;
    let mut above = head(reading);
    above.extend(section(&queue(overview)));
    let living = &overview.workers;
    let tables = [Some(workers(living)), devices(living), place_table(living)];
    let workers: Vec<String> = tables
        .iter()
        .flatten()
        .flat_map(|one| section(one))
        .collect();
    let mut running = section(&running(&overview.running));
    let Some(size) = size else {
        return [above, running, workers].concat();
    };
    // Tasks give way to workers: there may be many, and the queue counts them.
    let room = size.rows.saturating_sub(above.len() + workers.len());
    let room = room.max(RUNNING_MIN + 2);
    if running.len() > room {
        let left_out = running.len() - room + 1;
        running.truncate(room - 1);
        running.push(format!("and {left_out} more"));
    }
    let mut lines = [above, running, workers].concat();
    lines.truncate(size.rows);
    // The last column stays free, because some terminals wrap there.
    let columns = size.columns.saturating_sub(1);
    lines.iter().map(|line| shortened(line, columns)).collect()
}

fn head(reading: &OverviewReading<'_>) -> Vec<String> {
    let overview = reading.overview;
    let waiting: u64 = overview.models.iter().map(|model| model.waiting).sum();
    let running: u64 = overview.models.iter().map(|model| model.running).sum();
    let mut lines = vec![
        format!(
            "{} UTC  {}",
            date_and_seconds(overview.now_ms),
            printable(reading.place)
        ),
        format!(
            "{waiting} waiting, {running} running; last minute: {} completed, {} failed",
            overview.completed_lately, overview.failed_lately
        ),
    ];
    lines.extend(overview.pauses.iter().map(|pause| paused(overview, pause)));
    if let Some(trouble) = reading.trouble {
        lines.push(format!("Not read since then: {}", printable(trouble)));
    }
    lines
}

/// `Paused for 5:03: kinora-a1 (new weights)`.
fn paused(overview: &ServiceOverview, pause: &Pause) -> String {
    let length = duration_text(overview.now_ms.saturating_sub(pause.since_ms));
    let model = pause
        .model
        .as_deref()
        .map_or("all models".into(), printable);
    let reason = pause.reason.as_deref().map(printable);
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    format!("Paused for {length}: {model}{reason}")
}

fn date_and_seconds(time_ms: u64) -> String {
    format!("{}:{:02}", date(time_ms), time_ms / 1000 % 60)
}

/// The lines of a table after an empty line.
fn section(table: &str) -> Vec<String> {
    let lines = [""].into_iter().chain(table.lines());
    lines.map(str::to_owned).collect()
}

fn queue(overview: &ServiceOverview) -> String {
    let heads = ["MODEL", "WAITING", "RUNNING", "OLDEST"];
    let rows = overview.models.iter().map(|model| {
        let oldest = model.oldest_waiting_ms;
        [
            printable(&model.model),
            model.waiting.to_string(),
            model.running.to_string(),
            oldest.map_or_else(|| "-".to_owned(), duration_text),
        ]
    });
    table(heads, rows)
}

fn running(tasks: &[RunningTask]) -> String {
    let heads = ["PROGRESS", "TIME", "MODEL", "PROJECT", "TASK", "WORKER"];
    let rows = tasks.iter().map(|task| {
        [
            format!("{:>3} %", task.progress),
            duration_text(task.since_ms),
            printable(&task.model),
            printable(&task.project),
            task.id.to_string(),
            printable(&task.worker),
        ]
    });
    table(heads, rows)
}

fn workers(living: &[LivingWorker]) -> String {
    let heads = [
        "WORKER", "HOST", "STATE", "BUSY", "SEEN", "ENGINES", "DEVICES",
    ];
    let rows = living.iter().map(|one| {
        let worker = &one.worker;
        [
            printable(&worker.id),
            printable(&worker.host),
            worker.state.name().to_owned(),
            format!("{}/{}", one.running, worker.slots),
            format!("{} s ago", one.seen_ms_ago / 1000),
            served_parts(&worker.models, |served| &served.engine),
            served_parts(&worker.models, |served| {
                served.device.as_deref().unwrap_or("auto")
            }),
        ]
    });
    table(heads, rows)
}

/// A shared device, with the engines that are loaded on it.
fn device_row(one: &LivingWorker, device: &SharedDevice) -> [String; 5] {
    let there = device.engines.iter().filter(|one| one.state.is_there());
    let there = there.map(|one| format!("{} ({})", one.engine, one.state.name()));
    let there: Vec<String> = there.collect();
    let loaded = if there.is_empty() {
        "-".to_owned()
    } else {
        printable(&there.join(", "))
    };
    [
        printable(&device.name),
        printable(&one.worker.id),
        format!("{}/{}", device.used_megabytes(), device.memory_megabytes),
        device.swaps.to_string(),
        loaded,
    ]
}

/// The devices that engines share, if there are any: few services share one.
fn devices(living: &[LivingWorker]) -> Option<String> {
    let heads = ["DEVICE", "WORKER", "MEGABYTES", "SWAPS", "LOADED"];
    let rows: Vec<_> = living
        .iter()
        .flat_map(|one| {
            one.worker
                .devices
                .iter()
                .map(move |device| device_row(one, device))
        })
        .collect();
    (!rows.is_empty()).then(|| table(heads, rows))
}

fn duration_text(millis: u64) -> String {
    minutes_and_seconds(millis / 1000)
}

/// Size of a terminal that does not report one.
const COLUMNS: u16 = 80;
const ROWS: u16 = 24;
/// Alternate screen, no cursor, and no line wrapping, since some characters are wider than one
/// column.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The screen; restored when dropped.
struct TerminalScreen {
    /// The previous modes of the keyboard.
    before: Option<Termios>,
}

/// Columns and rows.
#[derive(Clone, Copy, Debug)]
struct ScreenSize {
    columns: usize,
    rows: usize,
}

impl TerminalScreen {
    /// Takes over the screen, with unbuffered keys.
    fn open() -> Self {
        // Standard input may be a pipe, as in `kinora top < /dev/null`: then there are no modes to
        // change, and Ctrl-C still quits.
        let before = tcgetattr(std::io::stdin()).ok();
        if let Some(before) = &before {
            let mut modes = before.clone();
            modes
                .local_modes
                .remove(LocalModes::ICANON | LocalModes::ECHO);
            // Without it, q needs Enter.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &modes);
        }
        write(ENTER);
        Self { before }
    }

    /// Current size of the terminal.
    fn size(&self) -> ScreenSize {
        let size = tcgetwinsize(std::io::stdout()).ok();
        let known =
            |part: Option<u16>, default| usize::from(part.filter(|n| *n > 0).unwrap_or(default));
        ScreenSize {
            columns: known(size.map(|size| size.ws_col), COLUMNS),
            rows: known(size.map(|size| size.ws_row), ROWS),
        }
    }

    /// Draws lines over the previous ones, without flicker.
    fn draw(&self, lines: &[String]) {
        // Overwrites from the top, and clears only what is left of each line and below the last.
        // Clearing the screen first would make it flicker.
        let mut out = String::from("\x1b[H");
        for (number, line) in lines.iter().enumerate() {
            if number > 0 {
                out.push_str("\r\n");
            }
            out.push_str(line);
            out.push_str("\x1b[K");
        }
        out.push_str("\x1b[J");
        write(&out);
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        write(LEAVE);
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    // If the terminal is gone, SIGHUP follows.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Keys, read on a separate thread that ends with the process.
struct KeyPresses(mpsc::Receiver<u8>);

impl KeyPresses {
    fn listen() -> Self {
        let (pressed, keys) = mpsc::channel(16);
        std::thread::spawn(move || {
            for key in std::io::stdin().lock().bytes() {
                let Ok(key) = key else { return };
                if pressed.blocking_send(key).is_err() {
                    return;
                }
            }
        });
        Self(keys)
    }

    /// Waits until q is pressed; for ever if there is no keyboard.
    async fn wait_for_quit(&mut self) {
        loop {
            match self.0.recv().await {
                Some(b'q' | b'Q') => return,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::TaskId;
    use kinora_store::{
        DeviceEngine, DeviceEngineState, ModelQueue, ServedModel, WorkerAnnouncement, WorkerState,
    };

    use super::*;

    fn overview(tasks: usize) -> ServiceOverview {
        let task = |number: usize| RunningTask {
            id: TaskId::from_parts(1_795_319_100_000, [u8::try_from(number).unwrap(); 10]),
            project: "shop\u{1b}[2J".to_owned(),
            model: "kinora-a1".to_owned(),
            progress: 40,
            attempt: 1,
            since_ms: 65_000,
            worker: "gpu-1-4711".to_owned(),
        };
        let served = ServedModel {
            model: "kinora-a1".to_owned(),
            engine: "storyboard/7".to_owned(),
            device: Some("cuda0".to_owned()),
            is_available: true,
        };
        let worker = WorkerAnnouncement {
            id: "gpu-1-4711".to_owned(),
            host: "gpu-1".to_owned(),
            pid: 4711,
            version: "0.1.0".to_owned(),
            models: vec![served],
            slots: 2,
            started_at_ms: 0,
            state: WorkerState::Serving,
            devices: Vec::new(),
            places: Vec::new(),
        };
        ServiceOverview {
            now_ms: 1_795_319_107_000,
            models: vec![ModelQueue {
                model: "kinora-a1".to_owned(),
                waiting: 12,
                running: 2,
                oldest_waiting_ms: Some(7_265_000),
            }],
            running: (0..tasks).map(task).collect(),
            completed_lately: 3,
            failed_lately: 1,
            workers: vec![LivingWorker {
                worker,
                seen_ms_ago: 2_900,
                running: 2,
            }],
            pauses: [Pause {
                model: Some("kinora-b1".to_owned()),
                since_ms: 1_795_319_107_000 - 303_000,
                reason: Some("new\u{1b}[2J weights".to_owned()),
            }]
            .into_iter()
            .collect(),
        }
    }

    fn shown(
        overview: &ServiceOverview,
        size: Option<ScreenSize>,
        trouble: Option<&str>,
    ) -> Vec<String> {
        let reading = OverviewReading {
            place: "/var/lib/kinora",
            overview,
            trouble,
        };
        lines(&reading, size)
    }

    #[test]
    fn all_of_it_is_shown_and_cannot_write_to_the_terminal() {
        let text = shown(&overview(2), None, None).join("\n");
        for part in [
            "2026-11-22 03:45:07 UTC  /var/lib/kinora",
            "12 waiting, 2 running; last minute: 3 completed, 1 failed",
            "Paused for 5:03: kinora-b1 (new\\u{1b}[2J weights)",
            "kinora-a1  12       2        2:01:05",
            " 40 %     1:05  kinora-a1  shop",
            "gpu-1-4711  gpu-1  serving  2/2   2 s ago  storyboard/7  cuda0",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            !text.contains('\u{1b}') && !text.contains("Not read"),
            "{text:?}"
        );
        let trouble = shown(&overview(0), None, Some("it is away")).join("\n");
        assert!(
            trouble.contains("Not read since then: it is away"),
            "{trouble}"
        );
    }

    #[test]
    fn a_device_is_shown_with_what_is_loaded() {
        let engine = |engine: &str, memory_megabytes, state| DeviceEngine {
            engine: engine.to_owned(),
            models: Vec::new(),
            memory_megabytes,
            state,
        };
        let device = |name: &str, engines| SharedDevice {
            name: name.to_owned(),
            memory_megabytes: 80_000,
            swaps: 12,
            engines,
        };
        let mut overview = overview(1);
        let first = vec![
            engine("wan", 30_000, DeviceEngineState::Working),
            engine("ltx", 60_000, DeviceEngineState::Away),
            engine("cog\u{1b}", 20_000, DeviceEngineState::Leaving),
        ];
        overview.workers[0].worker.devices = vec![device("gpu0", first), device("gpu1", vec![])];
        let text = shown(&overview, None, None).join("\n");
        for line in [
            "DEVICE  WORKER      MEGABYTES    SWAPS  LOADED",
            "gpu0    gpu-1-4711  50000/80000  12     wan (working), cog",
            "gpu1    gpu-1-4711  0/80000      12     -",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("ltx") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn no_line_is_wider_and_no_view_longer_than_the_terminal() {
        for (columns, rows) in [(20, 10), (39, 24), (80, 24), (200, 60), (1, 1)] {
            let size = ScreenSize { columns, rows };
            let lines = shown(&overview(50), Some(size), Some("away"));
            assert!(lines.len() <= rows, "{columns}x{rows}");
            let is_narrow = |line: &String| line.chars().count() < columns.max(1);
            assert!(lines.iter().all(is_narrow), "{columns}x{rows}: {lines:?}");
        }
        let size = ScreenSize {
            columns: 80,
            rows: 24,
        };
        let lines = shown(&overview(50), Some(size), None);
        let (more, last) = (&lines[lines.len() - 4], &lines[lines.len() - 1]);
        assert!(more.starts_with("and 38 more"), "{lines:?}");
        assert!(last.starts_with("gpu-1-4711"), "workers stay: {lines:?}");
    }
}
