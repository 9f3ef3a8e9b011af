//! `kinora import`: imports an export into an empty store and its results. Everything is read and
//! compared before the first change, and again after it is stored; until then no process can serve
//! the store. An interrupted import can be resumed.

use std::path::Path;
use std::sync::Arc;

use kinora_blobs::folder::BlobFolder;
use kinora_blobs::{BlobError, BlobStore, bulk};
use kinora_store::{COPIED_AT_ONCE, COPIED_TABLES, CopiedTable, MARKS, StoreImport, mark_key};

use super::{ExportManifest, FILES, FileTransfers, file_name, read_files, read_rows};
use crate::backup::RESULTS;
use crate::cli::{ImportArgs, MovedResults};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::print;
use crate::progress::ProgressLine;
use crate::{folder, shell_hint, store_access};

/// Imports an export, and prints the next step.
pub(crate) fn run(args: &ImportArgs) -> Result<(), Failure> {
    let config = store_access::config(&args.home)?;
    let manifest = ExportManifest::read(&args.source)?;
    store_access::runtime()?.block_on(import(args, &config, &manifest))?;
    print(&if args.json {
        manifest.json(&args.source, &[])
    } else {
        format!(
            "Imported {}; verified.\nUnfinished tasks run when the service starts, and idempotency keys, API keys and \
             result addresses go on working. Start it with the configuration that names this store:\n\n  {}\n",
            manifest.contents(),
            shell_hint::command("serve", &args.home)
        )
    });
    Ok(())
}

async fn import(
    args: &ImportArgs,
    config: &Config,
    manifest: &ExportManifest,
) -> Result<(), Failure> {
    // Reads all of the export before the first change, at the price of reading it twice: a damaged
    // export must not leave a half-filled store behind.
    let identity = verify_export(&args.source, manifest)?;
    let url = config.store_url();
    if !kinora_store::is_shared(&url) {
        folder::prepare(&config.data)?;
    }
    let blobs = kinora_blobs::open(&config.results_url(), &config.s3())
        .map_err(|error| Failure::because("The results cannot be opened", error))?;
    let job = ImportJob {
        folder: &args.source,
        manifest,
        mark: mark_key(identity),
        results: config.results_shown(),
        blobs,
    };
    job.refuse_other_results().await?;
    let store = kinora_store::open_import(&url, &manifest.id).await;
    let store = store.map_err(|error| Failure::because("The export cannot be imported", error))?;
    job.fill(store).await.map_err(|failure| {
        Failure::new(format!(
            "{failure}\nThe store stays closed until the import has ended. Run the command again: it goes on where it \
             stopped."
        ))
    })
}

/// Reads all of an export, and compares every part and file with its recorded length and hash.
/// Returns the identity of the exported store.
fn verify_export(folder: &Path, manifest: &ExportManifest) -> Result<u64, Failure> {
    let mut progress = ProgressLine::new().with_total(manifest.results.files);
    progress.show_activity("verifying the export");
    for name in COPIED_TABLES
        .iter()
        .map(file_name)
        .chain([FILES.to_owned()])
    {
        manifest.verify(folder, &name)?;
    }
    if manifest.results.mode == MovedResults::Copy {
        let files = BlobFolder::new(&folder.join(RESULTS));
        for file in read_files(folder)? {
            let file = file?;
            progress.step("files verified");
            let damaged = |why: &dyn std::fmt::Display| {
                let place = format!("The export is damaged: its file {}", file.key);
                Failure::because(place, why)
            };
            // A wrong length is known before all is read.
            let bytes = files
                .plain_bytes(&file.key)
                .map_err(|error| damaged(&error))?;
            if bytes != Some(file.bytes)
                || files.measure(&file.key).map_err(|error| damaged(&error))? != file
            {
                return Err(damaged(&"its length or SHA-256 has changed"));
            }
        }
    }
    let table = &COPIED_TABLES[0];
    for row in read_rows(folder, table)? {
        if let Some(identity) = row?.counter("identity") {
            return Ok(identity);
        }
    }
    Err(Failure::new(
        "The export is damaged: it has no identity.".to_owned(),
    ))
}

/// An import in progress.
struct ImportJob<'a> {
    folder: &'a Path,
    manifest: &'a ExportManifest,
    /// The key of the store's mark beside its results.
    mark: String,
    /// The location of the results, for people.
    results: String,
    blobs: Arc<dyn BlobStore>,
}

