//! Reads, on one connection that pipelines many queries. Tasks requested at the same time share one
//! query.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::lifecycle::TaskRecord;
use kinora_contract::{Stopwatch, TaskId};
use tokio::sync::{Mutex, Semaphore, mpsc, oneshot};
use tokio_postgres::Row;

use super::cache::ReadStamp;
use super::connect::ServerConnector;
use super::fault::{NO_ANSWER, PostgresFault, closed_error, duplicate, is_outdated, unavailable};
use super::rows;
use super::session::ServerSession;
use super::session::{SqlStatement, read_time, select_time};
use super::shared::SharedState;
use crate::present_time::PresentTime;
use crate::{StoreError, commit_metrics};

/// Maximum number of tasks in one query.
const QUERY_TASKS_MAX: usize = 256;
/// Maximum number of queries in progress. Later requests join the next one.
const QUERIES_MAX: usize = 2;
/// Maximum number of callers that wait for a task; others wait for a place.
const QUEUED_MAX: usize = 4_096;

type TaskResult = Result<Option<Arc<TaskRecord>>, StoreError>;

/// A task to read, and the receiver of the answer.
type TaskQuery = (TaskId, QueryTarget);

/// The receiver of an answer.
#[derive(Debug)]
enum QueryTarget {
    /// A waiting caller.
    Caller(oneshot::Sender<TaskResult>),
    /// The cache alone, for later polls.
    Cache(ReadStamp),
}

/// Answers queries.
#[derive(Debug)]
pub(super) struct StoreReader {
    connection: Arc<ReadConnection>,
    asks: mpsc::Sender<TaskQuery>,
    shared: Arc<SharedState>,
}

/// The connection, which is made again after it breaks.
struct ReadConnection {
    connector: Arc<ServerConnector>,
    shared: Arc<SharedState>,
    /// Half of the time that a statement may take: clients wait for reads.
    limit: Duration,
    session: Mutex<Option<Arc<ServerSession>>>,
}

impl std::fmt::Debug for ReadConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

impl ReadConnection {
    async fn session(&self) -> Result<Arc<ServerSession>, StoreError> {
        let mut kept = self.session.lock().await;
        if let Some(session) = kept.as_ref().filter(|session| !session.is_closed()) {
            return Ok(session.clone());
        }
        let made = self.connector.session().await;
        let session = Arc::new(made?);
        *kept = Some(session.clone());
        Ok(session)
    }

    async fn query(&self, statement: SqlStatement) -> Result<Vec<Row>, StoreError> {
        let asked = async {
            let rows = match self.session().await?.read(&statement).await {
                Err(error) if is_outdated(&error) => {
                    *self.session.lock().await = None;
                    self.session().await?.read(&statement).await
                }
                rows => rows,
            };
            rows.map_err(|error| StoreError::from(PostgresFault::Sql(error)))
        };
        let watch = Stopwatch::start(&self.shared.clock);
        match tokio::time::timeout(self.limit, asked).await {
            Ok(answer) => {
                commit_metrics::read_took(watch.elapsed());
                answer
            }
            Err(_) => {
                // Answers on a connection come in the order of the queries, so all others there are
                // blocked too: drop it, and let the next query reconnect.
                *self.session.lock().await = None;
                Err(unavailable(NO_ANSWER))
            }
        }
    }
}

impl StoreReader {
    pub(super) fn start(connector: Arc<ServerConnector>, shared: Arc<SharedState>) -> Self {
        let connection = Arc::new(ReadConnection {
            connector,
            shared: shared.clone(),
            limit: Duration::from_millis(shared.options.statement_timeout_ms.into()) / 2,
            session: Mutex::default(),
        });
        let (asks, asked) = mpsc::channel(QUEUED_MAX);
        connection.connector.spawn(serve(connection.clone(), asked));
        Self {
            connection,
            asks,
            shared,
        }
    }

    /// Runs any query.
    pub(super) async fn query(&self, statement: SqlStatement) -> Result<Vec<Row>, StoreError> {
        let connection = self.connection.clone();
        let asked = async move { connection.query(statement).await };
        self.connection.connector.run(asked).await
    }

    /// The connector of the connection.
    pub(super) fn connector(&self) -> &ServerConnector {
        &self.connection.connector
    }

    /// The current record. An ended one may come from the cache
    /// ([`crate::PostgresOptions::cached_ms_max`]), and while the server cannot be reached also an older one
    /// ([`crate::PostgresOptions::last_known_ms_max`]).
    pub(super) async fn find(&self, id: TaskId) -> TaskResult {
        match self.shared.cache.get(id) {
            Some(known) => Ok(known),
            None => self.query_task(id).await,
        }
    }

