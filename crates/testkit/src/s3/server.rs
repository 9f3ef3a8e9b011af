//! The listener, on a thread of its own, so that it serves whoever blocks: connections, and the
//! faults that their requests meet.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::s3::bucket::{Bucket, NAME};
use crate::s3::fault::{Fault, Faults};

/// A running server with one bucket. It ends when this is dropped.
#[derive(Debug)]
pub struct TestS3 {
    address: SocketAddr,
    bucket: Bucket,
    faults: Arc<Faults>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TestS3 {
    /// The bucket's name.
    pub const BUCKET: &str = NAME;
    /// The only account.
    pub const KEY_ID: &str = "test-key-id";
    /// Its secret.
    pub const SECRET: &str = "test-secret-of-s3-0123456789";

    /// Starts a server on a free port of this machine.
    pub fn start() -> Self {
        let listener = StdListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (bucket, faults) = (Bucket::default(), Arc::new(Faults::default()));
        let mut builder = S3ServiceBuilder::new(bucket.clone());
        builder.set_auth(SimpleAuth::from_single(Self::KEY_ID, Self::SECRET));
        let service = builder.build();
        let (stop, stopped) = oneshot::channel();
        let seen = faults.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    () = serve(listener, service, seen) => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            address,
            bucket,
            faults,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// A server that ignores that a put may only create.
    pub fn ignoring_create_only() -> Self {
        let server = Self::start();
        server.bucket.ignore_create_only();
        server
    }

    /// Its address: `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The keys of all objects, sorted.
    pub fn keys(&self) -> Vec<String> {
        self.bucket.keys()
    }

    /// The bytes of an object.
    pub fn object(&self, key: &str) -> Option<Bytes> {
        self.bucket.object(key)
    }

    /// Puts an object as another program does, without metadata.
    pub fn put(&self, key: &str, bytes: Bytes) {
        self.bucket.put(key, bytes);
    }

    /// Changes the last byte of an object, as a bad disk does.
    pub fn damage(&self, key: &str) {
        self.bucket.damage(key);
    }

    /// How many uploads in parts are neither completed nor aborted.
    pub fn unfinished_uploads(&self) -> usize {
        self.bucket.uploads()
    }

    /// From now on all requests meet `fault`.
    pub fn fail(&self, fault: Fault) {
        self.faults.set(Some(fault), &[], None);
    }

    /// From now on requests of these methods meet `fault`, only so many of them where `count` says so.
    pub fn fail_methods(&self, fault: Fault, methods: &[Method], count: Option<u32>) {
        self.faults.set(Some(fault), methods, count);
    }

    /// How many requests have met a fault so far; a connection that is refused counts as one.
    pub fn faults_met(&self) -> u64 {
        self.faults.met()
    }

    /// All is well again, and held requests are done.
    pub fn recover(&self) {
        self.faults.set(None, &[], None);
    }
}

impl Drop for TestS3 {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic of the server shows in the requests that got no answer.
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, service: S3Service, faults: Arc<Faults>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        if faults.refuses() {
            reset(&stream);
            continue;
        }
        tokio::spawn(talk(stream, service.clone(), faults.clone()));
    }
}

/// What the other side sees as a reset, not as an end.
fn reset(stream: &TcpStream) {
    stream.set_zero_linger().unwrap();
}

async fn talk(stream: TcpStream, service: S3Service, faults: Arc<Faults>) {
    let mut changes = faults.changes();
    let seen = faults.clone();
    let answer = service_fn(move |request| {
        let (service, faults) = (service.clone(), faults.clone());
        async move { answer(request, &service, &faults).await }
    });
    let mut connection =
        std::pin::pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    loop {
        tokio::select! {
            // A client that went away needs no answer.
            _ = &mut connection => return,
            _ = changes.changed() => {
                if seen.is_away() {
                    return;
                }
            }
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    service: &S3Service,
    faults: &Faults,
) -> io::Result<Response<Full<Bytes>>> {
    let mut changes = faults.changes();
    let fault = faults.meet(request.method());
    if fault == Some(Fault::Away) {
        return Err(ErrorKind::ConnectionReset.into());
    }
    let (head, body) = request.into_parts();
    let mut body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    match fault {
        Some(Fault::Status(status)) => return Ok(refusal(status)),
        Some(Fault::Slow(pause)) => tokio::time::sleep(pause).await,
        Some(Fault::Hold) => changes.changed().await.map_err(io::Error::other)?,
        _ => {}
    }
    if fault == Some(Fault::CorruptRequest) {
        body = corrupted(&body);
    }
    let request = Request::from_parts(head, s3s::Body::from(body));
    let done = service.call(request).await;
    let done = done.map_err(|_| io::Error::other("not done"))?;
    let (head, body) = done.into_parts();
    if fault == Some(Fault::LoseAnswer) {
        return Err(ErrorKind::ConnectionReset.into());
    }
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    Ok(Response::from_parts(
        head,
        Full::new(match fault {
            Some(Fault::CorruptAnswer) => corrupted(&body),
            _ => body,
        }),
    ))
}

fn corrupted(body: &Bytes) -> Bytes {
    let mut bytes = body.to_vec();
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    bytes.into()
}

fn refusal(status: u16) -> Response<Full<Bytes>> {
    let code = match status {
        403 => "AccessDenied",
        501 => "NotImplemented",
        503 => "SlowDown",
        _ => "InternalError",
    };
    let text = format!("<Error><Code>{code}</Code><Message>As asked</Message></Error>");
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap();
    response
}
