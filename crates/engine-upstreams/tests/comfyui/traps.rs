//! What goes wrong between a service and its servers, and runs nothing twice for it.

use std::sync::Arc;

use kinora_contract::FailureCode;
use kinora_engine::EngineError;
use kinora_testkit::comfyui::{TestComfy, Works, workflow};

use crate::common::MP4;
use crate::support::{BINDINGS, Task, card, engine, until};

fn on(servers: &[&TestComfy]) -> kinora_engine_upstreams::comfyui::ComfyEngine {
    engine(card(&workflow(), BINDINGS), servers)
}

async fn told(task: &Task, servers: &[&TestComfy]) -> (FailureCode, String) {
    match task.film(&on(servers)).await {
        Err(EngineError::CodedFailure { code, cause } | EngineError::JobFailed { code, cause }) => {
            (code, cause)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_ticket_is_kept_before_the_server_hears_of_the_job() {
    let server = Arc::new(TestComfy::start());
    let task = Task::watching(&server);
    task.must_film(&on(&[&server])).await;
    let tickets = task.shelf.tickets.lock().unwrap().clone();
    assert_eq!(tickets.len(), 1);
    let (ticket, begun_before) = &tickets[0];
    assert_eq!(*begun_before, 0);
    assert!(ticket.contains(&server.begun()[0]), "{ticket}");
}

#[tokio::test]
async fn a_submit_that_was_taken_and_not_answered_is_not_repeated() {
    for refuses_duplicates in [false, true] {
        let server = TestComfy::start();
        server.set(|behaviour| {
            behaviour.refuses_duplicates = refuses_duplicates;
            behaviour.unanswered = 1;
        });
        Task::default().must_film(&on(&[&server])).await;
        assert_eq!(server.begun().len(), 1);
    }
}

#[tokio::test]
async fn a_job_that_one_server_may_have_goes_to_no_other() {
    let servers = [TestComfy::start(), TestComfy::start()];
    servers[0].set(|behaviour| behaviour.unanswered = 1);
    let all = [&servers[0], &servers[1]];
    Task::default().must_film(&on(&all)).await;
    assert_eq!(all.map(|server| server.begun().len()), [1, 0]);
}

#[tokio::test]
async fn a_submit_that_did_not_arrive_is_repeated() {
    let server = TestComfy::start();
    server.set(|behaviour| behaviour.lost = 2);
    Task::default().must_film(&on(&[&server])).await;
    assert_eq!(server.begun().len(), 1);
}

#[tokio::test]
async fn a_job_whose_ticket_was_lost_is_found_by_its_name() {
    let server = TestComfy::start();
    Task::default().must_film(&on(&[&server])).await;
    Task::default().must_film(&on(&[&server])).await;
    assert_eq!(server.begun().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_and_forgets_gets_the_job_again() {
    let server = Arc::new(TestComfy::start());
    server.set(|behaviour| behaviour.works = Works::Endless);
    let engine = on(&[&server]);
    let making = tokio::spawn(async move { Task::default().must_film(&engine).await });
    until(|| server.looks() > 2).await;
    server.set(|behaviour| behaviour.works = Works::Well);
    server.restart();
    assert_eq!(making.await.unwrap(), MP4);
    let begun = server.begun();
    assert!(
        matches!(&begun[..], [one, other] if one == other),
        "{begun:?}"
    );
}

#[tokio::test]
async fn outputs_that_lag_behind_the_state_are_waited_for_under_any_key() {
    for key in ["images", "gifs", "anything"] {
        let server = TestComfy::start();
        server.set(|behaviour| {
            behaviour.key = key;
            behaviour.lag = 3;
        });
        Task::default().must_film(&on(&[&server])).await;
    }
}

#[tokio::test]
async fn outputs_that_never_come_fail_the_task_with_the_node() {
    let server = TestComfy::start();
    server.set(|behaviour| behaviour.lag = 1_000);
    let (code, cause) = told(&Task::default(), &[&server]).await;
    assert_eq!(code, FailureCode::GenerationFailed);
    assert!(cause.contains("node 9"), "{cause}");
}

#[tokio::test]
async fn an_error_of_a_node_fails_the_task_with_the_node_s_words() {
    let server = TestComfy::start();
    server.set(|behaviour| behaviour.works = Works::Badly("ValueError"));
    let (code, cause) = told(&Task::default(), &[&server]).await;
    assert_eq!(code, FailureCode::GenerationFailed);
    assert!(
        cause.contains("KSampler") && cause.contains("ValueError"),
        "{cause}"
    );
}

#[tokio::test]
async fn a_server_without_the_classes_or_the_model_is_passed_over() {
    let lacking: [fn(&TestComfy); 2] = [
        |server| server.set(|behaviour| behaviour.lacks = vec!["ImageToVideo"]),
        |server| server.set(|behaviour| behaviour.models = vec!["other.safetensors"]),
    ];
    for lack in lacking {
        let (poor, rich) = (TestComfy::start(), TestComfy::start());
        lack(&poor);
        Task::default().must_film(&on(&[&poor, &rich])).await;
        assert_eq!((poor.begun().len(), rich.begun().len()), (0, 1));
        let (_, cause) = told(&Task::default(), &[&poor]).await;
        let says = cause.contains("ImageToVideo") || cause.contains("model.safetensors");
        assert!(says && cause.contains(&poor.base_url()), "{cause}");
    }
}

#[tokio::test]
async fn jobs_go_to_the_least_busy_server() {
    let servers = [TestComfy::start(), TestComfy::start()];
    let engine = Arc::new(on(&[&servers[0], &servers[1]]));
    for server in &servers {
        server.set(|behaviour| behaviour.works = Works::Endless);
    }
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let engine = engine.clone();
        let before: usize = servers.iter().map(|server| server.begun().len()).sum();
        tasks.push(tokio::spawn(
            async move { Task::default().film(&*engine).await },
        ));
        let all = || {
            servers
                .iter()
                .map(|server| server.begun().len())
                .sum::<usize>()
        };
        until(|| all() > before).await;
    }
    assert_eq!([servers[0].begun().len(), servers[1].begun().len()], [1, 1]);
    for server in &servers {
        server.set(|behaviour| behaviour.works = Works::Well);
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_server_that_does_not_tell_the_state_of_jobs_is_too_old_and_gets_none() {
    let server = TestComfy::start();
    server.set(|behaviour| {
        behaviour.has_jobs = false;
        behaviour.works = Works::Endless;
    });
    let (_, cause) = told(&Task::default(), &[&server]).await;
    assert!(cause.contains("0.6.0"), "{cause}");
    assert!(server.begun().is_empty(), "{:?}", server.begun());
}

#[tokio::test]
async fn a_server_that_names_jobs_itself_is_too_old_and_runs_nothing_of_ours() {
    let server = TestComfy::start();
    server.set(|behaviour| behaviour.names_jobs = true);
    let (_, cause) = told(&Task::default(), &[&server]).await;
    assert!(cause.contains("0.6.0"), "{cause}");
    assert_eq!(server.begun(), server.stopped());
}
