//! The served models: each card of the configuration with its engine, restricted to what the engine
//! can do. A card or an engine that is invalid refuses the start.

use std::collections::BTreeMap;
use std::sync::Arc;

use kinora_contract::{
    CardRecord, Clock, Features, FrameSize, ModelCard, ModelCatalog, SPEC_VERSION, Size,
    VideoInputs, VideoLength, VideoSpec,
};
use kinora_engine::{Engine as Opened, EngineOutput, FilmEngine};
use kinora_worker::{
    AnyEngine, DevicePatience, EngineDevice, EngineLineup, ServedEngine, SharingEngine,
};
use tokio::sync::Semaphore;

use crate::config::{self, Config, EngineSettings};
use crate::engine_host;
use crate::failure::Failure;
use crate::system::SystemClock;

/// The served models, each restricted to its engine's features.
pub(crate) fn models(config: &Config) -> Result<(ModelCatalog, EngineLineup), Failure> {
    let mut engines: BTreeMap<&str, ServedEngine> = BTreeMap::new();
    let mut cards = Vec::new();
    let mut lineup = Vec::new();
    for model in &config.models {
        // Opened once for all its models, which share its processes, its seats and its place on a
        // device.
        if !engines.contains_key(&*model.engine) {
            engines.insert(
                &model.engine,
                open_served(&config.engine(&model.engine)?, config)?,
            );
        }
        let served = ServedEngine {
            preset: model.preset().cloned().map(Arc::new),
            ..engines[&*model.engine].clone()
        };
        let card = card(model, served.engine.describe().features)?;
        lineup.push((card.id.clone(), served));
        cards.push(card);
    }
    let devices = config
        .devices
        .iter()
        .map(|one| device(config, one, &engines));
    let devices: Vec<EngineDevice> = devices.collect();
    let warm = warm_engines(config, &engines);
    let lineup = EngineLineup::new(lineup).sharing(devices).warming(warm);
    Ok((catalog(cards, config)?, lineup))
}

/// The engines that load at the worker's start, among those that models use.
fn warm_engines(config: &Config, engines: &BTreeMap<&str, ServedEngine>) -> Vec<Arc<dyn Opened>> {
    let warm = config.engines.iter().filter(|engine| engine.warm);
    let opened = warm.filter_map(|engine| match &engines.get(&*engine.name)?.engine {
        AnyEngine::Frames(opened) => Some(opened.clone()),
        AnyEngine::Film(_) => None,
    });
    opened.collect()
}

/// A device with those of its engines that models use.
fn device(
    config: &Config,
    device: &config::DeviceSettings,
    engines: &BTreeMap<&str, ServedEngine>,
) -> EngineDevice {
    let patience = DevicePatience {
        idle_max: device.idle_max(),
        age_max: device.age_max(),
    };
    EngineDevice::new(
        device.name.clone(),
        device.memory_megabytes.into(),
        patience,
        config
            .engines_on(device)
            .filter_map(|(engine, lodging)| {
                let models = config.models.iter();
                let models = models.filter(|model| model.engine == engine.name);
                Some(SharingEngine {
                    name: engine.name.clone(),
                    engine: engines.get(&*engine.name)?.engine.clone(),
                    megabytes: lodging.memory_megabytes.into(),
                    models: models.map(|model| model.id.clone()).collect(),
                })
            })
            .collect(),
        SystemClock.steady(),
    )
}

/// The served models according to their cards and the settings of their engines, for a process that
/// opens no engine. If an engine is unknown here, its card applies unchanged.
pub(crate) fn described_models(config: &Config) -> Result<ModelCatalog, Failure> {
    let mut cards = Vec::new();
    for model in &config.models {
        let features = config
            .engine(&model.engine)
            .ok()
            .and_then(|engine| features(&engine));
        // The cards of a model say what it can do; the engine only restricts them. A process
        // without engines can therefore accept tasks for workers elsewhere, and a request that the
        // engine does not support fails there instead of here.
        if features.is_none() {
            tracing::warn!(
                model = model.id,
                engine = model.engine,
                "engine unknown here; serving its model as the card describes it"
            );
        }
        cards.push(card(model, features.unwrap_or(Features::ALL))?);
    }
    catalog(cards, config)
}

/// The features of an engine, from its settings alone.
fn features(engine: &EngineSettings) -> Option<Features> {
    match engine.settings.output() {
        EngineOutput::Frames(frames) => {
            let planner = frames.planner(&engine.name).ok()?;
            Some(planner.describe().features)
        }
        EngineOutput::Films(films) => {
            let opened = films.engine(&engine.name, Arc::new(SystemClock)).ok()?;
            Some(opened.describe().features)
        }
    }
}

