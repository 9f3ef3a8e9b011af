//! A server of the `/v1/videos` protocol that fails in a way of a test's choice.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long a task takes.
const WORK: Duration = Duration::from_millis(300);

/// How a server fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fares {
    Well,
    /// Each task has failed at its first poll.
    FailsTasks,
    /// Each task fails at its end.
    FailsTasksLate,
    /// Results have no bytes.
    EmptyResults,
    /// Results are no films.
    WrongResults,
    /// Connections end within results.
    CutResults,
    /// Results are compressed.
    CompressedResults,
    /// Submits are answered 500.
    RefusesSubmits,
    /// Polls are answered with what is no task.
    WrongPolls,
    /// Only the results of tasks whose prompt says so have no bytes.
    EmptyResultOf(&'static str),
}

/// A server on a loopback port.
pub(super) struct Upstream {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    fares: Fares,
    film: Vec<u8>,
    tasks: HashMap<String, Task>,
    submits: usize,
}

struct Task {
    begun: Instant,
    request: String,
}

impl Upstream {
    pub(super) fn start(film: &[u8], fares: Fares) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            fares,
            film: film.to_vec(),
            tasks: HashMap::new(),
            submits: 0,
        }));
        let of_server = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let state = of_server.clone();
                // A client that hangs up is no concern of the others.
                thread::spawn(move || stream.map(|stream| serve(&stream, &state)));
            }
        });
        Self { address, state }
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(super) fn set(&self, fares: Fares) {
        self.state.lock().unwrap().fares = fares;
    }

    pub(super) fn submits(&self) -> usize {
        self.state.lock().unwrap().submits
    }
}

/// Answers the requests of one connection.
fn serve(stream: &TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream.try_clone()?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let (bytes, goes_on) = answer(&line, &body, &mut state.lock().unwrap());
        stream.write_all(&bytes)?;
        if !goes_on {
            return Ok(());
        }
    }
}

/// The bytes of an answer, and whether the connection goes on.
fn answer(line: &str, body: &[u8], state: &mut State) -> (Vec<u8>, bool) {
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let parts: Vec<&str> = path.trim_start_matches("/v1/videos").split('/').collect();
    let json = |text: &str| (response(200, "", text.as_bytes()), true);
    match (method, &parts[..]) {
        ("POST", [""]) => {
            state.submits += 1;
            if state.fares == Fares::RefusesSubmits {
                return (response(500, "", b"out of order"), true);
            }
            let id = format!("task-{}", state.submits);
            let task = Task {
                begun: Instant::now(),
                request: String::from_utf8_lossy(body).into_owned(),
            };
            state.tasks.insert(id.clone(), task);
            json(&object(&id, "queued"))
        }
        ("GET", ["", id]) => match (state.fares, state.tasks.get(*id)) {
            (_, None) => (response(404, "", b"{}"), true),
            (Fares::FailsTasks, Some(_)) => json(&object(id, "failed")),
            (Fares::WrongPolls, Some(_)) => json("{\"status\": 7}"),
            (_, Some(task)) if task.begun.elapsed() < WORK => json(&object(id, "in_progress")),
            (Fares::FailsTasksLate, Some(_)) => json(&object(id, "failed")),
            _ => json(&object(id, "completed")),
        },
        ("GET", ["", id, "content"]) => content(id, state),
        _ => json("{\"data\": []}"),
    }
}

fn content(id: &str, state: &State) -> (Vec<u8>, bool) {
    let film = &state.film;
    match state.fares {
        Fares::EmptyResults => (response(200, "", b""), true),
        Fares::EmptyResultOf(word) if state.tasks[id].request.contains(word) => {
            (response(200, "", b""), true)
        }
        Fares::WrongResults => (response(200, "", b"<html>Bad gateway</html>"), true),
        Fares::CompressedResults => (response(200, "content-encoding: br\r\n", film), true),
        Fares::CutResults => {
            let mut whole = response(200, "", film);
            whole.truncate(whole.len() - film.len() / 2);
            (whole, false)
        }
        _ => (response(200, "", film), true),
    }
}

fn object(id: &str, status: &str) -> String {
    format!(
        "{{\"id\": \"{id}\", \"object\": \"video\", \"status\": \"{status}\", \"progress\": 0}}"
    )
}

fn response(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status} Status\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
