//! A form, as names and texts: the parts of the input between zero bytes.

use std::sync::LazyLock;

use kinora_contract::edit_endpoints::edits_request;
use kinora_contract::{FormFields, ModelCatalog, SubmitRequest, built_in_cards, validate};

static CATALOG: LazyLock<ModelCatalog> =
    LazyLock::new(|| ModelCatalog::new(built_in_cards()).expect("the built-in cards are right"));

pub(crate) fn check(input: &str) {
    let mut form = FormFields::default();
    let mut parts = input.split('\0');
    while let (Some(name), Some(text)) = (parts.next(), parts.next()) {
        if form.push(name, text.to_owned()).is_err() {
            return;
        }
    }
    let fields = form.into_fields();
    let _ = edits_request(fields.clone(), &CATALOG);
    if let Ok(request) = SubmitRequest::from_fields(fields) {
        let _ = validate(&request, &CATALOG, 7);
    }
}
