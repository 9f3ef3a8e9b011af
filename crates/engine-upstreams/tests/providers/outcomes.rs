//! How jobs end, and what a provider refuses.

use kinora_contract::FailureCode;
use kinora_engine_upstreams::dialects::RemoteError;
use kinora_testkit::providers::Fate;

use crate::case::{CASES, Input};
use crate::stage::Stage;

const FILM: &[u8] = b"\0\0\0\x18ftypisom";

#[tokio::test]
async fn a_film_is_brought_and_the_provider_had_nothing_to_refuse() {
    for case in CASES {
        let mut stage = Stage::new(case);
        let ran = stage.run(Input::Text).await;
        let refusals = stage.server.refusals();
        assert!(ran.is_ok(), "{}: {ran:?} {refusals:?}", case.dialect);
        assert_eq!(std::fs::read(stage.result()).unwrap(), FILM, "{}", case.dialect);
        assert!(refusals.is_empty(), "{}: {refusals:?}", case.dialect);
        assert_eq!(stage.server.submits().len(), 1, "{}", case.dialect);
    }
}

#[tokio::test]
async fn a_film_at_another_origin_is_read_without_the_key() {
    for case in CASES {
        let mut stage = Stage::new(case);
        stage.server.set(|one| one.moves_films = true);
        let ran = stage.run(Input::Text).await;
        let refusals = stage.server.refusals();
        assert!(ran.is_ok(), "{}: {ran:?} {refusals:?}", case.dialect);
        assert_eq!(std::fs::read(stage.result()).unwrap(), FILM, "{}", case.dialect);
        assert!(refusals.is_empty(), "{}: {refusals:?}", case.dialect);
        assert_eq!(stage.server.requests_elsewhere().len(), 1, "{}", case.dialect);
    }
}

#[tokio::test]
async fn a_failure_and_a_moderation_are_told_apart() {
    for case in CASES {
        for (fate, code) in [
            (Fate::Failing, FailureCode::GenerationFailed),
            (Fate::Moderated, FailureCode::ContentPolicy),
        ] {
            let mut stage = Stage::new(case);
            stage.server.set(|one| one.fate = fate);
            let error = stage.run(Input::Text).await.unwrap_err();
            let found = error.failure().code;
            assert_eq!(found, code.as_str(), "{}: {error:?}", case.dialect);
            assert_eq!(stage.server.submits().len(), 1, "{}", case.dialect);
            assert!(!stage.result().exists(), "{}", case.dialect);
        }
    }
}

#[tokio::test]
async fn a_moderated_submit_fails_the_task_and_not_the_provider() {
    for case in CASES {
        let mut stage = Stage::new(case);
        stage.server.set(|one| one.moderates_submits = true);
        let error = stage.run(Input::Text).await.unwrap_err();
        let code = FailureCode::ContentPolicy.as_str();
        assert_eq!(error.failure().code, code, "{}: {error:?}", case.dialect);
        assert_eq!(stage.server.refusals().len(), 1, "{}", case.dialect);
        // The next task is served as if nothing had been.
        stage.server.set(|one| one.moderates_submits = false);
        let ran = stage.run(Input::Text).await;
        assert!(ran.is_ok(), "{}: {ran:?}", case.dialect);
    }
}

#[tokio::test]
async fn a_cancel_reaches_a_provider_that_has_one() {
    for case in CASES {
        let mut stage = Stage::new(case);
        stage.server.set(|one| one.fate = case.cancels.unwrap_or(Fate::Endless));
        stage.notes.cancels = Some(stage.cancel.clone());
        let error = stage.run(Input::Text).await.unwrap_err();
        assert!(matches!(error, RemoteError::Cancelled), "{}: {error:?}", case.dialect);
        let expected = usize::from(case.cancels.is_some());
        assert_eq!(stage.server.cancelled(), expected, "{}", case.dialect);
        let refusals = stage.server.refusals();
        assert!(refusals.is_empty(), "{}: {refusals:?}", case.dialect);
    }
}
