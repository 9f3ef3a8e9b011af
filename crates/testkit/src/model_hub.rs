//! A model hub: repositories with commits, the list of a commit's files in pages, and files behind redirects to a storage of
//! another origin. The wire format is that of `huggingface_hub` 2.4 (`HfApi.model_info` and `list_repo_tree`).

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::http::Answer;
pub use crate::http::Request;
pub use crate::transfers::TransferFault;
use crate::transfers::{FaultPlan, Reply, listen, lock, redirect, sha256};

/// Endings of files that a hub keeps in its storage, with a SHA-256.
const STORED: [&str; 5] = [".safetensors", ".gguf", ".bin", ".pth", ".model"];

type Files = BTreeMap<String, Vec<u8>>;

/// A hub on two ports of its own, until the process ends.
#[derive(Debug)]
pub struct ModelHub {
    address: SocketAddr,
    state: Arc<Mutex<HubState>>,
}

#[derive(Debug, Default)]
struct HubState {
    repositories: BTreeMap<String, Repository>,
    /// Maximum number of entries in a page; 0: no limit.
    page_entries: usize,
    faults: FaultPlan,
    requests: Vec<Request>,
    hub: String,
    storage: String,
}

#[derive(Debug, Default)]
struct Repository {
    /// Files by commit.
    commits: BTreeMap<String, Files>,
    /// The commit of `main`.
    main: String,
    /// The token that its licence needs.
    token: Option<String>,
}

impl Default for ModelHub {
    fn default() -> Self {
        Self::start()
    }
}

impl ModelHub {
    /// A hub without repositories.
    pub fn start() -> Self {
        let state = Arc::new(Mutex::new(HubState::default()));
        let address = listen(&state, |state: &mut HubState, request| {
            state.requests.push(request.clone());
            state.reply(request)
        });
        let storage = listen(&state, |state: &mut HubState, request| {
            state.requests.push(request.clone());
            state.stored(request)
        });
        {
            let mut state = lock(&state);
            state.hub = format!("http://{address}");
            state.storage = format!("http://{storage}");
        }
        Self { address, state }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Commits `files`, by path, to `main` of the repository `ORGANISATION/NAME`; returns the commit, 40 digits that depend on
    /// the files only.
    pub fn publish<'f>(
        &self,
        id: &str,
        files: impl IntoIterator<Item = (&'f str, Vec<u8>)>,
    ) -> String {
        let files: Files = files
            .into_iter()
            .map(|(path, bytes)| (path.to_owned(), bytes))
            .collect();
        let parts = files
            .iter()
            .flat_map(|(path, bytes)| [path.as_bytes(), bytes]);
        let commit = sha256(&parts.collect::<Vec<_>>().concat())[..40].to_owned();
        let mut state = lock(&self.state);
        let repository = state.repositories.entry(id.to_owned()).or_default();
        repository.commits.insert(commit.clone(), files);
        repository.main.clone_from(&commit);
        commit
    }

    /// Commits all files below `folder`; see [`Self::publish`].
    pub fn publish_folder(&self, id: &str, folder: &Path) -> String {
        let mut files = Vec::new();
        read_folder(folder, "", &mut files);
        let files = files
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.clone()));
        self.publish(id, files)
    }

    /// Answers with the list of files, or a file, only if the request has this token.
    pub fn gate(&self, id: &str, token: &str) {
        let mut state = lock(&self.state);
        let repository = state.repositories.entry(id.to_owned()).or_default();
        repository.token = Some(token.to_owned());
    }

    /// Divides lists into pages of at most this many entries.
    pub fn set_page_entries(&self, entries: usize) {
        lock(&self.state).page_entries = entries;
    }

    /// Lets transfers of files whose path ends so fail, this many times.
    pub fn fail(&self, path_end: &str, fault: TransferFault, times: usize) {
        lock(&self.state).faults.add(path_end, fault, times);
    }

    /// Every request so far, those to the storage included.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.state).requests.clone()
    }
}

