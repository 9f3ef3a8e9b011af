//! Two processes' handles under load: nothing is done twice, no bound on a project is passed, and turns are fair over
//! both.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kinora_contract::ManualClock;
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{NOW, claiming, task};
use kinora_store::{ClaimRequest, InsertOutcome, NewTask, QueueBounds};
use kinora_testkit::postgres::Server;

use crate::harness::{database, open_at};

async fn both(url: &str) -> [Site; 2] {
    let clock = Arc::new(ManualClock::at(NOW));
    [open_at(url, clock.clone()).await, open_at(url, clock).await]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_s_bound_holds_over_two_handles() {
    let url = database().await;
    let sites = both(&url).await;
    let inserts = (0..64).map(|number| {
        let site = sites[number % 2].clone();
        let bounds = QueueBounds {
            project_unfinished_max: 9,
            ..QueueBounds::NONE
        };
        let new = NewTask {
            bounds,
            ..task(number as u64, "one")
        };
        tokio::spawn(async move { site.tasks.insert(new).await.unwrap() })
    });
    let mut taken = 0;
    for insert in inserts.collect::<Vec<_>>() {
        taken += u32::from(matches!(insert.await.unwrap(), InsertOutcome::Inserted(_)));
    }
    assert_eq!(taken, 9);
    assert_eq!(
        Server::shared().run(&url, "SELECT unfinished FROM projects"),
        "9"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_every_task_is_run_once_and_the_sums_stay_true() {
    let url = database().await;
    let sites = both(&url).await;
    let mut others = Vec::new();
    for submitter in 0..4_u64 {
        let site = sites[usize::from(submitter % 2 == 0)].clone();
        others.push(tokio::spawn(async move {
            for number in 0..50 {
                let project = format!("project {}", number % 5);
                let number = 100 * submitter + number;
                site.submit(number, &project).await;
                if number % 10 == 9 {
                    site.tasks
                        .delete(&project, kinora_store::conformance::fixtures::id(number))
                        .await
                        .unwrap();
                }
            }
        }));
    }
    let workers = (0..4).map(|worker| {
        let site = sites[worker % 2].clone();
        tokio::spawn(async move {
            let (mut seen, mut idle) = (Vec::new(), 0);
            while idle < 50 {
                let request = ClaimRequest {
                    worker: format!("worker {worker}"),
                    ..claiming(3)
                };
                let claims = site.work.claim(request).await.unwrap();
                idle = if claims.is_empty() { idle + 1 } else { 0 };
                for claim in claims {
                    // Its owner may have deleted it.
                    let _ = site.complete(&claim).await;
                    seen.push((claim.task.id, claim.lease.token));
                }
            }
            seen
        })
    });
    let workers: Vec<_> = workers.collect();
    for other in others {
        other.await.unwrap();
    }
    let (mut tasks, mut tokens) = (HashSet::new(), HashSet::new());
    for worker in workers {
        for (task, token) in worker.await.unwrap() {
            assert!(tasks.insert(task), "run twice");
            assert!(tokens.insert(token), "a token given out twice");
        }
    }
    while let [_, ..] = sites[0].claim(9).await[..] {}
    let differ = "SELECT p.name FROM projects p LEFT JOIN LATERAL (SELECT sum(charged_bytes) AS bytes, \
        count(*) FILTER (WHERE phase <> 'expired') AS tasks, count(*) FILTER (WHERE place IN (1, 2, 3)) AS waiting, \
        count(*) FILTER (WHERE place IS NOT NULL) AS unfinished FROM tasks WHERE project = p.name) t ON true \
        WHERE (p.bytes, p.tasks, p.waiting, p.unfinished) \
        IS DISTINCT FROM (coalesce(t.bytes, 0), t.tasks, t.waiting, t.unfinished)";
    assert_eq!(Server::shared().run(&url, differ), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_are_fair_over_two_handles() {
    let url = database().await;
    let sites = both(&url).await;
    for number in 0..60 {
        sites[0].submit(number, "many").await;
    }
    for number in 60..72 {
        sites[1]
            .submit(number, ["few", "some"][usize::from(number % 2 == 0)])
            .await;
    }
    let mut served: HashMap<String, u32> = HashMap::new();
    for turn in 0..18 {
        let claim = sites[turn % 2].claim_one().await;
        sites[turn % 2].complete(&claim).await.unwrap();
        *served.entry(claim.task.project).or_default() += 1;
    }
    assert_eq!(served.into_values().collect::<Vec<_>>(), [6, 6, 6]);
}
