//! `kinora serve`, or `kinora worker`, as a process: started, killed, stopped, started again on the same data.

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::apart::stores_are_apart;
use crate::binary::kinora_binary;
use crate::client::Client;
use crate::command::{keys, program_under};
use crate::data::DataFolder;
use crate::faults;
use crate::inside::{Inside, StartInside};
use crate::process::{Finished, Process, inside};
use crate::wait::until;

/// The pause after each frame of a clip of ten seconds or more: one of fifteen takes half a minute, and nearly no work.
const LONG_CLIP_FRAME_MS: &str = "80";

/// Where the opener of [`Setup::opening`] notes its address.
const OPENED: &str = "opened";

/// How a server is to be started.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    data: DataFolder,
    variables: Vec<(String, String)>,
    outer: Vec<String>,
    listen: Option<String>,
    without_worker: bool,
    worker: bool,
    painted: bool,
    opens: bool,
    program: Option<PathBuf>,
    inside: Option<StartInside>,
}

impl Setup {
    /// On a data folder that may have been used before.
    pub fn on(data: &DataFolder) -> Self {
        Self {
            data: data.clone(),
            ..Self::default()
        }
    }

    /// With a setting, by its variable.
    #[must_use]
    pub fn set(mut self, variable: &str, value: impl ToString) -> Self {
        self.variables
            .push((variable.to_owned(), value.to_string()));
        self
    }

    /// At an address where another was before, instead of on any port.
    #[must_use]
    pub fn at(self, address: SocketAddr) -> Self {
        self.listening_on(&address.to_string())
    }

    /// At an address as `--listen` takes it.
    #[must_use]
    pub fn listening_on(mut self, address: &str) -> Self {
        self.listen = Some(address.to_owned());
        self
    }

    /// Without a worker: it serves the API alone.
    #[must_use]
    pub const fn without_worker(mut self) -> Self {
        self.without_worker = true;
        self
    }

    /// Inside of this process, by `start`, unless a variable asks for the binary, or for stores that only it has.
    #[must_use]
    pub fn inside(mut self, start: StartInside) -> Self {
        let is_binary = std::env::var_os("KINORA_E2E_SERVICE").is_some_and(|kind| kind == "binary");
        self.inside = Some(start).filter(|_| !is_binary && !stores_are_apart());
        self
    }

    /// With clips that the storyboard paints. Those of others are coloured bars, and cost nearly nothing.
    #[must_use]
    pub const fn painted(mut self) -> Self {
        self.painted = true;
        self
    }

    /// As a worker, which listens for monitors only.
    #[must_use]
    pub const fn as_worker(mut self) -> Self {
        self.worker = true;
        self
    }

    /// By another program than that under test: one of an earlier version.
    #[must_use]
    pub fn by(mut self, program: &Path) -> Self {
        self.program = Some(program.to_owned());
        self
    }

