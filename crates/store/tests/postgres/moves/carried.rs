//! Exports as lines of text, and imports of them.

use std::path::Path;
use std::sync::Arc;

use kinora_contract::ManualClock;
use kinora_store::conformance::Site;
use kinora_store::conformance::fixtures::NOW;
use kinora_store::{
    COPIED_AT_ONCE, COPIED_TABLES, CopiedRow, CopiedTable, OpenOptions, StoreExport, StoreImport,
    open, open_export, open_import,
};

/// All that an export holds, in its written form: the lines of each table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Moved(Vec<(&'static str, Vec<String>)>);

async fn read(mut export: Box<dyn StoreExport>) -> Moved {
    let mut tables = Vec::new();
    for table in &COPIED_TABLES {
        let mut lines = Vec::new();
        loop {
            let rows = export.rows(table).await.unwrap();
            assert!(rows.len() <= COPIED_AT_ONCE);
            if rows.is_empty() {
                break;
            }
            lines.extend(rows.into_iter().map(|row| table.line(&row.unwrap())));
        }
        tables.push((table.name, lines));
    }
    Moved(tables)
}

pub(super) async fn exported(url: &str) -> Moved {
    read(open_export(url).await.unwrap()).await
}

pub(super) fn table(name: &str) -> &'static CopiedTable {
    let mut tables = COPIED_TABLES.iter();
    tables.find(|table| table.name == name).unwrap()
}

impl Moved {
    pub(super) fn lines(&self, name: &str) -> &[String] {
        let (_, lines) = self.0.iter().find(|(table, _)| *table == name).unwrap();
        lines
    }

    pub(super) fn rows(&self, name: &str) -> Vec<CopiedRow> {
        let lines = self.lines(name).iter();
        lines.map(|line| table(name).parse(line).unwrap()).collect()
    }

    /// Puts what is still missing, and looks at what there is then.
    pub(super) async fn put_rest(&self, import: &mut Box<dyn StoreImport>) {
        for (name, lines) in &self.0 {
            let stored = import.stored(table(name)).await.unwrap() as usize;
            assert!(stored <= lines.len(), "{name}");
            for some in self.rows(name)[stored..].chunks(3) {
                import.put(table(name), some).await.unwrap();
            }
        }
        import.put_sums().await.unwrap();
    }

    pub(super) async fn bring_to(&self, url: &str) {
        let mut import = open_import(url, "one").await.unwrap();
        for table in &COPIED_TABLES {
            assert_eq!(import.stored(table).await.unwrap(), 0, "{}", table.name);
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
