//! Connections, encrypted with the TLS library that the rest of the program uses, and pauses between
//! attempts to make one.

use std::error::Error as _;
use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use kinora_http::TrustedRoots;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Socket};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Encrypted;

use super::address::ServerAddress;
use super::fault::{closed_error, is_refusal, message_of, unavailable};
use super::session::ServerSession;
use super::session::SqlStatement;
use super::session::runtime;
use crate::{OpenError, StoreError};

/// Maximum time for a host to answer, unless the address sets it.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// Makes connections to one database.
pub(super) struct ServerConnector {
    address: ServerAddress,
    tls: TlsSettings,
    runtime: Handle,
    /// Whether statements may have names: until a connection turns out to lead to a pooler.
    names: AtomicBool,
}

impl fmt::Debug for ServerConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl ServerConnector {
    pub(super) fn new(address: ServerAddress) -> Result<Self, OpenError> {
        let tls = TlsSettings::from_address(&address)?;
        let runtime = runtime().map_err(|error| OpenError::Unavailable(error.into()))?;
        Ok(Self {
            address,
            tls,
            runtime,
            names: AtomicBool::new(false),
        })
    }

    /// Allows sessions to name their statements if their connection leads to the server itself.
    pub(super) fn with_names(mut self, may_name: bool) -> Self {
        self.names = AtomicBool::new(may_name);
        self
    }

    /// Runs `task` on the runtime of the connections.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// Does `work` on the runtime of the connections and returns its result. A caller that goes away or is
    /// not polled then delays no other that waits for the same locks.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.spawn(async move {
            // The caller may have gone away.
            let _ = reply.send(work.await);
        });
        answer.await.map_err(|_| closed_error())?
    }

    /// Connects to the first host that answers in time and meets the demands of the address.
    async fn connect_first(
        &self,
        mark: Option<&str>,
    ) -> Result<(Client, Connection<Socket, EncryptedStream<Socket>>), NotConnected> {
        let (mut failures, mut refuses_options) = (Vec::new(), false);
        for host in &self.address.hosts {
            // The driver's own limit covers only the TCP connection. A server that accepts it and then
            // says nothing, in the TLS handshake or the login, would hold us up for ever.
            let limit = host.get_connect_timeout().copied().unwrap_or(CONNECT_MAX);
            let marked = mark.map(|mark| with_mark(host, mark));
            let connecting = marked.as_ref().unwrap_or(host).connect(self.tls.clone());
            let failure = match tokio::time::timeout(2 * limit, connecting).await {
                Ok(Ok(connected)) => return Ok(connected),
                Ok(Err(error)) => {
                    refuses_options |= error.code() == Some(&SqlState::PROTOCOL_VIOLATION);
                    match tls_advice(&error) {
                        Some(advice) => format!("{}: {advice}", message_of(&error)),
                        None => message_of(&error),
                    }
                }
                Err(_) => "the server does not answer".to_owned(),
            };
            failures.push(match host.get_hosts() {
                [Host::Tcp(name)] if self.address.hosts.len() > 1 => format!("{name}: {failure}"),
                _ => failure,
            });
        }
        Err(NotConnected {
            why: failures.join("; "),
            refuses_options,
        })
    }

    /// A connection, which closes when the client is dropped.
    pub(super) async fn connect(&self) -> Result<Client, NotConnected> {
        self.connect_marked(None, None).await
    }

    /// A connection to use repeatedly, with named statements where possible.
    pub(super) async fn session(&self) -> Result<ServerSession, NotConnected> {
        if !self.names.load(Ordering::Relaxed) {
            return Ok(ServerSession::new(self.connect().await?, false));
        }
        // A pooler hands a server connection that it opened before, and which does not know this random
        // number, or refuses a connection with options it does not know. Either shows that it is there.
        let mark = format!("{:016x}", RandomState::new().build_hasher().finish());
        match self.connect_marked(None, Some(&mark)).await {
            Ok(mut client) => {
                let mut prepared = prepare(&client, &mark).await;
                if prepared.is_err() {
                    // An operator may have ended just this connection. Try another one before reporting
                    // a failure to all that wait for it.
                    client = self.connect_marked(None, Some(&mark)).await?;
                    prepared = prepare(&client, &mark).await;
                }
                let is_direct = prepared?;
                self.record_direct(is_direct);
                Ok(ServerSession::new(client, is_direct))
            }
            Err(error) if error.refuses_options => {
                self.record_direct(false);
                Ok(ServerSession::new(self.connect().await?, false))
            }
            Err(error) => Err(error),
        }
    }

    fn record_direct(&self, is_direct: bool) {
        if !is_direct && self.names.swap(false, Ordering::Relaxed) {
            tracing::info!("store reached through a pooler; statements are planned at each use");
        }
    }

    /// A connection whose asynchronous messages from the server go to `heard`.
    pub(super) async fn connect_listening(
        &self,
        heard: Option<mpsc::UnboundedSender<AsyncMessage>>,
    ) -> Result<Client, NotConnected> {
        self.connect_marked(heard, None).await
    }

    async fn connect_marked(
        &self,
        heard: Option<mpsc::UnboundedSender<AsyncMessage>>,
        mark: Option<&str>,
    ) -> Result<Client, NotConnected> {
        let mut connecting = pin!(self.connect_first(mark));
        let connected = poll_fn(|context| {
            // Sockets register with the runtime in whose context they are made. They must belong to the
            // store's own runtime, or they would stop when the caller's runtime is busy or ends.
            let _inside = self.runtime.enter();
            connecting.as_mut().poll(context)
        });
        let (client, mut connection) = connected.await?;
        self.spawn(async move {
            // Errors reach the callers that wait for answers.
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let Some(heard) = &heard {
                    let _ = heard.send(message);
                }
            }
        });
        Ok(client)
    }
}

