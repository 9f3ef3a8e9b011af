//! The configured engines: `[[engines]]`, and the built-in one. Reads the keys common to all
//! engines, such as the share of a device, the files and the process host; the engine's kind reads
//! the rest.

#[cfg(test)]
mod memory_tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kinora_engine::{EngineKind, EngineOutput, EngineProgram, KindError};
use kinora_engine_catalogue::MemoryNeeds;
use kinora_engine_storyboard::StoryboardKind;
use kinora_http_download::DownloadSource;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};
use url::Url;

use crate::failure::Failure;
use crate::kinds::{self, RegisteredKind};

/// The name of the built-in engine.
pub(crate) const BUILT_IN: &str = "storyboard";

/// Time without progress after which a run in this process is stopped.
const SILENCE_MAX: Duration = Duration::from_mins(1);

/// One engine.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Table")]
pub(crate) struct EngineSettings {
    /// The name by which models refer to it.
    pub(crate) name: String,
    /// Settings, read by the engine's kind.
    pub(crate) settings: Arc<dyn EngineKind>,
    /// How to run the engine's processes; `None` if it has none.
    pub(crate) host: Option<HostSettings>,
    /// The part of a device that the engine shares with others.
    pub(crate) device_share: Option<DeviceShare>,
    /// Whether the engine's processes open at the worker's start.
    pub(crate) warm: bool,
    /// Memory that the engine needs on a device, if configured.
    pub(crate) memory: Option<MemoryNeeds>,
    /// Sources of the engine's files.
    pub(crate) files: Vec<EngineFile>,
    /// Settings to pass to the engine's processes.
    pub(crate) definition: EngineDefinition,
}

/// Kind and table of an engine, from which another process reads the settings again.
#[derive(Clone, Debug)]
pub(crate) struct EngineDefinition {
    pub(crate) kind: RegisteredKind,
    pub(crate) table: Table,
}

impl EngineSettings {
    /// The engine that runs in this process.
    pub(super) fn built_in(settings: &StoryboardKind) -> Result<Self, Failure> {
        Ok(Self {
            name: BUILT_IN.to_owned(),
            settings: Arc::new(settings.clone()),
            host: None,
            device_share: None,
            warm: false,
            memory: None,
            files: Vec::new(),
            definition: EngineDefinition {
                kind: find_kind(BUILT_IN, BUILT_IN)?,
                table: Table::new(),
            },
        })
    }

    /// Maximum number of tasks that the engine accepts at a time; `None` for as many as there are
    /// slots.
    pub(crate) fn places(&self) -> Option<usize> {
        self.host.map(|host| host.processes as usize)
    }

    /// Number of tasks that the engine works on at a time: its processes or servers, or 1 for the
    /// engine in this process.
    pub(crate) fn seats(&self) -> u32 {
        match (self.settings.output(), self.host) {
            (EngineOutput::Films(films), _) => {
                u32::try_from(films.servers().len()).unwrap_or(u32::MAX)
            }
            (EngineOutput::Frames(_), Some(host)) => host.processes,
            (EngineOutput::Frames(_), None) => 1,
        }
    }

    /// The devices or servers of its seats, if they have names.
    pub(crate) fn seat_names(&self) -> Vec<String> {
        match self.settings.output() {
            EngineOutput::Films(films) => films.servers().to_vec(),
            EngineOutput::Frames(frames) => {
                frames.program().map_or_else(Vec::new, |one| one.devices)
            }
        }
    }

    /// Time without progress after which a run of this engine is stopped.
    pub(crate) fn silence_max(&self) -> Duration {
        match (self.settings.output(), self.host) {
            (EngineOutput::Films(films), _) => films.silence_max(),
            (EngineOutput::Frames(_), Some(host)) => host.silence_max(),
            (EngineOutput::Frames(_), None) => SILENCE_MAX,
        }
    }

