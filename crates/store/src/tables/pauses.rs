//! The table of pauses: one row for each model that was ever paused, with an empty name for all models.

use kinora_contract::UnixMs;

use crate::Pause;
use crate::sql::{SqlQuery, SqlRow, SqlScript, TypedQuery, UnreadableValue};

/// The name in the table.
fn stored_name(model: Option<&str>) -> &str {
    model.unwrap_or("")
}

/// Asks for the pauses that there are, sorted by model.
pub(crate) fn current() -> TypedQuery<Pause> {
    let ask =
        "SELECT model, since_ms, reason FROM pauses WHERE since_ms IS NOT NULL ORDER BY model";
    TypedQuery {
        query: SqlQuery::new(ask),
        read: |row| {
            let model: String = row.get(0)?;
            Ok(Pause {
                model: Some(model).filter(|model| !model.is_empty()),
                since_ms: row.get(1)?,
                reason: row.get(2)?,
            })
        },
    }
}

/// Selects the models that are paused, or that were paused after `since_ms`; an empty name stands for
/// all models.
pub(crate) fn paused_since(since_ms: UnixMs) -> SqlQuery {
    let ask = "SELECT model FROM pauses WHERE since_ms IS NOT NULL OR ended_at_ms > $1";
    SqlQuery::new(ask).bind(since_ms)
}

/// Begins a pause.
#[derive(Debug)]
pub(crate) struct BeginPause(pub(crate) Pause);

impl SqlScript for BeginPause {
    type Output = ();

    fn statements(&self, _: UnixMs) -> Vec<SqlQuery> {
        let pause = &self.0;
        let begin = "INSERT INTO pauses AS p (model, since_ms, reason) VALUES ($1, $2, $3) \
                     ON CONFLICT (model) DO UPDATE SET since_ms = coalesce(p.since_ms, excluded.since_ms), \
                     reason = coalesce(excluded.reason, p.reason) RETURNING 1";
        let begin = SqlQuery::new(begin)
            .bind(stored_name(pause.model.as_deref()))
            .bind(pause.since_ms)
            .bind(pause.reason.clone());
        vec![begin]
    }

    fn output(&self, _: &[Vec<SqlRow>]) -> Result<(), UnreadableValue> {
        Ok(())
    }
}

/// Ends the pause of this model, or of all models, at this time. Returns whether there was one.
#[derive(Debug)]
pub(crate) struct EndPause(pub(crate) Option<String>, pub(crate) UnixMs);

impl SqlScript for EndPause {
    type Output = bool;

    fn statements(&self, _: UnixMs) -> Vec<SqlQuery> {
        let Self(model, now_ms) = self;
        let end = "UPDATE pauses SET since_ms = NULL, reason = NULL, ended_at_ms = $2 \
                   WHERE model = $1 AND since_ms IS NOT NULL RETURNING 1";
        let end = SqlQuery::new(end)
            .bind(stored_name(model.as_deref()))
            .bind(*now_ms);
        vec![end]
    }

    fn output(&self, answers: &[Vec<SqlRow>]) -> Result<bool, UnreadableValue> {
        Ok(answers.iter().any(|rows| !rows.is_empty()))
    }
}
