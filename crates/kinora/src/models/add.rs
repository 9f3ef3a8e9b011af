//! `kinora models add` and `kinora models update`: a model of the catalogue in five steps, from the
//! machine to the check. Each step can be repeated; the model is served once all have passed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, IsTerminal};

use kinora_engine_catalogue::{
    CatalogueEntry, Choice, EngineChoice, EnvironmentOptions, Hub, HubError, HubFile, Machine,
    Places, PreparedEnvironment, Wishes, card, catalogue, choose, find, prepare_environment,
};
use kinora_http_download::{DownloadOptions, DownloadSource};

use super::added::{self, AddRecord};
use super::environment_line::EnvironmentLine;
use super::machine_text::{machine_text, needs_text, program_text};
use super::remove::STILL_SERVED;
use super::sweep::{in_use, sweep};
use super::used::UsedPaths;
use super::{check, pull};
use crate::cli::{AddModelArgs, EngineName, InstallArgs, UpdateArgs, WishArgs};
use crate::config::Config;
use crate::config::models_folder::{self, ModelFile};
use crate::failure::{ExitKind, Failure};
use crate::output::{count, print, print_message, printable, size};
use crate::{folder, question, shell_hint, store_access, weights};

/// Adds a model.
pub(super) fn add(args: &AddModelArgs) -> Result<(), Failure> {
    let entry = find(&args.name).map_err(Failure::new)?;
    let wishes = absolute(&args.wishes)?;
    let home = &args.install.home;
    let lock = (!args.dry_run).then(|| added::lock(home)).transpose()?;
    let installer = ModelInstaller::new(&args.install, lock)?;
    let is_added = installer.is_added(&entry.name)?;
    if !is_added {
        installer.refuse_configured(&entry.name)?;
    }
    let plan = installer.plan(entry, wishes)?;
    if is_added && installer.is_added_so(&plan)? {
        print(&format!(
            "{} is added already, and complete. To look for newer files: {}\n",
            entry.name,
            installer.command(&format!("models update {}", entry.name))
        ));
        return Ok(());
    }
    let files = installer.resolve(&plan)?;
    if args.dry_run {
        print("Nothing was done: this was a dry run.\n");
        return Ok(());
    }
    installer.install(&plan, &files)?;
    print(&format!(
        "\n{name} is ready.\n  Serve it:     {serve}\n  Make a clip:  {program} generate \"A paper boat drifts down a \
         rainy street\" --model {name}\nA service that runs serves it after a restart.\n",
        name = entry.name,
        serve = installer.command("serve"),
        program = shell_hint::program(),
    ));
    Ok(())
}

/// Updates added models.
pub(super) fn update(args: &UpdateArgs) -> Result<(), Failure> {
    let lock = added::lock_if_used(&args.install.home)?;
    let installer = ModelInstaller::new(&args.install, lock)?;
    let mut is_changed = false;
    for (entry, wishes) in installer.added(&args.names)? {
        print(&format!("{}\n", entry.name));
        let plan = installer.plan(entry, wishes)?;
        let files = installer.resolve(&plan)?;
        is_changed |= installer.install(&plan, &files)?;
    }
    if installer.lock.is_some() {
        sweep(&Config::load(&args.install.home)?, None)?;
    }
    print(if is_changed {
        "A service that runs serves the new files after a restart.\n"
    } else {
        "Nothing has changed.\n"
    });
    Ok(())
}

/// How a model was asked for, and how it will run.
struct InstallPlan {
    record: AddRecord,
    choice: Choice,
}

/// Installs models into one data folder.
struct ModelInstaller<'a> {
    args: &'a InstallArgs,
    config: Config,
    places: Places,
    /// Keeps other commands from changing the models meanwhile; none if nothing will change.
    lock: Option<File>,
}

impl<'a> ModelInstaller<'a> {
    fn new(args: &'a InstallArgs, lock: Option<File>) -> Result<Self, Failure> {
        // The models are locked first: what it says of them must not change.
        let config = Config::load(&args.home)?;
        Ok(Self {
            lock,
            places: added::places(&config)?,
            args,
            config,
        })
    }

    /// A command line for the same data folder.
    fn command(&self, words: &str) -> String {
        shell_hint::command(words, &self.args.home)
    }

    /// Whether the model was added. Refuses a file of the operator's own in its place.
    fn is_added(&self, name: &str) -> Result<bool, Failure> {
        let text = self.text_of(name)?;
        let path = added::path(&self.config.data, name);
        if path.exists() && !AddRecord::is_in(&text) {
            return Err(Failure::new(format!(
                "{} is a file of your own: move or remove it first.",
                path.display()
            )));
        }
        Ok(!text.is_empty())
    }

