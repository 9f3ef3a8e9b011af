//! Internal faults: the private cause, and the public error that it becomes.

use std::error::Error as _;
use std::future::Future;
use std::time::Duration;

use tokio_postgres::Error;
use tokio_postgres::error::{Severity, SqlState};

use crate::StoreError;

/// A failure in this store.
#[derive(Debug)]
pub(super) enum PostgresFault {
    /// The server refused a statement, or the connection broke.
    Sql(Error),
    /// One job failed; the transaction continues without it.
    Job(StoreError),
}

pub(super) type PostgresResult<T> = Result<T, PostgresFault>;

impl From<Error> for PostgresFault {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for PostgresFault {
    fn from(error: StoreError) -> Self {
        Self::Job(error)
    }
}

impl From<serde_json::Error> for PostgresFault {
    fn from(error: serde_json::Error) -> Self {
        corrupt(error.to_string())
    }
}

impl From<PostgresFault> for StoreError {
    fn from(fault: PostgresFault) -> Self {
        match fault {
            PostgresFault::Job(error) => error,
            PostgresFault::Sql(error) => unavailable(&message_of(&error)),
        }
    }
}

/// A stored value that this program does not understand.
pub(super) const fn corrupt(text: String) -> PostgresFault {
    PostgresFault::Job(StoreError::Corrupt(text))
}

pub(super) fn unavailable(text: &str) -> StoreError {
    StoreError::Unavailable(text.into())
}

/// A copy of the error, for another caller.
pub(super) fn duplicate(error: &StoreError) -> StoreError {
    match error {
        StoreError::LeaseLost(lost) => StoreError::LeaseLost(*lost),
        StoreError::Corrupt(text) => StoreError::Corrupt(text.clone()),
        StoreError::Unavailable(cause) => unavailable(&cause.to_string()),
    }
}

/// The server's message, or the reason that there is none. Neither ever repeats a password.
pub(super) fn message_of(error: &Error) -> String {
    if let Some(refusal) = error.as_db_error() {
        return format!("{} ({})", refusal.message(), refusal.code().code());
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        text = format!("{text}: {one}");
        cause = one.source();
    }
    text
}

/// Whether the server refused a statement and kept the connection, which proves that the statement's
/// transaction was not committed. Two answers prove nothing: a server that shuts down may send its farewell
/// (severity FATAL) in place of the answer to a commit that it has done, and a pooler that reports a lost
/// server (class 08) does not know the outcome either.
pub(super) fn is_refusal(error: &Error) -> bool {
    error.as_db_error().is_some_and(|refusal| {
        refusal.parsed_severity() == Some(Severity::Error)
            && !refusal.code().code().starts_with("08")
    })
}

/// Whether the same transaction may succeed if it is repeated.
pub(super) fn is_transient(error: &Error) -> bool {
    let passing = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    error.code().is_some_and(|code| passing.contains(code))
}

/// Whether a named statement became unusable: a migration changed the columns of its answer, or the server
/// has forgotten it. The remedy is a new connection.
pub(super) fn is_outdated(error: &Error) -> bool {
    let outdated = [
        SqlState::FEATURE_NOT_SUPPORTED,
        SqlState::INVALID_SQL_STATEMENT_NAME,
    ];
    error.code().is_some_and(|code| outdated.contains(code))
}

/// Whether the connection is unusable, or the server does not accept writes.
pub(super) fn is_broken(error: &Error) -> bool {
    let Some(code) = error.code() else {
        return true;
    };
    // Classes of <https://www.postgresql.org/docs/current/errcodes-appendix.html>: connection exceptions,
    // insufficient resources, operator intervention, system and internal errors. A cancelled query (57014)
    // is in class 57 but only means that its time ran out. A server that became a standby only reads.
    let class = code.code().get(..2).unwrap_or_default();
    matches!(class, "08" | "53" | "57" | "58" | "XX") && *code != SqlState::QUERY_CANCELED
        || *code == SqlState::READ_ONLY_SQL_TRANSACTION
        || *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
}

/// The reason reported if a time limit ran out.
pub(super) const NO_ANSWER: &str = "the server does not answer";

/// Waits for an answer, but no longer than `limit`.
pub(super) async fn with_timeout<T>(
    limit: Duration,
    asked: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let answer = tokio::time::timeout(limit, asked).await;
    answer.unwrap_or_else(|_| Err(unavailable(NO_ANSWER)))
}

/// The error after the store was closed.
pub(super) fn closed_error() -> StoreError {
    unavailable("the store is closed")
}
