//! How much a store takes: operations at once for a few seconds each, and raw statements of the same kind.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kinora_contract::Task;
use kinora_store::{InsertOutcome, Lease, StoreHandles, WorkerStore};
use kinora_testkit::postgres::Server;

use crate::Failure;
use crate::subjects::{Backing, Kind, artifact, claiming_one, id, opened, percentiles, task};

const LENGTH: Duration = Duration::from_secs(4);
const CLIENTS: [u64; 3] = [1, 64, 256];
const WORKERS: u64 = 64;
/// Store handles that share the workers, as if each were a process of its own.
const PROCESSES: u64 = 4;
/// Tasks that each slot has had at the end of a round.
const CLAIMS_PER_ROUND: usize = 8;
const PROJECTS: u64 = 7;
/// Tasks that each client polls in turn.
const POLLED_EACH: usize = 10;
/// Connections that send raw batches: together as many rows at a time as there are clients.
const BATCHERS: u32 = 4;

pub(crate) async fn measure(kind: Kind) -> Result<(), Failure> {
    let backing = Backing::new(kind)?;
    println!("| operation | at once | per second | p50 ms | p99 ms |\n|---|---|---|---|---|");
    for clients in CLIENTS {
        let url = backing.empty(&format!("{clients}.db")).await?;
        let stores = opened(&url).await?;
        if let Backing::Server(server) = &backing {
            raw_inserts(server, &url, clients);
        }
        let accepted = inserts(&stores, clients).await?;
        if Some(&clients) == CLIENTS.last() {
            claims(std::slice::from_ref(&stores)).await?;
            claims_and_finishes(&stores).await?;
            if matches!(backing, Backing::Server(_)) {
                let mut processes = Vec::new();
                for _ in 0..PROCESSES {
                    processes.push(opened(&url).await?);
                }
                claims(&processes).await?;
            }
            polls(&stores, accepted, WORKERS).await?;
            if let Backing::Server(server) = &backing {
                raw_selects(server, &url);
            }
        }
    }
    Ok(())
}

fn raw_inserts(server: &Server, url: &str, clients: u64) {
    let clients = u32::try_from(clients).unwrap_or(1);
    let connections = clients.min(64);
    let single = server.raw_inserts(url, 1, connections);
    println!("| raw insert of one row, `pgbench` | {connections} | {single:.0} | | |");
    let rows = clients.div_ceil(BATCHERS);
    if rows > 1 {
        let batched = server.raw_inserts(url, rows, BATCHERS);
        println!(
            "| raw rows in inserts of {rows}, `pgbench` | {BATCHERS} x {rows} | {batched:.0} | | |"
        );
    }
}

fn raw_selects(server: &Server, url: &str) {
    let rate = server.raw_selects(url, 64);
    println!("| raw select of one row, `pgbench` | 64 | {rate:.0} | | |");
}

/// Returns the accepted tasks, in no order.
async fn inserts(stores: &StoreHandles, clients: u64) -> Result<Vec<Arc<Task>>, Failure> {
    let each = (0..clients).map(|client| {
        let tasks = stores.tasks.clone();
        tokio::spawn(async move {
            let (begun, mut accepted) = (Instant::now(), Vec::new());
            let project = format!("project-{}", client % PROJECTS);
            while begun.elapsed() < LENGTH {
                let number = (accepted.len() as u64) * 1_000 + client;
                let sent = Instant::now();
                let InsertOutcome::Inserted(task) =
                    tasks.insert(task(id(number), &project)).await?
                else {
                    return Err("a task is refused".into());
                };
                accepted.push((sent.elapsed(), task));
            }
            Ok::<_, Failure>(accepted)
        })
    });
    let (waits, accepted) = gathered(each).await?.into_iter().unzip();
    report("durable submit", clients, LENGTH, waits);
    Ok(accepted)
}

/// Claims by the slots of one worker that each ask for one task, and finish it before they ask for the next.
async fn claims_and_finishes(stores: &StoreHandles) -> Result<(), Failure> {
    let begun = Instant::now();
    let each = (0..WORKERS).map(|_| {
        let work = stores.work.clone();
        tokio::spawn(async move {
            let mut waits = Vec::new();
            while begun.elapsed() < LENGTH {
                let sent = Instant::now();
                let Some(lease) = claimed(&work, 0).await? else {
                    break;
                };
                waits.push(sent.elapsed());
                finished(&work, &lease).await?;
            }
            Ok::<_, Failure>(waits)
        })
    });
    let waits = gathered(each).await?;
    let length = begun.elapsed();
    report("claim of one, then its finish", WORKERS, length, waits);
    Ok(())
}

