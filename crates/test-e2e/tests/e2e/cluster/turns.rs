//! Many tasks of several projects, two APIs and four workers: each task is made once, and while all projects have tasks
//! that wait, none is ahead of another.

use std::collections::HashMap;

use kinora_test_e2e::Setup;
use serde_json::json;

use super::{BTreeMap, Client, Cluster, Server, assert_made_once, setting, tasks_of};
use crate::support::TINY;

/// Tasks in all; `KINORA_CLUSTER_TASKS` asks for another number.
const TASKS: usize = 200;
/// Of so many, the first project has half, and the others have equal parts of the rest.
const PROJECTS: usize = 4;

/// Whose each task is.
type Owners = BTreeMap<String, usize>;

fn submit_all(clients: &[[Client; 2]], tasks: usize) -> Owners {
    let mut owners = Owners::new();
    for number in 0..tasks {
        // The one with the most tasks comes first.
        let rest = number.saturating_sub(tasks / 2);
        let project = match number < tasks / 2 {
            true => 0,
            false => 1 + rest % (PROJECTS - 1),
        };
        let client = &clients[project][number % 2];
        let video = client.submit(&json!({"model": "tiny", "prompt": "A kite"}));
        owners.insert(video.id().to_owned(), project);
    }
    owners
}

/// The projects in the order in which their tasks were claimed: by the fencing tokens in the names of the results.
fn claims(cluster: &Cluster, owners: &Owners) -> Vec<usize> {
    let mut by_token = BTreeMap::new();
    for key in cluster.objects() {
        let Some(path) = key.strip_suffix("/video.mp4") else {
            continue;
        };
        let mut parts = path.rsplit('/');
        let token: u64 = parts.next().unwrap().parse().unwrap();
        by_token.insert(token, owners[parts.next().unwrap()]);
    }
    by_token.into_values().collect()
}

/// How many tasks of each project are claimed while each has some that wait.
fn shares(claims: &[usize]) -> HashMap<usize, usize> {
    let mut left: HashMap<usize, usize> = HashMap::new();
    for project in claims {
        *left.entry(*project).or_default() += 1;
    }
    let mut taken = HashMap::new();
    for project in claims {
        let left = left.get_mut(project).unwrap();
        *left -= 1;
        *taken.entry(*project).or_default() += 1;
        if *left == 0 {
            break;
        }
    }
    taken
}

/// A machine whose clips cost little.
fn machine(cluster: &Cluster) -> Setup {
    Setup::on(&cluster.machine()).config(TINY)
}

/// With more slots, a worker leaves its last one to other projects than it runs already, whose turn may be later.
fn one_at_a_time(cluster: &Cluster) -> Server {
    let setup = cluster.process(machine(cluster).as_worker());
    setup.set("KINORA_WORKER_SLOTS", 1).start()
}

#[test]
fn many_tasks_are_made_once_each_and_projects_take_even_turns() {
    let cluster = Cluster::new();
    let apis = [(); 2].map(|()| cluster.api_of_many_on(machine(&cluster)));
    let clients: Vec<[Client; 2]> = (0..PROJECTS)
        .map(|number| {
            let first = cluster.project(&apis[0], &format!("project-{number}"));
            let second = first.at(&apis[1].base_url());
            [first, second]
        })
        .collect();
    let owners = submit_all(&clients, setting("KINORA_CLUSTER_TASKS", TASKS));
    let workers: [Server; 4] = std::array::from_fn(|_| one_at_a_time(&cluster));
    for (id, project) in &owners {
        clients[*project][0].wait_completed(id);
    }
    let accepted: Vec<String> = owners.keys().cloned().collect();
    assert_made_once(&cluster, &workers, &accepted);
    for worker in &workers {
        assert!(!tasks_of(worker, "task started").is_empty(), "one was idle");
    }
    let claims = claims(&cluster, &owners);
    assert_eq!(claims.len(), owners.len());
    let taken = shares(&claims);
    println!("{} claims, shares {taken:?}", claims.len());
    let (least, most) = (taken.values().min().unwrap(), taken.values().max().unwrap());
    assert_eq!(taken.len(), PROJECTS, "{taken:?}");
    assert!(*most as f64 <= 1.1 * *least as f64 + 1.0, "{taken:?}");
}