    /// Refuses a name that the operator's own configuration has.
    fn refuse_configured(&self, name: &str) -> Result<(), Failure> {
        if self.config.model_id(name).is_err() && self.config.engine(name).is_err() {
            return Ok(());
        }
        Err(Failure::new(format!(
            "The configuration has a model or an engine '{name}' of its own: rename or remove it there first."
        )))
    }

    /// Steps 1 and 2: the machine, and how the model will run there.
    fn plan(
        &self,
        entry: &'static CatalogueEntry,
        wishes: WishArgs,
    ) -> Result<InstallPlan, Failure> {
        let machine = Machine::ask();
        print(&format!("1/5 machine: {}\n", machine_text(&machine)));
        let choice = choose(entry, &machine, &catalogue_wishes(&wishes)).map_err(|reasons| {
            Failure::new(format!(
                "{} does not fit this machine.\n  {}",
                entry.name,
                reasons.join("\n  ")
            ))
        })?;
        print(&format!(
            "2/5 plan: {}: {}\n",
            program_text(&choice),
            choice.why
        ));
        let licence = &entry.licence;
        print(&format!("    licence: {}, {}\n", licence.name, licence.url));
        Ok(InstallPlan {
            record: AddRecord {
                wishes,
                choice: needs_text(&choice),
            },
            choice,
        })
    }

    /// Whether a model was added as `plan` has it, and nothing of it is missing.
    fn is_added_so(&self, plan: &InstallPlan) -> Result<bool, Failure> {
        let name = &plan.choice.entry.name;
        let record = AddRecord::read(&self.text_of(name)?);
        let programs = &self.places.engines;
        Ok(record.as_ref() == Some(&plan.record)
            && added::is_complete(&self.config.engine(name)?, programs))
    }

