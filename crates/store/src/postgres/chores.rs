//! Operations on chores: note, lease, settle. Their times are wall time, since chores outlive the
//! process; a time too far ahead comes from a wrong clock and counts as past.

use kinora_contract::lifecycle::CallOff;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::batch::Batch;
use super::fault::Done;
use super::job::Operation;
use super::statement::Statement;
use crate::chores::{AHEAD_MS_MAX, DELETION_LEASE_MS};
use crate::stored::int;
use crate::{Chore, ChoreDone, ChoreKind, ChoreRequest, ChoreWork, Gap};

impl Operation for ChoreRequest {
    type Output = Vec<Chore>;

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<Vec<Chore>> {
        let now_ms = batch.now.wall_ms;
        let models = match &self.kind {
            ChoreKind::CallOff { models } => Some(models.clone()),
            ChoreKind::RemoveFile | ChoreKind::LookForOrphans => None,
        };
        let take = Statement::new(
            "UPDATE chores c SET due_ms = $5, token = nextval('chore_tokens'), attempts = c.attempts + 1 FROM (\
               SELECT number, due_ms FROM chores WHERE kind = $1 AND (due_ms <= $2 OR due_ms > $3) \
               AND ($4::text[] IS NULL OR model = ANY($4)) ORDER BY due_ms, number LIMIT $6 FOR UPDATE SKIP LOCKED\
             ) d WHERE c.number = d.number \
             RETURNING c.number, c.token, c.attempts, c.kind, c.subject, c.model, c.ticket, d.due_ms",
        )
        .text(name(&self.kind))
        .int(now_ms)
        .int(now_ms.saturating_add(AHEAD_MS_MAX))
        .bind(models, Type::TEXT_ARRAY)
        .int(now_ms.saturating_add(self.lease_ms))
        .int(self.count as u64);
        let rows = batch.query(take).await?;
        batch.wrote |= !rows.is_empty();
        let mut taken = Vec::new();
        for row in &rows {
            let due_ms: i64 = row.try_get(7)?;
            // Damaged ones wait for their next turn.
            taken.extend(read(row)?.map(|chore| (due_ms, chore)));
        }
        taken.sort_unstable_by_key(|(due_ms, chore)| (*due_ms, chore.number));
        Ok(taken.into_iter().map(|(_, chore)| chore).collect())
    }
}

/// Takes the chores that remove these files, leased to the process that deleted their task.
pub(super) async fn take_files(batch: &mut Batch<'_>, keys: Vec<String>) -> Done<Vec<Chore>> {
    let until_ms = batch.now.wall_ms.saturating_add(DELETION_LEASE_MS);
    let take = Statement::new(
        "INSERT INTO chores AS c (kind, subject, due_ms, token, attempts) \
         SELECT 'remove_file', subject, $2, nextval('chore_tokens'), 1 \
         FROM unnest($1) WITH ORDINALITY AS s(subject, place) ORDER BY place \
         ON CONFLICT (kind, subject) DO UPDATE SET due_ms = excluded.due_ms, token = excluded.token, \
         attempts = c.attempts + 1 RETURNING number, token, attempts, kind, subject, model, ticket",
    );
    let rows = batch.change(take.texts(keys.clone()).int(until_ms)).await?;
    let mut taken = Vec::new();
    for row in &rows {
        taken.extend(read(row)?);
    }
    let place = |chore: &Chore| match &chore.work {
        ChoreWork::RemoveFile(key) => keys.iter().position(|one| one == key),
        _ => None,
    };
    taken.sort_unstable_by_key(place);
    Ok(taken)
}

/// Notes files for removal, unless they are noted already.
pub(super) fn note_files(keys: Vec<String>) -> Statement {
    let note = "INSERT INTO chores (kind, subject) SELECT 'remove_file', subject \
                FROM unnest($1) WITH ORDINALITY AS s(subject, place) ORDER BY place \
                ON CONFLICT (kind, subject) DO NOTHING";
    Statement::new(note).texts(keys)
}

