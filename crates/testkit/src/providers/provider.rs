//! The part that all providers share: listeners, jobs, films, and what a test may ask and change.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::Value;

use crate::http::{self, Answer, Request};
use crate::providers::shape::Shape;

/// One provider's API.
pub trait Provider: Send + 'static {
    /// The path of the base URL: `/api/v3`, or nothing.
    fn base(&self) -> &'static str;

    /// Whether a call shows the key as it should.
    fn is_authorized(&self, request: &Request, key: &str) -> bool {
        request.header("authorization") == Some(&format!("Bearer {key}"))
    }

    /// The answer to a call whose key was checked.
    ///
    /// # Errors
    /// What the provider refuses.
    fn answer(&self, call: &Call<'_>, world: &mut World) -> Result<Answer, Problem>;

    /// A refusal in the provider's own shape.
    fn refuse(&self, problem: &Problem) -> Answer;
}

/// Why a provider refuses a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The key is missing or wrong.
    Unauthorized,
    /// There is no such path or job.
    Missing(String),
    /// A field of the request is wrong.
    Invalid(String),
    /// The job's state does not allow it.
    Conflict(String),
    /// The content is against the provider's policy.
    Moderated,
    /// Too many requests.
    Busy,
}

/// A call, with its path after the base.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// `POST`.
    pub method: &'a str,
    /// `/tasks/x?limit=1`.
    pub path: &'a str,
    /// The body; `Null` without one.
    pub body: &'a Value,
    /// All of it.
    pub request: &'a Request,
}

impl Call<'_> {
    /// Whether the body has this shape.
    ///
    /// # Errors
    /// [`Problem::Invalid`] with the field's name.
    pub(crate) fn check(&self, shape: &Shape) -> Result<(), Problem> {
        shape.check(self.body, "body").map_err(Problem::Invalid)
    }

    /// The refusal of a path that the provider does not have.
    pub(crate) fn missing(&self) -> Problem {
        Problem::Missing(format!("{} {}", self.method, self.path))
    }
}

/// How jobs fare, those at work included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They are queued at the first look, run at the second and are done at the third.
    Succeeding,
    /// They never leave the queue.
    Waiting,
    /// They run and never end.
    Endless,
    /// They fail.
    Failing,
    /// They end because of their content.
    Moderated,
}

/// A provider's behaviour: what a test may change at any time.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// How jobs fare.
    pub fate: Fate,
    /// Whether it takes connections and never answers.
    pub is_silent: bool,
    /// Whether it refuses every call as one too many.
    pub is_busy: bool,
    /// Whether it refuses submits because of their content.
    pub moderates_submits: bool,
    /// Number of submits that it takes and does not answer.
    pub unanswered: u32,
    /// Whether films are at another origin.
    pub moves_films: bool,
    /// The bytes of every film.
    pub film: Vec<u8>,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Waiting.
    Queued,
    /// In progress.
    Running,
    /// Done, with a film.
    Completed,
    /// Ended with a fault.
    Failed,
    /// Ended because of its content.
    Moderated,
    /// Ended by a cancel.
    Cancelled,
}

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// `POST /api/v3/tasks`: the line of its submit.
    pub line: String,
    /// The body of its submit.
    pub body: Value,
    looks: u32,
    is_cancelled: bool,
}

/// A submit that was taken: its line and its body.
pub type Submit = (String, Value);

/// What a provider's routes read and change.
pub struct World {
    /// How it behaves.
    pub behaviour: Behaviour,
    jobs: BTreeMap<String, Job>,
    submits: Vec<Submit>,
    looks: usize,
    cancelled: usize,
    own: SocketAddr,
    other: SocketAddr,
}

impl World {
    /// Begins a job; `name` makes its id of its number.
    ///
    /// # Errors
    /// [`Problem::Moderated`] if a test said so.
    pub fn begin(&mut self, call: &Call<'_>, name: fn(usize) -> String) -> Result<String, Problem> {
        if self.behaviour.moderates_submits {
            return Err(Problem::Moderated);
        }
        let id = name(self.submits.len() + 1);
        let submit = (call.request.line.clone(), call.body.clone());
        self.submits.push(submit.clone());
        let (line, body) = submit;
        let job = Job {
            line,
            body,
            looks: 0,
            is_cancelled: false,
        };
        self.jobs.insert(id.clone(), job);
        Ok(id)
    }

