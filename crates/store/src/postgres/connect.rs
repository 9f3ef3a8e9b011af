//! Connections, and pauses between attempts to make one.

use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::pin;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, Error};

use super::address::Address;
use super::runtime::runtime;
use super::tls::Tls;
use crate::OpenError;

/// Makes connections to one database.
pub(super) struct Connector {
    address: Address,
    tls: Tls,
    runtime: Handle,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

    /// Runs `task` beside the connections.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// A connection. It ends when the client is dropped.
    pub(super) async fn connect(&self) -> Result<Client, Error> {
        self.connect_listening(None).await
    }

    /// The same; what the server says of itself is sent to `heard`.
    pub(super) async fn connect_listening(
        &self,
        heard: Option<mpsc::UnboundedSender<AsyncMessage>>,
    ) -> Result<Client, Error> {
        let mut connecting = pin!(self.address.config.connect(self.tls.clone()));
        let connected = poll_fn(|context| {
            // Its sockets belong to that runtime, whoever waits for them.
            let _inside = self.runtime.enter();
            connecting.as_mut().poll(context)
        });
        let (client, mut connection) = connected.await?;
        self.spawn(async move {
            // Errors are told to those who wait for answers.
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

/// The first pause.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How long to wait before the next attempt: twice as long after each failure, up to [`PAUSE_MAX`].
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

    /// The pause, of which up to a quarter is left to chance, so that processes do not come together.
    pub(super) fn pause(&self) -> Duration {
        let pause = PAUSE_MIN
            .saturating_mul(1 << self.failures.min(6))
            .min(PAUSE_MAX);
        let chance = RandomState::new().build_hasher().finish() % 256;
        pause - pause / 1024 * u32::try_from(chance).unwrap_or(0)
    }
}
