//! Each kind of input is sent exactly as recorded, and no other kind is sent at all.

use kinora_engine_upstreams::dialects::RemoteError;
use serde_json::Value;

use crate::case::{CASES, Input};
use crate::stage::Stage;

#[tokio::test]
async fn each_kind_of_input_is_sent_as_it_was_recorded() {
    for case in CASES {
        for (input, line, body) in case.requests {
            let stage = Stage::new(case);
            let job = stage.remote.submit(&stage.request(*input)).await;
            let refusals = stage.server.refusals();
            assert!(job.is_ok(), "{} {input:?}: {refusals:?}", case.dialect);
            let body: Value = serde_json::from_str(body).unwrap();
            let expected = vec![((*line).to_owned(), body)];
            assert_eq!(stage.server.submits(), expected, "{} {input:?}", case.dialect);
        }
    }
}

#[tokio::test]
async fn an_input_that_the_provider_lacks_is_refused_before_anything_is_sent() {
    for case in CASES {
        for input in Input::ALL {
            if case.requests.iter().any(|(one, _, _)| *one == input) {
                continue;
            }
            let stage = Stage::new(case);
            let refused = stage.remote.submit(&stage.request(input)).await;
            let is_refused = matches!(refused, Err(RemoteError::Unsupported(_)));
            assert!(is_refused, "{} {input:?}: {refused:?}", case.dialect);
            assert!(stage.server.requests().is_empty(), "{}", case.dialect);
        }
    }
}
