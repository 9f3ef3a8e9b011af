//! Which transaction wrote a row last. Two readings of a row that name the same one read the same row.

use std::error::Error;

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use super::NAMES;
use crate::postgres::fault::Done;

/// The system column `xmin`. Comparable between connections to one server, as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::postgres) struct Version(u32);

impl Version {
    /// Of the rows that the transaction with this number (`txid_current`) writes.
    pub(in crate::postgres) const fn of_transaction(number: u64) -> Self {
        Self((number % (1 << 32)) as u32)
    }

    /// As a value that the server compares with it.
    pub(in crate::postgres) const fn bits(self) -> i32 {
        self.0.cast_signed()
    }
}

impl<'a> FromSql<'a> for Version {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(u32::from_be_bytes(raw.try_into()?)))
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::XID
    }
}

/// Its place behind the columns of a record.
pub(in crate::postgres) const AT: usize = NAMES.len();

/// The columns of a record and its version.
pub(in crate::postgres) fn columns(table: &str) -> String {
    format!("{}, {table}.xmin", super::columns(table))
}

/// Reads the version behind the columns of a record.
pub(in crate::postgres) fn read(row: &Row) -> Done<Version> {
    Ok(row.try_get(AT)?)
}
