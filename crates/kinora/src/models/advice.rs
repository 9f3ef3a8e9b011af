//! What a failed download means for a person at a terminal, and what to do about it.

use kinora_download::{Error, Source};

use super::size::size;
use crate::config::Weights;
use crate::failure::{Exit, Failure};
use crate::table::printable;

/// Explains why the file of `source` could not be downloaded.
pub(super) fn explained(error: &Error, source: &Source, weights: &Weights) -> Failure {
    let path = source.path.display();
    let what = match error {
        Error::Room {
            folder,
            needed,
            free,
        } => format!(
            "the file system of {} has {} free, and {} are needed",
            folder.display(),
            size(*free),
            size(*needed)
        ),
        other => printable(&other.to_string()),
    };
    let advice = advice(error, source, weights);
    Failure::new(format!("{path}: {what}. {advice}")).exit(exit(error))
}

fn advice(error: &Error, source: &Source, weights: &Weights) -> String {
    match error {
        Error::Status { status: 401 | 403, .. } if weights.has_token() => format!(
            "The token for {} does not open it: check the token and its permissions, and accept the licence on the \
             publisher's page.",
            weights.token_origin
        ),
        Error::Status { status: 401 | 403, .. } => format!(
            "The publisher may hand it out to known accounts only: accept the licence on its page, make a token \
             that may read, and set weights.token_file and weights.token_origin = \"{}\".",
            source.url.origin().ascii_serialization()
        ),
        Error::Status { status: 404 | 410, .. } => {
            "The publisher has moved or removed it: correct its url in the configuration.".to_owned()
        }
        Error::Hash { .. } => "Nothing was kept. If the publisher has replaced the file on purpose, correct its sha256 \
                               in the configuration; otherwise do not use it, and try another mirror."
            .to_owned(),
        Error::Length { .. } => "If the publisher has replaced the file on purpose, correct its bytes and sha256 in the \
                                 configuration; otherwise try another mirror."
            .to_owned(),
        Error::Room { .. } => "Free some, or name another folder in the configuration.".to_owned(),
        Error::Busy(_) => "Wait until it has ended.".to_owned(),
        Error::File { .. } => "Give this user access to it, or name another folder in the configuration.".to_owned(),
        Error::Options(_) => "Correct the section [weights] of the configuration.".to_owned(),
        _ => "Run the same command again to go on where it stopped.".to_owned(),
    }
}

fn exit(error: &Error) -> Exit {
    match error {
        Error::Options(_) => Exit::Usage,
        Error::Status { status, .. } if *status < 500 => Exit::Refused,
        Error::Connect { .. }
        | Error::Broken(_)
        | Error::Stalled(_)
        | Error::Status { .. }
        | Error::Changed
        | Error::Answer(_) => Exit::Unreachable,
        _ => Exit::Failed,
    }
}
