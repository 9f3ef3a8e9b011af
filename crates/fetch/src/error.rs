//! What can go wrong with a fetch. A client sees one of five codes and how far the fetch got
//! ([`Reached`]), which is what the caller can mend. Everything else is a [`Cause`], for the log
//! alone. None of them ever holds a path or a query of a URL, which may be a signature.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use kinora_contract::{Failure, FailureCode};
use tokio_rustls::rustls;

use crate::body::SaveError;
use crate::reached::Reached;
use crate::resolve::LookupError;

/// Why there is no file. Its text is the public one; the private cause is its `source`.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The bytes could not be had: a name that does not resolve, a closed or filtered port, a bad
    /// certificate, any status but 200. [`Reached`] tells apart what a client may know.
    #[error("{}", FailureCode::ReferenceUnreachable.sentence())]
    Unreachable(#[source] Cause),
    /// The URL leads where the service does not look. Nothing was sent there.
    #[error("{}", FailureCode::ReferenceForbiddenAddress.sentence())]
    Forbidden(#[source] Cause),
    /// More bytes than asked for, declared or sent.
    #[error("{}", FailureCode::ReferenceTooLarge.sentence())]
    TooLarge,
    /// The connection stood, and the bytes came too slowly.
    #[error("{}", FailureCode::ReferenceTimeout.sentence())]
    Timeout(#[source] Cause),
    /// The file could not be written.
    #[error("{}", FailureCode::StorageFailed.sentence())]
    Storage(#[source] io::Error),
    /// This service cannot ask at the moment: a queue or a budget is used up, or the system has no
    /// descriptor left. It says nothing about the reference; the same fetch may do later.
    #[error("the reference cannot be fetched at the moment")]
    Later(#[source] Cause),
}

impl FetchError {
    /// What the client is told. The sentence begins with a small letter because the name of the
    /// reference comes before it.
    pub fn failure(&self) -> Failure {
        let code = match self {
            Self::Unreachable(_) | Self::Later(_) => FailureCode::ReferenceUnreachable,
            Self::Forbidden(_) => FailureCode::ReferenceForbiddenAddress,
            Self::TooLarge => FailureCode::ReferenceTooLarge,
            Self::Timeout(_) => FailureCode::ReferenceTimeout,
            Self::Storage(_) => FailureCode::StorageFailed,
        };
        match (self, self.reached()) {
            // Its code says more than how far it got, which is nowhere.
            (Self::Forbidden(_), _) => {
                Failure::new(code, "the URL leads to an address that is not allowed.")
            }
            (_, Some(reached)) => Failure::new(code, format!("{reached}.")),
            (_, None) => code.into(),
        }
    }

    /// Whether the reference is at fault: the same fetch would fail again, and its task should.
    /// Otherwise this service is, and the task should wait.
    pub const fn is_final(&self) -> bool {
        !matches!(self, Self::Storage(_) | Self::Later(_))
    }

    /// How far the fetch got, for the client; none where the service is at fault.
    pub fn reached(&self) -> Option<Reached> {
        match self {
            Self::Unreachable(cause) | Self::Forbidden(cause) | Self::Timeout(cause) => {
                Some(cause.reached())
            }
            Self::TooLarge => Some(Reached::TooLarge),
            Self::Storage(_) | Self::Later(_) => None,
        }
    }

    /// For [`FetchError::Later`], how long to wait at least before the next try.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Later(Cause::Budget { frees_after }) => Some(*frees_after),
            Self::Later(_) => Some(RETRY_SOON),
            _ => None,
        }
    }
}

/// When a queue that was full may have room again.
const RETRY_SOON: Duration = Duration::from_secs(5);

/// Why, for the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// Not a URL.
    #[error("not a URL: {0}")]
    Url(#[source] url::ParseError),
    /// Neither http nor https.
    #[error("the scheme {0:?} is not read")]
    Scheme(String),
    /// The URL carries a user or a password.
    #[error("the URL carries user information")]
    UserInfo,
    /// The URL cannot be asked for in HTTP/1.1.
    #[error("the URL does not fit a request line")]
    RequestLine(#[source] hyper::http::Error),
    /// A privileged port that is not the web's.
    #[error("port {0} is neither 80, 443 nor at least 1024")]
    Port(u16),
    /// An answer that is not public.
    #[error("{host} is {address}: {reason}")]
    Address {
        /// The host as parsed.
        host: String,
        /// Address and port that would have been dialled.
        address: SocketAddr,
        /// What it is instead of public.
        reason: &'static str,
    },
    /// The addresses of this machine cannot be listed.
    #[error("this machine's own addresses cannot be listed")]
    Interfaces(#[source] io::Error),
    /// The resolver gave no addresses.
    #[error("{host} does not resolve")]
    Resolve {
        /// The host as parsed.
        host: String,
        /// What the resolver said.
        #[source]
        source: LookupError,
    },
    /// Too many connections to this host, and no turn in time.
    #[error("no turn in time for one more connection to {0}")]
    HostBusy(String),
    /// The project has had its bytes of the hour.
    #[error("the project has fetched as much as it may in an hour")]
    Budget {
        /// When there is room again, at the earliest.
        frees_after: Duration,
    },
    /// The resolver knows the name and no address.
    #[error("{0} has no address")]
    NoAddress(String),
    /// Refused, reset, or no way there.
    #[error("no connection to {address}")]
    Connect {
        /// What was dialled.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The connection came out at this machine, although no interface has the address.
    #[error("{0} leads to this machine itself")]
    Itself(SocketAddr),
    /// A host that no certificate can name.
    #[error("the host is no name for TLS")]
    TlsName,
    /// The handshake failed: no TLS there, or a certificate that does not hold.
    #[error("no TLS session with {address}")]
    Tls {
        /// What was dialled.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Name, connection and handshake took too long.
    #[error("no connection to {0} in time")]
    ConnectTimeout(String),
    /// The peer does not speak HTTP/1.1, sends endless headers, or stopped within the body.
    #[error("the HTTP exchange failed")]
    Http(#[source] hyper::Error),
    /// Any status but 200 and the redirects.
    #[error("the answer has status {0}")]
    Status(u16),
    /// A redirect that names no place.
    #[error("the redirect has no readable Location")]
    Location,
    /// A redirect from https to http.
    #[error("the redirect leads from https to http")]
    Downgrade,
    /// One redirect more than allowed.
    #[error("more than {0} redirects")]
    Redirects(usize),
    /// The body is compressed, although nobody asked for it.
    #[error("the body is encoded as {0:?}")]
    Encoding(String),
    /// All hops together took too long.
    #[error("the time for a fetch of this size is over")]
    TotalTimeout,
    /// The body came too slowly.
    #[error("the body comes more slowly than {bytes_min} bytes in {window_ms} ms")]
    Rate {
        /// What should have come.
        bytes_min: u64,
        /// In what time.
        window_ms: u128,
    },
}

impl Cause {
    /// How far the fetch got. Addresses that are not asked, ports where nobody listens, ports that
    /// are filtered and ports that speak something else are one and the same: a task must not be
    /// a port scanner.
    fn reached(&self) -> Reached {
        match self {
            Self::Url(_) | Self::Scheme(_) | Self::UserInfo | Self::RequestLine(_) => {
                Reached::NotAsked
            }
            Self::Resolve {
                source: LookupError::NoSuchName,
                ..
            }
            | Self::NoAddress(_) => Reached::NoSuchHost,
            Self::Resolve { .. } => Reached::LookupFailed,
            Self::TlsName => Reached::BadCertificate,
            Self::Tls { source, .. } if is_certificate(source) => Reached::BadCertificate,
            Self::Status(status) => Reached::Answered(*status),
            Self::Location => Reached::RedirectedNowhere,
            Self::Downgrade => Reached::Downgraded,
            Self::Redirects(most) => Reached::RedirectedTooOften(*most),
            Self::Encoding(_) => Reached::Encoded,
            Self::TotalTimeout => Reached::TooLate,
            Self::Rate { .. } => Reached::TooSlow,
            Self::Tls { .. }
            | Self::Http(_)
            | Self::Port(_)
            | Self::Address { .. }
            | Self::Itself(_)
            | Self::Connect { .. }
            | Self::ConnectTimeout(_)
            | Self::Interfaces(_)
            | Self::HostBusy(_)
            | Self::Budget { .. } => Reached::NoConnection,
        }
    }
}

/// Whether a handshake failed for the certificate: then there is a web server.
fn is_certificate(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}

/// What the system is short of when it opens no more connections: that is no fault of a reference.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let numbers = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error
        .raw_os_error()
        .is_some_and(|number| numbers.contains(&number))
}

impl From<SaveError> for FetchError {
    fn from(error: SaveError) -> Self {
        match error {
            SaveError::TooLarge => Self::TooLarge,
            SaveError::TooSlow(pace) => Self::Timeout(Cause::Rate {
                bytes_min: pace.bytes_min,
                window_ms: pace.window.as_millis(),
            }),
            SaveError::Broken(error) => Self::Unreachable(Cause::Http(error)),
            SaveError::Storage(error) => Self::Storage(error),
        }
    }
}
