//! What a commit depends on: settings that an operator may have changed for a role, a database or the server.

use kinora_store::conformance::bench::Bench as _;
use kinora_store::{OpenOptions, open, unsafe_settings};
use kinora_testkit::postgres::{Server, Settings};

use crate::harness::{database, open_now};

/// Notes a setting at the end of each transaction that changes a lane's row: all that are acknowledged.
fn note(url: &str, setting: &str) {
    let trigger = format!(
        "CREATE TABLE noted (setting text); \
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO noted VALUES (current_setting('{setting}')); RETURN NULL; END $$; \
         CREATE CONSTRAINT TRIGGER noted AFTER INSERT OR UPDATE ON lanes DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION note(); \
         CREATE CONSTRAINT TRIGGER noted AFTER UPDATE ON queue DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION note()"
    );
    Server::shared().run(url, &trigger);
}

/// What commits have of `setting` when the database has this setting.
async fn noted(setting: &str, default: (&str, &str)) -> String {
    let (url, server) = (database().await, Server::shared());
    let name = url.rsplit('/').next().unwrap();
    tokio::task::block_in_place(|| {
        note(&url, setting);
        let (default, value) = default;
        let set = format!("ALTER DATABASE {name} SET {default} = '{value}'");
        server.run(&url, &set);
    });
    let site = open_now(&url).await;
    site.submit(1, "one").await;
    let claim = site.claim_one().await;
    site.complete(&claim).await.unwrap();
    tokio::task::block_in_place(|| server.run(&url, "SELECT DISTINCT setting FROM noted"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p01_a_commit_is_synced_whatever_the_default_of_a_role_is() {
    for (default, used) in [
        ("off", "on"),
        ("on", "on"),
        ("local", "local"),
        ("remote_write", "remote_write"),
        ("remote_apply", "remote_apply"),
    ] {
        let noted = noted("synchronous_commit", ("synchronous_commit", default));
        assert_eq!(noted.await, used, "{default}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_see_what_is_committed_whatever_the_default_isolation_is() {
    for default in ["repeatable read", "serializable"] {
        let default = ("default_transaction_isolation", default);
        let used = noted("transaction_isolation", default).await;
        assert_eq!(used, "read committed", "{default:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_that_begin_at_the_same_time_all_open_the_store() {
    let url = database().await;
    let name = url.rsplit('/').next().unwrap();
    let set = format!("ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'");
    tokio::task::block_in_place(|| Server::shared().run(&url, &set));
    for _ in 0..5 {
        let begun = (0..4).map(|_| {
            let url = url.clone();
            let clock = std::sync::Arc::new(kinora_contract::ManualClock::at(0));
            tokio::spawn(async move { open(&url, &OpenOptions::new(clock)).await.map(drop) })
        });
        for opened in futures_util::future::join_all(begun).await {
            opened.unwrap().unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p01_a_server_that_does_not_sync_is_named() {
    let of = async |server: &Server| {
        let url = tokio::task::block_in_place(|| server.database());
        unsafe_settings(&url).await.unwrap()
    };
    assert_eq!(of(Server::shared()).await, ["fsync = off"]);
    let torn = tokio::task::block_in_place(|| {
        Server::start(Settings {
            fsync: true,
            more: vec!["full_page_writes=off".to_owned()],
            ..Settings::default()
        })
    });
    assert_eq!(of(&torn).await, ["full_page_writes = off"]);
}
