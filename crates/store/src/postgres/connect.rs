//! Connections, and pauses between attempts to make one.

use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::pin;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::config::Host;
use tokio_postgres::{AsyncMessage, Client, Connection, Socket};

use super::address::Address;
use super::fault::{closed, told, unavailable};
use super::runtime::runtime;
use super::tls::{self, Stream, Tls};
use crate::{OpenError, StoreError};

/// Maximum time for a host to answer, unless the address sets it.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// Makes connections to one database.
pub(super) struct Connector {
    address: Address,
    tls: Tls,
    runtime: Handle,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl Connector {
    pub(super) fn of(address: Address) -> Result<Self, OpenError> {
        let tls = Tls::of(&address)?;
        let runtime = runtime().map_err(|error| OpenError::Unavailable(error.into()))?;
        Ok(Self {
            address,
            tls,
            runtime,
        })
    }

    /// Runs `task` on the runtime of the connections.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// Does `work` there and returns its result. A caller that vanishes or does not poll delays no
    /// other that waits for the same locks.
    pub(super) async fn answer<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.spawn(async move {
            // The caller may have gone away.
            let _ = reply.send(work.await);
        });
        answer.await.map_err(|_| closed())?
    }

    /// Connects to the first host that answers in time and meets the demands of the address.
    async fn first_of_all(
        &self,
    ) -> Result<(Client, Connection<Socket, Stream<Socket>>), NotConnected> {
        let mut failures = Vec::new();
        for host in &self.address.hosts {
            // The driver's own limit covers only the first packet.
            let limit = host.get_connect_timeout().copied().unwrap_or(CONNECT_MAX);
            let failure =
                match tokio::time::timeout(2 * limit, host.connect(self.tls.clone())).await {
                    Ok(Ok(connected)) => return Ok(connected),
                    Ok(Err(error)) => match tls::advice(&error) {
                        Some(advice) => format!("{}: {advice}", told(&error)),
                        None => told(&error),
                    },
                    Err(_) => "the server does not answer".to_owned(),
                };
            failures.push(match host.get_hosts() {
                [Host::Tcp(name)] if self.address.hosts.len() > 1 => format!("{name}: {failure}"),
                _ => failure,
            });
        }
        Err(NotConnected(failures.join("; ")))
    }

    /// A connection. It ends when the client is dropped.
    pub(super) async fn connect(&self) -> Result<Client, NotConnected> {
        self.connect_listening(None).await
    }

    /// The same; sends the server's notices to `heard`.
    pub(super) async fn connect_listening(
        &self,
        heard: Option<mpsc::UnboundedSender<AsyncMessage>>,
    ) -> Result<Client, NotConnected> {
        let mut connecting = pin!(self.first_of_all());
        let connected = poll_fn(|context| {
            // The connection's sockets belong to that runtime, on any caller's thread.
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

/// Why there is no connection, for operators. It never repeats a password.
#[derive(Debug)]
pub(super) struct NotConnected(String);

impl fmt::Display for NotConnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<NotConnected> for StoreError {
    fn from(error: NotConnected) -> Self {
        unavailable(&error.0)
    }
}

impl From<NotConnected> for OpenError {
    fn from(error: NotConnected) -> Self {
        Self::Unavailable(error.0.into())
    }
}

/// The first pause.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Pause before the next attempt: doubles after each failure, up to [`PAUSE_MAX`].
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
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
