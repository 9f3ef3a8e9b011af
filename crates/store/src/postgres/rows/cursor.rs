//! Values of a row, one after another.

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::super::fault::{Done, corrupt};

/// Reads the columns of a row one after another.
pub(super) struct Cursor<'a> {
    row: &'a Row,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(row: &'a Row) -> Self {
        Self::at(row, 0)
    }

    /// Starts at this column.
    pub(super) const fn at(row: &'a Row, at: usize) -> Self {
        Self { row, at }
    }

    pub(super) fn next<T: FromSql<'a>>(&mut self) -> Done<T> {
        let at = self.at;
        self.at += 1;
        self.row
            .try_get(at)
            .map_err(|error| corrupt(format!("a task's row: {error}")))
    }

    pub(super) fn number(&mut self) -> Done<u64> {
        let value: i64 = self.next()?;
        unsigned(value)
    }

    pub(super) fn maybe(&mut self) -> Done<Option<u64>> {
        let value: Option<i64> = self.next()?;
        value.map(unsigned).transpose()
    }

    pub(super) fn small(&mut self) -> Done<u32> {
        let value: i64 = self.next()?;
        u32::try_from(value).map_err(|_| corrupt("a number is out of its range".to_owned()))
    }
}

fn unsigned(value: i64) -> Done<u64> {
    u64::try_from(value).map_err(|_| corrupt("a number is negative".to_owned()))
}
