//! `kinora export`: writes tasks, keys and results of a service into a folder that any kind of
//! store can import. The records are a snapshot; the results are copied afterwards, and a repeated
//! export copies only the missing ones.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kinora_blobs::folder::Folder;
use kinora_blobs::sign::Secret;
use kinora_blobs::{BlobStore, bulk};
use kinora_contract::{Clock, StoredFile, hex};
use kinora_store::{COPIED_TABLES, CopiedRow, CopiedTable, Export, TASKS};

use super::folder::{FILES, FORMAT, Lines, Manifest, Results, Writer, file_name, read_rows};
use super::{Transfers, runtime};
use crate::backup::manifest::Tasks;
use crate::backup::progress::Progress;
use crate::backup::staging::Staging;
use crate::backup::{self, RESULTS};
use crate::cli::{ExportArgs, MovedResults};
use crate::config::Config;
use crate::count::count;
use crate::failure::Failure;
use crate::output::print;
use crate::signing::earlier_file;
use crate::system::{self, SystemClock};
use crate::{folder, hint};

/// Maximum number of tasks and files named in an error.
const NAMED_MAX: usize = 5;

/// Makes an export, and prints its contents.
pub(crate) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let config = Config::load(&args.home)?;
    folder::refuse_unfinished_restore(&config.data)?;
    let url = config.store_url();
    if !kinora_store::is_shared(&url) && !args.accept_loss {
        backup::refuse_loss(&config, "export")?;
    }
    runtime()?.block_on(async {
        let store = kinora_store::open_export(&url).await;
        let store = store.map_err(|error| hint::not_opened(error, "serve", &args.home))?;
        export(args, &config, store).await
    })
}

async fn export(args: &ExportArgs, config: &Config, store: Box<dyn Export>) -> Result<(), Failure> {
    let staging = Staging::resume(&args.dest)?;
    let job = Job {
        args,
        config,
        to: staging.path(),
    };
    let (manifest, notes) = job.make(store).await?;
    let to = staging.publish()?;
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
struct Job<'a> {
    args: &'a ExportArgs,
    config: &'a Config,
    to: &'a Path,
}

/// The records written.
#[derive(Default)]
struct Records {
    parts: BTreeMap<String, Lines>,
    counts: Tasks,
    /// Rows that cannot be read.
    damage: Vec<String>,
    unreadable: u64,
}