    /// The file of an added model; empty if it is not added.
    fn text_of(&self, name: &str) -> Result<String, Failure> {
        let path = added::path(&self.config.data, name);
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            text => text.map_err(|error| {
                Failure::because(format!("{} cannot be read", path.display()), error)
            }),
        }
    }

    /// The files of a plan, as the hub has them now. Prints how much of them is missing.
    fn resolve(&self, plan: &InstallPlan) -> Result<Vec<HubFile>, Failure> {
        let weights = &self.config.weights;
        let DownloadOptions {
            token, roots_pem, ..
        } = weights.options(pull::certificates()?)?;
        let hub = Hub::new(weights.hub()?, token, &roots_pem).map_err(hub_failure)?;
        let asked = pull::interruptible(store_access::runtime()?, hub.resolve(&plan.choice))?;
        let files = asked.map_err(hub_failure)?;
        let all: u64 = files.iter().filter_map(|file| file.bytes).sum();
        print(&format!(
            "    {} with {}; {} are to download\n",
            count(files.len() as u64, "file"),
            size(all),
            size(total(&self.missing(&files)))
        ));
        self.check_names(plan, &files)?;
        Ok(files)
    }

    /// Refuses a model whose names the configuration has, before its programs are there. Warns of what else does not go with it.
    fn check_names(&self, plan: &InstallPlan, files: &[HubFile]) -> Result<(), Failure> {
        let placeholder = PreparedEnvironment {
            folder: self.places.engines.clone(),
            command: vec!["program".to_owned()],
            environment: BTreeMap::new(),
        };
        let (file, config) = self.pending(plan, files, &placeholder)?;
        let mut of_models = file.devices()?;
        let Some(device) = of_models.first().cloned() else {
            return Ok(());
        };
        for file in models_folder::read(&config.data)? {
            of_models.extend(file.devices()?);
        }
        let devices = config.devices.iter().map(|device| &device.name);
        for other in devices.filter(|name| !of_models.contains(name)) {
            print_message(&format!(
                "warning: the configuration has the device '{other}', and this model has '{device}'. If both are one GPU, it \
                 has two budgets and may run out of memory: name it '{device}' in the configuration."
            ));
        }
        for note in &config.notes {
            print_message(&format!("warning: {note}"));
        }
        Ok(())
    }

    /// The file of the model, and the configuration with it.
    fn pending(
        &self,
        plan: &InstallPlan,
        files: &[HubFile],
        environment: &PreparedEnvironment,
    ) -> Result<(ModelFile, Config), Failure> {
        let card = card(&plan.choice, files, &self.places, environment);
        let name = &plan.choice.entry.name;
        let file = plan.record.file(&self.config.data, name, &card)?;
        let config = Config::load_with(&self.args.home, &file)?;
        Ok((file, config))
    }

    /// The files that are not here yet.
    fn missing(&self, files: &[HubFile]) -> Vec<DownloadSource> {
        let sources = files.iter().map(|file| DownloadSource {
            url: file.url.clone(),
            path: self.places.weight_path(file),
            bytes: file.bytes,
            sha256: file.sha256.clone(),
        });
        sources.filter(|source| !source.path.exists()).collect()
    }

    /// Steps 3 to 5. Returns whether anything changed.
    fn install(&self, plan: &InstallPlan, files: &[HubFile]) -> Result<bool, Failure> {
        let missing = self.missing(files);
        self.agree(plan, &missing)?;
        // Before the programs are installed: a disk that is too small should show at once.
        pull::prepare(&missing, &self.config.weights)?;
        let environment = self.prepare_environment(&plan.choice)?;
        let (file, config) = self.pending(plan, files, &environment)?;
        let name = &plan.choice.entry.name;
        let engine = config.engine(name)?;
        print("4/5 weights\n");
        pull::fetch(&weights::files_of_engine(&engine), &config.weights)?;
        if self.text_of(name)? == file.text {
            print(&format!("{name} is up to date.\n"));
            return Ok(false);
        }
        self.check(&config, name)?;
        self.switch(&file, &config, name)?;
        Ok(true)
    }

    /// Asks on a terminal whether to download.
    fn agree(&self, plan: &InstallPlan, missing: &[DownloadSource]) -> Result<(), Failure> {
        let is_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
        if self.args.yes || missing.is_empty() || !is_asked {
            return Ok(());
        }
        let question = format!(
            "Download {} of {}, under the licence {}?",
            size(total(missing)),
            plan.choice.entry.title,
            plan.choice.entry.licence.name
        );
        if question::is_confirmed(&question) {
            return Ok(());
        }
        Err(Failure::new("Nothing was downloaded.").exit(ExitKind::Usage))
    }

    /// Step 3: the programs that the engine runs.
    fn prepare_environment(&self, choice: &Choice) -> Result<PreparedEnvironment, Failure> {
        print("3/5 engine\n");
        let options = EnvironmentOptions {
            releases: self.config.weights.releases()?,
            // The token is the hub's.
            download: DownloadOptions {
                token: None,
                ..self.config.weights.options(pull::certificates()?)?
            },
        };
        let line = EnvironmentLine::new();
        let kind = &choice.environment;
        let preparing = prepare_environment(kind, &self.places, &options, &line);
        let prepared = pull::interruptible(store_access::runtime()?, preparing);
        line.clear();
        let prepared = prepared?.map_err(|error| Failure::new(sentence(&error.to_string())))?;
        print(&format!("    {}\n", prepared.folder.display()));
        Ok(prepared)
    }

    /// Step 5: loads the engine.
    fn check(&self, config: &Config, name: &str) -> Result<(), Failure> {
        if self.args.no_check {
            print("5/5 check: left out\n");
            return Ok(());
        }
        print("5/5 check\n");
        let engine = config.engine(name)?;
        if check::check_engine(config, &engine, true)? != Some(false) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "{name} cannot be used, see above, and was not added. What was downloaded stays for another try; \
             --no-check adds it all the same."
        )))
    }

    /// Puts the file in its place, and removes what only the one before used.
    fn switch(&self, file: &ModelFile, config: &Config, name: &str) -> Result<(), Failure> {
        let failed = |error| Failure::because(format!("{name}: old files remain"), error);
        let mut engines = self.config.engines.iter();
        let former = engines.find(|engine| engine.name == name);
        if former.is_some() && folder::is_served(&self.config.data) {
            added::note_served(&file.path).map_err(failed)?;
            print(STILL_SERVED);
        }
        added::write(file)?;
        added::forget_kept(&file.path).map_err(failed)?;
        let Some(former) = former else {
            return Ok(());
        };
        let used = in_use(config)?;
        let weights = &self.places.weights;
        for old in weights::files_of_engine(former) {
            // Files that the operator put there have no source, and stay.
            if old.source.is_none() || used.has(&old.path, weights) {
                continue;
            }
            let shown = old.path.display();
            if added::remove_file(&old.path).map_err(failed)?.is_some() {
                print(&format!("{shown}: removed, nothing uses it\n"));
            }
            added::remove_empty_folders(&old.path, weights);
        }
        sweep(config, Some(&UsedPaths::of_engine(former)))
    }

    /// The added models of these names, or all, with what was asked for.
    fn added(&self, names: &[String]) -> Result<Vec<(&'static CatalogueEntry, WishArgs)>, Failure> {
        let mut found = Vec::new();
        for entry in catalogue() {
            if !names.is_empty() && !names.contains(&entry.name) {
                continue;
            }
            let text = self.text_of(&entry.name)?;
            if !AddRecord::is_in(&text) {
                continue;
            }
            let record = AddRecord::read(&text).ok_or_else(|| {
                Failure::new(format!(
                    "{}: this version cannot read how it was added. Add it again: {}",
                    entry.name,
                    self.command(&format!("models add {}", entry.name))
                ))
            })?;
            found.push((entry, record.wishes));
        }
        let is_added = |name: &&String| found.iter().any(|(entry, _)| entry.name == **name);
        if let Some(name) = names.iter().find(|name| !is_added(name)) {
            return Err(Failure::new(format!(
                "'{}' is not a model that `kinora models add` has added.",
                printable(name)
            )));
        }
        Ok(found)
    }
}

