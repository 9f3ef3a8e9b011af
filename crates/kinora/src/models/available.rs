//! `kinora models list --available`: the catalogue, with how this machine can run each model.

use kinora_engine_catalogue::{CatalogueEntry, Choice, Machine, Wishes, catalogue, choose};
use serde_json::{Value, json};

use super::machine_text::{engine_text, machine_text, needs_text};
use crate::output::{aligned, print};

const HEADS: [&str; 5] = ["NAME", "DOWNLOAD", "ON THIS MACHINE", "LICENCE", "MAKES"];

/// Prints the catalogue.
pub(super) fn list(json: bool) {
    let machine = Machine::ask();
    let choices = catalogue().iter();
    let choices = choices.map(|entry| (entry, choose(entry, &machine, &Wishes::default())));
    let choices: Vec<_> = choices.collect();
    if json {
        let models: Value = choices.iter().map(model_object).collect();
        print(&format!("{models:#}\n"));
        return;
    }
    let rows = choices.iter().map(|(entry, choice)| row(entry, choice));
    let heads = std::iter::once(HEADS.map(str::to_owned));
    let rows: Vec<[String; 5]> = heads.chain(rows).collect();
    print(&aligned(&rows));
    print(&format!("\nThis machine: {}\n", machine_text(&machine)));
    for problem in &machine.problems {
        print(&format!("{problem}\n"));
    }
    print(
        "Add a model with: kinora models add NAME. With --dry-run it says why one does not fit.\n",
    );
}

fn row(entry: &CatalogueEntry, choice: &Result<Choice, Vec<String>>) -> [String; 5] {
    let (download, fit) = match choice {
        Ok(choice) => (
            format!("{:.1} GB", choice.download_gigabytes),
            format!("fits: {}", needs_text(choice)),
        ),
        Err(_) => ("-".to_owned(), "does not fit".to_owned()),
    };
    [
        entry.name.clone(),
        download,
        fit,
        entry.licence.name.clone(),
        entry.makes.clone(),
    ]
}

fn model_object((entry, choice): &(&CatalogueEntry, Result<Choice, Vec<String>>)) -> Value {
    let choice_object = choice.as_ref().ok().map(|choice| {
        json!({
            "engine": engine_text(choice),
            "variant": choice.variant.map(|variant| &variant.label),
            "device": choice.device.as_ref().map(|gpu| &gpu.index),
            "memory_gigabytes": choice.needs_gigabytes,
            "download_gigabytes": choice.download_gigabytes,
        })
    });
    json!({
        "name": entry.name,
        "title": entry.title,
        "makes": entry.makes,
        "licence": { "name": entry.licence.name, "url": entry.licence.url },
        "fits": choice_object.is_some(),
        "choice": choice_object,
        "reasons": choice.as_ref().err().map_or(&[][..], Vec::as_slice),
    })
}
