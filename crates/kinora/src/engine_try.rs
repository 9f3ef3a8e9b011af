//! `kinora engine try`: makes one video at the servers of a model's engine, without a service and a store. It shows
//! each request and answer and how the dialect understands them, saves the film, and compares it with the model's card.
//! It submits once, and not before the operator has agreed to pay.

mod exchanges;
mod request;

use std::error::Error;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::limits::SECONDS_MAX;
use kinora_contract::{Clock, Money, TaskId, VideoLength, VideoSpec};
use kinora_engine::{
    EngineError, FilmEngine, FilmJob, FilmKind, JobControl, KindError, TicketStore,
};
use kinora_engine_upstreams::dialects::{RemoteKind, RepeatRule};
use kinora_media::{FilmFormat, FilmOpener, MismatchPolicy, ProbeInfo, UndecodablePolicy};
use tokio_util::sync::CancellationToken;

use crate::cli::EngineTryArgs;
use crate::client;
use crate::config::{Config, EngineSettings};
use crate::engine_host;
use crate::failure::{ExitKind, Failure};
use crate::output::{print, print_message, printable, size};
use crate::question;
use crate::stop::StopSignals;
use crate::system::{self, SystemClock};
use exchanges::ShownExchanges;
use request::ReferenceFiles;

/// Makes the video.
pub(crate) fn run(args: &EngineTryArgs) -> Result<(), Failure> {
    let config = Config::load(&args.home)?;
    let trial = Trial::new(&config, args)?;
    client::run(trial.run(&config, args))
}

/// One video to make.
struct Trial {
    engine: Arc<dyn FilmEngine>,
    servers: Vec<String>,
    is_paid: bool,
    /// By the model's card.
    price: Option<Money>,
    spec: VideoSpec,
    key: String,
    to: PathBuf,
}

impl Trial {
    fn new(config: &Config, args: &EngineTryArgs) -> Result<Self, Failure> {
        let model = config
            .model(&args.model)
            .map_err(|failure| failure.exit(ExitKind::Usage))?;
        let settings = config.engine(&model.engine)?;
        let kind = remote_kind(&settings)?;
        let unusable = |error: KindError| settings.kind_failure(&error);
        let dialect = kind.dialect().map_err(unusable)?;
        let watcher = Arc::new(ShownExchanges {
            dialect: dialect.clone(),
        });
        let engine = kind.watched(&settings.name, Arc::new(SystemClock), Some(watcher));
        let engine = engine.map_err(unusable)?;
        let card = model.card(engine.describe().features);
        let card = card.map_err(|error| Failure::because(&model.id, error))?;
        let spec = request::spec(args, card.clone())?;
        let price = card.estimate(&spec, config.money.currency);
        let key = TaskId::from_parts(SystemClock.now_ms(), system::random()?).to_string();
        let to = args.output.clone();
        let to = to.unwrap_or_else(|| format!("./try-{key}.mp4").into());
        if to.exists() {
            let shown = printable(&to.display().to_string());
            let text = format!("{shown} exists; name another file with --output.");
            return Err(Failure::new(text).exit(ExitKind::Usage));
        }
        Ok(Self {
            servers: kind.servers().to_vec(),
            is_paid: dialect.repeat() == RepeatRule::Never || price.is_some(),
            price: price.map(|cost| Money {
                amount: cost.amount,
                currency: cost.currency,
            }),
            engine: Arc::new(engine),
            spec,
            key,
            to,
        })
    }

    async fn run(self, config: &Config, args: &EngineTryArgs) -> Result<(), Failure> {
        let references = ReferenceFiles::read(config, args).await?;
        print(&self.intention(&references));
        if self.is_paid && !args.yes {
            ask()?;
        }
        self.make(&references).await?;
        self.report()
    }

    /// What will be sent where.
    fn intention(&self, references: &ReferenceFiles) -> String {
        let spec = &self.spec;
        let shape = spec
            .render_size()
            .map_or_else(String::new, |size| size.to_string());
        let references: Vec<&str> = references
            .files
            .iter()
            .map(|file| file.media_type.as_str())
            .collect();
        let references = match references[..] {
            [] => String::new(),
            _ => format!(", with {}", references.join(", ")),
        };
        let price = self
            .price
            .map_or_else(String::new, |price| format!("; about {price}"));
        format!(
            "{} at {}: {shape}, {}, seed {}{references}{price}\n",
            spec.model,
            self.servers.join(" or "),
            length(spec.seconds),
            spec.seed,
        )
    }

