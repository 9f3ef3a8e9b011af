//! The served models: each card of the configuration with its engine, which is made here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use kinora_contract::{CardRecord, Catalog, ModelCard};
use kinora_engine::Output;
use kinora_worker::{Lineup, Maker, Served};
use tokio::sync::Semaphore;

use crate::config::{Config, Engine};
use crate::engine_host;
use crate::failure::Failure;
use crate::system::SystemClock;

/// The served models, each restricted to its engine's features.
pub(crate) fn models(config: &Config) -> Result<(Catalog, Lineup), Failure> {
    let mut engines: BTreeMap<&str, Served> = BTreeMap::new();
    let mut cards = Vec::new();
    let mut lineup = Vec::new();
    for model in &config.models {
        if !engines.contains_key(&*model.engine) {
            engines.insert(
                &model.engine,
                served(&config.engine(&model.engine)?, &config.data)?,
            );
        }
        let served = engines[&*model.engine].clone();
        let card = card(model, &served.engine)?;
        lineup.push((card.id.clone(), served));
        cards.push(card);
    }
    let catalog = Catalog::new(cards)
        .map_err(|error| Failure::because("The configured models are wrong", error))?;
    Ok((catalog, Lineup::new(lineup)))
}

/// Parts that all models of an engine share.
fn served(engine: &Engine, data: &Path) -> Result<Served, Failure> {
    Ok(Served {
        engine: maker(engine, data)?,
        progress_timeout: engine.silence_max(),
        seats: engine.places().map(Semaphore::new).map(Arc::new),
    })
}

/// Opens an engine, or a starter of its processes.
pub(crate) fn maker(engine: &Engine, data: &Path) -> Result<Maker, Failure> {
    match (engine.settings.output(), engine.host) {
        (Output::Films(films), _) => {
            let opened = films.engine(&engine.name, Arc::new(SystemClock));
            Ok(Maker::Film(opened.map_err(|error| engine.refused(&error))?))
        }
        (Output::Frames(frames), Some(host)) => {
            let hosted = engine_host::hosted(engine, frames, host, data)?;
            Ok(Maker::Frames(Arc::new(hosted)))
        }
        (Output::Frames(frames), None) => {
            let opened = frames
                .open(&engine.name)
                .map_err(|error| Failure::because(&engine.name, error))?;
            Ok(Maker::Frames(opened.into()))
        }
    }
}

/// The card of a model, for an engine with the features `engine`.
fn card(model: &CardRecord, engine: &Maker) -> Result<ModelCard, Failure> {
    let card = model.card(engine.describe().features);
    card.map_err(|error| Failure::new(format!("The model '{}': {error}.", model.id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(text: &str) -> Result<Catalog, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kinora.toml");
        std::fs::write(&path, text).unwrap();
        let config = Config::read(Some(&path), &[]).map_err(|failure| failure.to_string())?;
        config.check().map_err(|failure| failure.to_string())?;
        let (catalog, _) = models(&config).map_err(|failure| failure.to_string())?;
        Ok(catalog)
    }

    fn assert_is_the_example(catalog: &Catalog) {
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
}
