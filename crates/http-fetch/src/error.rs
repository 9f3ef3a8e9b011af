//! Errors of a fetch. A client sees one of five codes and how far the fetch got ([`FetchProgress`]),
//! which is what the caller can fix. The exact [`FetchCause`] is for the log only. None of them ever
//! contains the path or query of a URL, which may be a signature.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use kinora_contract::{Failure, FailureCode};
use tokio_rustls::rustls;

use crate::reached::FetchProgress;
use crate::resolve::LookupError;

/// Why a fetch failed. Its text is public; the private cause is its `source`.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The file could not be fetched: a name that does not resolve, a closed or filtered port, a
    /// bad certificate, any status but 200. [`FetchProgress`] says which, as far as a client may know.
    #[error("{}", FailureCode::ReferenceUnreachable.sentence())]
    Unreachable(#[source] FetchCause),
    /// The URL points to an address or port that the service does not use. Nothing was sent there.
    #[error("{}", FailureCode::ReferenceForbiddenAddress.sentence())]
    Forbidden(#[source] FetchCause),
    /// The file is larger than allowed, as declared or as sent.
    #[error("{}", FailureCode::ReferenceTooLarge.sentence())]
    TooLarge,
    /// The connection was established, but the bytes arrived too slowly.
    #[error("{}", FailureCode::ReferenceTimeout.sentence())]
    Timeout(#[source] FetchCause),
    /// The file could not be written.
    #[error("{}", FailureCode::StorageFailed.sentence())]
    Storage(#[source] io::Error),
    /// The service cannot fetch right now: a queue or a budget is exhausted, or the system has no
    /// descriptors left. The reference is not at fault; the same fetch may succeed later.
    #[error("the reference cannot be fetched right now")]
    Later(#[source] FetchCause),
}

impl FetchError {
    /// The failure shown to the client. The sentence begins in lower case because the name of the
    /// reference precedes it.
    pub fn failure(&self) -> Failure {
        let code = match self {
            Self::Unreachable(_) | Self::Later(_) => FailureCode::ReferenceUnreachable,
            Self::Forbidden(_) => FailureCode::ReferenceForbiddenAddress,
            Self::TooLarge => FailureCode::ReferenceTooLarge,
            Self::Timeout(_) => FailureCode::ReferenceTimeout,
            Self::Storage(_) => FailureCode::StorageFailed,
        };
        match (self, self.reached()) {
            // The code alone says more: the fetch never began.
            (Self::Forbidden(_), _) => {
                Failure::new(code, "the URL leads to an address that is not allowed.")
            }
            (_, Some(reached)) => Failure::new(code, format!("{reached}.")),
            (_, None) => code.into(),
        }
    }

    /// Whether the reference or its host is at fault. Otherwise the service is, and the task should
    /// wait.
    pub const fn is_of_reference(&self) -> bool {
        !matches!(self, Self::Storage(_) | Self::Later(_))
    }

    /// Whether the host failed in a way that may pass: the same fetch may succeed soon. Everything
    /// that a client sees as [`FetchProgress::NoAnswer`] is, so that the number of tries does not tell a
    /// closed port from a filtered one.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable(cause) if cause.is_transient())
    }

    /// How far the fetch got, for the client; `None` if the service is at fault.
    pub fn reached(&self) -> Option<FetchProgress> {
        match self {
            Self::Unreachable(cause) | Self::Forbidden(cause) | Self::Timeout(cause) => {
                Some(cause.reached())
            }
            Self::TooLarge => Some(FetchProgress::TooLarge),
            Self::Storage(_) | Self::Later(_) => None,
        }
    }

    /// The minimum wait before the next attempt: for [`FetchError::Later`], and where the host asked
    /// for one.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Later(FetchCause::Budget { frees_after }) => Some(*frees_after),
            Self::Later(_) => Some(RETRY_SOON),
            Self::Unreachable(FetchCause::Status { retry_after, .. }) => *retry_after,
            _ => None,
        }
    }
}

/// How soon a full queue may have room again.
const RETRY_SOON: Duration = Duration::from_secs(5);

/// The cause, for the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchCause {
    /// Not a URL.
    #[error("not a URL: {0}")]
    Url(#[source] url::ParseError),
    /// Neither http nor https.
    #[error("unsupported scheme {0:?}")]
    Scheme(String),
    /// The URL contains a user or a password.
    #[error("the URL contains user information")]
    UserInfo,
    /// The URL cannot be sent in HTTP/1.1.
    #[error("the URL does not form a valid request line")]
    RequestLine(#[source] hyper::http::Error),
    /// A privileged port other than 80 and 443.
    #[error("port {0} is neither 80, 443 nor at least 1024")]
    Port(u16),
    /// An address that is not public.
    #[error("{host} is {address}: {reason}")]
    Address {
        /// The host as parsed.
        host: String,
        /// The address and port that would have been dialled.
        address: SocketAddr,
        /// Why the address is not public.
        reason: &'static str,
    },
    /// The system did not list the addresses of this machine.
    #[error("listing this machine's own addresses failed")]
    Interfaces(#[source] io::Error),
    /// The resolver returned no addresses.
    #[error("{host} does not resolve")]
    Resolve {
        /// The host as parsed.
        host: String,
        /// The resolver's error.
        #[source]
        source: LookupError,
    },
    /// Too many connections to this host; no turn in time.
    #[error("too many connections to {0}; none became free in time")]
    HostBusy(String),
    /// The project has reached its bytes per hour.
    #[error("the project has reached its fetch limit for this hour")]
    Budget {
        /// The earliest time until there is room again.
        frees_after: Duration,
    },
    /// The name exists but has no address.
    #[error("{0} has no address")]
    NoAddress(String),
    /// Refused, reset or unreachable.
    #[error("connecting to {address} failed")]
    Connect {
        /// The dialled address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The connection ended at this machine, although no interface has the address.
    #[error("{0} leads to this machine itself")]
    Itself(SocketAddr),
    /// A host that cannot appear in a certificate.
    #[error("the host is not a valid TLS server name")]
    TlsName,
    /// The handshake failed: not TLS, or an invalid certificate.
    #[error("TLS handshake with {address} failed")]
    Tls {
        /// The dialled address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Look-up, connection and handshake took too long.
    #[error("connecting to {0} timed out")]
    ConnectTimeout(String),
    /// The peer does not speak HTTP/1.1, sends headers without end, or closed the connection before
    /// their end.
    #[error("the HTTP exchange failed")]
    Http(#[source] hyper::Error),
    /// The connection broke within the body, or the body is not valid HTTP/1.1.
    #[error("the body broke off after {bytes} bytes")]
    Body {
        /// The bytes received.
        bytes: u64,
        /// The bytes that the answer declared.
        declared: Option<u64>,
        /// The cause.
        #[source]
        source: hyper::Error,
    },
    /// A status other than 200 and the redirects.
    #[error("the answer has status {status}")]
    Status {
        /// The status.
        status: u16,
        /// The wait that the host asked for.
        retry_after: Option<Duration>,
    },
    /// A redirect without a valid location.
    #[error("the redirect has no readable Location")]
    Location,
    /// A redirect from https to http.
    #[error("the redirect leads from https to http")]
    Downgrade,
    /// More redirects than allowed.
    #[error("more than {0} redirects")]
    Redirects(usize),
    /// The body has a coding that is not undone.
    #[error("the body is encoded as {0:?}")]
    Encoding(Option<&'static str>),
    /// The compressed body is damaged.
    #[error("the body cannot be unpacked")]
    Damaged(#[source] io::Error),
    /// The whole fetch took too long.
    #[error("the fetch timed out")]
    TotalTimeout,
    /// The body arrived too slowly.
    #[error("the body is slower than {bytes_min} bytes in {window_ms} ms")]
    Rate {
        /// The minimum number of bytes.
        bytes_min: u64,
        /// The time in which they should have arrived.
        window_ms: u128,
    },
}

impl FetchCause {
    /// How far the fetch got. Forbidden addresses, closed ports, filtered ports and ports that
    /// speak another protocol all look the same: a task must not work as a port scanner.
    fn reached(&self) -> FetchProgress {
        match self {
            Self::Url(_) | Self::Scheme(_) | Self::UserInfo | Self::RequestLine(_) => {
                FetchProgress::NotAsked
            }
            Self::Resolve {
                source: LookupError::NoSuchName,
                ..
            }
            | Self::NoAddress(_) => FetchProgress::NoSuchHost,
            Self::Resolve { .. } => FetchProgress::LookupFailed,
            Self::TlsName => FetchProgress::BadCertificate,
            Self::Tls { source, .. } if is_certificate(source) => FetchProgress::BadCertificate,
            Self::Status { status, .. } => FetchProgress::Answered(*status),
            Self::Body { source, .. } if is_malformed(source) => FetchProgress::Malformed,
            Self::Body {
                bytes, declared, ..
            } => FetchProgress::BrokeOff {
                bytes: *bytes,
                declared: *declared,
            },
            Self::Location => FetchProgress::RedirectedNowhere,
            Self::Downgrade => FetchProgress::Downgraded,
            Self::Redirects(most) => FetchProgress::RedirectedTooOften(*most),
            Self::Encoding(name) => FetchProgress::Encoded(*name),
            Self::Damaged(_) => FetchProgress::Damaged,
            Self::TotalTimeout => FetchProgress::TooLate,
            Self::Rate { .. } => FetchProgress::TooSlow,
            Self::Tls { .. }
            | Self::Http(_)
            | Self::Port(_)
            | Self::Address { .. }
            | Self::Itself(_)
            | Self::Connect { .. }
            | Self::ConnectTimeout(_)
            | Self::Interfaces(_)
            | Self::HostBusy(_)
            | Self::Budget { .. } => FetchProgress::NoAnswer,
        }
    }

    /// Whether the host may do better in a moment. Refusals, content that cannot be used, a name
    /// that does not exist and a bad certificate stay as they are; slowness has cost enough time.
    fn is_transient(&self) -> bool {
        match self {
            Self::Status { status, .. } => is_transient_status(*status),
            Self::Tls { source, .. } => !is_certificate(source),
            Self::Resolve { source, .. } => {
                matches!(source, LookupError::Failed(_) | LookupError::TimedOut)
            }
            Self::Connect { .. } | Self::ConnectTimeout(_) | Self::Http(_) | Self::Body { .. } => {
                true
            }
            _ => false,
        }
    }
}

/// Statuses that ask for another try, and those of a server in trouble. 500 is among them: object
/// stores send it for a moment, and their documentation asks clients to retry. 501 and 505 do not
/// change.
const fn is_transient_status(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502..=504 | 506..=599)
}

/// Whether the peer sent bytes that are no HTTP body, rather than too few.
fn is_malformed(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref());
    cause.is_some_and(|cause: &io::Error| {
        matches!(
            cause.kind(),
            ErrorKind::InvalidInput | ErrorKind::InvalidData
        )
    })
}

/// Whether the certificate failed the handshake: then there is a web server.
fn is_certificate(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}

/// Whether the system ran out of resources for connections, which is no fault of the reference.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let numbers = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error
        .raw_os_error()
        .is_some_and(|number| numbers.contains(&number))
}
