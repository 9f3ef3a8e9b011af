//! How far a fetch got, as a client may know it. The private half of a cause has no place here:
//! no address, and nothing that tells an address that is not asked from a port that is closed.

use std::fmt;

/// How far a fetch got before it failed. Its text follows the name of a field, as in
/// `reference_images[1]: the host name does not exist`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reached {
    /// Nobody was asked: the URL, or one that it redirects to, is none that is read.
    NotAsked,
    /// The host name does not exist, or has no address.
    NoSuchHost,
    /// The host name could not be looked up, or not in time.
    LookupFailed,
    /// No connection: the address is not asked, the port is closed, or a filter is in the way.
    NoConnection,
    /// A connection, and no TLS on it, or with a certificate that does not hold.
    NoTls,
    /// An answer with a status other than 200 and the redirects.
    Answered(u16),
    /// An answer that cannot be read: not HTTP/1.1, encoded, or broken off.
    Unreadable,
    /// Redirected too often, to nowhere, or from https to http.
    Redirected,
    /// More bytes than allowed.
    TooLarge,
    /// A connection on which the bytes came too slowly, or none did.
    TooSlow,
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAsked => "the URL cannot be requested",
            Self::NoSuchHost => "the host name does not exist",
            Self::LookupFailed => "the host name could not be looked up",
            Self::NoConnection => "the host could not be connected to",
            Self::NoTls => "no TLS session could be set up with the host",
            Self::Answered(status) => return write!(f, "the host answered {status}"),
            Self::Unreadable => "the host's answer could not be read",
            Self::Redirected => {
                "the host redirected too often, to no address, or from https to http"
            }
            Self::TooLarge => "the file is too large",
            Self::TooSlow => "the host sent the file too slowly",
        })
    }
}