    /// Number of runtime threads that it may block.
    pub(crate) fn blocking_threads(&self) -> usize {
        match self.settings.output() {
            EngineOutput::Films(films) => films.blocking_threads(),
            EngineOutput::Frames(_) => 0,
        }
    }

    /// The files that its own settings name.
    pub(crate) fn own_files(&self) -> Vec<PathBuf> {
        match self.settings.output() {
            EngineOutput::Frames(frames) => frames.needs().files,
            EngineOutput::Films(_) => Vec::new(),
        }
    }

    /// Validates what types cannot express.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.name.is_empty() || self.name == BUILT_IN {
            return Err(self.invalid("its name is taken or empty"));
        }
        if let Some(field) = self.host.and_then(HostSettings::zero_field) {
            return Err(self.invalid(&format!("host.{field} must be at least 1")));
        }
        let own = self.own_files();
        if let Some(what) = self.files.iter().find_map(|file| file.problem(&own)) {
            return Err(self.invalid(&what));
        }
        if let Some(what) = self.memory.as_ref().and_then(MemoryNeeds::problem) {
            return Err(self.invalid(what));
        }
        // Sharing a device means unloading on request, which not every kind can do.
        let on_device = self.device_share.as_ref().map(|_| self.settings.output());
        if let Some(what) = on_device.as_ref().and_then(DeviceShare::sharing_problem) {
            return Err(self.invalid(what));
        }
        if self.warm && self.host.is_none() {
            return Err(self.invalid("it has no processes of its own to open, so no `warm`"));
        }
        if self.warm && self.device_share.is_some() {
            return Err(self.invalid(
                "it shares a device and loads when a task needs it, so it has no `warm`",
            ));
        }
        let confined = self.host.is_some_and(|host| host.sandbox);
        let checked = self.settings.check(confined);
        checked.map_err(|error| self.kind_failure(&error))
    }

    /// Failure for an error of the engine's kind.
    pub(crate) fn kind_failure(&self, error: &KindError) -> Failure {
        self.invalid(&error.to_string())
    }

    fn invalid(&self, what: &str) -> Failure {
        invalid_engine(&self.name, what)
    }
}

impl TryFrom<Table> for EngineSettings {
    type Error = Failure;

    fn try_from(mut table: Table) -> Result<Self, Failure> {
        let Some(Value::String(name)) = table.remove("name") else {
            return Err(Failure::new("An engine needs a `name`, a string."));
        };
        let kind: Option<String> = remove_key(&name, &mut table, "kind")?;
        let kind = kind.ok_or_else(|| invalid_engine(&name, "it has no `kind`"))?;
        let kind = find_kind(&name, &kind)?;
        // What all engines have in common is taken out of the table. The kind gets the rest, and
        // refuses every key that it does not know.
        let host: Option<Table> = remove_key(&name, &mut table, "host")?;
        let files: Option<Vec<EngineFile>> = remove_key(&name, &mut table, "files")?;
        let device = remove_key(&name, &mut table, "device")?;
        let megabytes = remove_key(&name, &mut table, "memory_megabytes")?;
        let device_share =
            DeviceShare::new(device, megabytes).map_err(|what| invalid_engine(&name, what))?;
        let memory = remove_key(&name, &mut table, "memory")?;
        let warm: Option<bool> = remove_key(&name, &mut table, "warm")?;
        // A copy, because the engine's processes get the same table and read it again (`told`): the
        // trait object made here cannot be sent to another process.
        let settings = kind.read(table.clone());
        let settings =
            settings.map_err(|error| invalid_engine(&name, error.to_string().trim_end()))?;
        if memory.is_some() && matches!(settings.output(), EngineOutput::Films(_)) {
            return Err(invalid_engine(
                &name,
                "its servers have the weights, so no `memory`",
            ));
        }
        let host = match (settings.output(), host) {
            (EngineOutput::Films(_), None) => None,
            (EngineOutput::Films(_), Some(_)) => {
                return Err(invalid_engine(
                    &name,
                    "it has no processes of its own, so no `host`",
                ));
            }
            (EngineOutput::Frames(frames), host) => {
                Some(parse_host(&name, host, frames.program())?)
            }
        };
        if files.is_some() && !reads_files(settings.output()) {
            return Err(invalid_engine(&name, "it reads no files, so no `files`"));
        }
        Ok(Self {
            name,
            settings,
            host,
            device_share,
            warm: warm.unwrap_or_default(),
            memory,
            files: files.unwrap_or_default(),
            definition: EngineDefinition { kind, table },
        })
    }
}

