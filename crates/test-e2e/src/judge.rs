//! An operator's policy service: a small HTTP server on a loopback port that remembers every question and answers it
//! as a test wants.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use serde_json::Value;

/// What a judge answers.
#[derive(Clone, Debug)]
pub enum Answer {
    /// `{"allow": true}`.
    Allow,
    /// `{"allow": false}` for this reason.
    Refuse(String),
    /// This body with status 200.
    Body(String),
    /// This status and these further lines of the head, without a body.
    Head(u16, String),
    /// A body that does not end.
    Endless,
    /// Nothing until [`Judge::release`], and `{"allow": true}` then.
    Held,
}

type Rule = dyn Fn(&Value) -> Answer + Send + Sync;

/// Answers questions; closed when dropped.
#[derive(Debug)]
pub struct Judge {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    rule: Box<Rule>,
    asked: Mutex<Vec<Value>>,
    /// The value of `Authorization` of each question.
    tokens: Mutex<Vec<Option<String>>>,
    held: Mutex<usize>,
    released: Condvar,
    is_released: AtomicBool,
    closed: AtomicBool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Judge {
    /// A judge that answers each question by `rule`.
    pub fn start(rule: impl Fn(&Value) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            rule: Box::new(rule),
            asked: Mutex::default(),
            tokens: Mutex::default(),
            held: Mutex::default(),
            released: Condvar::new(),
            is_released: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        let of_judge = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                if of_judge.closed.load(Ordering::SeqCst) {
                    return;
                }
                let shared = of_judge.clone();
                // A service that hangs up is no concern of other questions.
                thread::spawn(move || stream.map(|stream| shared.hear(stream)));
            }
        });
        Self { address, shared }
    }

    /// Where it is asked.
    pub fn url(&self) -> String {
        format!("http://{}/judge?version=1", self.address)
    }

    /// Every question so far.
    pub fn asked(&self) -> Vec<Value> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// The questions of this stage.
    pub fn asked_at(&self, stage: &str) -> Vec<Value> {
        let mut asked = self.asked();
        asked.retain(|question| question["stage"] == stage);
        asked
    }

    /// The value of `Authorization` of each question.
    pub fn tokens(&self) -> Vec<Option<String>> {
        self.shared.tokens.lock().unwrap().clone()
    }

    /// How many questions wait for their answer.
    pub fn held(&self) -> usize {
        *self.shared.held.lock().unwrap()
    }

    /// Answers all held questions, and holds none from now on.
    pub fn release(&self) {
        let _held = self.shared.held.lock().unwrap();
        self.shared.is_released.store(true, Ordering::SeqCst);
        self.shared.released.notify_all();
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        self.release();
        self.shared.closed.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for the next one, so that it lets the port go.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn hear(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut length, mut token, mut line) = (0, None, String::new());
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                match line.trim_end() {
                    "" => break,
                    request => assert_eq!(request, "POST /judge?version=1 HTTP/1.1"),
                }
                continue;
            };
            match &*name.to_ascii_lowercase() {
                "content-length" => length = value.parse().unwrap(),
                "authorization" => token = Some(value.to_owned()),
                "content-type" => assert_eq!(value, "application/json"),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        // A connection that was only opened, to see whether anybody listens, asks nothing.
        let Ok(question) = serde_json::from_slice::<Value>(&body) else {
            return Ok(());
        };
        self.tokens.lock().unwrap().push(token);
        self.asked.lock().unwrap().push(question.clone());
        self.answer((self.rule)(&question), &mut stream)
    }

    fn answer(&self, answer: Answer, stream: &mut TcpStream) -> std::io::Result<()> {
        let body = match answer {
            Answer::Allow => r#"{"allow": true}"#.to_owned(),
            Answer::Refuse(reason) => {
                serde_json::json!({"allow": false, "reason": reason}).to_string()
            }
            Answer::Body(body) => body,
            Answer::Head(status, lines) => {
                return write!(
                    stream,
                    "HTTP/1.1 {status} So\r\n{lines}Content-Length: 0\r\n\r\n"
                );
            }
            Answer::Endless => {
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                )?;
                loop {
                    write!(stream, "1000\r\n{}\r\n", " ".repeat(0x1000))?;
                }
            }
            Answer::Held => {
                self.hold();
                r#"{"allow": true}"#.to_owned()
            }
        };
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    }

    fn hold(&self) {
        let mut held = self.held.lock().unwrap();
        *held += 1;
        while !self.is_released.load(Ordering::SeqCst) {
            held = self.released.wait(held).unwrap();
        }
        *held -= 1;
    }
}