    /// A job, without a look at it.
    ///
    /// # Errors
    /// [`Problem::Missing`].
    pub fn job(&self, id: &str) -> Result<&Job, Problem> {
        let missing = || Problem::Missing(id.to_owned());
        self.jobs.get(id).ok_or_else(missing)
    }

    /// Looks at a job, with which it gets on.
    ///
    /// # Errors
    /// [`Problem::Missing`].
    pub fn look(&mut self, id: &str) -> Result<Stage, Problem> {
        self.job(id)?;
        self.looks += 1;
        self.jobs.get_mut(id).expect("known").looks += 1;
        self.stage(id)
    }

    /// Where a job is.
    ///
    /// # Errors
    /// [`Problem::Missing`].
    pub fn stage(&self, id: &str) -> Result<Stage, Problem> {
        let job = self.job(id)?;
        Ok(match (self.behaviour.fate, job.looks) {
            _ if job.is_cancelled => Stage::Cancelled,
            (Fate::Waiting, _) | (Fate::Succeeding, 0 | 1) => Stage::Queued,
            (Fate::Endless, _) | (Fate::Succeeding, 2) => Stage::Running,
            (Fate::Succeeding, _) => Stage::Completed,
            (Fate::Failing, _) => Stage::Failed,
            (Fate::Moderated, _) => Stage::Moderated,
        })
    }

    /// Cancels a job that goes on.
    ///
    /// # Errors
    /// [`Problem::Missing`], [`Problem::Conflict`] for one that ended.
    pub fn cancel(&mut self, id: &str) -> Result<(), Problem> {
        if !matches!(self.stage(id)?, Stage::Queued | Stage::Running) {
            return Err(Problem::Conflict(id.to_owned()));
        }
        self.jobs.get_mut(id).expect("known").is_cancelled = true;
        self.cancelled += 1;
        Ok(())
    }

    /// The address of a job's film, which is read without the key.
    pub fn film_url(&self, id: &str) -> String {
        let origin = if self.behaviour.moves_films {
            self.other
        } else {
            self.own
        };
        format!("http://{origin}/films/{id}.mp4?signature=1")
    }

    /// The base of own URLs: `http://127.0.0.1:PORT`.
    pub fn own_origin(&self) -> String {
        format!("http://{}", self.own)
    }

    /// The film itself.
    pub fn film(&self) -> Answer {
        Answer {
            status: 200,
            kind: "video/mp4",
            headers: String::new(),
            body: self.behaviour.film.clone(),
        }
    }
}

/// A redirect to `url`.
pub(crate) fn redirect(url: &str) -> Answer {
    Answer {
        status: 302,
        kind: "text/plain",
        headers: format!("location: {url}\r\n"),
        body: Vec::new(),
    }
}

/// A stand-in of a provider, on two ports of its own: its API, and another origin for films.
pub struct TestProvider {
    base: &'static str,
    state: Arc<Mutex<State>>,
}

struct State {
    provider: Box<dyn Provider>,
    key: String,
    world: World,
    requests: Vec<Request>,
    elsewhere: Vec<Request>,
    refusals: Vec<String>,
}

