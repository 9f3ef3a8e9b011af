//! A JSON body: it is refused with a code, or becomes a spec that survives being stored.

use std::sync::LazyLock;

use kinora_contract::{
    ModelCatalog, SubmitIntent, SubmitRequest, VideoSpec, built_in_cards, validate,
};

static CATALOG: LazyLock<ModelCatalog> =
    LazyLock::new(|| ModelCatalog::new(built_in_cards()).expect("the built-in cards are right"));

pub(crate) fn check(body: &[u8]) {
    let Ok(request) = SubmitRequest::from_json(body) else {
        return;
    };
    if let Ok(submission) = validate(&request, &CATALOG, 7)
        && let SubmitIntent::New(spec) = submission.intent
    {
        let stored = serde_json::to_vec(&*spec).expect("a spec can be written");
        let read: VideoSpec = serde_json::from_slice(&stored).expect("and read again");
        assert_eq!(read, *spec);
    }
}