/// Whether an engine has files of its own, or is a command, which may read any.
fn reads_files(output: EngineOutput<'_>) -> bool {
    match output {
        EngineOutput::Frames(frames) => {
            frames.program().is_some() || !frames.needs().files.is_empty()
        }
        EngineOutput::Films(_) => false,
    }
}

/// Removes a key from the table of the engine `name`, and reads its value.
fn remove_key<T: DeserializeOwned>(
    name: &str,
    table: &mut Table,
    key: &str,
) -> Result<Option<T>, Failure> {
    let read = table.remove(key).map(Value::try_into);
    read.transpose()
        .map_err(|error| invalid_engine(name, &format!("{key}: {}", error.to_string().trim_end())))
}

fn find_kind(name: &str, kind: &str) -> Result<RegisteredKind, Failure> {
    if kind == "diffusion" {
        return Err(invalid_engine(
            name,
            "the kind 'diffusion' is called 'sdcpp' now and needs `server`, the program sd-server of stable-diffusion.cpp; \
             see docs/models.md",
        ));
    }
    kinds::find(kind).map_err(|known| {
        invalid_engine(
            name,
            &format!("there is no kind '{kind}'; there are: {known}"),
        )
    })
}

/// Reads the process host. An operator's command runs without a sandbox, with a process for each
/// device.
fn parse_host(
    name: &str,
    keys: Option<Table>,
    program: Option<EngineProgram>,
) -> Result<HostSettings, Failure> {
    let mut keys = keys.unwrap_or_default();
    if let Some(program) = program {
        // An operator's command gets a process for each of its devices, since each process sees one
        // alone. It runs without the sandbox of built-in engines, which knows nothing of the
        // command's files and drivers; `confine` is its own.
        let devices = program.devices.len();
        if devices > 0 && keys.contains_key("processes") {
            return Err(invalid_engine(
                name,
                "host.processes is the number of its devices; leave it out",
            ));
        }
        let processes = i64::try_from(devices.max(1)).unwrap_or(i64::MAX);
        keys.entry("processes").or_insert(Value::Integer(processes));
        keys.entry("sandbox").or_insert(Value::Boolean(false));
    }
    let host = keys.try_into::<HostSettings>();
    host.map_err(|error| invalid_engine(name, &format!("host: {}", error.to_string().trim_end())))
}

fn invalid_engine(name: &str, what: &str) -> Failure {
    Failure::new(format!("The engine '{name}': {what}."))
}

/// The share of a device that an engine needs: its keys `device` and `memory_megabytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceShare {
    /// The name of the device.
    pub(crate) device: String,
    /// Memory that the engine's processes together need while they are loaded.
    pub(crate) memory_megabytes: u32,
}