/// What the models of the engine `name` promise and `films` cannot ask its servers for: sizes and lengths. Calls no
/// server.
pub(crate) async fn unsendable(config: &Config, name: &str, films: &dyn FilmEngine) -> Vec<String> {
    let mut problems = Vec::new();
    for model in config.models.iter().filter(|model| model.engine == name) {
        // The check of the models reports a card that is wrong.
        let Ok(card) = card(model, films.describe().features) else {
            continue;
        };
        for (what, spec) in promised(&card) {
            if let Err(error) = films.check_spec(&spec).await {
                problems.push(format!("the model '{}' promises {what}: {error}", card.id));
            }
        }
    }
    problems
}

/// Each size of a card with its default length, and each length with its first size.
fn promised(card: &ModelCard) -> Vec<(String, VideoSpec)> {
    let can = &card.capabilities;
    let spec = |size: Size, seconds: u32| VideoSpec {
        generate_audio: can.features.audio_output,
        ..trial_spec(&card.id, size, seconds)
    };
    let sizes = can.sizes.iter();
    let mut all: Vec<_> = sizes
        .map(|size| (size.to_string(), spec(*size, can.seconds_default)))
        .collect();
    if let Some(size) = can.sizes.first() {
        let lengths = (can.seconds_min..=can.seconds_max).filter(|seconds| can.makes(*seconds));
        all.extend(lengths.map(|seconds| (format!("{seconds} s"), spec(*size, seconds))));
    }
    all
}

