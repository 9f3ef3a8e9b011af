//! What operations cost in stores of different sizes, measured in turn.

use std::time::{Duration, Instant};

use kinora_store::{
    Chore, ChoreKind, ChoreRequest, ListOrder, PageRequest, StoreHandles, SweepRequest, WaitingFrom,
};

use crate::Failure;
use crate::filling::{EXPIRY_MS, filled};
use crate::subjects::{
    Backing, Kind, NOW_MS, PROJECT, artifact, claiming_one, id, percentiles, task,
};

/// Tasks of the smallest store, finished and queued.
const FEW: (u64, u64) = (200, 200);
const ROUNDS: u64 = 8;
/// Samples of each operation in a round.
const SAMPLES: u64 = 40;
/// Of the sweeper.
const BATCH: usize = 200;
/// Tasks that are due in the measured backlog.
const DUE: u64 = 100_000;

/// One store, and what was measured of it.
struct Subject {
    stores: StoreHandles,
    finished: u64,
    waits: Vec<(&'static str, Vec<Duration>)>,
    /// Tasks that were submitted here.
    submitted: u64,
    dice: u64,
}

pub(crate) async fn measure(kind: Kind, finished: u64, queued: u64) -> Result<(), Failure> {
    let backing = Backing::new(kind)?;
    let sizes = [FEW, (finished / 10, queued / 10), (finished, queued)];
    let mut subjects = Vec::new();
    for (finished, queued) in sizes {
        subjects.push(Subject {
            stores: filled(&backing, &format!("{finished}.db"), finished, queued).await?,
            finished,
            waits: Vec::new(),
            submitted: 0,
            dice: 1,
        });
    }
    // The first is to warm up.
    for round in 0..=ROUNDS {
        for subject in &mut subjects {
            subject.measure().await?;
            if round == 0 {
                subject.waits.clear();
            }
        }
    }
    print(&sizes, &mut subjects);
    match subjects.pop() {
        Some(largest) => backlog(largest).await,
        None => Ok(()),
    }
}

fn print(sizes: &[(u64, u64)], subjects: &mut [Subject]) {
    print!("| ms, p50 / p99 |");
    for (finished, queued) in sizes {
        print!(" {finished} finished, {queued} queued |");
    }
    println!(" ratios of p50 |\n|---|---|---|---|---|");
    let names: Vec<&str> = match subjects.first() {
        Some(first) => first.waits.iter().map(|(what, _)| *what).collect(),
        None => Vec::new(),
    };
    for (at, what) in names.into_iter().enumerate() {
        print!("| {what} |");
        let mut halves = Vec::new();
        for waits in subjects.iter_mut().filter_map(|one| one.waits.get_mut(at)) {
            let [half, most] = percentiles(&mut waits.1);
            print!(" {half:.3} / {most:.3} |");
            halves.push(half);
        }
        let first = halves.first().copied().unwrap_or_default();
        let ratios: Vec<String> = halves
            .iter()
            .skip(1)
            .map(|half| format!("{:.2}", half / first))
            .collect();
        println!(" {} |", ratios.join(", "));
    }
}

impl Subject {
    async fn measure(&mut self) -> Result<(), Failure> {
        for _ in 0..SAMPLES {
            let own = id(1_000_000_000 + self.submitted);
            self.submitted += 1;
            let random = id(self.random());
            let (tasks, work) = (self.stores.tasks.clone(), self.stores.work.clone());
            let begun = Instant::now();
            tasks.insert(task(own, PROJECT)).await?;
            self.note("durable submit", begun);
            let begun = Instant::now();
            tasks.poll(PROJECT, own).await?.ok_or("no task")?;
            tasks.positions(&[own]).await?;
            self.note("poll of a waiting task, with its position", begun);
            let begun = Instant::now();
            tasks.get(PROJECT, random).await?.ok_or("no task")?;
            self.note("poll of any finished task", begun);
            let begun = Instant::now();
            let claim = work.claim(claiming_one(0)).await?.pop();
            self.note("claim", begun);
            let claim = claim.ok_or("nothing to claim")?;
            let begun = Instant::now();
            work.finish(&claim.lease, Ok(artifact()), EXPIRY_MS - NOW_MS)
                .await?;
            self.note("finish", begun);
            self.list("list, newest 20", None, 20).await?;
            self.list("list, 100 after a random id", Some(random), 100)
                .await?;
            let begun = Instant::now();
            self.stores.chores.sweep(sweep(NOW_MS)).await?;
            self.note("sweep of nothing", begun);
        }
        Ok(())
    }

