//! `kinora import`: imports an export into an empty store and its results. Everything is read and
//! compared before the first change, and again after it is stored; until then no process can serve
//! the store. An interrupted import can be resumed.

use std::path::Path;
use std::sync::Arc;

use kinora_blobs::folder::Folder;
use kinora_blobs::{BlobError, BlobStore, bulk};
use kinora_contract::StoredFile;
use kinora_store::{
    Import, MARKS, MOVED_AT_ONCE, MovedChore, MovedKey, MovedStore, MovedTask, StoreError, mark_key,
};

use super::crowd::Crowd;
use super::manifest::Manifest;
use super::parts::{self, CHORES, FILES, KEYS, STORE, TASKS};
use super::{runtime, verify};
use crate::backup::RESULTS;
use crate::backup::progress::Progress;
use crate::cli::{ImportArgs, MovedResults};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::print;
use crate::{folder, hint};

/// Imports an export, and prints the next step.
pub(crate) fn run(args: &ImportArgs) -> Result<(), Failure> {
    let config = Config::load(&args.home)?;
    folder::refuse_unfinished_restore(&config.data)?;
    let manifest = Manifest::read(&args.source)?;
    runtime()?.block_on(import(args, &config, &manifest))?;
    print(&match args.json {
        true => manifest.json(&args.source, &[]),
        false => format!(
            "Imported {}; verified.\nUnfinished tasks run when the service starts, and idempotency keys, API keys and \
             result addresses go on working. Start it with the configuration that names this store:\n\n  {}\n",
            manifest.contents(),
            hint::command("serve", &args.home)
        ),
    });
    Ok(())
}

async fn import(args: &ImportArgs, config: &Config, manifest: &Manifest) -> Result<(), Failure> {
    let source = Source::verified(&args.source, manifest)?;
    let url = config.store_url();
    if !kinora_store::is_shared(&url) {
        folder::prepare(&config.data)?;
    }
    let blobs = kinora_blobs::open(&config.results_url(), &config.s3())
        .map_err(|error| Failure::because("The results cannot be opened", error))?;
    let job = Job {
        source,
        manifest,
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

/// A verified export.
struct Source<'a> {
    folder: &'a Path,
    files: Folder,
    store: MovedStore,
}

impl<'a> Source<'a> {
    /// Reads all of it, and compares every part and file with its recorded length and hash.
    fn verified(folder: &'a Path, manifest: &Manifest) -> Result<Self, Failure> {
        let mut progress = Progress::new().of(manifest.results.files);
        progress.say("verifying the export");
        let all = &manifest.parts;
        for (name, part) in [
            (STORE, &all.store),
            (TASKS, &all.tasks),
            (KEYS, &all.keys),
            (CHORES, &all.chores),
            (FILES, &all.files),
        ] {
            part.verify(&folder.join(name))?;
        }
        let files = Folder::at(&folder.join(RESULTS));
        if manifest.results.mode == MovedResults::Copy {
            for file in parts::read::<StoredFile>(&folder.join(FILES))? {
                let file = file?;
                progress.step("files verified");
                let is_same = files.plain_bytes(&file.key).and_then(|bytes| {
                    // A wrong length is known before all is read.
                    Ok(bytes == Some(file.bytes) && files.measure(&file.key)? == file)
                });
                let damaged = |why: &dyn std::fmt::Display| {
                    let place = format!("The export is damaged: its file {}", file.key);
                    Failure::because(place, why)
                };
                if !is_same.map_err(|error| damaged(&error))? {
                    return Err(damaged(&"its length or SHA-256 has changed"));
                }
            }
        }
        let mut stores = parts::read(&folder.join(STORE))?;
        let store = stores.next().transpose()?;
        let store = store
            .ok_or_else(|| Failure::new(format!("The export is damaged: {STORE} is empty.")))?;
        Ok(Self {
            folder,
            files,
            store,
        })
    }

    fn tasks(&self) -> Result<impl Iterator<Item = Result<MovedTask, Failure>>, Failure> {
        parts::read(&self.folder.join(TASKS))
    }
}

/// An import in progress.
struct Job<'a> {
    source: Source<'a>,
    manifest: &'a Manifest,
    /// The location of the results, for people.
    results: String,
    blobs: Arc<dyn BlobStore>,
}

