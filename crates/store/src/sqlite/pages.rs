//! Pages of a list: one query reads their rows in order, and memory supplies the state of cached
//! tasks. Unreadable rows are omitted, and do not end the list.

use std::sync::Arc;

use kinora_contract::lifecycle::Record;
use rusqlite::{Connection, Row, params};

use super::cache::Editions;
use super::fault::{Done, Fault};
use super::memory::Memory;
use super::rows;
use super::rows::{COLUMNS, at, int};
use crate::page::Filling;
use crate::{Order, Page, PageRequest};

/// Maximum number of unreadable rows that one page skips.
const LEFT_OUT_MAX: usize = 1_000;

/// A page, and the rows that it leaves out. The caller logs them: it knows which request asked.
pub(super) struct Reading {
    pub(super) page: Page,
    pub(super) unreadable: Vec<Unreadable>,
}

/// A row that cannot be read.
pub(super) struct Unreadable {
    pub(super) seq: Option<i64>,
    pub(super) error: String,
}

/// Reads a page.
pub(super) fn read(conn: &Connection, memory: &Memory, request: &PageRequest) -> Done<Reading> {
    // Taken before reading the rows: records published in the meantime are newer. A walk through
    // all tasks caches none, since it would push out those in use.
    let editions = request.after.is_none().then(|| memory.cache.editions());
    let after = match (request.after, request.order) {
        (Some(id), _) => id.to_string(),
        (None, Order::Ascending) => String::new(),
        // Sorts after every id.
        (None, Order::Descending) => "~".to_owned(),
    };
    let mut query = conn.prepare_cached(&sql(request.order))?;
    let limit = int((request.limit + LEFT_OUT_MAX) as u64).saturating_add(1);
    let mut rows = query.query(params![request.project, after, limit])?;
    let mut filling = Filling::up_to(request.limit);
    let (mut seen, mut unreadable) = (0, Vec::new());
    while let Some(row) = rows.next()? {
        seen += 1;
        let record = match known(row, memory, editions.as_ref()) {
            Err(Fault::Corrupt(error)) => {
                let seq = row.get(const { at("seq") }).ok();
                unreadable.push(Unreadable { seq, error });
                continue;
            }
            known => known?,
        };
        // It may have expired since the row was read.
        if request.lists(&record.task) && !filling.add(&record.task) {
            break;
        }
    }
    let mut page = filling.page();
    page.has_more |= seen == limit;
    Ok(Reading { page, unreadable })
}

fn sql(order: Order) -> String {
    let (compare, direction) = match order {
        Order::Ascending => (">", "ASC"),
        Order::Descending => ("<", "DESC"),
    };
    format!(
        "SELECT {COLUMNS} FROM tasks WHERE project = ?1 AND phase <> 'expired' AND id {compare} ?2 \
         ORDER BY id {direction} LIMIT ?3"
    )
}

/// The record of a row, from memory or from the row itself.
fn known(row: &Row<'_>, memory: &Memory, editions: Option<&Editions>) -> Done<Arc<Record>> {
    let id = rows::id(row)?;
    if let Ok(record) = memory.cache.get(id) {
        return Ok(record);
    }
    let record = Arc::new(rows::read(row)?);
    if let Some(editions) = editions {
        let edition = memory.cache.edition_of(editions, id);
        memory.cache.offer(id, &record, edition);
    }
    Ok(record)
}