impl TestProvider {
    /// A provider that behaves well and takes `key` alone.
    pub fn start(provider: impl Provider, key: &str) -> Self {
        let listen = || TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (own, other) = (listen(), listen());
        let behaviour = Behaviour {
            fate: Fate::Succeeding,
            is_silent: false,
            is_busy: false,
            moderates_submits: false,
            unanswered: 0,
            moves_films: false,
            film: b"\0\0\0\x18ftypisom".to_vec(),
        };
        let world = World {
            behaviour,
            jobs: BTreeMap::new(),
            submits: Vec::new(),
            looks: 0,
            cancelled: 0,
            own: own.local_addr().unwrap(),
            other: other.local_addr().unwrap(),
        };
        let base = provider.base();
        let state = Arc::new(Mutex::new(State {
            provider: Box::new(provider),
            key: key.to_owned(),
            world,
            requests: Vec::new(),
            elsewhere: Vec::new(),
            refusals: Vec::new(),
        }));
        for (listener, is_own) in [(own, true), (other, false)] {
            let state = Arc::clone(&state);
            thread::spawn(move || accept(&listener, &state, is_own));
        }
        Self { base, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The base URL for an engine.
    pub fn base_url(&self) -> String {
        format!("http://{}{}", self.state().world.own, self.base)
    }

    /// The origin of films that moved.
    pub fn other_origin(&self) -> String {
        format!("http://{}", self.state().world.other)
    }

    /// Changes the behaviour, of jobs at work too.
    pub fn set(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.state().world.behaviour);
    }

    /// Forgets every job.
    pub fn forget(&self) {
        self.state().world.jobs.clear();
    }

    /// Every submit that was taken.
    pub fn submits(&self) -> Vec<Submit> {
        self.state().world.submits.clone()
    }

    /// Number of looks at jobs that were there.
    pub fn looks(&self) -> usize {
        self.state().world.looks
    }

    /// Number of cancelled jobs.
    pub fn cancelled(&self) -> usize {
        self.state().world.cancelled
    }

    /// Every request of its API so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    /// Every request at the other origin so far.
    pub fn requests_elsewhere(&self) -> Vec<Request> {
        self.state().elsewhere.clone()
    }

    /// What was refused, and why.
    pub fn refusals(&self) -> Vec<String> {
        self.state().refusals.clone()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, state: &Arc<Mutex<State>>, is_own: bool) {
    for stream in listener.incoming().flatten() {
        let state = Arc::clone(state);
        thread::spawn(move || serve(&stream, &state, is_own));
    }
}

fn serve(mut stream: &TcpStream, state: &Mutex<State>, is_own: bool) {
    let Some(request) = http::read(stream) else {
        return;
    };
    let answer = {
        let mut state = lock(state);
        if state.world.behaviour.is_silent {
            drop(state);
            // Until the peer gives up.
            let _ = stream.read(&mut [0]);
            return;
        }
        if is_own {
            state.serve(&request)
        } else {
            Some(state.serve_elsewhere(&request))
        }
    };
    if let Some(answer) = answer {
        answer.write(stream);
    }
}

impl State {
    /// The answer of the API; `None` for a submit that stays unanswered.
    fn serve(&mut self, request: &Request) -> Option<Answer> {
        self.requests.push(request.clone());
        if request.line.starts_with("GET /films/") {
            return Some(self.world.film());
        }
        let before = self.world.submits.len();
        let answer = self.route(request).unwrap_or_else(|problem| {
            self.refusals.push(format!("{}: {problem:?}", request.line));
            self.provider.refuse(&problem)
        });
        if self.world.submits.len() > before && self.world.behaviour.unanswered > 0 {
            self.world.behaviour.unanswered -= 1;
            return None;
        }
        Some(answer)
    }

    fn route(&mut self, request: &Request) -> Result<Answer, Problem> {
        if !self.provider.is_authorized(request, &self.key) {
            return Err(Problem::Unauthorized);
        }
        if self.world.behaviour.is_busy {
            return Err(Problem::Busy);
        }
        let missing = || Problem::Missing(request.line.clone());
        let (method, path) = request.line.split_once(' ').ok_or_else(missing)?;
        let path = path.strip_prefix(self.provider.base());
        let mut path = path.ok_or_else(missing)?.to_owned();
        for (index, (name, value)) in request.query.iter().enumerate() {
            let mark = if index == 0 { '?' } else { '&' };
            path.push_str(&format!("{mark}{name}={value}"));
        }
        let body = body(method, request)?;
        let call = Call {
            method,
            path: &path,
            body: &body,
            request,
        };
        self.provider.answer(&call, &mut self.world)
    }

    /// The answer of the other origin, which knows films alone and must not see the key.
    fn serve_elsewhere(&mut self, request: &Request) -> Answer {
        self.elsewhere.push(request.clone());
        if request.shows(&self.key) {
            self.refusals
                .push(format!("{}: shows the key", request.line));
            return Answer::no_route("POST");
        }
        if request.line.starts_with("GET /films/") {
            return self.world.film();
        }
        Answer::no_route("GET")
    }
}

fn body(method: &str, request: &Request) -> Result<Value, Problem> {
    if request.body.is_empty() {
        return Ok(Value::Null);
    }
    let kind = request.header("content-type").unwrap_or_default();
    if method == "GET" || !kind.starts_with("application/json") {
        return Err(Problem::Invalid("a body that is not JSON".to_owned()));
    }
    serde_json::from_slice(&request.body).map_err(|error| Problem::Invalid(error.to_string()))
}