impl ImportJob<'_> {
    /// Refuses a result store that another store uses: each would treat the other's files as its own.
    async fn refuse_other_results(&self) -> Result<(), Failure> {
        let marks = bulk::keys(&*self.blobs, MARKS)
            .await
            .map_err(result_store_failure)?;
        if marks.iter().all(|mark| *mark == self.mark) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "Another store uses the results in {}: its mark {MARKS}* is there. Set results.url to a location that no \
             other store uses.",
            self.results
        )))
    }

    async fn fill(&self, mut store: Box<dyn StoreImport>) -> Result<(), Failure> {
        // Files before rows, as in normal operation: a row never names a file that is not there.
        self.put_files().await?;
        let mut progress = ProgressLine::new().with_total(self.manifest.tasks.total());
        for table in &COPIED_TABLES {
            self.put_rows(table, &mut *store, &mut progress).await?;
        }
        store.put_sums().await?;
        kinora_system::crash::point("import.filled");
        self.verify_rows(&mut *store).await?;
        // As the store would: it takes results without its mark for another store's.
        match self.blobs.put_bytes(&self.mark, Vec::new().into()).await {
            Ok(_) | Err(BlobError::Exists(_)) => {}
            Err(error) => return Err(result_store_failure(error)),
        }
        // Until here the store carries the mark of an unfinished import, and every process refuses
        // to open it. This removes the mark.
        Ok(store.finish().await?)
    }

    /// Stores every file that is still missing, and checks that all are there with the right contents.
    async fn put_files(&self) -> Result<(), Failure> {
        let copies = self.manifest.results.mode == MovedResults::Copy;
        let source = BlobFolder::new(&self.folder.join(RESULTS));
        let mut progress = ProgressLine::new().with_total(self.manifest.results.files);
        let mut transfers = FileTransfers::new();
        for file in read_files(self.folder)? {
            let file = file?;
            progress.step("files imported");
            let from = source.file(&file.key).map_err(result_store_failure)?;
            let (blobs, results) = (self.blobs.clone(), self.results.clone());
            let transfer = async move {
                // A file of the right length comes from an earlier run and is not sent again;
                // `holds` below compares its contents in any case.
                if copies
                    && blobs.head(&file.key).await.map_err(result_store_failure)?
                        != Some(file.bytes)
                {
                    blobs
                        .put_file(&file, &from)
                        .await
                        .map_err(result_store_failure)?;
                    kinora_system::crash::point("import.file");
                }
                let is_whole = blobs.holds(&file).await.map_err(|error| {
                    Failure::because(format!("The results in {results} cannot be read"), error)
                })?;
                is_whole.then_some(()).ok_or_else(|| {
                    Failure::new(format!(
                        "The file {} in the results in {results} differs from the export.",
                        file.key
                    ))
                })
            };
            transfers.start(transfer).await?;
        }
        while transfers.next().await?.is_some() {}
        Ok(())
    }

    /// Stores every row that is still missing.
    async fn put_rows(
        &self,
        table: &'static CopiedTable,
        store: &mut dyn StoreImport,
        progress: &mut ProgressLine,
    ) -> Result<(), Failure> {
        // Rows are stored in the order of their file, so the number of stored rows says where an
        // interrupted import has to go on.
        let stored = store.stored(table).await?;
        let mut rows =
            read_rows(self.folder, table)?.skip(usize::try_from(stored).unwrap_or(usize::MAX));
        loop {
            let page: Vec<_> = rows
                .by_ref()
                .take(COPIED_AT_ONCE)
                .collect::<Result<_, _>>()?;
            if page.is_empty() {
                return Ok(());
            }
            store.put(table, &page).await?;
            if table.is_tasks() {
                kinora_system::crash::point("import.tasks");
                page.iter().for_each(|_| progress.step("tasks imported"));
            }
        }
    }

    /// Reads every row back, and compares it with the export.
    async fn verify_rows(&self, store: &mut dyn StoreImport) -> Result<(), Failure> {
        ProgressLine::new().show_activity("verifying the store");
        let mut found = store.read_back().await.map_err(unread)?;
        for table in &COPIED_TABLES {
            // The store returns rows in the order of the export, so both are compared line by line
            // and neither is held in memory.
            let mut wanted = read_rows(self.folder, table)?;
            loop {
                let rows = found.rows(table).await.map_err(unread)?;
                if rows.is_empty() {
                    break;
                }
                for row in rows {
                    let line = table.line(&row.map_err(unread)?);
                    let wanted = wanted.next().transpose()?.map(|row| table.line(&row));
                    if wanted != Some(line) {
                        return Err(differs(table));
                    }
                }
            }
            if wanted.next().is_some() {
                return Err(differs(table));
            }
        }
        Ok(())
    }
}

fn result_store_failure(error: BlobError) -> Failure {
    Failure::because("The results could not be stored", error)
}

fn unread(error: impl std::fmt::Display) -> Failure {
    Failure::because("The store cannot be read back", error)
}

fn differs(table: &CopiedTable) -> Failure {
    let name = table.name;
    Failure::new(format!("The store differs from the export in its {name}."))
}
