//! Many short tasks, each submitted, brought to its end and deleted: after the first fifth,
//! nothing grows. Most end without a video, so that there can be tens of thousands of them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use kinora_test_e2e::{Host, Setup};
use serde_json::Value;

use super::footprint::Footprint;
use super::{request, submit};
use crate::load::Connection;
use crate::{Outcome, say};

/// Tasks that are unfinished at a time.
const UNFINISHED: usize = 8;
/// Looks at the process over the whole run.
const LOOKS: usize = 50;
const POLL_EVERY: Duration = Duration::from_millis(10);
/// One task in so many is made into a video.
const MADE: usize = 50;

/// What is to become of a task.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    /// A video.
    Completed,
    /// Its reference is not there.
    Unreachable,
    /// Its client thinks better of it.
    Cancelled,
}

impl Fate {
    const fn of(number: usize) -> Self {
        match number % MADE {
            0 => Self::Completed,
            odd if odd % 2 == 1 => Self::Unreachable,
            _ => Self::Cancelled,
        }
    }

    /// The code that its task ends with.
    const fn code(self) -> Option<&'static str> {
        match self {
            Self::Completed => None,
            Self::Unreachable => Some("reference_unreachable"),
            Self::Cancelled => Some("cancelled"),
        }
    }
}

/// Brings `count` tasks to their ends.
///
/// # Errors
/// When a task ends otherwise than it should, or the process takes more and more.
pub(crate) async fn short(count: usize) -> Outcome<()> {
    let server = Setup::default()
        .set("KINORA_REFERENCES_ALLOW_NETWORKS", "127.0.0.0/8")
        // One host stands for those of all clients.
        .set("REFERENCE_HOST_CONNECTIONS_MAX", 1000)
        .start();
    // It answers 404: a host that is gone would get several tries.
    let host = Host::start();
    let missing = host.url("missing.png");
    let key = server.client().key().to_owned();
    let mut connection = Connection::open(server.address()).await?;
    let mut waiting = VecDeque::new();
    let mut looks = Vec::new();
    let start = Instant::now();
    for number in 0..count {
        let fate = Fate::of(number);
        let reference = (fate == Fate::Unreachable).then_some(&*missing);
        let answer = connection.ask(&submit(number, reference, &key)).await?;
        let task: Value = serde_json::from_slice(&answer)?;
        let id = task["id"].as_str().ok_or("no id")?.to_owned();
        if fate == Fate::Cancelled {
            let cancel = request("POST", &format!("/v1/videos/{id}/cancel"), &key);
            connection.ask(&cancel).await?;
        }
        waiting.push_back((id, fate));
        if waiting.len() == UNFINISHED {
            let (oldest, fate) = waiting.pop_front().ok_or("nothing waits")?;
            end(&mut connection, &oldest, fate, &key).await?;
        }
        if (number + 1) % (count / LOOKS).max(1) == 0 {
            let look = Footprint::of(server.process_id(), &server.data().path())?;
            say(&row(number + 1, start.elapsed(), &look));
            looks.push(look);
        }
    }
    for (id, fate) in waiting {
        end(&mut connection, &id, fate, &key).await?;
    }
    let complaints = server.logged(&["\"level\":\"ERROR\""]);
    if complaints > 0 {
        return Err(format!("{complaints} errors were logged").into());
    }
    judge(&looks)
}

/// Waits for the end of a task, which is its fate, and deletes it.
async fn end(connection: &mut Connection, id: &str, fate: Fate, key: &str) -> Outcome<()> {
    let path = format!("/v1/videos/{id}");
    let poll = request("GET", &path, key);
    loop {
        let task: Value = serde_json::from_slice(&connection.ask(&poll).await?)?;
        if matches!(task["status"].as_str(), Some("completed" | "failed")) {
            if task["error"]["code"].as_str() == fate.code() {
                break;
            }
            return Err(format!("a task ended otherwise: {task:#}").into());
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
    connection.ask(&request("DELETE", &path, key)).await?;
    Ok(())
}

fn row(number: usize, time: Duration, look: &Footprint) -> String {
    format!(
        "{number:>6} tasks {:>6.0} s {:>5} MB {:>4} descriptors {:>4} files {:>5} MB on disk",
        time.as_secs_f64(),
        look.memory_kib * 1024 / 1_000_000,
        look.descriptors,
        look.files,
        look.file_bytes / 1_000_000,
    )
}

type Measure = fn(&Footprint) -> u64;

/// Compares the median of the second fifth with that of the last: the first fifth fills caches,
/// and tasks under way make each look a little different.
fn judge(looks: &[Footprint]) -> Outcome<()> {
    let fifth = looks.len() / 5;
    let median = |part: &[Footprint], of: Measure| {
        let mut values: Vec<u64> = part.iter().map(of).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    let (early, late) = (&looks[fifth..2 * fifth], &looks[looks.len() - fifth..]);
    let measures: [(&str, Measure, u64); 4] = [
        ("KiB of memory", |look| look.memory_kib, 32 * 1024),
        ("descriptors", |look| look.descriptors, 8),
        ("files", |look| look.files, 3 * UNFINISHED as u64),
        ("bytes on disk", |look| look.file_bytes, 32 << 20),
    ];
    for (what, of, slack) in measures {
        let (before, after) = (median(early, of), median(late, of));
        say(&format!(
            "{what}: {before} in the second fifth, {after} in the last"
        ));
        if after > before + slack {
            return Err(format!("{what} grew by more than {slack}").into());
        }
    }
    Ok(())
}
