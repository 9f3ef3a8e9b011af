//! What was submitted is never submitted again while it may run, and a key is seen nowhere.

use kinora_engine_upstreams::dialects::RemoteError;
use kinora_testkit::providers::Fate;

use crate::case::{CASES, Input};
use crate::stage::{Stage, servers};

#[tokio::test]
async fn a_restart_in_the_middle_follows_the_one_submit() {
    for case in CASES {
        let mut stage = Stage::new(case);
        let job = stage.remote.submit(&stage.request(Input::Text)).await;
        let job = job.unwrap();
        job.poll().await.unwrap();
        let kept = serde_json::to_string(job.ticket()).unwrap();
        drop(job);
        // Another process, with the ticket that was kept.
        let folder = tempfile::tempdir().unwrap();
        stage.remote = servers(case, &stage.server, &folder, case.key);
        let ticket = serde_json::from_str(&kept).unwrap();
        let ran = stage.follow(Input::Text, Some(ticket)).await;
        assert!(ran.is_ok(), "{}: {ran:?}", case.dialect);
        assert_eq!(stage.server.submits().len(), 1, "{}", case.dialect);
    }
}

#[tokio::test]
async fn a_submit_whose_answer_was_lost_is_not_repeated() {
    for case in CASES {
        let mut stage = Stage::new(case);
        stage.server.set(|one| one.unanswered = 1);
        let error = stage.run(Input::Text).await.unwrap_err();
        let is_unsettled = matches!(error, RemoteError::Unsettled { .. });
        assert!(is_unsettled, "{}: {error:?}", case.dialect);
        assert_eq!(stage.server.submits().len(), 1, "{}", case.dialect);
    }
}

#[tokio::test]
async fn a_forgotten_job_is_submitted_once_more_and_no_more() {
    for case in CASES.iter().filter(|case| case.admits_forgetting) {
        let mut stage = Stage::new(case);
        let job = stage.remote.submit(&stage.request(Input::Text)).await;
        let ticket = job.unwrap().ticket().clone();
        stage.server.forget();
        let ran = stage.follow(Input::Text, Some(ticket)).await;
        assert!(ran.is_ok(), "{}: {ran:?}", case.dialect);
        assert_eq!(stage.server.submits().len(), 2, "{}", case.dialect);
    }
}

#[tokio::test]
async fn a_key_is_in_no_error_and_no_debug_output() {
    for case in CASES {
        let mut stage = Stage::new(case);
        stage.server.set(|one| one.fate = Fate::Failing);
        let failed = stage.run(Input::Text).await.unwrap_err();
        let wrong = case.key.replace(case.secret, "wrong-marked");
        let strange = Stage::with(case, &wrong);
        let refused = strange.remote.submit(&strange.request(Input::Text)).await;
        let asked = strange.remote.ask_all().await;
        let told = format!("{failed:?} {failed} {refused:?} {asked:?} {:?}", stage.notes);
        assert!(refused.is_err(), "{}", case.dialect);
        for secret in [case.secret, "wrong-marked"] {
            assert!(!told.contains(secret), "{}: {told}", case.dialect);
        }
        assert!(strange.server.submits().is_empty(), "{}", case.dialect);
    }
}

#[tokio::test]
async fn each_provider_is_asked_whether_it_would_serve_us() {
    for case in CASES {
        let stage = Stage::new(case);
        let asked = stage.remote.ask_all().await;
        assert!(asked.iter().all(|(_, found)| found.is_ok()), "{}: {asked:?}", case.dialect);
        assert!(stage.server.submits().is_empty(), "{}", case.dialect);
    }
}