    /// Opening Studio in a browser, by an opener that notes the address instead: [`Server::opened`].
    #[must_use]
    pub fn opening(mut self) -> Self {
        let programs = self.data.beside("programs");
        std::fs::create_dir_all(&programs).unwrap();
        let noted = self.data.beside(OPENED);
        let script = format!(
            "#!/bin/sh\nprintf %s \"$1\" > '{0}.part' && mv '{0}.part' '{0}'\n",
            noted.display()
        );
        for opener in ["xdg-open", "open"] {
            let path = programs.join(opener);
            std::fs::write(&path, &script).unwrap();
            std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        self.opens = true;
        let path = std::env::var("PATH").unwrap();
        self.set("PATH", format!("{}:{path}", programs.display()))
    }

    /// With a configuration file of this text.
    #[must_use]
    pub fn config(self, text: &str) -> Self {
        let path = self.data.root().join("kinora.toml");
        std::fs::write(&path, text).unwrap();
        self.set("KINORA_CONFIG", path.display())
    }

    /// Its data folder's path.
    pub fn data_path(&self) -> PathBuf {
        self.data.path()
    }

    /// Started by another program, which must become it, or watch it from aside: signals go to
    /// the process that is started.
    #[must_use]
    pub fn under(mut self, outer: &[&str]) -> Self {
        self.outer = outer.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// With mounts that only the service sees: `mounts`, a line of shell, makes them.
    #[must_use]
    pub fn mounting(self, mounts: &str) -> Self {
        let script = format!("{mounts} && exec \"$0\" \"$@\"");
        let namespace = ["unshare", "--user", "--map-root-user", "--mount"];
        self.under(&[&namespace[..], &["sh", "-c", &script]].concat())
    }

    /// The command line of it.
    pub fn command(&self) -> Command {
        let program = self.program.as_deref().unwrap_or(kinora_binary());
        let mut command = program_under(&self.outer, program);
        command.args(match self.worker {
            true => ["worker", "--log-format", "json", "--health-listen"],
            false => ["serve", "--log-format", "json", "--listen"],
        });
        command
            .arg(self.listen.as_deref().unwrap_or("127.0.0.1:0"))
            .args(self.without_worker.then_some("--no-worker"))
            .args(self.opens.then_some("--open"))
            .arg("--data")
            .arg(self.data.path())
            .envs(self.all_variables());
        command
    }

    /// The variables that it is started with, its own last.
    fn all_variables(&self) -> Vec<(String, String)> {
        let plain = (!self.painted).then_some(("PLAIN_CLIPS", "1".to_owned()));
        let given = [("LONG_CLIP_FRAME_MS", LONG_CLIP_FRAME_MS.to_owned())];
        let given = given
            .into_iter()
            .chain(plain)
            .chain(self.data.store_variables());
        let given = given.chain(faults::variables().into_iter().flatten());
        let given = given.map(|(name, value)| (name.to_owned(), value));
        given.chain(self.variables.iter().cloned()).collect()
    }

    /// Starts it inside of this process; again where a store has failed on purpose.
    fn start_inside(self, start: StartInside) -> Server {
        let outer = (&self.program, &self.listen, self.outer.is_empty());
        let is_plain = !self.without_worker && !self.worker && !self.painted && !self.opens;
        assert!(
            is_plain && outer == (&None, &None, true),
            "only the binary can be started so: {self:?}"
        );
        let instance = loop {
            match start(&self.data.path(), &self.all_variables()) {
                Ok(instance) => break instance,
                Err(error) => assert!(
                    faults::explain(&error),
                    "the service did not start: {error}"
                ),
            }
        };
        if self.data.key().is_none() {
            self.data.take_first_key(std::process::id());
        }
        Server {
            address: instance.address(),
            instance: Instance::Inside(instance),
            data: self.data,
        }
    }

    /// Starts it, and returns when it serves.
    pub fn start(self) -> Server {
        if let Some(start) = self.inside {
            return self.start_inside(start);
        }
        let server = self.try_start();
        server.unwrap_or_else(|ended| panic!("the service did not start: {ended:#?}"))
    }

    /// Starts it, and returns when it serves, or how it ended before. Where stores fail on purpose it is started
    /// again after such an end, as a supervisor would.
    pub fn try_start(self) -> Result<Server, Finished> {
        let (process, address) = loop {
            let mut process = Process::start(self.command(), Some(self.data.root()));
            let address = process.stderr.wait_for(|line| {
                let event: Value = serde_json::from_str(line).ok()?;
                let (message, address) = match self.worker {
                    true => ("working", "health"),
                    false => ("serving", "address"),
                };
                let serving = event["message"] == message;
                serving.then(|| event[address].as_str().unwrap().parse().unwrap())
            });
            if let Some(address) = address {
                break (process, address);
            }
            let ended = process.finished();
            if !faults::ended(&ended) {
                return Err(ended);
            }
        };
        if self.data.key().is_none() {
            self.data.take_first_key(process.id());
        }
        Ok(Server {
            instance: Instance::Process(process),
            address,
            data: self.data,
        })
    }
}

/// A running service; killed when dropped.
#[derive(Debug)]
pub struct Server {
    instance: Instance,
    address: SocketAddr,
    data: DataFolder,
}

/// Where a service runs.
#[derive(Debug)]
enum Instance {
    Process(Process),
    Inside(Box<dyn Inside>),
}

impl Server {
    /// A service with its defaults on a fresh folder.
    pub fn start() -> Self {
        Setup::default().start()
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What its addresses begin with.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its data folder.
    pub const fn data(&self) -> &DataFolder {
        &self.data
    }

    /// A client with the first key.
    pub fn client(&self) -> Client {
        self.client_with(self.data.key().unwrap())
    }

    /// A client with some key.
    pub fn client_with(&self, key: &str) -> Client {
        self.anonymous().with_key(key)
    }

    /// A client without a key.
    pub fn anonymous(&self) -> Client {
        Client::new(self.base_url(), self.data.tracker())
    }

    /// A client of a project that nobody else has, so that its list is its own.
    pub fn newcomer(&self) -> Client {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let project = format!("newcomer-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        if let Instance::Inside(service) = &self.instance {
            return self.client_with(&service.create_key(&project));
        }
        let printed = keys(
            &self.data,
            &["create", "--name", &project, "--project", &project],
        )
        .ok();
        self.client_with(printed.trim())
    }

    /// Its process; panics where it has none of its own.
    fn process(&self) -> &Process {
        match &self.instance {
            Instance::Process(process) => process,
            Instance::Inside(_) => panic!("the service has no process of its own"),
        }
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        match &self.instance {
            Instance::Process(process) => process.stderr.text(),
            Instance::Inside(service) => service.log(),
        }
    }

    /// What it printed when it made its first key.
    pub fn greeting(&self) -> String {
        // It comes last.
        let hint = |line: &str| line.contains("keys create").then_some(());
        assert!(
            self.process().stdout.wait_for(hint).is_some(),
            "no greeting"
        );
        self.process().stdout.text()
    }

    /// The address that it has opened in a browser, once the opener has noted it.
    pub fn opened(&self) -> String {
        let noted = self.data.beside(OPENED);
        until("an opened browser", || std::fs::read_to_string(&noted).ok())
    }

    /// The link of the file that it has opened in a browser, which signs in.
    pub fn sign_in_link(&self) -> String {
        let opened = self.opened();
        let file = opened.strip_prefix("file://").unwrap();
        let page = std::fs::read_to_string(file).unwrap();
        let (_, rest) = page.split_once("; url=").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }

    /// Waits for a line of its log that holds every one of `parts`.
    pub fn wait_for_log(&self, parts: &[&str]) {
        let all = |line: &str| parts.iter().all(|part| line.contains(part)).then_some(());
        let found = self.process().stderr.wait_for(all);
        assert!(found.is_some(), "never logged: {parts:?}\n{}", self.log());
    }

    /// Leaves its log unread, as a log collector that hangs does, or reads on.
    pub fn leave_log_unread(&self, unread: bool) {
        self.process().stderr.pause(unread);
    }

    /// How many lines of its log hold every one of `parts`.
    pub fn logged(&self, parts: &[&str]) -> usize {
        let log = self.log();
        let all = |line: &&str| parts.iter().all(|part| line.contains(part));
        log.lines().filter(all).count()
    }

    /// Waits until as many lines of its log hold every one of `parts`; panics when more do. The log comes by a thread
    /// of its own: what an answer tells of may be in it a little later.
    pub fn assert_logged(&self, parts: &[&str], times: usize) {
        let enough = || (self.logged(parts) >= times).then_some(());
        until(&format!("{times} lines with {parts:?}"), enough);
        assert_eq!(self.logged(parts), times, "{parts:?}\n{}", self.log());
    }

    /// Its number, by which the system knows it.
    pub fn process_id(&self) -> u32 {
        self.process().id()
    }

    /// The numbers of the processes that it has started and that live.
    pub fn children(&self) -> Vec<u32> {
        let own = self.process().id().to_string();
        let processes = std::fs::read_dir("/proc").unwrap();
        let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let is_child = |number: &u32| {
            // The name may hold spaces: what follows it does not (proc_pid_stat(5)).
            let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            let mut fields = stat
                .rsplit(')')
                .next()
                .unwrap_or_default()
                .split_whitespace();
            fields.next() != Some("Z") && fields.next() == Some(&own)
        };
        numbers.filter(is_child).collect()
    }

    /// Kills a process that it has started (`kill -9`).
    pub fn kill_child(&self, number: u32) {
        signal_to(number, Signal::KILL);
    }

    /// Asks it and all that it has started for an orderly stop, as service managers do.
    pub fn terminate_all(&self) {
        for number in self.children() {
            signal_to(number, Signal::TERM);
        }
        self.terminate();
    }

    /// The most memory that it has had resident so far, in MiB.
    pub fn memory_peak_mib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.process().id());
        let status = std::fs::read_to_string(path).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: u64 = peak
            .and_then(|text| text.split_whitespace().next()?.parse().ok())
            .unwrap();
        kib / 1024
    }

    /// Its own view of `path`: of a file system that only it has mounted.
    pub fn inside(&self, path: &Path) -> PathBuf {
        inside(self.process().id(), path)
    }

    /// Stops it where it stands, as a debugger or a full machine does: `SIGSTOP`.
    pub fn freeze(&self) {
        self.process().signal(Signal::STOP);
    }

    /// Lets it go on where it stood: `SIGCONT`.
    pub fn thaw(&self) {
        self.process().signal(Signal::CONT);
    }

    /// Asks for an orderly stop.
    pub fn terminate(&self) {
        self.process().signal(Signal::TERM);
    }

    /// What a terminal that is closed sends, or who wants files to be read anew: `SIGHUP`.
    pub fn hang_up(&self) {
        self.process().signal(Signal::HUP);
    }

    /// Waits for its end.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let status = match &mut self.instance {
            Instance::Process(process) => process.wait(),
            Instance::Inside(_) => panic!("the service has no process of its own"),
        };
        (status, self.log())
    }

    /// Ends it as the kernel would, without a word to it: `kill -9`.
    pub fn kill(self) {
        self.process().signal(Signal::KILL);
        self.wait();
    }
}

impl Drop for Server {
    /// Whatever a test was about: nothing that opens anything may stand in the log.
    fn drop(&mut self) {
        let log = self.log();
        if !std::thread::panicking() {
            assert_no_secrets(&log);
        }
    }
}

/// Panics when a text holds a key or a signature.
fn assert_no_secrets(text: &str) {
    for part in text.split("kinora_").skip(1) {
        let tail: String = part
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        assert!(tail.len() < 36, "a key was logged");
    }
    assert!(!text.contains("signature="), "a signature was logged");
}

fn signal_to(number: u32, signal: Signal) {
    let number = i32::try_from(number).ok().and_then(Pid::from_raw).unwrap();
    rustix::process::kill_process(number, signal).unwrap();
}
