//! Services whose stores are PostgreSQL and S3: `KINORA_E2E_STORE=postgres+s3` asks for it. Each data folder then has a
//! database and a part of a bucket of its own; the server of each is shared by all tests of a run.

use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use kinora_testkit::postgres::Server as Postgres;
use kinora_testkit::s3::TestS3;

use crate::binary::kinora_binary;

/// The only value of the variable; it is absent otherwise.
const POSTGRES_AND_S3: &str = "postgres+s3";

/// Whether services have their stores there. Their files and tables are not in the data folder.
pub fn stores_are_apart() -> bool {
    static APART: OnceLock<bool> = OnceLock::new();
    *APART.get_or_init(|| match std::env::var("KINORA_E2E_STORE") {
        Ok(store) => {
            assert_eq!(store, POSTGRES_AND_S3, "no such store");
            true
        }
        Err(_) => false,
    })
}

/// Where the stores of one data folder are.
#[derive(Debug)]
pub(crate) struct Apart {
    database: String,
    results: String,
}

impl Apart {
    /// An empty store, as `kinora migrate` makes it.
    pub(crate) fn make() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let server = Postgres::shared();
        let database = server.copy_of(template());
        // An identity of its own, as if it had not been copied.
        let draw = "UPDATE queue SET identity = (random() * 9007199254740991)::bigint";
        server.run(&database, draw);
        Self {
            database,
            results: format!("s3://{}/{number}", TestS3::BUCKET),
        }
    }

    /// The variables of processes that use it.
    pub(crate) fn variables(&self) -> [(&'static str, String); 6] {
        static BUCKET: OnceLock<TestS3> = OnceLock::new();
        let bucket = BUCKET.get_or_init(TestS3::start);
        [
            ("KINORA_STORE_URL", self.database.clone()),
            ("KINORA_RESULTS_URL", self.results.clone()),
            ("KINORA_RESULTS_S3_ENDPOINT", bucket.endpoint()),
            ("KINORA_RESULTS_S3_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", TestS3::KEY_ID.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", TestS3::SECRET.to_owned()),
        ]
    }
}

/// The name of the database that all others are copies of: a migration takes longer than a copy.
fn template() -> &'static str {
    static TEMPLATE: OnceLock<String> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let url = Postgres::shared().database();
        let mut command = Command::new(kinora_binary());
        command.arg("migrate").env_clear();
        let migrated = command.env("KINORA_STORE_URL", &url).output().unwrap();
        assert!(migrated.status.success(), "{migrated:?}");
        url.rsplit('/').next().unwrap().to_owned()
    })
}