/// The sum of the known lengths.
fn total(sources: &[DownloadSource]) -> u64 {
    sources.iter().filter_map(|source| source.bytes).sum()
}

fn hub_failure(error: HubError) -> Failure {
    let exit = match error {
        HubError::Unreachable(_) => ExitKind::Unreachable,
        HubError::Refused(_) => ExitKind::Refused,
    };
    Failure::new(sentence(&printable(&error.to_string()))).exit(exit)
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    let end = if text.ends_with(['.', '?']) { "" } else { "." };
    format!("{}{rest}{end}", first.to_ascii_uppercase())
}

fn absolute(wishes: &WishArgs) -> Result<WishArgs, Failure> {
    let mut wishes = wishes.clone();
    if let Some(server) = &mut wishes.sd_server {
        // Without `..` and links: the path is compared with those that a removal may remove.
        let found = server.canonicalize().ok().filter(|path| path.is_file());
        *server = found.ok_or_else(|| {
            let path = server.display();
            Failure::new(format!("--sd-server: {path} is no file.")).exit(ExitKind::Usage)
        })?;
    }
    Ok(wishes)
}

fn catalogue_wishes(wishes: &WishArgs) -> Wishes {
    Wishes {
        device: wishes.device.clone(),
        engine: wishes.engine.map(|engine| match engine {
            EngineName::Diffusers => EngineChoice::Diffusers,
            EngineName::Sdcpp => EngineChoice::Sdcpp,
        }),
        variant: wishes.variant.clone(),
        sd_server: wishes.sd_server.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cli::HomeArgs;

    fn install(data: &Path) -> InstallArgs {
        InstallArgs {
            no_check: true,
            yes: true,
            home: HomeArgs {
                config: None,
                data: Some(data.to_owned()),
            },
        }
    }

    #[test]
    fn an_error_is_a_sentence() {
        assert_eq!(sentence("the hub is down"), "The hub is down.");
        assert_eq!(sentence("It is. Wait."), "It is. Wait.");
        assert_eq!(sentence(""), ".");
    }

    #[test]
    fn a_file_of_the_operator_is_no_added_model() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("models.d")).unwrap();
        let args = install(data.path());
        let path = added::path(data.path(), "wan");
        fs::write(&path, "").unwrap();
        let lock = added::lock(&args.home).unwrap();
        let installer = ModelInstaller::new(&args, Some(lock)).unwrap();
        let refused = installer.is_added("wan").unwrap_err().to_string();
        assert!(refused.contains(path.to_str().unwrap()), "{refused}");
        assert!(installer.added(&["wan".to_owned()]).is_err());
        assert!(!installer.is_added("other").unwrap());
        let card = AddRecord::default().file(data.path(), "wan", "").unwrap();
        added::write(&card).unwrap();
        assert!(installer.is_added("wan").unwrap());
        // While it is at work, no other command changes the models.
        assert!(added::lock(&args.home).is_err());
    }

    #[test]
    fn an_update_of_no_models_makes_no_data_folder() {
        let parent = tempfile::tempdir().unwrap();
        let data = parent.path().join("data");
        let update = |names| {
            update(&UpdateArgs {
                names,
                install: install(&data),
            })
        };
        update(Vec::new()).unwrap();
        let refused = update(vec!["wan".to_owned()]).unwrap_err().to_string();
        assert!(refused.contains("'wan' is not a model"), "{refused}");
        assert!(!data.exists());
    }
}