/// Notes an upstream job to call off.
pub(super) fn note_call_off(call_off: CallOff) -> Statement {
    let note = "INSERT INTO chores (kind, subject, model, ticket) VALUES ('call_off', $1, $2, $3) \
                ON CONFLICT (kind, subject) DO UPDATE SET model = excluded.model, ticket = excluded.ticket, \
                due_ms = 0, token = NULL, attempts = 0";
    let note = Statement::new(note).text(call_off.task.to_string());
    note.text(call_off.model)
        .bind(call_off.ticket.into_bytes(), Type::BYTEA)
}

/// Reads number, token, attempts, kind, subject, model and ticket.
fn read(row: &Row) -> Done<Option<Chore>> {
    let number: i64 = row.try_get(0)?;
    let (kind, subject): (&str, &str) = (row.try_get(3)?, row.try_get(4)?);
    let work = match kind {
        "remove_file" => Some(ChoreWork::RemoveFile(subject.to_owned())),
        "call_off" => call_off(subject, row.try_get(5)?, row.try_get(6)?).map(ChoreWork::CallOff),
        "look_for_orphans" => Some(ChoreWork::LookForOrphans),
        _ => None,
    };
    let Some(work) = work else {
        tracing::error!(number, "damaged chore skipped");
        return Ok(None);
    };
    let token: Option<i64> = row.try_get(1)?;
    let attempts: i64 = row.try_get(2)?;
    Ok(Some(Chore {
        number: number.unsigned_abs(),
        token: token.unwrap_or(0).unsigned_abs(),
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        work,
    }))
}

fn call_off(task: &str, model: Option<String>, ticket: Option<Vec<u8>>) -> Option<CallOff> {
    Some(CallOff {
        task: task.parse().ok()?,
        model: model?,
        ticket: String::from_utf8(ticket?).ok()?,
    })
}

const fn name(kind: &ChoreKind) -> &'static str {
    match kind {
        ChoreKind::RemoveFile => "remove_file",
        ChoreKind::CallOff { .. } => "call_off",
        ChoreKind::LookForOrphans => "look_for_orphans",
    }
}

/// Settles chores.
#[derive(Debug)]
pub(super) struct Settle(pub(super) Vec<ChoreDone>);

impl Operation for Settle {
    type Output = ();

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let (mut done, mut again) = ((vec![], vec![]), (vec![], vec![], vec![]));
        for one in &self.0 {
            let (number, token) = (int(one.chore.number), int(one.chore.token));
            if let Some(after_ms) = one.again_after_ms {
                again.0.push(number);
                again.1.push(token);
                again
                    .2
                    .push(int(batch.now.wall_ms.saturating_add(after_ms)));
            } else {
                done.0.push(number);
                done.1.push(token);
            }
        }
        if !done.0.is_empty() {
            let remove = "DELETE FROM chores c USING unnest($1, $2) AS n(number, token) \
                          WHERE c.number = n.number AND c.token = n.token";
            let remove = Statement::new(remove).ints(done.0).ints(done.1);
            batch.change(remove).await?;
        }
        if !again.0.is_empty() {
            let free = "UPDATE chores c SET due_ms = n.due_ms, token = NULL \
                        FROM unnest($1, $2, $3) AS n(number, token, due_ms) \
                        WHERE c.number = n.number AND c.token = n.token";
            let free = Statement::new(free).ints(again.0).ints(again.1);
            batch.change(free.ints(again.2)).await?;
        }
        Ok(())
    }
}

/// Confirms that no files of tasks in these gaps remain.
#[derive(Debug)]
pub(super) struct CloseGaps(pub(super) Vec<Gap>);

impl Operation for CloseGaps {
    type Output = ();

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let close = "DELETE FROM gaps WHERE after_ms = ANY($1)";
        let beginnings = self.0.iter().map(|gap| int(gap.after_ms)).collect();
        batch.change(Statement::new(close).ints(beginnings)).await?;
        Ok(())
    }
}
