//! `kinora top`: an overview of a service, beside its processes. On a terminal it refreshes every
//! second until q or Ctrl-C; elsewhere it prints once.

mod view;

use std::io::IsTerminal;
use std::time::Duration;

use kinora_api::Operations as Shown;
use kinora_store::OperatorStore;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::MissedTickBehavior;

use crate::cli::TopArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::output::print;
use crate::store_access;
use view::{KeyPresses, OverviewReading, TerminalScreen};

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
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    let watches = std::io::stdout().is_terminal() && !is_dumb && !args.once && !args.json;
    store_access::runtime()?.block_on(async {
        let operations = store_access::open_operations(&args.home, "top").await?;
        if watches {
            return watch(&*operations, &place).await;
        }
        let overview = operations
            .overview()
            .await
            .map_err(store_access::store_failure)?;
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
            print(&view::lines(&reading, None).join("\n"));
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
    let mut overview = operations
        .overview()
        .await
        .map_err(store_access::store_failure)?;
    let mut trouble = None;
    loop {
        let reading = OverviewReading {
            place,
            overview: &overview,
            trouble: trouble.as_deref(),
        };
        screen.draw(&view::lines(&reading, Some(screen.size())));
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