    /// Submits the job and follows it until the film is saved. Ctrl-C cancels it at the server.
    async fn make(&self, references: &ReferenceFiles) -> Result<(), Failure> {
        let (control, cancel) = (JobControl::default(), CancellationToken::new());
        let job = FilmJob {
            key: &self.key,
            spec: &self.spec,
            references: &references.files,
            source: None,
            ticket: None,
            to: &self.to,
            control: &control,
            cancel: &cancel,
            tickets: &NoTickets,
        };
        let mut signals = StopSignals::from_process()?;
        let mut making = self.engine.film(&job);
        let made = tokio::select! {
            made = &mut making => made,
            () = signals.next() => {
                print_message("cancelling at the server; press Ctrl-C again to exit immediately");
                cancel.cancel();
                tokio::select! {
                    made = &mut making => made,
                    () = signals.next() => Err(EngineError::Cancelled),
                }
            }
        };
        match made {
            Ok(()) => Ok(()),
            Err(EngineError::Cancelled) => {
                Err(Failure::new("Cancelled.").exit(ExitKind::Interrupted))
            }
            Err(error) => Err(Failure::because("No video", printable(&error.to_string()))),
        }
    }

    /// Examines the film as the service does, and says whether the service would serve it.
    fn report(&self) -> Result<(), Failure> {
        let shown = printable(&self.to.display().to_string());
        let asked = self.format()?;
        let films = engine_host::films();
        let examined = films
            .defragment(&self.to)
            .and_then(|_| films.examine(&self.to, &asked, &mut || true));
        let recording = examined.map_err(|error| {
            Failure::because(
                format!("The service would not serve the film, which is saved as {shown}"),
                error,
            )
        })?;
        print(&format!("saved {shown}: {}\n", measures(&recording.info)));
        let mismatches = asked.mismatches(&recording.info);
        for mismatch in &mismatches {
            print(&format!("  differs from the request: {mismatch}\n"));
        }
        match (mismatches.is_empty(), self.engine.keeps_mismatched()) {
            (true, _) => print("  fits the request: the service would serve it\n"),
            (false, true) => print(
                "  the service would serve it with a warning (`mismatched = \"keep\"`); list in the model's card only \
                 the sizes and lengths that the provider really makes\n",
            ),
            (false, false) => {
                return Err(Failure::new(
                    "The service would refuse this film: list in the model's card only the sizes and lengths that the \
                     server really makes, or set `mismatched = \"keep\"` on the engine.",
                ));
            }
        }
        Ok(())
    }

    fn format(&self) -> Result<FilmFormat, Failure> {
        let size = self.spec.render_size();
        let size =
            size.ok_or_else(|| Failure::new("The size is not decided; name one with --size."))?;
        Ok(FilmFormat {
            width: size.width,
            height: size.height,
            seconds: match self.spec.seconds {
                VideoLength::Fixed(seconds) => Some(seconds),
                VideoLength::Auto => None,
            },
            seconds_max: SECONDS_MAX,
            audio: self
                .engine
                .has_sound_switch()
                .then_some(self.spec.generate_audio),
            undecodable: if self.engine.keeps_undecodable() {
                UndecodablePolicy::Keep
            } else {
                UndecodablePolicy::Refuse
            },
            // The report lists all differences.
            mismatched: MismatchPolicy::Keep,
        })
    }
}

/// The settings of an engine whose servers have a dialect.
fn remote_kind(settings: &EngineSettings) -> Result<RemoteKind, Failure> {
    let definition = &settings.definition;
    let advice = match definition.kind.name {
        "remote" => {
            let kind = definition.table.clone().try_into();
            return kind.map_err(|error: toml::de::Error| Failure::because(&settings.name, error));
        }
        "process" => "`kinora engine check -- COMMAND` checks its command",
        "comfyui" => "`kinora models check` checks its servers",
        _ => "`kinora models check` loads it, `kinora generate --local` makes a video with it",
    };
    let text = format!(
        "The engine '{}' is no server with a dialect (kind \"remote\"): {advice}.",
        settings.name
    );
    Err(Failure::new(text).exit(ExitKind::Usage))
}

/// Asks the operator on the terminal.
fn ask() -> Result<(), Failure> {
    let declined = |text: &str| Err(Failure::new(text).exit(ExitKind::Usage));
    if !std::io::stdin().is_terminal() {
        return declined("This video may cost money: agree with --yes.");
    }
    if question::is_confirmed("This video may cost money. Make it?") {
        return Ok(());
    }
    declined("Nothing was submitted.")
}

