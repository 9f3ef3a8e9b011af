//! `kinora export`: writes tasks, keys and results of a service into a folder that any kind of
//! store can import. The records are a snapshot; the results are copied afterwards, and a repeated
//! export copies only the missing ones.

use std::path::Path;

use kinora_blobs::sign::Secret;
use kinora_contract::{Clock, hex};
use kinora_store::{Export, Hex, MovedPhase, MovedTask, StoreError};

use super::crowd::Crowd;
use super::manifest::{FORMAT, Manifest, Parts, Results};
use super::parts::{self, CHORES, KEYS, Lines, STORE, TASKS, Writer};
use super::runtime;
use super::taking::{Taken, Taking, wanted};
use crate::backup;
use crate::backup::manifest::Tasks;
use crate::backup::progress::Progress;
use crate::backup::staging::Staging;
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
    print(&match args.json {
        true => manifest.json(&to, &notes),
        false => {
            let notes: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
            format!(
                "{notes}Exported {} to {}; verified.\nWhat the service accepts from now on is not in it: for a move, \
                 it must be stopped. Bring the export into an empty store with `kinora import`.\n",
                manifest.contents(),
                to.display()
            )
        }
    });
    Ok(())
}

/// An export in progress.
struct Job<'a> {
    args: &'a ExportArgs,
    config: &'a Config,
    to: &'a Path,
}

impl Job<'_> {
    async fn make(&self, store: Box<dyn Export>) -> Result<(Manifest, Vec<String>), Failure> {
        let made_at = SystemClock.now_ms() / 1000;
        let records = self.write_records(store).await?;
        kinora_crash::point("export.records");
        let taken = self.take_files(records.tasks.lines).await?;
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
                files: taken.count,
                bytes: taken.bytes,
                missing: taken.missing.len() as u64,
            },
            parts: Parts {
                store: records.store,
                tasks: records.tasks,
                keys: records.keys,
                chores: records.chores,
                files: taken.lines,
            },
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
        let mut progress = Progress::new();
        progress.say("exporting tasks");
        let mut tasks = Writer::create(self.to.join(TASKS))?;
        let mut counts = Tasks::default();
        let mut damage = Vec::new();
        loop {
            let some = store.tasks().await.map_err(unread)?;
            if some.is_empty() {
                break;
            }
            for task in some {
                match task {
                    Ok(task) => {
                        count_in(&mut counts, &task);
                        tasks.add(&task)?;
                    }
                    Err(error) => damage.push(error.to_string()),
                }
            }
        }
        if !damage.is_empty() && !self.args.accept_loss {
            return Err(Failure::new(format!(
                "{} cannot be read, so that no export would be whole: {}. Restore a backup; or delete them; or export \
                 without them by --accept-loss.",
                count(damage.len() as u64, "task"),
                named(&damage)
            )));
        }
        let mut own = store.store().await.map_err(unread)?;
        if own.signing_key.is_none() {
            own.signing_key = self.earlier_key()?;
        }
        let (keys, chores) = (store.keys().await, store.chores().await);
        Ok(Records {
            store: parts::write(self.to.join(STORE), &[own])?,
            tasks: tasks.end()?,
            keys: parts::write(self.to.join(KEYS), &keys.map_err(unread)?)?,
            chores: parts::write(self.to.join(CHORES), &chores.map_err(unread)?)?,
            counts,
            unreadable: damage.len() as u64,
        })
    }

    /// The key that signs result URLs, if an earlier version left it in a file.
    fn earlier_key(&self) -> Result<Option<Hex>, Failure> {
        let path = earlier_file(&self.config.data);
        let key = Secret::load(&path).map_err(|error| {
            Failure::because(format!("{} cannot be read", path.display()), error)
        })?;
        Ok(key.map(|key| Hex(key.bytes())))
    }

    /// Copies the files of all exported tasks.
    async fn take_files(&self, tasks: u64) -> Result<Taken, Failure> {
        let blobs = kinora_blobs::open_beside(&self.config.results_url(), &self.config.s3())
            .map_err(|error| Failure::because("The results cannot be opened", error))?;
        let mut taking = Taking::begin(blobs, self.to)?;
        let mut progress = Progress::new().of(tasks);
        let mut crowd = Crowd::new();
        for task in parts::read::<MovedTask>(&self.to.join(TASKS))? {
            progress.step("tasks exported");
            for wanted in wanted(&task?) {
                if self.args.results == MovedResults::Reference {
                    taking.expect(wanted)?;
                    continue;
                }
                if let Some(ended) = crowd.begin(taking.bring(wanted)?).await? {
                    taking.note(ended)?;
                }
            }
        }
        while let Some(ended) = crowd.next().await? {
            taking.note(ended)?;
        }
        self.judge(taking.end().await?)
    }

    fn judge(&self, taken: Taken) -> Result<Taken, Failure> {
        if taken.missing.is_empty() || self.args.accept_loss {
            return Ok(taken);
        }
        Err(Failure::new(format!(
            "{} of results missing or damaged: {}. If the service runs, it may have removed them since: stop it and \
             run the command again, which goes on where it stopped. Otherwise put them back, or export without them \
             by --accept-loss.",
            count(taken.missing.len() as u64, "file"),
            named(&taken.missing)
        )))
    }
}

/// The records written.
struct Records {
    store: Lines,
    tasks: Lines,
    keys: Lines,
    chores: Lines,
    counts: Tasks,
    unreadable: u64,
}

fn unread(error: StoreError) -> Failure {
    Failure::because("The store could not be read", error)
}

fn count_in(counts: &mut Tasks, task: &MovedTask) {
    let count = match task.phase {
        MovedPhase::Waiting => &mut counts.unfinished,
        MovedPhase::Completed => &mut counts.completed,
        MovedPhase::Failed => &mut counts.failed,
        MovedPhase::Expired => &mut counts.expired,
    };
    *count += 1;
}

fn named(all: &[String]) -> String {
    let shown: Vec<&str> = all.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = if all.len() > NAMED_MAX { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}
