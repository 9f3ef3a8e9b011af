//! `kinora export`: writes tasks, keys and results of a service into a folder that any kind of
//! store can import. The records are a snapshot; the results are copied afterwards, and a repeated
//! export copies only the missing ones.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kinora_blobs::folder::BlobFolder;
use kinora_blobs::sign::SigningSecret;
use kinora_blobs::{BlobError, BlobStore, bulk};
use kinora_contract::{Clock, StoredFile, hex};
use kinora_store::{
    COPIED_TABLES, COPIED_TASKS, COPIED_UPLOADS, CopiedRow, CopiedTable, StoreExport,
};

use super::{
    ExportManifest, ExportedResults, FILES, FORMAT, FileTransfers, TableWriter, file_name,
    read_rows,
};
use crate::backup::manifest::TaskCounts;
use crate::backup::staging::StagingFolder;
use crate::backup::{self, RESULTS};
use crate::cli::{ExportArgs, MovedResults};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::{count, first_names, print};
use crate::progress::ProgressLine;
use crate::signing::legacy_key_file;
use crate::system::{self, SystemClock};
use crate::{shell_hint, store_access};

/// Makes an export, and prints its contents.
pub(crate) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let config = store_access::config(&args.home)?;
    let url = config.store_url();
    if !kinora_store::is_shared(&url) && !args.accept_loss {
        backup::refuse_loss(&config, "export")?;
    }
    store_access::runtime()?.block_on(async {
        let store = kinora_store::open_export(&url).await;
        let store = store.map_err(|error| shell_hint::open_failure(error, "serve", &args.home))?;
        export(args, &config, store).await
    })
}

async fn export(
    args: &ExportArgs,
    config: &Config,
    store: Box<dyn StoreExport>,
) -> Result<(), Failure> {
    let staging = StagingFolder::resume(&args.dest)?;
    let mut job = ExportJob::new(args, config, staging.path())?;
    job.write_tables(store).await?;
    kinora_system::crash::point("export.records");
    job.copy_files().await?;
    job.manifest.write(job.to)?;
    let manifest = job.manifest;
    let to = staging.publish()?;
    let omitted = [
        ("task", "unreadable", manifest.unreadable),
        ("file", "of results missing", manifest.results.missing),
    ];
    let omitted = omitted.into_iter().filter(|(_, _, number)| *number > 0);
    let notes = omitted.map(|(one, how, number)| format!("{} {how}, omitted", count(number, one)));
    let notes: Vec<String> = notes.collect();
    print(&if args.json {
        manifest.json(&to, &notes)
    } else {
        let notes: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
        format!(
            "{notes}Exported {} to {}; verified.\nWhat the service accepts from now on is not in it: for a move, \
             it must be stopped. Bring the export into an empty store with `kinora import`.\n",
            manifest.contents(),
            to.display()
        )
    });
    Ok(())
}

/// An export in progress.
struct ExportJob<'a> {
    args: &'a ExportArgs,
    config: &'a Config,
    to: &'a Path,
    manifest: ExportManifest,
    /// Rows that cannot be read.
    damage: Vec<String>,
    /// Results that are missing or damaged.
    missing: Vec<String>,
    /// Keys of all files in the export.
    files: HashSet<String>,
}

impl<'a> ExportJob<'a> {
    fn new(args: &'a ExportArgs, config: &'a Config, to: &'a Path) -> Result<Self, Failure> {
        Ok(Self {
            args,
            config,
            to,
            manifest: ExportManifest {
                format: FORMAT,
                id: hex::text(&system::random::<16>()?),
                kinora: env!("CARGO_PKG_VERSION").to_owned(),
                made_at: SystemClock.now_ms() / 1000,
                tasks: TaskCounts::default(),
                keys: 0,
                unreadable: 0,
                results: ExportedResults {
                    mode: args.results,
                    from: config.results_shown(),
                    files: 0,
                    bytes: 0,
                    missing: 0,
                },
                parts: BTreeMap::new(),
            },
            damage: Vec::new(),
            missing: Vec::new(),
            files: HashSet::new(),
        })
    }

