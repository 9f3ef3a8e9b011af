//! The server itself: a listener whose connections have a thread each, and what a test may ask and change.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

use crate::comfyui::behaviour::Behaviour;
use crate::comfyui::jobs::Jobs;
use crate::comfyui::routes::State;
use crate::comfyui::socket;
use crate::http::{self, Request};

/// A server on a port of its own, until it is dropped.
pub struct TestComfy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Drop for TestComfy {
    fn drop(&mut self) {
        self.state().sockets.close_all();
    }
}

impl Default for TestComfy {
    fn default() -> Self {
        Self::start()
    }
}

impl TestComfy {
    /// A server that behaves well.
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &state));
            }
        });
        Self { address, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes the behaviour, of jobs at work too.
    pub fn set(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.state().behaviour);
    }

    /// Restarts: no job is known any more, and no socket is open. Uploaded files stay.
    pub fn restart(&self) {
        let mut state = self.state();
        state.jobs = Jobs::default();
        state.sockets.close_all();
    }

    /// The names of all jobs that began, in their order; one that ran twice is there twice.
    pub fn begun(&self) -> Vec<String> {
        self.state().begun.clone()
    }

    /// The names of jobs that were stopped.
    pub fn stopped(&self) -> Vec<String> {
        self.state().stopped.clone()
    }

    /// The graph of each begun job.
    pub fn graphs(&self) -> Vec<Value> {
        self.state().graphs.clone()
    }

    /// Uploaded files: name with folder, and bytes.
    pub fn uploads(&self) -> Vec<(String, Vec<u8>)> {
        self.state().uploads.clone().into_iter().collect()
    }

    /// Number of looks at jobs that were there.
    pub fn looks(&self) -> usize {
        self.state().looks
    }

    /// Number of websockets whose place another took.
    pub fn evicted(&self) -> usize {
        self.state().sockets.evicted
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    /// Whether `client` has a websocket here.
    pub fn has_socket(&self, client: &str) -> bool {
        self.state().sockets.has(client)
    }

    /// Sends an event to the client that submitted `job` under its own name.
    pub fn tell(&self, job: &str, kind: &str, mut data: Value) {
        data["prompt_id"] = json!(job);
        let event = json!({"type": kind, "data": data}).to_string();
        self.state().sockets.send(job, 1, event.as_bytes());
    }

    /// Sends a preview, a PNG, to that client.
    pub fn show(&self, job: &str, png: &[u8]) {
        let message = [&[0, 0, 0, 1, 0, 0, 0, 2], png].concat();
        self.state().sockets.send(job, 2, &message);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: TcpStream, shared: &Mutex<State>) {
    let Some(request) = http::read(&stream) else {
        return;
    };
    let answer = {
        let mut state = lock(shared);
        state.requests.push(request.clone());
        if state.behaviour.is_silent {
            drop(state);
            // Until the peer gives up.
            let _ = (&stream).read(&mut [0]);
            return;
        }
        let key = request.header("sec-websocket-key");
        if let ("GET /ws", Some(key)) = (request.line.as_str(), key) {
            let is_welcome = state
                .behaviour
                .wants
                .is_none_or(|(name, value)| request.header(name) == Some(value));
            if is_welcome && let Ok(watched) = stream.try_clone() {
                let client = request.parameter("clientId");
                state.sockets.accept(&client, key, stream);
                drop(state);
                socket::wait_for_end(&watched);
                lock(shared).sockets.forget(&client);
            }
            return;
        }
        state.answer(&request)
    };
    if let Some(answer) = answer {
        answer.write(&stream);
    }
}