/// A plain request, to try an engine or a card with.
pub(crate) fn trial_spec(model: &str, size: Size, seconds: u32) -> VideoSpec {
    VideoSpec {
        version: SPEC_VERSION,
        model: model.to_owned(),
        prompt: "A lighthouse on a rock in a calm sea at dawn".to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(seconds),
        frame: FrameSize::Fixed(size),
        seed: 7,
        generate_audio: false,
        inputs: VideoInputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

fn catalog(cards: Vec<ModelCard>, config: &Config) -> Result<ModelCatalog, Failure> {
    let catalog = ModelCatalog::new(cards)
        .map_err(|error| Failure::because("The configured models are invalid", error))?;
    Ok(catalog.with_currency(config.money.currency))
}

/// The parts that all models of an engine share.
fn open_served(engine: &EngineSettings, config: &Config) -> Result<ServedEngine, Failure> {
    let maker = open_engine(engine, config)?;
    #[cfg(feature = "test-faults")]
    let maker = crate::faults::wrap_engine(&config.test, maker, engine.host.is_some());
    Ok(ServedEngine {
        engine: maker,
        progress_timeout: engine.silence_max(),
        device: engine.settings.device(),
        seats: engine.places().map(Semaphore::new).map(Arc::new),
        // Each model has its own.
        preset: None,
    })
}

/// Opens an engine, or a starter of its processes.
pub(crate) fn open_engine(engine: &EngineSettings, config: &Config) -> Result<AnyEngine, Failure> {
    match (engine.settings.output(), engine.host) {
        (EngineOutput::Films(films), _) => {
            let opened = films.engine(&engine.name, Arc::new(SystemClock));
            Ok(AnyEngine::Film(
                opened.map_err(|error| engine.kind_failure(&error))?,
            ))
        }
        (EngineOutput::Frames(frames), Some(host)) => {
            let hosted = engine_host::hosted(engine, frames, host, config)?;
            Ok(AnyEngine::Frames(Arc::new(hosted)))
        }
        (EngineOutput::Frames(frames), None) => {
            let opened = frames
                .open(&engine.name)
                .map_err(|error| Failure::because(&engine.name, error))?;
            Ok(AnyEngine::Frames(opened.into()))
        }
    }
}

/// The card of a model, for an engine with the features `engine`.
fn card(model: &CardRecord, engine: Features) -> Result<ModelCard, Failure> {
    let card = model.card(engine);
    card.map_err(|error| Failure::new(format!("The model '{}': {error}.", model.id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(text: &str) -> Result<ModelCatalog, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kinora.toml");
        std::fs::write(&path, text).unwrap();
        let config = Config::read(Some(&path), &[]).map_err(|failure| failure.to_string())?;
        config.check().map_err(|failure| failure.to_string())?;
        let (catalog, _) = models(&config).map_err(|failure| failure.to_string())?;
        Ok(catalog)
    }

    fn assert_is_the_example(catalog: &ModelCatalog) {
        let can = &catalog.find("house").unwrap().capabilities;
        let sizes: Vec<String> = can.sizes.iter().map(ToString::to_string).collect();
        assert_eq!(sizes, ["1152x640", "640x1152"]);
        assert_eq!(can.seconds, Some(vec![2, 3, 7]));
        assert_eq!(can.seconds_default, 3);
        assert!(can.features.first_frame && can.features.audio_output && !can.features.edit);
    }

    #[test]
    fn the_examples_of_a_model_of_ones_own_are_what_they_say() {
        let page = include_str!("../../../docs/models.md");
        let (_, section) = page.split_once("## Models of your own").unwrap();
        let (_, example) = section.split_once("```toml\n").unwrap();
        let (example, _) = example.split_once("```").unwrap();
        let catalog = served(example).unwrap();
        assert_eq!(catalog.cards().len(), 3);
        assert_is_the_example(&catalog);
        // In the default file it is a comment.
        let (_, comment) = crate::config::DEFAULT_FILE
            .split_once("explains every key):\n")
            .unwrap();
        let (comment, _) = comment.split_once("\n\n").unwrap();
        let example = comment.lines().map(|line| line.strip_prefix('#').unwrap());
        assert_is_the_example(&served(&example.collect::<Vec<_>>().join("\n")).unwrap());
    }

    #[test]
    fn what_is_wrong_with_a_card_is_told_with_its_model() {
        let card = |more: &str| format!("[[models]]\nid = \"m\"\nengine = \"storyboard\"\n{more}");
        for (more, named) in [
            ("card = \"c1\"", "The model 'm': there is no card 'c1'"),
            (
                "seconds_max = 20",
                "The model 'm': seconds_max must be from 2 to 15.",
            ),
            ("sizes = [\"big\"]", "WIDTHxHEIGHT"),
            ("size = \"512x512\"", "unknown field `size`"),
            ("aliases = [\"m\"]", "\"m\" is used twice"),
        ] {
            let error = served(&card(more)).unwrap_err();
            assert!(error.contains(named), "{more}: {error}");
        }
        let error = served(&card("").replace("storyboard", "steam")).unwrap_err();
        assert_eq!(error, "There is no engine 'steam'.");
    }

    #[test]
    fn the_example_of_presets_is_what_it_says() {
        let page = include_str!("../../../docs/models.md");
        let (_, section) = page.split_once("## Presets").unwrap();
        let (_, example) = section.split_once("```toml\n").unwrap();
        let (example, _) = example.split_once("```").unwrap();
        let catalog = served(example).unwrap();
        let negative = |id| {
            let card: &ModelCard = catalog.find(id).unwrap();
            card.capabilities.features.negative_prompt
        };
        let taken = ["wan", "wan-fast", "wan-anime"].map(negative);
        assert_eq!(taken, [true, false, true]);
        let wrong = example.replace("engine = \"wan\"\nsizes", "engine = \"storyboard\"\nsizes");
        let error = served(&wrong).unwrap_err();
        assert_eq!(
            error,
            "The model 'wan-fast': settings: its engine 'storyboard' is of the kind 'storyboard': it takes no settings of \
             a model."
        );
    }

    fn described(text: &str) -> Result<ModelCatalog, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kinora.toml");
        std::fs::write(&path, text).unwrap();
        let off = [("KINORA_WORKER_ENABLED".to_owned(), "false".to_owned())];
        let config = Config::read(Some(&path), &off).map_err(|failure| failure.to_string())?;
        config.check().map_err(|failure| failure.to_string())?;
        super::described_models(&config).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_process_without_a_worker_serves_the_same_cards_without_an_engine() {
        let (catalog, _) = models(&Config::defaults()).unwrap();
        assert_eq!(described("").unwrap().cards(), catalog.cards());
    }

    #[test]
    fn engines_that_a_process_without_a_worker_does_not_know_do_not_stop_it() {
        let text = "[[engines]]\nname = \"new\"\nkind = \"perpetuum\"\nspeed = 9\n\
                    [[engines]]\nname = \"wrong\"\nkind = \"remote\"\nspeed = 9\n\
                    [[models]]\nid = \"a\"\ncard = \"kinora-a1\"\nengine = \"new\"\n\
                    [[models]]\nid = \"b\"\nengine = \"wrong\"\nfeatures = { text_to_video = true }\n\
                    [[models]]\nid = \"c\"\nengine = \"elsewhere\"\n";
        let catalog = described(text).unwrap();
        let built_in = kinora_contract::built_in_cards().remove(0);
        let found = |id| &catalog.find(id).unwrap().capabilities;
        assert_eq!(*found("a"), built_in.capabilities);
        assert!(found("b").features.text_to_video && !found("b").features.edit);
        assert!(found("c").features.edit);
        // A process that runs tasks needs them.
        assert!(served(text).is_err());
    }
}
