//! `models.d` in the data folder: a file with engines and models for each model that `kinora models
//! add` added, read after the configuration and appended to it. A name that occurs twice is refused;
//! only a device may be in several files, since its models share it.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::overlay;
use crate::failure::Failure;

/// A file of the folder, or one that is about to become one.
#[derive(Clone, Debug)]
pub(crate) struct ModelFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// The folder in the data folder `data`.
pub(crate) fn folder(data: &Path) -> PathBuf {
    data.join("models.d")
}

/// Ends the name of a file of a removed model whose weights and programs stay.
pub(crate) const KEPT: &str = ".kept";
/// Ends the name of a file as the running service has read it, before it was changed or removed.
pub(crate) const SERVED: &str = ".served";

/// The files of the folder, by name. No folder has none.
pub(crate) fn read(data: &Path) -> Result<Vec<ModelFile>, Failure> {
    // Editors keep their copies under hidden names.
    read_named(data, |name| {
        name.ends_with(".toml") && !name.starts_with('.')
    })
}

/// The files of models that are no longer served, or only by the running service.
pub(crate) fn read_former(data: &Path) -> Result<Vec<ModelFile>, Failure> {
    read_named(data, |name| {
        name.starts_with('.') && [KEPT, SERVED].iter().any(|ending| name.ends_with(ending))
    })
}

/// Where the file of a model, the file `path`, is kept with such an ending.
pub(crate) fn former_path(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default();
    path.with_file_name(format!(".{}{ending}", name.display()))
}

/// Removes the files that only a service has which has ended.
pub(crate) fn forget_served(data: &Path) {
    for file in read_named(data, |name| name.ends_with(SERVED)).unwrap_or_default() {
        // One that stays keeps its weights on the disk, and nothing else.
        let _ = fs::remove_file(file.path);
    }
}

fn read_named(data: &Path, is_named: impl Fn(&str) -> bool) -> Result<Vec<ModelFile>, Failure> {
    let folder = folder(data);
    let unreadable = |path: &Path, error| Failure::at(path, "cannot be read", error);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| unreadable(&folder, error))?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| unreadable(&folder, error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if is_named(&name) {
            paths.push(path);
        }
    }
    paths.sort();
    let read = paths.into_iter().map(|path| {
        let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
        Ok(ModelFile { path, text })
    });
    read.collect()
}

/// Appends the engines and models of `files` to the settings; returns what was changed in them.
pub(super) fn append(settings: &mut Table, files: &[ModelFile]) -> Result<Vec<String>, Failure> {
    let (mut names, mut engines) = (BTreeMap::new(), Vec::new());
    add_names(&mut names, settings, "the configuration")?;
    for file in files {
        let shown = file.path.display().to_string();
        let added = overlay::parse(&file.text, &shown)?;
        add_names(&mut names, &added, &shown)?;
        engines.extend(names_in(&added).0);
        for (key, value) in added {
            let (Value::Array(mut items), "devices" | "engines" | "models") = (value, key.as_str())
            else {
                return Err(Failure::new(format!(
                    "{shown} may have [[devices]], [[engines]] and [[models]] only; move '{key}' into the configuration."
                )));
            };
            if key == "devices" {
                items.retain(|device| !has_device(settings, device));
            }
            let all = settings
                .entry(key)
                .or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(all) = all {
                all.extend(items);
            }
        }
    }
    Ok(clamp_memory(settings, &engines))
}

/// Gives `engines` no more of a device than the operator has left to it: a model that was added with more must not stop every
/// command. Returns a note for each.
fn clamp_memory(settings: &mut Table, engines: &[String]) -> Vec<String> {
    const MEMORY: &str = "memory_megabytes";
    let megabytes = |item: &Value| item.get(MEMORY).and_then(Value::as_integer);
    let devices = items(settings, "devices");
    let budgets = devices.filter_map(|device| Some((text(device, "name")?, megabytes(device)?)));
    let budgets: Vec<_> = budgets.collect();
    let mut notes = Vec::new();
    let all = settings.get_mut("engines").and_then(Value::as_array_mut);
    for engine in all.into_iter().flatten() {
        let Some(name) = text(engine, "name").filter(|name| engines.contains(name)) else {
            continue;
        };
        let own = text(engine, "device");
        let budget = budgets.iter().find(|(name, _)| own.as_ref() == Some(name));
        if let (Some((device, budget)), Some(need)) = (budget, megabytes(engine))
            && need > *budget
            && let Some(table) = engine.as_table_mut()
        {
            table.insert(MEMORY.to_owned(), Value::Integer(*budget));
            notes.push(format!(
                "The engine '{name}' was added for {need} megabytes of the device '{device}', and [[devices]] has {budget}: \
                 it may run out of memory. Raise memory_megabytes there, or add the model again with another variant."
            ));
        }
    }
    notes
}

/// Whether a device of this name is there already. The first one counts, and so does the configuration's: an operator may
/// leave less of a GPU to the models than `kinora models add` does.
fn has_device(settings: &Table, device: &Value) -> bool {
    let name = text(device, "name");
    name.is_some() && items(settings, "devices").any(|other| text(other, "name") == name)
}

