//! A connection that is used again and again, with names for the statements that it is sent often: the server parses and
//! plans such a statement once. Only connections that lead to the server itself have names. A pooler in transaction mode
//! gives each transaction to another connection of its own, on which the same name may stand for another statement.

mod names;

use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use futures_util::future::join_all;
use tokio_postgres::{Client, Error, Row};

use self::names::{Names, Use};
use super::statement::Statement;

/// How the driver calls what the server has planned.
type Name = tokio_postgres::Statement;

/// A connection of a lane or a reader.
pub(super) struct Session {
    client: Client,
    /// `None`: statements have no names here.
    names: Option<Mutex<Names<Name>>>,
}

impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Session {
    pub(super) fn new(client: Client, has_names: bool) -> Self {
        Self {
            client,
            names: has_names.then(Mutex::default),
        }
    }

    /// As [`Statement::run`].
    pub(super) async fn run(&self, statement: &Statement) -> Result<Vec<Row>, Error> {
        let name = match self.uses(statement) {
            Use::Unnamed => return statement.run(self).await,
            Use::Named(name) => name,
            Use::New => self.name(statement).await?,
        };
        statement.run_as(self, &name).await
    }

    /// Sends all of these at once, and returns the rows of each. They are done in order; after a failure in a
    /// transaction the rest fails too.
    pub(super) async fn run_all(&self, statements: &[Statement]) -> Result<Vec<Vec<Row>>, Error> {
        let mut uses: Vec<Use<Name>> = statements.iter().map(|one| self.uses(one)).collect();
        // Before all others, which must not overtake each other.
        let new = statements.iter().zip(&mut uses);
        let new = new.filter(|(_, of)| matches!(of, Use::New));
        let named = new.map(async |(statement, of)| {
            *of = Use::Named(self.name(statement).await?);
            Ok(())
        });
        join_all(named)
            .await
            .into_iter()
            .collect::<Result<(), Error>>()?;
        let sent = statements
            .iter()
            .zip(&uses)
            .map(async |(statement, of)| match of {
                Use::Named(name) => statement.run_as(self, name).await,
                Use::New | Use::Unnamed => statement.run(self).await,
            });
        join_all(sent).await.into_iter().collect()
    }

    fn uses(&self, statement: &Statement) -> Use<Name> {
        let Some(names) = &self.names else {
            return Use::Unnamed;
        };
        let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
        match names.uses(statement.sql()) {
            Use::Named(name) if !statement.has_types(name.params()) => Use::Unnamed,
            found => found,
        }
    }

    async fn name(&self, statement: &Statement) -> Result<Name, Error> {
        let name = statement.prepare(self).await?;
        if let Some(names) = &self.names {
            let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
            names.keep(statement.sql(), name.clone());
        }
        Ok(name)
    }
}
