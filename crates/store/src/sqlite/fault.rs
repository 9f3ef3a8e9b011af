//! Internal faults: the private cause, and the resulting public error.

use std::fmt;

use rusqlite::{Error, ErrorCode};

use crate::StoreError;

/// A failure inside this store.
#[derive(Debug)]
pub(super) enum SqliteFault {
    /// SQLite failed; a retry may succeed.
    Sql(Error),
    /// Stored data cannot be read.
    Corrupt(String),
    /// A transaction was restarted too often; this is the last reason.
    GivenUp(String),
}

pub(super) type SqliteResult<T> = Result<T, SqliteFault>;

impl fmt::Display for SqliteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(error) => error.fmt(f),
            Self::Corrupt(text) | Self::GivenUp(text) => f.write_str(text),
        }
    }
}

impl From<Error> for SqliteFault {
    fn from(error: Error) -> Self {
        let unreadable = matches!(
            error,
            Error::FromSqlConversionFailure(..)
                | Error::IntegralValueOutOfRange(..)
                | Error::InvalidColumnType(..)
                | Error::Utf8Error(..)
        );
        let damaged = matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        );
        if unreadable || damaged {
            Self::Corrupt(error.to_string())
        } else {
            Self::Sql(error)
        }
    }
}

impl From<SqliteFault> for StoreError {
    fn from(fault: SqliteFault) -> Self {
        match fault {
            SqliteFault::Sql(error) => Self::Unavailable(Box::new(error)),
            SqliteFault::Corrupt(text) => Self::Corrupt(text),
            SqliteFault::GivenUp(text) => Self::Unavailable(text.into()),
        }
    }
}

impl From<serde_json::Error> for SqliteFault {
    fn from(error: serde_json::Error) -> Self {
        Self::Corrupt(error.to_string())
    }
}

impl From<rusqlite::types::FromSqlError> for SqliteFault {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Self::Corrupt(error.to_string())
    }
}
