//! How far a fetch got, in terms that a client may see: no addresses, and nothing that
//! distinguishes a forbidden address from a closed port.

use std::fmt;

/// How far a fetch got before it failed. The text follows the name of a field, as in
/// `reference_images[1]: the host name does not exist`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reached {
    /// No request was sent: the URL, or one that it redirects to, is invalid.
    NotAsked,
    /// The host name does not exist, or has no address.
    NoSuchHost,
    /// The host name could not be looked up, at all or in time.
    LookupFailed,
    /// No web server: the address is forbidden, or the port is closed, filtered, or speaks another
    /// protocol.
    NoConnection,
    /// The server's certificate is not valid for its name.
    BadCertificate,
    /// A status other than 200 and the redirects.
    Answered(u16),
    /// The body is compressed, although the request did not allow it.
    Encoded,
    /// A redirect without a valid location.
    RedirectedNowhere,
    /// A redirect from https to http.
    Downgraded,
    /// More redirects than this number.
    RedirectedTooOften(usize),
    /// More bytes than allowed.
    TooLarge,
    /// The body arrived too slowly.
    TooSlow,
    /// The body did not arrive completely in time.
    TooLate,
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAsked => "the URL cannot be requested",
            Self::NoSuchHost => "the host name does not exist",
            Self::LookupFailed => "the host name could not be looked up",
            Self::NoConnection => "the server could not be reached",
            Self::BadCertificate => "the server's certificate is not valid for its name",
            Self::Answered(status) => return write!(f, "the server answered {status}"),
            Self::Encoded => "the server sent the file compressed",
            Self::RedirectedNowhere => "the server sent a redirect without a valid location",
            Self::Downgraded => "the server redirects from https to http",
            Self::RedirectedTooOften(most) => {
                return write!(f, "the server redirects more than {most} times");
            }
            Self::TooLarge => "the file is larger than allowed",
            Self::TooSlow => "the file arrived too slowly",
            Self::TooLate => "the file did not arrive in time",
        })
    }
}
