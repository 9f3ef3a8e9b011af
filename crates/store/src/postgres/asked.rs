//! Questions of one round trip, and their answers.

use tokio_postgres::{Error, Row};

use super::session::Session;
use super::statement::Statement;

/// Statements that are sent together. The place of each is where its answer is found.
#[derive(Default)]
pub(super) struct Asked(Vec<Statement>);

impl Asked {
    pub(super) fn add(&mut self, statement: Statement) -> usize {
        self.0.push(statement);
        self.0.len() - 1
    }

    /// Adds one that is not always needed: each costs the server some work.
    pub(super) fn when(
        &mut self,
        is_needed: bool,
        statement: impl FnOnce() -> Statement,
    ) -> Option<usize> {
        is_needed.then(|| self.add(statement()))
    }

    pub(super) async fn send(self, session: &Session) -> Result<Answers, Error> {
        session.run_all(&self.0).await.map(Answers)
    }
}

/// The rows that statements returned.
pub(super) struct Answers(Vec<Vec<Row>>);

impl Answers {
    /// The rows of one statement; none of one that was not sent.
    pub(super) fn take(&mut self, place: Option<usize>) -> Vec<Row> {
        let answer = place.and_then(|place| self.0.get_mut(place));
        answer.map(std::mem::take).unwrap_or_default()
    }
}