    /// As [`Self::find`], for a poll, which may also get a slightly stale unfinished task
    /// ([`crate::PostgresOptions::polled_ms_max`]).
    pub(super) async fn poll(&self, id: TaskId) -> TaskResult {
        if let Some((known, refresh)) = self.shared.cache.poll(id) {
            if let Some(begun) = refresh {
                // If the queue is full, the refresh is dropped, and the next poll waits for its query.
                let _ = self.asks.try_send((id, QueryTarget::Cache(begun)));
            }
            return Ok(known);
        }
        // Before the query begins, so that a commit in between leaves its number in the entry.
        self.shared.cache.reserve(id);
        self.query_task(id).await
    }

    async fn query_task(&self, id: TaskId) -> TaskResult {
        let begun = self.shared.cache.begin();
        let answer = self.queue_query(id).await?;
        match answer.await.map_err(|_| closed_error())? {
            Ok(found) => Ok(self.shared.cache.store_result(id, found, begun)),
            // Serving it does not refresh its age.
            Err(error @ StoreError::Unavailable(_)) => {
                self.shared.cache.last_known(id).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// The present time, by which the store judges leases.
    pub(super) async fn present(&self) -> Result<PresentTime, StoreError> {
        let clock = &self.shared.server_clock;
        if let Some(own) = clock.local_present() {
            return Ok(own);
        }
        let asked = clock.start_reading();
        let answer = self.query(select_time()).await?;
        Ok(clock.present(read_time(&answer)?, asked))
    }

    /// The current records, in the order of `ids`.
    pub(super) async fn find_all(&self, ids: &[TaskId]) -> Result<Vec<TaskResult>, StoreError> {
        let mut answers = Vec::with_capacity(ids.len());
        // All are queued before the first answer is awaited, so that they share a query.
        for id in ids {
            answers.push(self.queue_query(*id).await?);
        }
        let mut all = Vec::with_capacity(ids.len());
        for answer in answers {
            match answer.await.map_err(|_| closed_error())? {
                Err(StoreError::Unavailable(error)) => return Err(StoreError::Unavailable(error)),
                found => all.push(found),
            }
        }
        Ok(all)
    }

    async fn queue_query(&self, id: TaskId) -> Result<oneshot::Receiver<TaskResult>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.asks.send((id, QueryTarget::Caller(reply))).await;
        sent.map_err(|_| closed_error())?;
        Ok(answer)
    }
}

async fn serve(connection: Arc<ReadConnection>, mut asked: mpsc::Receiver<TaskQuery>) {
    // Group reads, like group commits: while two queries are in progress, requests collect, and the next
    // query takes all of them. An idle reader asks at once; a busy one asks for up to 256 tasks at a time.
    let under_way = Arc::new(Semaphore::new(QUERIES_MAX));
    // The semaphore is never closed.
    while let Ok(permit) = under_way.clone().acquire_owned().await {
        let mut some = Vec::new();
        if asked.recv_many(&mut some, QUERY_TASKS_MAX).await == 0 {
            return;
        }
        let connection = connection.clone();
        tokio::spawn(async move {
            respond(connection, some).await;
            drop(permit);
        });
    }
}

async fn respond(connection: Arc<ReadConnection>, asked: Vec<TaskQuery>) {
    let ids = asked.iter().map(|(id, _)| *id).collect();
    let found = read_tasks(&connection, ids).await;
    for (id, asker) in asked {
        let one = match &found {
            Ok(found) => result_for(found, id),
            Err(error) => Err(duplicate(error)),
        };
        match asker {
            // The caller may have gone away.
            QueryTarget::Caller(reply) => drop(reply.send(one)),
            QueryTarget::Cache(begun) => {
                // After a failure the entry stays, and ends by its age.
                if let Ok(found) = one {
                    connection.shared.cache.store_result(id, found, begun);
                }
            }
        }
    }
}

fn result_for(found: &HashMap<TaskId, TaskResult>, id: TaskId) -> TaskResult {
    match found.get(&id) {
        Some(Ok(record)) => Ok(record.clone()),
        Some(Err(error)) => Err(duplicate(error)),
        None => Ok(None),
    }
}

async fn read_tasks(
    connection: &ReadConnection,
    ids: BTreeSet<TaskId>,
) -> Result<HashMap<TaskId, TaskResult>, StoreError> {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let text = format!(
        "SELECT {} FROM tasks t WHERE id = ANY($1)",
        rows::columns("t")
    );
    let rows = connection.query(SqlStatement::new(text).texts(ids)).await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        found.insert(
            rows::id(row)?,
            rows::read(row).map(Some).map_err(StoreError::from),
        );
    }
    Ok(found)
}