    async fn list(
        &mut self,
        what: &'static str,
        after: Option<kinora_contract::TaskId>,
        limit: usize,
    ) -> Result<(), Failure> {
        let request = PageRequest {
            project: PROJECT.to_owned(),
            after,
            limit,
            order: ListOrder::Descending,
        };
        let begun = Instant::now();
        let page = self.stores.tasks.list(request).await?;
        self.note(what, begun);
        match page.tasks.len() == limit {
            true => Ok(()),
            false => Err(format!("{} tasks in a page of {limit}", page.tasks.len()).into()),
        }
    }

    fn note(&mut self, what: &'static str, begun: Instant) {
        let wait = begun.elapsed();
        match self.waits.iter_mut().find(|(name, _)| *name == what) {
            Some((_, waits)) => waits.push(wait),
            None => self.waits.push((what, vec![wait])),
        }
    }

    /// The number of a finished task with a hundred before it.
    fn random(&mut self) -> u64 {
        self.dice = self
            .dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        100 + (self.dice >> 33) % (self.finished - 100)
    }
}

/// Submits beside a sweeper that expires tasks.
async fn backlog(largest: Subject) -> Result<(), Failure> {
    let (due, stores) = (DUE.min(largest.finished), largest.stores);
    let beside = stores.clone();
    let submitting = tokio::spawn(async move {
        let (mut waits, mut number) = (Vec::new(), 2_000_000_000);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(5) {
            let sent = Instant::now();
            beside.tasks.insert(task(id(number), PROJECT)).await?;
            waits.push(sent.elapsed());
            number += 1;
        }
        Ok::<_, Failure>(waits)
    });
    let begun = Instant::now();
    let swept = expire(&stores, due).await?;
    let took = begun.elapsed();
    let [half, most] = percentiles(&mut submitting.await??);
    let rate = swept as f64 / took.as_secs_f64();
    println!(
        "\n{swept} due tasks expired in {took:.1?}: {rate:.0} a second beside a submitter, which waited \
         {half:.3} / {most:.3} ms"
    );
    Ok(())
}

/// Expires tasks as the sweeper does: a batch, then a pause as long, until so many are expired.
async fn expire(stores: &StoreHandles, due: u64) -> Result<u64, Failure> {
    let (mut expired, mut sweeps) = (0, 0);
    while expired < due {
        let begun = Instant::now();
        let swept = stores.chores.sweep(sweep(EXPIRY_MS)).await?;
        remove_files(stores).await?;
        expired += swept.expired;
        sweeps += 1;
        if swept.expired == 0 {
            return Err(format!("nothing is due after {sweeps} sweeps").into());
        }
        tokio::time::sleep(begun.elapsed()).await;
    }
    Ok(expired)
}

/// Takes and settles the chores of removing files, as a worker does.
async fn remove_files(stores: &StoreHandles) -> Result<(), Failure> {
    loop {
        let request = ChoreRequest {
            kind: ChoreKind::RemoveFile,
            count: 3 * BATCH,
            lease_ms: 60_000,
        };
        let chores = stores.chores.lease_chores(request).await?;
        if chores.is_empty() {
            return Ok(());
        }
        let done = chores.into_iter().map(Chore::done).collect();
        stores.chores.complete_chores(done).await?;
    }
}

const fn sweep(due_ms: u64) -> SweepRequest {
    SweepRequest {
        due_ms: Some(due_ms),
        keys_kept_ms: 0,
        waiting_from: WaitingFrom {
            created_before_ms: 0,
            from_ms: 0,
        },
        attempts_max: 3,
        lease_ms: 30_000,
        spares_leases: true,
        waiting_ms_max: None,
        retention_ms: 500,
        unreadable_ms: 500,
        tombstone_ms: u64::MAX,
        batch: BATCH,
    }
}