impl Job<'_> {
    async fn make(&self, store: Box<dyn Export>) -> Result<(Manifest, Vec<String>), Failure> {
        let made_at = SystemClock.now_ms() / 1000;
        let mut records = self.write_records(store).await?;
        kinora_crash::point("export.records");
        let copied = self.copy_files(records.counts.all()).await?;
        records
            .parts
            .extend(copied.lines.map(|lines| (FILES.to_owned(), lines)));
        let manifest = Manifest {
            format: FORMAT,
            id: hex::text(&system::random::<16>()?),
            kinora: env!("CARGO_PKG_VERSION").to_owned(),
            made_at,
            tasks: records.counts,
            unreadable: records.unreadable,
            results: Results {
                mode: self.args.results,
                from: self.config.results_shown(),
                files: copied.keys.len() as u64,
                bytes: copied.bytes,
                missing: copied.missing.len() as u64,
            },
            parts: records.parts,
        };
        manifest.write(self.to)?;
        let (unreadable, missing) = (manifest.unreadable, manifest.results.missing);
        let notes = [
            (unreadable > 0).then(|| format!("{} unreadable, omitted", count(unreadable, "task"))),
            (missing > 0)
                .then(|| format!("{} of results missing, omitted", count(missing, "file"))),
        ];
        Ok((manifest, notes.into_iter().flatten().collect()))
    }

    /// Writes everything but the files, as a snapshot.
    async fn write_records(&self, mut store: Box<dyn Export>) -> Result<Records, Failure> {
        Progress::new().say("exporting tasks");
        let mut records = Records::default();
        for table in &COPIED_TABLES {
            let lines = self.write_table(table, &mut *store, &mut records).await?;
            records.parts.insert(file_name(table), lines);
        }
        if records.damage.is_empty() || self.args.accept_loss {
            return Ok(records);
        }
        Err(Failure::new(format!(
            "{} cannot be read, so that no export would be whole: {}. Restore a backup; or delete them; or export \
             without them by --accept-loss.",
            count(records.damage.len() as u64, "row"),
            named(&records.damage)
        )))
    }

    async fn write_table(
        &self,
        table: &'static CopiedTable,
        store: &mut dyn Export,
        records: &mut Records,
    ) -> Result<Lines, Failure> {
        let mut writer = Writer::create(self.to.join(file_name(table)))?;
        loop {
            let rows = store.rows(table).await;
            let rows =
                rows.map_err(|error| Failure::because("The store could not be read", error))?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                match row {
                    Ok(row) => {
                        if table.is_tasks() {
                            count_task(&mut records.counts, &row);
                        }
                        writer.add(&table.line(&row))?;
                    }
                    Err(error) => {
                        records.unreadable += u64::from(table.is_tasks());
                        records.damage.push(error.to_string());
                    }
                }
            }
        }
        if table.name == "secrets" && writer.lines == 0 {
            // An earlier version left the key that signs result URLs in a file.
            let path = earlier_file(&self.config.data);
            let key = Secret::load(&path).map_err(|error| {
                Failure::because(format!("{} cannot be read", path.display()), error)
            })?;
            if let Some(key) = key {
                writer.add(&table.line(&CopiedRow::signing_key(&key.bytes())))?;
            }
        }
        writer.end()
    }

    /// Copies the files of all exported tasks.
    async fn copy_files(&self, tasks: u64) -> Result<Copied, Failure> {
        let blobs = kinora_blobs::open_beside(&self.config.results_url(), &self.config.s3())
            .map_err(|error| Failure::because("The results cannot be opened", error))?;
        let mut copied = Copied::default();
        let mut writer = Writer::create(self.to.join(FILES))?;
        let mut progress = Progress::new().of(tasks);
        let mut transfers = Transfers::new();
        for task in read_rows(self.to, TASKS)? {
            progress.step("tasks exported");
            let task = task?;
            if self.args.results == MovedResults::Reference {
                for file in task.results() {
                    copied.record(&mut writer, None, Some(file))?;
                }
                continue;
            }
            let results = task.results().into_iter();
            let results = results.map(|file| (file.key.clone(), Some(file)));
            let references = task.references().into_iter().map(|key| (key, None));
            for (key, result) in results.chain(references) {
                let transfer = copy(blobs.clone(), self.to.join(RESULTS), key, result);
                if let Some((result, file)) = transfers.begin(transfer).await? {
                    copied.record(&mut writer, result, file)?;
                }
            }
        }
        while let Some((result, file)) = transfers.next().await? {
            copied.record(&mut writer, result, file)?;
        }
        if !copied.missing.is_empty() && !self.args.accept_loss {
            return Err(Failure::new(format!(
                "{} of results missing or damaged: {}. If the service runs, it may have removed them since: stop it and \
                 run the command again, which goes on where it stopped. Otherwise put them back, or export without them \
                 by --accept-loss.",
                count(copied.missing.len() as u64, "file"),
                named(&copied.missing)
            )));
        }
        remove_others(&self.to.join(RESULTS), &copied.keys).await?;
        copied.lines = Some(writer.end()?);
        Ok(copied)
    }
}

fn count_task(counts: &mut Tasks, task: &CopiedRow) {
    let count = match &*task.phase() {
        "completed" => &mut counts.completed,
        "failed" => &mut counts.failed,
        "expired" => &mut counts.expired,
        _ => &mut counts.unfinished,
    };
    *count += 1;
}

fn named(all: &[String]) -> String {
    let shown: Vec<&str> = all.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = if all.len() > NAMED_MAX { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// The copied files.
#[derive(Default)]
struct Copied {
    lines: Option<Lines>,
    keys: HashSet<String>,
    bytes: u64,
    /// Results that are missing or damaged.
    missing: Vec<String>,
}

impl Copied {
    /// Records a `file` that is in the export, or that `result` is not.
    fn record(
        &mut self,
        writer: &mut Writer,
        result: Option<StoredFile>,
        file: Option<StoredFile>,
    ) -> Result<(), Failure> {
        match (file, result) {
            (Some(file), _) => {
                writer.add(&serde_json::json!(file).to_string())?;
                self.bytes += file.bytes;
                self.keys.insert(file.key);
            }
            (None, Some(result)) => self.missing.push(result.key),
            // The service fetches a reference again.
            (None, None) => {}
        }
        Ok(())
    }
}

/// Copies a file into the folder `to`, unless an earlier run did: what [`Copied::record`] takes. A file
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
    let to = Folder::at(&to);
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
    if saved.is_some() {
        fs::rename(&part, &path).map_err(|error| failed(&error))?;
    }
    kinora_crash::point("export.file");
    Ok((result, saved))
}

/// Removes files of an earlier run whose tasks no longer exist.
async fn remove_others(folder: &Path, keys: &HashSet<String>) -> Result<(), Failure> {
    let failed = |error| Failure::because("The exported files cannot be listed", error);
    let url = folder.display().to_string();
    let own = kinora_blobs::open_beside(&url, &kinora_blobs::S3Options::default());
    let own = own.map_err(failed)?;
    for key in bulk::keys(&*own, "").await.map_err(failed)? {
        if !keys.contains(&key) {
            own.delete(&key).await.map_err(failed)?;
        }
    }
    Ok(())
}
