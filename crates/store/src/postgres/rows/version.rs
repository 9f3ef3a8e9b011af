//! Which transaction wrote a row last. Two readings of a row that name the same one read the same row.

use std::error::Error;

use tokio_postgres::types::{FromSql, Type};

/// The system column `xmin`. Comparable between connections to one server, as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::postgres) struct Version(u32);

impl Version {
    /// Of the rows that the transaction with this number (`txid_current`) writes.
    pub(in crate::postgres) const fn of_transaction(number: u64) -> Self {
        Self((number % (1 << 32)) as u32)
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