/// Adds the names of engines and models with the place that has them.
fn add_names(
    names: &mut BTreeMap<(&'static str, String), String>,
    table: &Table,
    place: &str,
) -> Result<(), Failure> {
    let (engines, models) = names_in(table);
    let engines = engines.into_iter().map(|name| ("engine", name));
    let models = models.into_iter().map(|name| ("model", name));
    for (what, name) in engines.chain(models) {
        let earlier = names.insert((what, name.clone()), place.to_owned());
        // Within one place the check of the whole configuration reports it.
        if let Some(earlier) = earlier.filter(|earlier| earlier != place) {
            return Err(Failure::new(format!(
                "The {what} '{name}' is in {earlier} and in {place}: remove or rename one of them."
            )));
        }
    }
    Ok(())
}

impl ModelFile {
    /// Its settings.
    pub(crate) fn table(&self) -> Result<Table, Failure> {
        overlay::parse(&self.text, &self.path.display().to_string())
    }

    /// The names of its devices.
    pub(crate) fn devices(&self) -> Result<Vec<String>, Failure> {
        let table = self.table()?;
        let names = items(&table, "devices").filter_map(|device| text(device, "name"));
        Ok(names.collect())
    }

    /// The names of its engines, and the ids and aliases of its models.
    pub(crate) fn names(&self) -> Result<(Vec<String>, Vec<String>), Failure> {
        Ok(names_in(&self.table()?))
    }
}

/// The names of engines; and the ids and aliases of models, which share one space of names.
fn names_in(table: &Table) -> (Vec<String>, Vec<String>) {
    let engines = items(table, "engines").filter_map(|engine| text(engine, "name"));
    let models = items(table, "models").flat_map(|model| {
        let id = text(model, "id").or_else(|| text(model, "card"));
        let aliases = model.get("aliases").and_then(Value::as_array);
        let aliases = aliases.into_iter().flatten().filter_map(Value::as_str);
        id.into_iter().chain(aliases.map(str::to_owned))
    });
    (engines.collect(), models.collect())
}

fn items<'t>(table: &'t Table, key: &str) -> impl Iterator<Item = &'t Value> {
    let items = table.get(key).and_then(Value::as_array);
    items.into_iter().flatten()
}

fn text(item: &Value, key: &str) -> Option<String> {
    Some(item.get(key)?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    const MODEL: &str = "[[engines]]\nname = \"waves\"\nkind = \"process\"\ncommand = [\"cat\"]\n\
                         describe = { fps = 16, features = { text_to_video = true } }\n\
                         [[models]]\nid = \"waves\"\naliases = [\"sea\"]\nengine = \"waves\"\n";

    /// Reads a configuration `text` whose data folder has these files in `models.d`.
    fn read_with(text: &str, files: &[(&str, &str)]) -> Result<Config, String> {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(folder(data.path())).unwrap();
        for (name, text) in files {
            fs::write(folder(data.path()).join(name), text).unwrap();
        }
        let path = data.path().join("kinora.toml");
        let text = format!("data = {:?}\n{text}", data.path());
        fs::write(&path, text).unwrap();
        let config = Config::read(Some(&path), &[]).map_err(|failure| failure.to_string())?;
        config.check().map_err(|failure| failure.to_string())?;
        Ok(config)
    }

    #[test]
    fn models_of_the_folder_follow_those_of_the_configuration() {
        let files = [("waves.toml", MODEL), (".old.toml", "?"), ("notes", "?")];
        let with = read_with("", &files).unwrap();
        let without = read_with("", &[]).unwrap();
        assert_eq!(with.models.len(), without.models.len() + 1);
        assert_eq!(with.models.last().unwrap().id, "waves");
        assert_eq!(with.engines.last().unwrap().name, "waves");
    }

    #[test]
    fn models_of_several_files_share_a_device_and_the_configuration_decides_how_much_of_it() {
        let device =
            |megabytes| format!("[[devices]]\nname = \"GPU-1\"\nmemory_megabytes = {megabytes}\n");
        let on_it = "\ndevice = \"GPU-1\"\nmemory_megabytes = 9\n[[models]]";
        let waves = format!("{}{}", device(70), MODEL.replace("\n[[models]]", on_it));
        let lake = waves.replace("waves", "lake").replace("sea", "pond");
        let files = [("lake.toml", &*lake), ("waves.toml", &*waves)];
        for (text, megabytes, notes) in [
            (String::new(), 70, 0),
            (device(30), 30, 0),
            (device(5), 5, 2),
        ] {
            let config = read_with(&text, &files).unwrap();
            let found: Vec<u32> = config
                .devices
                .iter()
                .map(|one| one.memory_megabytes)
                .collect();
            assert_eq!(found, [megabytes]);
            assert_eq!(config.engines_on(&config.devices[0]).count(), 2);
            assert_eq!(config.notes.len(), notes, "{:?}", config.notes);
        }
    }

    #[test]
    fn what_a_file_may_not_have_is_refused_with_its_name() {
        let sea = MODEL.replace("waves", "sea");
        for (text, file, parts) in [
            ("", "listen = \"[::]:80\"", &["waves.toml", "'listen'"][..]),
            ("", "models = 3", &["waves.toml", "'models'"]),
            ("", "[[engines]", &["waves.toml is not valid TOML"]),
            (
                MODEL,
                MODEL,
                &["engine 'waves'", "the configuration", "waves.toml"],
            ),
            (
                &sea.replace("\"sea\"]", "\"lake\"]"),
                &MODEL.replace("name = \"waves\"", "name = \"w\""),
                &["model 'sea'"],
            ),
            (
                "[[models]]\ncard = \"kinora-a1\"",
                &MODEL.replace("\"sea\"", "\"kinora-a1\""),
                &["model 'kinora-a1'"],
            ),
        ] {
            let error = read_with(text, &[("waves.toml", file)]).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{part}: {error}");
            }
        }
    }

    #[test]
    fn an_engine_that_a_process_without_worker_cannot_read_is_set_aside() {
        let odd = MODEL.replace("process", "odd");
        let files = [("waves.toml", &*odd)];
        assert!(read_with("", &files).unwrap_err().contains("'odd'"));
        let config = read_with("[worker]\nenabled = false", &files).unwrap();
        assert_eq!(config.engines_set_aside.len(), 1);
    }
}