impl DeviceShare {
    /// The share of both keys, or of none.
    fn new(device: Option<String>, megabytes: Option<u32>) -> Result<Option<Self>, &'static str> {
        match (device, megabytes) {
            (None, None) => Ok(None),
            (_, Some(0)) => Err("memory_megabytes must be at least 1"),
            (Some(device), Some(memory_megabytes)) => Ok(Some(Self {
                device,
                memory_megabytes,
            })),
            (Some(_), None) => Err(
                "it shares a device, so it needs `memory_megabytes`, the memory that it takes there",
            ),
            (None, Some(_)) => Err(
                "`memory_megabytes` is the memory on a shared device; name it with `device`, or set \
                 host.memory_megabytes to bound its processes",
            ),
        }
    }

    /// Why an engine with this output cannot share a device, if it cannot.
    fn sharing_problem(output: &EngineOutput<'_>) -> Option<&'static str> {
        match output {
            EngineOutput::Films(films) if films.can_unload() => None,
            EngineOutput::Films(_) => {
                Some("its servers cannot be told to leave a device, so it has no `device`")
            }
            EngineOutput::Frames(frames) => {
                let program = frames.program();
                let is_on_many = program.is_some_and(|program| program.devices.len() > 1);
                is_on_many.then_some(
                    "it has several `devices` of its own, and can share only one; define an engine for each",
                )
            }
        }
    }
}

/// One file of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EngineFile {
    /// Path, as in the engine's own settings.
    pub(crate) path: PathBuf,
    /// URL at the publisher.
    url: String,
    /// SHA-256, hexadecimal.
    sha256: Option<String>,
    /// Length in bytes.
    pub(crate) bytes: Option<u64>,
}

impl EngineFile {
    /// The first mistake in this entry; `own` are the files that the engine's settings name, if any.
    fn problem(&self, own: &[PathBuf]) -> Option<String> {
        let path = self.path.display();
        if self.path.as_os_str().is_empty() || self.path.file_name().is_none() {
            return Some("files: a path is empty or names no file".to_owned());
        }
        if !own.is_empty() && !own.contains(&self.path) {
            return Some(format!(
                "files: its settings do not name {path}; write the path as it is there"
            ));
        }
        if self.url().is_none() {
            return Some(format!(
                "files: the url of {path} must be http or https, without user name, password or fragment"
            ));
        }
        if self.sha256.is_some() && self.sha256().is_none() {
            return Some(format!(
                "files: the sha256 of {path} must have 64 hexadecimal digits"
            ));
        }
        None
    }

    /// The address at the publisher. `None` only if [`Self::invalid_engine`] says so.
    pub(crate) fn url(&self) -> Option<Url> {
        Url::parse(&self.url).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.fragment().is_none()
        })
    }

    /// SHA-256 in lower-case hexadecimal, if it is known.
    pub(crate) fn sha256(&self) -> Option<String> {
        let text = self.sha256.as_ref()?;
        let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| text.to_ascii_lowercase())
    }

    /// The download of the file from `url`.
    pub(crate) fn source(&self, url: Url) -> DownloadSource {
        DownloadSource {
            url,
            path: self.path.clone(),
            bytes: self.bytes,
            sha256: self.sha256(),
        }
    }
}

/// Settings for an engine in separate processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HostSettings {
    /// Whether to sandbox the processes.
    pub(crate) sandbox: bool,
    /// Maximum number of concurrent jobs.
    pub(crate) processes: u32,
    /// Maximum resident memory of a process. 0: no limit.
    memory_megabytes: u32,
    /// Time limit for loading weights.
    open_seconds: u32,
    /// Time limit without progress.
    silence_seconds: u32,
    /// Time limit of a run in total.
    run_seconds: u32,
}

impl Default for HostSettings {
    fn default() -> Self {
        Self {
            sandbox: true,
            processes: 1,
            memory_megabytes: 0,
            open_seconds: 600,
            silence_seconds: 600,
            run_seconds: 86_400,
        }
    }
}

impl HostSettings {
    pub(crate) const fn memory_bytes_max(self) -> Option<u64> {
        match self.memory_megabytes {
            0 => None,
            megabytes => Some(megabytes as u64 * 1_000_000),
        }
    }

    pub(crate) fn open_limit(self) -> Duration {
        Duration::from_secs(self.open_seconds.into())
    }

    fn silence_max(self) -> Duration {
        Duration::from_secs(self.silence_seconds.into())
    }