/// A setting of our own. The server keeps it for a connection; a pooler does not pass it on.
const MARK: &str = "kinora.direct";

/// The address with a mark that only the server at the other end of the connection can know.
fn with_mark(host: &Config, mark: &str) -> Config {
    let mut host = host.clone();
    let given = host.get_options().unwrap_or_default();
    let both = format!("{given} -c {MARK}={mark}");
    host.options(both.trim());
    host
}

/// Prepares a connection for named statements, and returns whether it leads to the server itself, which then
/// knows the mark. The settings suit plans that are kept: all our statements find rows by indexes, so a plan
/// must not read the whole table because that was small when it was made, nor suit only the values of its
/// first use.
async fn prepare(client: &Client, mark: &str) -> Result<bool, NotConnected> {
    let prepare = format!(
        "SELECT set_config('plan_cache_mode', 'force_generic_plan', false), \
         set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false) \
         WHERE current_setting('{MARK}', true) = $1"
    );
    match SqlStatement::new(prepare).text(mark).run(client).await {
        Ok(rows) => Ok(!rows.is_empty()),
        Err(error) if is_refusal(&error) => Ok(false),
        Err(error) => Err(NotConnected {
            why: message_of(&error),
            refuses_options: false,
        }),
    }
}

/// Why there is no connection, for operators. It never repeats a password.
#[derive(Debug)]
pub(super) struct NotConnected {
    why: String,
    /// Whether a server refused the options of the connection, as poolers do.
    refuses_options: bool,
}

impl fmt::Display for NotConnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl From<NotConnected> for StoreError {
    fn from(error: NotConnected) -> Self {
        unavailable(&error.why)
    }
}

impl From<NotConnected> for OpenError {
    fn from(error: NotConnected) -> Self {
        Self::Unavailable(error.why.into())
    }
}

/// The first pause.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Pause before the next attempt: doubles after each failure, up to [`PAUSE_MAX`].
#[derive(Debug, Default)]
pub(super) struct ReconnectBackoff {
    failures: u32,
}

impl ReconnectBackoff {
    pub(super) const fn fail(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    pub(super) const fn reset(&mut self) {
        self.failures = 0;
    }

    /// The pause, up to a quarter of it random, so that processes do not reconnect at the same
    /// moment.
    pub(super) fn pause(&self) -> Duration {
        let pause = PAUSE_MIN
            .saturating_mul(1 << self.failures.min(6))
            .min(PAUSE_MAX);
        let chance = RandomState::new().build_hasher().finish() % 256;
        pause - pause / 1024 * u32::try_from(chance).unwrap_or(0)
    }
}

/// Advice to operators on a failed encryption.
fn tls_advice(error: &tokio_postgres::Error) -> Option<&'static str> {
    let mut cause = error.source();
    while let Some(one) = cause {
        // The driver has no other way to tell this error from the rest.
        if one.to_string() == "server does not support TLS" {
            return Some(
                "switch `ssl` on in PostgreSQL, or remove `sslmode` from the address where the network is safe",
            );
        }
        let inner = one.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(rustls::Error::InvalidCertificate(why)) =
            inner.and_then(|inner| inner.downcast_ref())
        {
            return Some(match why {
                // A bad signature results if the trusted authority has the same name but another key.
                CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                    "name the certificate of the authority that signed the server's with `sslrootcert` in the address"
                }
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => {
                    "connect by a name that the server's certificate has"
                }
                _ => "give the server a certificate that is valid now",
            });
        }
        cause = one.source();
    }
    None
}

/// Makes encrypted connections to servers whose certificate is trusted.
#[derive(Clone)]
struct TlsSettings(Arc<ClientConfig>);

impl TlsSettings {
    /// Builds it from the address.
    fn from_address(address: &ServerAddress) -> Result<Self, OpenError> {
        let roots = match &address.roots {
            None => TrustedRoots::public(),
            Some(file) => TrustedRoots::none().with_file(file).map_err(|error| {
                let text = format!("the certificates in {}: {error}", file.display());
                OpenError::Unavailable(text.into())
            })?,
        };
        let config = roots.client_config();
        let config = config.map_err(|error| OpenError::Unavailable(error.into()))?;
        Ok(Self(Arc::new(config)))
    }
}

impl<S> MakeTlsConnect<S> for TlsSettings
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = EncryptedStream<S>;
    type TlsConnect = TlsHandshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<TlsHandshake, Self::Error> {
        Ok(TlsHandshake {
            connector: TlsConnector::from(self.0.clone()),
            name: ServerName::try_from(host.to_owned())?,
        })
    }
}

/// One handshake.
struct TlsHandshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S> TlsConnect<S> for TlsHandshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = EncryptedStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<EncryptedStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let stream = self.connector.connect(self.name, stream).await?;
            Ok(EncryptedStream(stream))
        })
    }
}

/// An encrypted connection.
struct EncryptedStream<S>(Encrypted<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for EncryptedStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EncryptedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for EncryptedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
