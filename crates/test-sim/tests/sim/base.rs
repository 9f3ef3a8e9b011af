//! Where the tasks of a life are: in a file that goes with its process, or in a PostgreSQL database that stays.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use kinora_store::{
    OpenOptions, PostgresOptions, SqliteOptions, StoreHandles, TimeSource, migrate,
};
use kinora_testkit::postgres::Server;

use crate::clocks::SimClock;
use crate::moment::at_one_moment;
use crate::world::ATTEMPTS_MAX;

/// The store of a life.
#[derive(Clone, Debug)]
pub(crate) enum Base {
    /// In a file of the life's folder.
    Sqlite,
    /// In the database at this address, which has the schema.
    Postgres(String),
}

impl Base {
    /// A new database on the server that this program starts.
    pub(crate) fn new_database() -> Self {
        static TEMPLATE: OnceLock<String> = OnceLock::new();
        let server = Server::shared();
        let template = TEMPLATE.get_or_init(|| {
            let url = server.database();
            at_one_moment(migrate(&url)).unwrap();
            url.rsplit('/').next().unwrap().to_owned()
        });
        Self::Postgres(server.copy_of(template))
    }

    /// Opens the store, with tokens past all of its earlier openings. A `full` file may not grow.
    pub(crate) async fn open(
        &self,
        file: &Path,
        clock: Arc<SimClock>,
        token_stride: u64,
        full: bool,
    ) -> StoreHandles {
        let url = match self {
            Self::Sqlite => format!("sqlite:{}", file.display()),
            Self::Postgres(url) => url.clone(),
        };
        let sqlite = SqliteOptions {
            // Small, so that much is read from disk.
            finished_cached_bytes_max: 64 << 10,
            attempts_max: ATTEMPTS_MAX,
            // As large as it is: SQLite takes no less.
            pages_max: full.then_some(1),
            token_stride,
            on_the_spot: true,
            ..SqliteOptions::default()
        };
        // The witness compares what is there now.
        let postgres = PostgresOptions {
            time: TimeSource::Clock,
            cached_ms_max: 0,
            polled_ms_max: 0,
            totals_ms_max: 0,
            positions_ms_max: 0,
            notify_every_ms: 1,
            token_stride,
            ..PostgresOptions::default()
        };
        let options = OpenOptions {
            sqlite,
            postgres,
            ..OpenOptions::new(clock)
        };
        let opened = kinora_store::open(&url, &options).await;
        opened.expect("P11: the store opens")
    }
}