impl Job<'_> {
    /// Refuses a result store that another store uses: each would treat the other's files as
    /// orphans.
    async fn refuse_other_results(&self) -> Result<(), Failure> {
        let marks = bulk::keys(&*self.blobs, MARKS).await.map_err(unanswered)?;
        let own = mark_key(self.source.store.identity);
        if marks.iter().all(|mark| *mark == own) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "Another store uses the results in {}: its mark {MARKS}* is there. Name a place of its own by results.url.",
            self.results
        )))
    }

    async fn fill(&self, mut store: Box<dyn Import>) -> Result<(), Failure> {
        if self.manifest.results.mode == MovedResults::Copy {
            self.put_files().await?;
        }
        verify::files(&self.source.folder.join(FILES), &self.blobs, &self.results).await?;
        self.put_tasks(&mut *store).await?;
        let keys = self.all::<MovedKey>(KEYS)?;
        let chores = self.all::<MovedChore>(CHORES)?;
        let rest = store.put_rest(&self.source.store, &keys, &chores).await;
        rest.map_err(unstored)?;
        kinora_crash::point("import.filled");
        let read_back = store.read_back().await;
        let read_back =
            read_back.map_err(|error| Failure::because("The store cannot be read back", error))?;
        let expected = verify::Expected {
            store: &self.source.store,
            keys: &keys,
            chores: &chores,
        };
        verify::records(read_back, self.source.tasks()?, &expected).await?;
        // As the store would: it takes results without its mark for another store's.
        let mark = mark_key(self.source.store.identity);
        match self.blobs.put_bytes(&mark, Vec::new().into()).await {
            Ok(_) | Err(BlobError::Exists(_)) => {}
            Err(error) => return Err(unanswered(error)),
        }
        store.finish().await.map_err(unstored)
    }

    fn all<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, Failure> {
        parts::read(&self.source.folder.join(name))?.collect()
    }

    /// Stores every file that is still missing.
    async fn put_files(&self) -> Result<(), Failure> {
        let mut progress = Progress::new().of(self.manifest.results.files);
        let mut crowd = Crowd::new();
        for file in parts::read::<StoredFile>(&self.source.folder.join(FILES))? {
            let file = file?;
            progress.step("files imported");
            let from = self.source.files.file(&file.key).map_err(unanswered)?;
            let blobs = self.blobs.clone();
            crowd
                .begin(async move {
                    let there = blobs.head(&file.key).await.map_err(unanswered)?;
                    if there != Some(file.bytes) {
                        blobs.put_file(&file, &from).await.map_err(unanswered)?;
                        kinora_crash::point("import.file");
                    }
                    Ok(())
                })
                .await?;
        }
        while crowd.next().await?.is_some() {}
        Ok(())
    }

    /// Stores every task that is still missing.
    async fn put_tasks(&self, store: &mut dyn Import) -> Result<(), Failure> {
        let mut progress = Progress::new().of(self.manifest.parts.tasks.lines);
        let after = store.stored_up_to();
        let mut batch = Vec::with_capacity(MOVED_AT_ONCE);
        for task in self.source.tasks()? {
            let task = task?;
            progress.step("tasks imported");
            if task.seq > after {
                batch.push(task);
            }
            if batch.len() == MOVED_AT_ONCE {
                put(store, &mut batch).await?;
            }
        }
        put(store, &mut batch).await
    }
}

/// Stores tasks, if there are any.
async fn put(store: &mut dyn Import, batch: &mut Vec<MovedTask>) -> Result<(), Failure> {
    if batch.is_empty() {
        return Ok(());
    }
    store.put_tasks(batch).await.map_err(unstored)?;
    kinora_crash::point("import.tasks");
    batch.clear();
    Ok(())
}

fn unanswered(error: BlobError) -> Failure {
    Failure::because("The results could not be stored", error)
}

fn unstored(error: StoreError) -> Failure {
    Failure::because("The tasks could not be stored", error)
}
