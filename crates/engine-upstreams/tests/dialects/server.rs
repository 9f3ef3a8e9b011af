//! Servers that follow a script on real sockets and remember what they were asked.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kinora_engine_upstreams::dialects::NamedServer;
use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// One request as a server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// `GET /v1/videos/x`.
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether another request came over the same connection before.
    pub(crate) is_kept_connection: bool,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The parts of a form: the head of each in one line, and its bytes.
    pub(crate) fn form(&self) -> Vec<(String, Vec<u8>)> {
        let kind = self.header("content-type").unwrap();
        let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
        let end = format!("--{boundary}--\r\n");
        let body = self.body.strip_suffix(end.as_bytes()).unwrap();
        let mut parts = split(body, format!("--{boundary}\r\n").as_bytes());
        assert!(parts.remove(0).is_empty());
        let part = |part: &[u8]| {
            let halves = split(part, b"\r\n\r\n");
            let head = String::from_utf8(halves[0].to_vec()).unwrap();
            let bytes = &part[halves[0].len() + 4..];
            let bytes = bytes.strip_suffix(b"\r\n").unwrap();
            let head = head.replace("content-disposition: form-data; ", "");
            (head.replace("\r\n", "; "), bytes.to_vec())
        };
        parts.into_iter().map(part).collect()
    }

    /// As [`Self::form`], where every part is text.
    pub(crate) fn form_texts(&self) -> Vec<(String, String)> {
        let text = |(head, bytes): (String, Vec<u8>)| (head, String::from_utf8(bytes).unwrap());
        self.form().into_iter().map(text).collect()
    }
}

fn split<'a>(bytes: &'a [u8], at: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while let Some(place) = rest.windows(at.len()).position(|window| window == at) {
        pieces.push(&rest[..place]);
        rest = &rest[place + at.len()..];
    }
    pieces.push(rest);
    pieces
}

/// What a server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// These bytes again and again, until the peer is gone.
    Repeat(&'static [u8], Duration),
    /// Nothing, until the peer is gone.
    Hold,
    /// The end of the connection.
    Close,
}

pub(crate) fn answer(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Vec<Step> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status} Said\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    vec![Step::Send([head.as_bytes(), body].concat())]
}

/// A task object with this status and progress.
pub(crate) fn task(id: &str, status: &str, progress: u32) -> Vec<Step> {
    let body = format!(
        r#"{{"id":"{id}","object":"video","status":"{status}","progress":{progress},"error":null}}"#
    );
    answer(200, "content-type: application/json\r\n", body)
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    scheme: &'static str,
    seen: Arc<Mutex<Vec<Seen>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// `script` is given a request and how often its line was seen before.
    pub(crate) async fn start(
        script: impl Fn(&Seen, usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        Self::listen(None, script).await
    }

    pub(crate) async fn with_tls(
        identity: &CertifiedKey<KeyPair>,
        script: impl Fn(&Seen, usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let key = PrivateKeyDer::Pkcs8(identity.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![identity.cert.der().clone()], key)
            .unwrap();
        Self::listen(Some(Arc::new(config).into()), script).await
    }

    async fn listen(
        tls: Option<TlsAcceptor>,
        script: impl Fn(&Seen, usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (script, noted) = (Arc::new(script), Arc::clone(&seen));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (script, noted, tls) = (Arc::clone(&script), Arc::clone(&noted), tls.clone());
                connections.spawn(async move {
                    let _ = match tls {
                        None => serve(stream, &noted, &*script).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &noted, &*script).await,
                            Err(error) => Err(error),
                        },
                    };
                });
            }
        });
        Self {
            address,
            scheme,
            seen,
            _tasks: tasks,
        }
    }

    /// A server at which every task runs well: once queued, once running, then `result`.
    pub(crate) async fn well(id: &'static str, result: &'static [u8]) -> Self {
        Self::start(move |seen, before| well(id, result, seen, before)).await
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|one| one.line).collect()
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|one| *one == line).count()
    }

    pub(crate) fn upstream(&self, name: &str) -> NamedServer {
        NamedServer {
            name: name.to_owned(),
            base_url: format!("{}://{}/v1", self.scheme, self.address),
        }
    }
}

pub(crate) fn well(id: &str, result: &[u8], seen: &Seen, before: usize) -> Vec<Step> {
    match seen.line.as_str() {
        "POST /v1/videos" => task(id, "queued", 0),
        line if line.ends_with("/content") => answer(200, "content-type: video/mp4\r\n", result),
        line if line.starts_with("GET ") && before == 0 => task(id, "queued", 0),
        line if line.starts_with("GET ") && before == 1 => task(id, "in_progress", 40),
        line if line.starts_with("GET ") => task(id, "completed", 100),
        _ => answer(200, "", "{}"),
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    noted: &Mutex<Vec<Seen>>,
    script: &(dyn Fn(&Seen, usize) -> Vec<Step> + Send + Sync),
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    for nth in 0_usize.. {
        let mut seen = read(&mut stream).await?;
        seen.is_kept_connection = nth > 0;
        let steps = {
            let mut noted = noted.lock().unwrap();
            let before = noted.iter().filter(|one| one.line == seen.line).count();
            noted.push(seen.clone());
            drop(noted);
            script(&seen, before)
        };
        for step in steps {
            match step {
                Step::Send(bytes) => stream.write_all(&bytes).await?,
                Step::Repeat(bytes, every) => loop {
                    stream.write_all(bytes).await?;
                    stream.flush().await?;
                    if !every.is_zero() {
                        tokio::time::sleep(every).await;
                    }
                },
                Step::Hold => {
                    stream.flush().await?;
                    let _ = stream.read_u8().await;
                    return Ok(());
                }
                Step::Close => return stream.shutdown().await,
            }
        }
        stream.flush().await?;
    }
    Ok(())
}

async fn read<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> io::Result<Seen> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let line = lines.remove(0).replace(" HTTP/1.1", "");
    let pair = |line: &String| {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        (name.to_ascii_lowercase(), value.to_owned())
    };
    let mut seen = Seen {
        line,
        headers: lines.iter().map(pair).collect(),
        body: Vec::new(),
        is_kept_connection: false,
    };
    let length = seen.header("content-length").unwrap_or("0");
    seen.body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut seen.body).await?;
    Ok(seen)
}
