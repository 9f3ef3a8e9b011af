//! How far a fetch got, as a client may know it. The private half of a cause has no place here:
//! no address, and nothing that tells an address that is not asked from a port that is closed.

use std::fmt;

/// How far a fetch got before it failed. Its text follows the name of a field, as in
/// `reference_images[1]: the host name does not exist`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reached {
    /// No host was asked: the URL, or one that it redirects to, cannot be requested.
    NotAsked,
    /// The host name does not exist, or has no address.
    NoSuchHost,
    /// The host name could not be looked up, or not in time.
    LookupFailed,
    /// No web server: the address is not asked, the port is closed, filtered, or speaks something
    /// else.
    NoConnection,
    /// A server whose certificate does not hold for its name.
    BadCertificate,
    /// An answer with a status other than 200 and the redirects.
    Answered(u16),
    /// A body that is compressed, although nobody asked for that.
    Encoded,
    /// A redirect that names no place.
    RedirectedNowhere,
    /// A redirect from https to http.
    Downgraded,
    /// More redirects than this number.
    RedirectedTooOften(usize),
    /// More bytes than allowed.
    TooLarge,
    /// A connection on which the bytes came too slowly.
    TooSlow,
    /// A connection on which not all bytes came in time.
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
            Self::RedirectedNowhere => "the server answered a redirect to nowhere",
            Self::Downgraded => "the server redirects from https to http",
            Self::RedirectedTooOften(most) => {
                return write!(f, "the server redirects more than {most} times");
            }
            Self::TooLarge => "the file is larger than allowed",
            Self::TooSlow => "the file came too slowly",
            Self::TooLate => "the file did not arrive in time",
        })
    }
}
