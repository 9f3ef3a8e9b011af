//! Servers that follow a script, canaries that count contacts, and a resolver with scripted
//! answers. Nothing here sleeps to be right.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kinora_http_fetch::{
    FetchError, FetchOptions, LookupError, ProjectResolver, ReferenceFetcher, ReferenceRequest,
    SystemInterfaces,
};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// The address that tests allow, in the place of a public one.
pub(crate) const PUBLIC: &str = "127.77.0.1";

/// What a server does after it has read a request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// These bytes again and again, until the peer is gone.
    Repeat(&'static [u8], Duration),
    /// Nothing, until the peer is gone.
    Hold,
}

pub(crate) fn send(text: impl AsRef<[u8]>) -> Vec<Step> {
    vec![Step::Send(text.as_ref().to_vec())]
}

/// A whole answer of status 200.
pub(crate) fn ok(body: &[u8]) -> Vec<Step> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    vec![Step::Send([head.as_bytes(), body].concat())]
}

pub(crate) fn redirect(status: u16, location: &str) -> Vec<Step> {
    send(format!(
        "HTTP/1.1 {status} Elsewhere\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
    ))
}

/// A server whose answer follows from the path.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(script: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self::with_tls(None, script).await
    }

    pub(crate) async fn with_tls(
        tls: Option<TlsAcceptor>,
        script: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((PUBLIC, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let script = Arc::new(script);
        let mut tasks = JoinSet::new();
        let seen = Arc::clone(&heads);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, script, tls) = (Arc::clone(&seen), Arc::clone(&script), tls.clone());
                connections.spawn(async move {
                    let script = move |path: &str| script(path);
                    let _ = match tls {
                        None => serve(stream, &seen, script).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &seen, script).await,
                            Err(error) => Err(error),
                        },
                    };
                });
            }
        });
        Self {
            address,
            heads,
            _tasks: tasks,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The request heads seen so far, in order.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    seen: &Mutex<Vec<String>>,
    script: impl Fn(&str) -> Vec<Step>,
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
        if !head.is_ascii() || head[0].is_ascii_control() {
            return Err(io::Error::other("this is not HTTP"));
        }
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    seen.lock().unwrap().push(head);
    for step in script(&path) {
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
            }
        }
    }
    stream.shutdown().await
}

/// A listener that nobody may contact.
pub(crate) struct Canary {
    listener: TcpListener,
    pub(crate) port: u16,
}

impl Canary {
    /// On every address of this machine, of both families.
    pub(crate) async fn everywhere() -> Self {
        let listener = match TcpListener::bind("[::]:0").await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind("0.0.0.0:0").await.unwrap(),
        };
        let port = listener.local_addr().unwrap().port();
        Self { listener, port }
    }

    /// On 127.0.0.1 at the port of a server, and that server.
    pub(crate) async fn beside(
        script: impl Fn(&str) -> Vec<Step> + Clone + Send + Sync + 'static,
    ) -> (Server, Self) {
        loop {
            let server = Server::start(script.clone()).await;
            let port = server.address.port();
            // Another test may hold this port of the other address.
            if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)).await {
                return (server, Self { listener, port });
            }
        }
    }

    /// How many connected since the last call. The queue is in order: what came before our own
    /// connection is seen before it.
    pub(crate) async fn contacts(&self) -> usize {
        let own = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let own = own.local_addr().unwrap();
        for contacts in 0.. {
            let (_, peer) = self.listener.accept().await.unwrap();
            if peer.port() == own.port() && peer.ip().to_canonical() == own.ip() {
                return contacts;
            }
        }
        unreachable!("the loop only ends with our own connection")
    }
}

/// Answers with each list in turn, then with the last one again, and remembers the questions.
#[derive(Debug, Default)]
pub(crate) struct Script {
    answers: Vec<Vec<IpAddr>>,
    asked: Mutex<Vec<String>>,
}

impl Script {
    pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |list: &&[&str]| list.iter().map(|one| one.parse().unwrap()).collect();
        Arc::new(Self {
            answers: answers.iter().map(parse).collect(),
            asked: Mutex::default(),
        })
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl ProjectResolver for Script {
    async fn resolve(&self, _project: &str, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        let mut asked = self.asked.lock().unwrap();
        let answer = self.answers.get(asked.len()).or(self.answers.last());
        asked.push(host.to_owned());
        answer.cloned().ok_or(LookupError::NoSuchName)
    }
}

/// What some project asks for.
pub(crate) const fn request<'a>(
    url: &'a str,
    to: &'a Path,
    bytes_max: u64,
) -> ReferenceRequest<'a> {
    ReferenceRequest {
        project: "project",
        url,
        to,
        bytes_max,
        is_plain: |head| head.starts_with(b"\x89PNG"),
    }
}

/// The defaults, with [`PUBLIC`] allowed.
pub(crate) fn options() -> FetchOptions {
    FetchOptions {
        allow_networks: vec![PUBLIC.parse().unwrap()],
        ..FetchOptions::default()
    }
}

/// Passes in real time.
pub(crate) fn clock() -> Arc<dyn kinora_contract::Clock> {
    let begun = std::time::Instant::now();
    Arc::new(kinora_contract::RunningClock::at(0, move || {
        begun.elapsed()
    }))
}

/// A fetcher with a folder of its own.
pub(crate) struct Bench {
    pub(crate) fetcher: ReferenceFetcher,
    pub(crate) folder: TempDir,
}

impl Bench {
    pub(crate) fn new(options: FetchOptions, resolver: Arc<dyn ProjectResolver>) -> Self {
        Self {
            fetcher: ReferenceFetcher::with(options, resolver, Box::new(SystemInterfaces), clock())
                .unwrap(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// With no names at all.
    pub(crate) fn nameless(options: FetchOptions) -> Self {
        Self::new(options, Script::new(&[]))
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("reference")
    }

    /// The bytes that were read; after a failure it is checked that no file is left.
    pub(crate) async fn read(&self, url: &str, bytes_max: u64) -> Result<Vec<u8>, FetchError> {
        let file = self.file();
        let fetched = self.fetcher.fetch(&request(url, &file, bytes_max)).await;
        if let Err(error) = fetched {
            assert_eq!(self.leftovers(), 0, "{url} left a file");
            return Err(error);
        }
        let bytes = std::fs::read(self.file()).unwrap();
        assert_eq!(fetched.unwrap(), bytes.len() as u64);
        std::fs::remove_file(self.file()).unwrap();
        Ok(bytes)
    }

    pub(crate) async fn fails(&self, url: &str) -> FetchError {
        self.read(url, 1 << 20).await.unwrap_err()
    }

    pub(crate) fn leftovers(&self) -> usize {
        self.folder.path().read_dir().unwrap().count()
    }
}
