//! How far a fetch got, in terms that a client may see: no addresses, and nothing that
//! distinguishes a forbidden address from a closed port.

use std::fmt;

/// How far a fetch got before it failed. The text follows the name of a field, as in
/// `reference_images[1]: the host name does not exist`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FetchProgress {
    /// No request was sent: the URL, or one that it redirects to, is invalid.
    NotAsked,
    /// The host name does not exist, or has no address.
    NoSuchHost,
    /// The host name could not be looked up, at all or in time.
    LookupFailed,
    /// No web server: the address is forbidden, or the port is closed, filtered, speaks another
    /// protocol, or hangs up without an answer. The sentence must be true of each.
    NoAnswer,
    /// The server's certificate is not valid for its name.
    BadCertificate,
    /// A status other than 200 and the redirects.
    Answered(u16),
    /// The connection ended within the body.
    BrokeOff {
        /// The bytes received.
        bytes: u64,
        /// The bytes that the answer declared.
        declared: Option<u64>,
    },
    /// The body is not valid HTTP.
    Malformed,
    /// The body is compressed in a way that is not undone; its name, if it is a usual one.
    Encoded(Option<&'static str>),
    /// The body is compressed, and damaged.
    Damaged,
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

impl fmt::Display for FetchProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAsked => "the URL cannot be requested",
            Self::NoSuchHost => "the host name does not exist",
            Self::LookupFailed => "the host name could not be looked up",
            Self::NoAnswer => "the server gave no valid HTTP answer",
            Self::BadCertificate => "the server's certificate is not valid for its name",
            Self::Answered(status) => return write!(f, "the server answered {status}"),
            Self::BrokeOff { bytes, declared } => {
                let received = received(*bytes, *declared);
                return write!(f, "the server closed the connection after {received}");
            }
            Self::Malformed => "the server sent a body that is not valid HTTP",
            Self::Encoded(None) => "the server sent the file compressed in an unknown way",
            Self::Encoded(Some(name)) => {
                return write!(f, "the server sent the file compressed by {name}");
            }
            Self::Damaged => "the server sent compressed data that is damaged",
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

/// As in `12 of 40 kB`. Rounded so that a part never looks like the whole.
fn received(bytes: u64, declared: Option<u64>) -> String {
    let (unit_bytes, unit) = if declared.unwrap_or(bytes) < 1_000 {
        (1, "bytes")
    } else {
        (1_000, "kB")
    };
    let part = bytes / unit_bytes;
    match declared.map(|whole| whole.div_ceil(unit_bytes)) {
        Some(whole) => format!("{part} of {whole} {unit}"),
        None => format!("{part} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_never_looks_like_the_whole() {
        for (bytes, declared, text) in [
            (12_345, Some(40_000), "12 of 40 kB"),
            (39_999, Some(40_000), "39 of 40 kB"),
            (39_001, Some(39_002), "39 of 40 kB"),
            (4, Some(100), "4 of 100 bytes"),
            (0, Some(30_000_000), "0 of 30000 kB"),
            (999, None, "999 bytes"),
            (65_536, None, "65 kB"),
        ] {
            let reached = FetchProgress::BrokeOff { bytes, declared };
            let sentence = format!("the server closed the connection after {text}");
            assert_eq!(reached.to_string(), sentence);
        }
    }
}