    pub(crate) fn run_limit(self) -> Duration {
        Duration::from_secs(self.run_seconds.into())
    }

    /// The setting that is 0 but must not be.
    fn zero_field(self) -> Option<&'static str> {
        let positive = [
            ("processes", self.processes),
            ("open_seconds", self.open_seconds),
            ("silence_seconds", self.silence_seconds),
            ("run_seconds", self.run_seconds),
        ];
        let zero = positive.into_iter().find(|(_, value)| *value == 0);
        zero.map(|(field, _)| field)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    #[test]
    fn every_ready_configuration_is_one() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
        let files = |folder: &Path| std::fs::read_dir(folder).unwrap();
        let mut ready = 0;
        for file in files(&folder).chain(files(&folder.join("diffusers"))) {
            let path = file.unwrap().path();
            if path.is_dir() {
                continue;
            }
            let config = Config::read(Some(&path), &[]).unwrap();
            config.check().unwrap();
            for model in &config.models {
                let engine = config.engine(&model.engine);
                assert!(engine.is_ok(), "{}: {}", path.display(), model.id);
            }
            ready += 1;
        }
        assert!(ready > 25, "{ready}");
    }

    fn judged(table: &str) -> Result<(), String> {
        let engine = toml::from_str::<EngineSettings>(table).map_err(|error| error.to_string())?;
        engine.check().map_err(|failure| failure.to_string())
    }

    #[test]
    fn an_unknown_kind_is_told_with_those_that_there_are() {
        for (kind, named) in [
            (
                "steam",
                "'x': there is no kind 'steam'; there are: storyboard, remote, sdcpp, process",
            ),
            (
                "diffusion",
                "the kind 'diffusion' is called 'sdcpp' now and needs `server`",
            ),
        ] {
            let error = judged(&format!("name = \"x\"\nkind = \"{kind}\"")).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn what_is_wrong_with_an_engine_is_told_with_its_name() {
        let boxed = "name = \"boxed\"\nkind = \"storyboard\"\n";
        let command = "name = \"own\"\nkind = \"process\"\ncommand = [\"engine\"]\n";
        let describe = "describe = { fps = 16, features = { text_to_video = true } }\n";
        let studio = "name = \"studio\"\nkind = \"remote\"\ndialect = \"kinora\"\n";
        for (table, named) in [
            ("kind = \"remote\"".to_owned(), "needs a `name`"),
            ("name = \"studio\"".to_owned(), "'studio': it has no `kind`"),
            ("name = 7".to_owned(), "An engine needs a `name`"),
            (boxed.replace("boxed", BUILT_IN), "taken"),
            (
                format!("{boxed}colour = 1"),
                "'boxed': unknown field `colour`",
            ),
            (format!("{boxed}caption = \"x\""), "'boxed': invalid type"),
            (format!("{boxed}mark_text = \"\""), "'boxed': mark_text"),
            (format!("{boxed}system_fonts = true"), "host.sandbox"),
            (
                format!("{boxed}host = {{ seats = 2 }}"),
                "'boxed': host: unknown",
            ),
            (
                format!("{boxed}host = {{ processes = 0 }}"),
                "host.processes must be at least 1",
            ),
            (
                format!("{studio}base_url = \"x\""),
                "'studio': unknown field",
            ),
            (format!("{studio}base_urls = []\nhost = {{}}"), "no `host`"),
            (
                format!("{studio}base_urls = []\nkey_file = \"a\"\nkey_variable = \"b\""),
                "'studio': set key_file or key_variable",
            ),
            (
                "name = \"wan\"\nkind = \"sdcpp\"".to_owned(),
                "'wan': missing field `model`",
            ),
            (
                format!("{command}devices = [\"0\"]\nhost = {{ processes = 2 }}\n{describe}"),
                "host.processes is the number of its devices",
            ),
            (
                format!("{command}host = {{ sandbox = true }}\n{describe}"),
                "host.sandbox = false",
            ),
            (
                format!("{command}readable = [\"/srv/own\"]\n{describe}"),
                "readable and writable need confine = true",
            ),
            (
                format!("{command}confine = true\nwritable = [\"own\"]\n{describe}"),
                "own must be an absolute path",
            ),
            (
                format!("{command}{}", describe.replace("16", "121")),
                "describe.fps must be at most 120",
            ),
            (command.to_owned(), "'own': missing field `describe`"),
        ] {
            let error = judged(&table).unwrap_err();
            assert!(error.contains(named), "{table}: {error}");
        }
    }

    #[test]
    fn an_engine_that_cannot_be_warm_or_have_such_devices_is_told_so() {
        let boxed = "name = \"boxed\"\nkind = \"storyboard\"\n";
        let command = "name = \"own\"\nkind = \"process\"\ncommand = [\"engine\"]\n";
        let describe = "describe = { fps = 16, features = { text_to_video = true } }\n";
        let studio = "name = \"studio\"\nkind = \"remote\"\ndialect = \"kinora\"\n";
        for (table, named) in [
            (
                format!("{studio}base_urls = []\nwarm = true"),
                "'studio': it has no processes of its own to open, so no `warm`",
            ),
            (
                format!("{boxed}warm = \"yes\""),
                "'boxed': warm: invalid type",
            ),
            (
                format!("{boxed}warm = true\ndevice = \"gpu0\"\nmemory_megabytes = 9"),
                "'boxed': it shares a device and loads when a task needs it, so it has no `warm`",
            ),
            (
                format!("{command}devices = [\"0, 1\"]\n{describe}"),
                "'own': devices: '0, 1' is no name of a device",
            ),
        ] {
            let error = judged(&table).unwrap_err();
            assert!(error.contains(named), "{table}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_its_engine() {
        let boxed = "name = \"boxed\"\nkind = \"storyboard\"\n";
        let command = "name = \"own\"\nkind = \"process\"\ncommand = [\"engine\"]\n\
                       describe = { fps = 16, features = { text_to_video = true } }\n";
        let studio = "name = \"studio\"\nkind = \"remote\"\ndialect = \"kinora\"\nbase_urls = []\n";
        let wan = "name = \"wan\"\nkind = \"sdcpp\"\n[model]\nfamily = \"wan\"\n\
                   diffusion_model = \"./t2v.gguf\"\nvae = \"v\"\ntext_encoder = \"t\"\n";
        let file = |path, url| format!("[[files]]\npath = \"{path}\"\nurl = \"{url}\"\n");
        for (table, named) in [
            (
                format!("{studio}{}", file("a", "https://a/b")),
                "'studio': it reads no files",
            ),
            (format!("{boxed}{}", file("a", "https://a/b")), "no `files`"),
            (
                format!("{command}{}", file("a", "ftp://a/b")),
                "'own': files: the url of a must be http or https",
            ),
            (
                format!("{command}{}", file("", "https://a/b")),
                "names no file",
            ),
            (
                format!("{command}{}sha256 = \"12\"", file("a", "https://a/b")),
                "the sha256 of a must have 64 hexadecimal digits",
            ),
            (
                format!("{command}{}size = 7", file("a", "https://a/b")),
                "'own': files: unknown field `size`",
            ),
            (
                format!("{wan}{}", file("t2v.gguf", "https://a/b")),
                "its settings do not name t2v.gguf",
            ),
        ] {
            let error = judged(&table).unwrap_err();
            assert!(error.contains(named), "{table}: {error}");
        }
        let good =
            file("./t2v.gguf", "https://a/b") + &format!("sha256 = \"{:064}\"\nbytes = 7", 0);
        judged(&format!("{wan}{good}")).unwrap();
        judged(&format!("{command}{}", file("any", "http://a/b?c"))).unwrap();
    }
}
