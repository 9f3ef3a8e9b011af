//! Exports as lines of text, and imports of them.

use std::path::Path;
use std::sync::Arc;

use kinora_contract::ManualClock;
use kinora_store::conformance::Site;
use kinora_store::conformance::fixtures::NOW;
use kinora_store::{
    Export, Import, MOVED_AT_ONCE, MovedTask, OpenOptions, open, open_export, open_import,
};

/// All that an export holds, in its written form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) tasks: Vec<String>,
    pub(super) keys: Vec<String>,
    chores: Vec<String>,
    store: String,
}

fn lines<T: serde::Serialize>(of: &[T]) -> Vec<String> {
    let lines = of.iter().map(|one| serde_json::to_string(one).unwrap());
    lines.collect()
}

async fn read(mut export: Box<dyn Export>) -> Moved {
    let mut tasks = Vec::new();
    loop {
        let some = export.tasks().await.unwrap();
        assert!(some.len() <= MOVED_AT_ONCE);
        if some.is_empty() {
            break;
        }
        tasks.extend(some.into_iter().map(Result::unwrap));
    }
    Moved {
        tasks: lines(&tasks),
        keys: lines(&export.keys().await.unwrap()),
        chores: lines(&export.chores().await.unwrap()),
        store: lines(&[export.store().await.unwrap()]).remove(0),
    }
}

pub(super) async fn exported(url: &str) -> Moved {
    read(open_export(url).await.unwrap()).await
}

impl Moved {
    pub(super) fn tasks(&self) -> Vec<MovedTask> {
        let tasks = self.tasks.iter().map(|line| serde_json::from_str(line));
        tasks.collect::<Result<_, _>>().unwrap()
    }

    /// Puts everything but tasks, and looks at what there is then.
    pub(super) async fn put_rest(&self, import: &mut Box<dyn Import>) {
        let read = |lines: &[String]| format!("[{}]", lines.join(","));
        let keys: Vec<_> = serde_json::from_str(&read(&self.keys)).unwrap();
        let chores: Vec<_> = serde_json::from_str(&read(&self.chores)).unwrap();
        let store = serde_json::from_str(&self.store).unwrap();
        import.put_rest(&store, &keys, &chores).await.unwrap();
    }

    pub(super) async fn bring_to(&self, url: &str) {
        let mut import = open_import(url, "one").await.unwrap();
        assert_eq!(import.stored_up_to(), 0);
        for some in self.tasks().chunks(3) {
            import.put_tasks(some).await.unwrap();
        }
        self.put_rest(&mut import).await;
        assert_eq!(&read(import.read_back().await.unwrap()).await, self);
        import.finish().await.unwrap();
    }
}

pub(super) fn sqlite(folder: &Path, name: &str) -> String {
    format!("sqlite:{}", folder.join(name).join("kinora.db").display())
}

pub(super) async fn open_sqlite(url: &str) -> Site {
    let clock = Arc::new(ManualClock::at(NOW));
    let stores = open(url, &OpenOptions::new(clock.clone())).await.unwrap();
    Site::of(stores, clock)
}