/// Claims alone, by the slots of a worker in each process: in rounds, after each of which what was claimed is finished
/// while nobody measures.
async fn claims(processes: &[StoreHandles]) -> Result<(), Failure> {
    let (mut length, mut waits) = (Duration::ZERO, Vec::new());
    while length < LENGTH {
        let begun = Instant::now();
        let each = (0u64..)
            .zip(processes.iter().cycle())
            .take(WORKERS as usize);
        let each = each.map(|(slot, stores)| {
            let (work, worker) = (stores.work.clone(), slot % processes.len() as u64);
            tokio::spawn(async move {
                let mut claims = Vec::new();
                for _ in 0..CLAIMS_PER_ROUND {
                    let sent = Instant::now();
                    let lease = claimed(&work, worker).await?;
                    claims.push((sent.elapsed(), lease));
                }
                Ok::<_, Failure>(claims)
            })
        });
        let claims = gathered(each).await?;
        length += begun.elapsed();
        if claims.iter().any(|(_, lease)| lease.is_none()) {
            break;
        }
        let mut finishes = tokio::task::JoinSet::new();
        for ((wait, lease), stores) in claims.into_iter().zip(processes.iter().cycle()) {
            waits.push(wait);
            let work = stores.work.clone();
            finishes.spawn(async move {
                match lease {
                    Some(lease) => finished(&work, &lease).await,
                    None => Ok(()),
                }
            });
        }
        finishes
            .join_all()
            .await
            .into_iter()
            .collect::<Result<(), _>>()?;
    }
    let what = match processes.len() {
        1 => "claim of one".to_owned(),
        many => format!("claim of one, {many} processes"),
    };
    report(&what, WORKERS, length, waits);
    Ok(())
}

async fn claimed(work: &Arc<dyn WorkerStore>, worker: u64) -> Result<Option<Lease>, Failure> {
    let claims = work.claim(claiming_one(worker)).await?;
    Ok(claims.into_iter().next().map(|claim| claim.lease))
}

async fn finished(work: &Arc<dyn WorkerStore>, lease: &Lease) -> Result<(), Failure> {
    Ok(work.finish(lease, Ok(artifact()), 1_000_000).await?)
}

/// Polls of tasks that were accepted last, and so still wait, with their positions.
async fn polls(
    stores: &StoreHandles,
    mut accepted: Vec<Arc<Task>>,
    clients: u64,
) -> Result<(), Failure> {
    accepted.sort_unstable_by_key(|task| std::cmp::Reverse(task.id));
    let each = (0..clients).map(|client| {
        let tasks = stores.tasks.clone();
        let asked = accepted
            .iter()
            .skip(client as usize)
            .step_by(clients as usize);
        let asked: Vec<_> = asked.take(POLLED_EACH).cloned().collect();
        tokio::spawn(async move {
            let (begun, mut waits) = (Instant::now(), Vec::new());
            for task in asked.iter().cycle() {
                if begun.elapsed() >= LENGTH {
                    break;
                }
                let sent = Instant::now();
                let found = tasks.poll(&task.project, task.id).await?;
                found.ok_or("a task is missing")?;
                tasks.positions(&[task.id]).await?;
                waits.push(sent.elapsed());
                // What is in memory is answered at once, and would let nobody else go on.
                tokio::task::yield_now().await;
            }
            Ok::<_, Failure>(waits)
        })
    });
    report("poll", clients, LENGTH, gathered(each).await?);
    Ok(())
}

async fn gathered<T>(
    each: impl Iterator<Item = tokio::task::JoinHandle<Result<Vec<T>, Failure>>>,
) -> Result<Vec<T>, Failure> {
    let mut all = Vec::new();
    for one in each.collect::<Vec<_>>() {
        all.extend(one.await??);
    }
    Ok(all)
}

fn report(what: &str, at_once: u64, length: Duration, mut waits: Vec<Duration>) {
    let rate = waits.len() as f64 / length.as_secs_f64();
    let [half, most] = percentiles(&mut waits);
    println!("| {what} | {at_once} | {rate:.0} | {half:.3} | {most:.3} |");
}