impl HubState {
    fn reply(&mut self, request: &Request) -> Reply {
        let path = request.line.strip_prefix("GET /").unwrap_or_default();
        let (is_api, path) = match path.strip_prefix("api/models/") {
            Some(rest) => (true, rest),
            None => (false, path),
        };
        let mut parts = path.splitn(5, '/');
        let mut part = || parts.next().unwrap_or_default();
        let id = format!("{}/{}", part(), part());
        let (what, revision, file) = (part(), part(), part());
        let Some(repository) = self.repositories.get(&id) else {
            return refusal(401, "RepoNotFound");
        };
        if let Some(token) = &repository.token {
            match request.header("authorization") {
                None => return refusal(401, "GatedRepo"),
                Some(header) if header != format!("Bearer {token}") => {
                    return refusal(403, "GatedRepo");
                }
                Some(_) => {}
            }
        }
        let commit = if revision == "main" {
            &repository.main
        } else {
            revision
        };
        let Some(files) = repository.commits.get(commit) else {
            return refusal(404, "RevisionNotFound");
        };
        match (is_api, what) {
            (true, "revision") => {
                let names = files.keys().map(|path| json!({"rfilename": path}));
                let info = json!({"id": id, "modelId": id, "sha": commit, "private": false,
                    "gated": if repository.token.is_some() { json!("auto") } else { json!(false) },
                    "siblings": names.collect::<Vec<_>>()});
                Reply::Answer(Answer::json(200, &info))
            }
            (true, "tree") => Reply::Answer(self.page(request, files)),
            (false, "resolve") => self.resolve(files, file),
            _ => refusal(404, "EntryNotFound"),
        }
    }

    /// A page of the list.
    fn page(&self, request: &Request, files: &Files) -> Answer {
        let entries = entries(files, request.parameter("recursive") == "true");
        let from = request
            .parameter("cursor")
            .parse()
            .unwrap_or(0)
            .min(entries.len());
        let count = if self.page_entries == 0 {
            entries.len()
        } else {
            self.page_entries
        };
        let to = entries.len().min(from + count);
        let mut answer = Answer::json(200, &json!(entries[from..to]));
        if to < entries.len() {
            let path = request.line.trim_start_matches("GET ");
            let query = request.query.iter().filter(|(name, _)| name != "cursor");
            let query: Vec<_> = query
                .map(|(name, value)| format!("{name}={value}&"))
                .collect();
            answer.headers = format!(
                "link: <{}{path}?{}cursor={to}>; rel=\"next\"\r\n",
                self.hub,
                query.concat()
            );
        }
        answer
    }

    fn resolve(&self, files: &Files, path: &str) -> Reply {
        match files.get(path) {
            None => refusal(404, "EntryNotFound"),
            Some(bytes) if is_stored(path) => {
                let to = format!("{}/{}/{path}", self.storage, sha256(bytes));
                Reply::Answer(redirect(&to))
            }
            Some(bytes) => Reply::File(bytes.clone(), None),
        }
    }

    /// A file of the storage, which refuses requests with a token, as a storage with signed addresses does.
    fn stored(&mut self, request: &Request) -> Reply {
        if request.header("authorization").is_some() {
            return refusal(400, "InvalidArgument");
        }
        let path = request.line.strip_prefix("GET /").unwrap_or_default();
        let hash = path.split('/').next().unwrap_or_default();
        let all = self
            .repositories
            .values()
            .flat_map(|one| one.commits.values());
        let mut stored = all.flat_map(BTreeMap::values);
        let found = stored.find(|bytes| sha256(bytes) == hash).cloned();
        match found {
            Some(bytes) => Reply::File(bytes, self.faults.next(path)),
            None => refusal(404, "EntryNotFound"),
        }
    }
}

/// The entries of a list: folders and files.
fn entries(files: &Files, is_recursive: bool) -> Vec<Value> {
    let mut entries = BTreeMap::new();
    for (path, bytes) in files {
        let ends = path.match_indices('/').map(|(at, _)| at);
        for folder in ends.map(|at| &path[..at]) {
            let entry = json!({"type": "directory", "oid": oid(folder.as_bytes()), "size": 0, "path": folder});
            entries.insert(folder.to_owned(), entry);
        }
        let mut entry =
            json!({"type": "file", "oid": oid(bytes), "size": bytes.len(), "path": path});
        if is_stored(path) {
            entry["lfs"] = json!({"oid": sha256(bytes), "size": bytes.len(), "pointerSize": 134});
        }
        entries.insert(path.clone(), entry);
    }
    let shown = entries
        .into_iter()
        .filter(|(path, _)| is_recursive || !path.contains('/'));
    shown.map(|(_, entry)| entry).collect()
}

/// In place of Git's name of an object.
fn oid(bytes: &[u8]) -> String {
    sha256(bytes)[..40].to_owned()
}

fn is_stored(path: &str) -> bool {
    STORED.iter().any(|ending| path.ends_with(ending))
}

fn refusal(status: u16, code: &str) -> Reply {
    let mut answer = Answer::json(status, &json!({"error": code}));
    answer.headers = format!("x-error-code: {code}\r\n");
    Reply::Answer(answer)
}

fn read_folder(folder: &Path, below: &str, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read_folder(&entry.path(), &format!("{name}/"), files);
        } else {
            files.push((name, fs::read(entry.path()).expect("a file")));
        }
    }
}