    /// Writes everything but the files, as a snapshot.
    async fn write_tables(&mut self, mut store: Box<dyn StoreExport>) -> Result<(), Failure> {
        ProgressLine::new().show_activity("exporting tasks");
        for table in &COPIED_TABLES {
            let mut writer = TableWriter::create(self.to.join(file_name(table)))?;
            loop {
                let rows = store.rows(table).await?;
                if rows.is_empty() {
                    break;
                }
                for row in rows {
                    match row {
                        Ok(row) => {
                            self.count_row(table, &row);
                            writer.add(&table.line(&row))?;
                        }
                        Err(error) => {
                            self.manifest.unreadable += u64::from(table.is_tasks());
                            self.damage.push(error.to_string());
                        }
                    }
                }
            }
            // Earlier versions kept the signing key in a file. It is exported as a row like a key
            // from the store, so that an import has one place to look.
            if table.name == "secrets" && writer.lines == 0 {
                let key = self.earlier_key()?;
                key.map_or(Ok(()), |row| writer.add(&table.line(&row)))?;
            }
            self.manifest.parts.insert(file_name(table), writer.end()?);
        }
        self.refuse_loss(
            "row",
            "cannot be read, so that no export would be whole",
            &self.damage,
            "Restore a backup; or delete them; or export without them by --accept-loss.",
        )
    }

    fn count_row(&mut self, table: &CopiedTable, row: &CopiedRow) {
        let tasks = &mut self.manifest.tasks;
        let count = match (table.name, &*row.phase()) {
            ("api_keys", _) => &mut self.manifest.keys,
            ("tasks", "completed") => &mut tasks.completed,
            ("tasks", "failed") => &mut tasks.failed,
            ("tasks", "expired") => &mut tasks.expired,
            ("tasks", _) => &mut tasks.unfinished,
            _ => return,
        };
        *count += 1;
    }

    /// The key that signs result URLs, if an earlier version left it in a file.
    fn earlier_key(&self) -> Result<Option<CopiedRow>, Failure> {
        let path = legacy_key_file(&self.config.data);
        let key = SigningSecret::load(&path)
            .map_err(|error| Failure::at(&path, "cannot be read", error))?;
        Ok(key.map(|key| CopiedRow::signing_key(&key.bytes())))
    }

    /// Copies the files of all exported tasks, and all uploaded ones.
    async fn copy_files(&mut self) -> Result<(), Failure> {
        let blobs = kinora_blobs::open_beside(&self.config.results_url(), &self.config.s3())
            .map_err(|error| Failure::because("The results cannot be opened", error))?;
        let mut writer = TableWriter::create(self.to.join(FILES))?;
        let mut progress = ProgressLine::new().with_total(self.manifest.tasks.total());
        let mut transfers = FileTransfers::new();
        // From the rows that were just written, and not from the store: the files of the export
        // then match its rows, whatever the service does meanwhile.
        let tasks = read_rows(self.to, COPIED_TASKS)?.map(|task| {
            progress.step("tasks exported");
            let task = task?;
            Ok::<_, Failure>((task.results(), task.references()))
        });
        let mut seen = HashSet::new();
        // Several rows may share a file.
        let uploads = read_rows(self.to, COPIED_UPLOADS)?.map(|row| {
            let file = row?.upload().filter(|file| seen.insert(file.key.clone()));
            Ok((file.into_iter().collect(), Vec::new()))
        });
        for files in tasks.chain(uploads) {
            let (results, references) = files?;
            let results = results.into_iter();
            if self.args.results == MovedResults::Reference {
                results
                    .map(Some)
                    .try_for_each(|file| self.record(&mut writer, None, file))?;
                continue;
            }
            let results = results.map(|file| (file.key.clone(), Some(file)));
            let references = references.into_iter().map(|key| (key, None));
            for (key, result) in results.chain(references) {
                let transfer = copy(blobs.clone(), self.to.join(RESULTS), key, result);
                if let Some((result, file)) = transfers.start(transfer).await? {
                    self.record(&mut writer, result, file)?;
                }
            }
        }
        while let Some((result, file)) = transfers.next().await? {
            self.record(&mut writer, result, file)?;
        }
        // A repeated export may find fewer tasks than the interrupted one did. Their files would
        // stay in the folder without being in its list.
        remove_others(&self.to.join(RESULTS), &self.files).await?;
        self.manifest.parts.insert(FILES.to_owned(), writer.end()?);
        self.refuse_loss(
            "file",
            "of results missing or damaged",
            &self.missing,
            "If the service runs, it may have removed them since: stop it and run the command again, which goes on \
             where it stopped. Otherwise put them back, or export without them by --accept-loss.",
        )
    }

