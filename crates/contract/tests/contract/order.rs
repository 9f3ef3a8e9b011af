//! The order of the ranges: of two fields out of range, the earlier one in the table of fields is named.

use kinora_contract::request::{FIELDS, FieldKey};
use kinora_contract::{
    Features, ModelCard, ModelCatalog, RequestRefusal, SubmitRequest, ValidatedRequest,
    built_in_cards, validate,
};
use serde_json::{Map, Value, json};

/// A value of the right type that is out of range; `None` for a field that has no range. A new field does not
/// compile before this knows it.
fn out_of_range(field: FieldKey) -> Option<Value> {
    Some(match field {
        FieldKey::prompt => json!(""),
        FieldKey::negative_prompt => json!("x".repeat(2_501)),
        FieldKey::seconds => json!(99),
        FieldKey::size => json!("1x1"),
        FieldKey::resolution => json!("9p"),
        FieldKey::aspect_ratio => json!("9"),
        FieldKey::reference_images | FieldKey::reference_audios => json!([]),
        FieldKey::seed => json!(-9),
        FieldKey::draft_task_id | FieldKey::edit_task_id => json!("none"),
        FieldKey::edit_strength => json!(2),
        FieldKey::metadata => json!({"": "v"}),
        FieldKey::priority => json!("urgent"),
        FieldKey::model
        | FieldKey::input_reference
        | FieldKey::first_frame
        | FieldKey::last_frame
        | FieldKey::generate_audio
        | FieldKey::draft
        | FieldKey::callback_url => return None,
    })
}

/// A model that takes every field.
fn card() -> ModelCard {
    let mut card = built_in_cards().remove(0);
    card.capabilities.features = Features::ALL;
    card
}

fn send(card: ModelCard, fields: &[(&str, Value)]) -> Result<ValidatedRequest, RequestRefusal> {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(card.id));
    body.insert("prompt".to_owned(), json!("a red balloon"));
    for (name, value) in fields {
        body.insert((*name).to_owned(), value.clone());
    }
    let request = SubmitRequest::from_fields(body)?;
    validate(&request, &ModelCatalog::new(vec![card]).unwrap(), 7)
}

#[test]
fn of_two_fields_out_of_range_the_earlier_in_the_table_is_named() {
    let wrong: Vec<(&str, Value)> = FIELDS
        .iter()
        .filter_map(|field| Some((field.name, out_of_range(field.key)?)))
        .collect();
    assert_eq!(wrong.len(), 14);
    for (index, earlier) in wrong.iter().enumerate() {
        let alone = send(card(), std::slice::from_ref(earlier)).unwrap_err();
        assert_eq!(alone.param.as_deref(), Some(earlier.0));
        for later in &wrong[index + 1..] {
            let refusal = send(card(), &[later.clone(), earlier.clone()]).unwrap_err();
            let (param, later) = (refusal.param.as_deref(), later.0);
            assert_eq!(
                param,
                Some(earlier.0),
                "beside {later}: {}",
                refusal.message
            );
        }
    }
}

#[test]
fn a_resolution_that_the_model_lacks_is_named_before_what_comes_later() {
    let mut card = card();
    let sizes = &mut card.capabilities.sizes;
    sizes.retain(|size| size.to_string() == "1280x720");
    for later in ["aspect_ratio", "seed", "priority"] {
        let wrong = FIELDS.iter().find(|field| field.name == later).unwrap();
        let wrong = (later, out_of_range(wrong.key).unwrap());
        let refusal = send(card.clone(), &[("resolution", json!("480p")), wrong]).unwrap_err();
        assert_eq!(refusal.param.as_deref(), Some("resolution"), "{later}");
        assert_eq!(refusal.code.as_str(), "unsupported_value");
    }
}