fn length(seconds: VideoLength) -> String {
    match seconds {
        VideoLength::Fixed(seconds) => format!("{seconds} s"),
        VideoLength::Auto => "a length that the server chooses".to_owned(),
    }
}

fn measures(info: &ProbeInfo) -> String {
    format!(
        "{}x{}, {:.2} s, {:.3} frames/s, {} sound, {}",
        info.width,
        info.height,
        info.duration_seconds,
        info.fps,
        if info.has_audio { "with" } else { "without" },
        size(info.file_bytes),
    )
}

/// A job that is not continued elsewhere needs no ticket.
struct NoTickets;

#[async_trait]
impl TicketStore for NoTickets {
    async fn store(&self, _ticket: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kinora_engine_upstreams::dialects::ServerDialect;
    use kinora_worker::AnyEngine;

    use super::*;
    use crate::catalog;

    /// The configuration in `text`, in which each path of `folder` begins with `FOLDER`.
    fn config(folder: &Path, text: &str) -> Config {
        std::fs::write(folder.join("key"), "secret").unwrap();
        let file = folder.join("kinora.toml");
        let text = text.replace("FOLDER", folder.to_str().unwrap());
        std::fs::write(&file, text).unwrap();
        let config = Config::read(Some(&file), &[]).unwrap();
        config.check().unwrap();
        config
    }

    fn unsendable(config: &Config) -> Vec<String> {
        let engine = &config.engines[0];
        let AnyEngine::Film(films) = catalog::open_engine(engine, config).unwrap() else {
            panic!("a server makes films");
        };
        let runtime = crate::store_access::runtime().unwrap();
        runtime.block_on(catalog::unsendable(config, &engine.name, &*films))
    }

    #[test]
    fn the_examples_of_the_page_on_dialects_can_be_used() {
        let page = include_str!("../../../docs/dialects.md");
        let blocks = page.split("```toml\n").skip(1);
        let blocks = blocks.filter_map(|rest| Some(rest.split_once("```")?.0));
        let (configurations, dialects): (Vec<&str>, Vec<&str>) =
            blocks.partition(|block| block.contains("[[engines]]"));
        assert_eq!((configurations.len(), dialects.len()), (1, 2));
        for dialect in &dialects {
            ServerDialect::read(dialect).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("my-provider.toml"), dialects[0]).unwrap();
        let text = configurations[0]
            .replace("./my-provider.toml", "FOLDER/my-provider.toml")
            .replace(
                "key_variable = \"EXAMPLE_KEY\"",
                "key_file = \"FOLDER/key\"",
            );
        let config = config(folder.path(), &text);
        let (catalog, _) = catalog::models(&config).unwrap();
        let can = &catalog.find("clip-1").unwrap().capabilities.features;
        assert!(can.first_frame && !can.last_frame && !can.negative_prompt && !can.audio_output);
        assert_eq!(unsendable(&config), [""; 0]);
    }

    #[test]
    fn a_size_that_a_dialect_has_no_word_for_is_found_before_a_client_asks_for_it() {
        let dialect = "title = \"t\"\nsource = \"s\"\nbase_url = \"https://api.example.com\"\n\
                       [submit]\npath = \"jobs\"\nbody = { text = \"{prompt}\", shape = \"{size@shapes}\" }\n\
                       [poll]\npath = \"jobs/{id}\"\n[answer]\nresult = \"/url\"\n\
                       [statuses]\ncompleted = [\"done\"]\n[lookup.shapes]\n\"1280x720\" = \"wide\"\n";
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("d.toml"), dialect).unwrap();
        let text = "[[engines]]\nname = \"far\"\nkind = \"remote\"\ndialect = \"FOLDER/d.toml\"\n\
                    key_file = \"FOLDER/key\"\n\
                    [[models]]\nid = \"m\"\nengine = \"far\"\nsizes = [\"1280x720\", \"720x1280\"]\nseconds = [5]\n";
        let problems = unsendable(&config(folder.path(), text));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].starts_with("the model 'm' promises 720x1280: "),
            "{problems:?}"
        );
    }

    #[test]
    fn only_servers_with_a_dialect_are_tried() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[[engines]]\nname = \"near\"\nkind = \"process\"\ncommand = [\"true\"]\n\
                    describe = { fps = 8, features = { text_to_video = true } }\n";
        let config = config(folder.path(), text);
        let error = remote_kind(&config.engines[0]).unwrap_err().to_string();
        assert!(error.contains("kinora engine check"), "{error}");
        let built_in = config.engine("storyboard").unwrap();
        assert!(remote_kind(&built_in).is_err());
    }
}