    /// Records a `file` that is in the export; without one, that the `result` is missing. A missing
    /// reference is fetched again.
    fn record(
        &mut self,
        writer: &mut TableWriter,
        result: Option<StoredFile>,
        file: Option<StoredFile>,
    ) -> Result<(), Failure> {
        let results = &mut self.manifest.results;
        if let Some(file) = file {
            writer.add(&serde_json::json!(file).to_string())?;
            results.files += 1;
            results.bytes += file.bytes;
            self.files.insert(file.key);
        } else if let Some(result) = result {
            results.missing += 1;
            self.missing.push(result.key);
        }
        Ok(())
    }

    /// Refuses an export without these, unless the operator accepts it.
    fn refuse_loss(
        &self,
        one: &str,
        how: &str,
        lost: &[String],
        way_on: &str,
    ) -> Result<(), Failure> {
        if lost.is_empty() || self.args.accept_loss {
            return Ok(());
        }
        let (number, names) = (count(lost.len() as u64, one), first_names(lost));
        Err(Failure::new(format!("{number} {how}: {names}. {way_on}")))
    }
}

/// Copies a file into the folder `to`, unless an earlier run did: what [`ExportJob::record`] takes. A file
/// that differs from the expected `result` counts as missing.
async fn copy(
    blobs: Arc<dyn BlobStore>,
    to: PathBuf,
    key: String,
    result: Option<StoredFile>,
) -> Result<(Option<StoredFile>, Option<StoredFile>), Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::because(format!("The file {key} could not be exported"), error)
    };
    let to = BlobFolder::new(&to);
    // An earlier run copied it. Only results have a recorded hash to compare with, so references
    // are copied again.
    if result.is_some() && to.measure(&key).ok() == result {
        return Ok((None, result));
    }
    let path = to.file(&key).map_err(|error| failed(&error))?;
    fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(|error| failed(&error))?;
    // No key ends like this.
    let part = path.with_added_extension("part");
    let saved = bulk::save(&*blobs, &key, &part).await;
    let saved = saved.map_err(|error| failed(&error))?;
    let saved = saved.filter(|found| result.as_ref().is_none_or(|result| result == found));
    // A file of another length or hash keeps its temporary name: the next run must not take it for
    // a complete one.
    if saved.is_some() {
        fs::rename(&part, &path).map_err(|error| failed(&error))?;
    }
    kinora_system::crash::point("export.file");
    Ok((result, saved))
}

/// Removes files of an earlier run whose tasks no longer exist.
async fn remove_others(folder: &Path, keys: &HashSet<String>) -> Result<(), Failure> {
    let url = folder.display().to_string();
    let own = kinora_blobs::open_beside(&url, &kinora_blobs::S3Options::default());
    let own = own.map_err(unlisted)?;
    for key in bulk::keys(&*own, "").await.map_err(unlisted)? {
        if !keys.contains(&key) {
            own.delete(&key).await.map_err(unlisted)?;
        }
    }
    Ok(())
}

fn unlisted(error: BlobError) -> Failure {
    Failure::because("The exported files cannot be listed", error)
}
