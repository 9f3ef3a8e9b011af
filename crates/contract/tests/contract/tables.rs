//! Every row of the tables, by JSON and by form, on the models of the contract and on the same
//! models served by an engine that takes text only.

use std::collections::BTreeMap;

use kinora_contract::limits::{FORM_PARTS_MAX, REFERENCES_MAX};
use kinora_contract::{
    ErrorCode, Features, FormFields, ModelCatalog, RequestRefusal, SubmitIntent, SubmitRequest,
    ValidatedRequest, built_in_cards, validate,
};
use serde_json::{Value, json};

use crate::cases::{ACCEPTED, Case, Expected, REFUSALS, load};

/// The seed for requests that leave it to chance; the table of accepted requests counts on it.
const RANDOM_SEED: u32 = 7;

fn full() -> ModelCatalog {
    ModelCatalog::new(built_in_cards()).unwrap()
}

/// What a deployment offers whose engine takes text only.
fn text_only() -> ModelCatalog {
    let engine = Features {
        text_to_video: true,
        audio_output: true,
        negative_prompt: true,
        ..Features::default()
    };
    let mut cards = built_in_cards();
    for card in &mut cards {
        card.capabilities.features = card.capabilities.features.restricted_to(engine);
    }
    ModelCatalog::new(cards).unwrap()
}

type Outcome = Result<ValidatedRequest, RequestRefusal>;

fn by_json(body: &[u8], catalog: &ModelCatalog) -> Outcome {
    validate(&SubmitRequest::from_json(body)?, catalog, RANDOM_SEED)
}

fn by_form(parts: &[(String, String)], catalog: &ModelCatalog) -> Outcome {
    let mut form = FormFields::default();
    for (name, text) in parts {
        form.push(name, text.clone())?;
    }
    validate(&form.into_request()?, catalog, RANDOM_SEED)
}

/// Every way in which a case can be sent, with what comes of it.
fn outcomes(case: &Case, catalog: &ModelCatalog) -> Vec<(&'static str, Outcome)> {
    let json = case
        .json
        .as_ref()
        .map(|body| ("json", by_json(body, catalog)));
    let form = case
        .parts
        .as_ref()
        .map(|parts| ("form", by_form(parts, catalog)));
    json.into_iter().chain(form).collect()
}

/// What is wrong with the refusals of `case`, one line each.
fn complaints(case: &Case, catalog: &ModelCatalog, expected: &Expected) -> Vec<String> {
    let hint = case.column("message_has").and_then(Value::as_str);
    let judge = |(way, outcome): (&str, Outcome)| {
        let name = &case.name;
        let Err(refusal) = outcome else {
            return Some(format!("{name} ({way}): accepted, not {expected:?}"));
        };
        let found = Expected {
            code: refusal.code.as_str().to_owned(),
            param: refusal.param.clone(),
        };
        if found != *expected {
            return Some(format!("{name} ({way}): {found:?}, not {expected:?}"));
        }
        let wanted = hint.is_none_or(|hint| refusal.message.contains(hint));
        (!wanted).then(|| format!("{name} ({way}): {:?}", refusal.message))
    };
    outcomes(case, catalog)
        .into_iter()
        .filter_map(judge)
        .collect()
}

fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn every_refusal_has_its_exact_code_and_param() {
    let (catalog, cases) = (full(), load(REFUSALS));
    assert!(cases.len() >= 160, "only {} cases", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .flat_map(|case| complaints(case, &catalog, &case.full().unwrap()))
        .collect();
    assert_none(&wrong);
}

#[test]
fn every_refusal_holds_where_a_deployment_takes_text_only() {
    let catalog = text_only();
    let wrong: Vec<String> = load(REFUSALS)
        .iter()
        .flat_map(|case| complaints(case, &catalog, &case.text_only().unwrap()))
        .collect();
    assert_none(&wrong);
}

#[test]
fn every_request_at_a_limit_is_accepted_and_makes_the_expected_spec() {
    let catalog = full();
    for case in load(ACCEPTED) {
        for (way, outcome) in outcomes(&case, &catalog) {
            let submission = outcome.unwrap_or_else(|refusal| panic!("{}: {refusal}", case.name));
            assert_made(&case, way, &submission);
        }
    }
}

#[test]
fn a_deployment_that_takes_text_only_refuses_just_what_needs_more() {
    let catalog = text_only();
    for case in load(ACCEPTED) {
        let Some(expected) = case.text_only() else {
            for (way, outcome) in outcomes(&case, &catalog) {
                let submission =
                    outcome.unwrap_or_else(|refusal| panic!("{}: {refusal}", case.name));
                assert_made(&case, way, &submission);
            }
            continue;
        };
        assert_none(&complaints(&case, &catalog, &expected));
    }
}

fn assert_made(case: &Case, way: &str, submission: &ValidatedRequest) {
    let name = &case.name;
    let (kind, made) = match &submission.intent {
        SubmitIntent::New(spec) => ("new", serde_json::to_value(spec).unwrap()),
        SubmitIntent::FinalOf { model, draft } => {
            ("final", json!({"model": model, "draft": draft}))
        }
        SubmitIntent::EditOf(edit) => (
            "edit",
            json!({
                "model": edit.model, "source": edit.source, "prompt": edit.prompt,
                "negative_prompt": edit.negative_prompt, "strength": edit.strength,
                "reference_images": edit.reference_images, "seed": edit.seed,
            }),
        ),
    };
    assert_eq!(case.column("intent").unwrap(), kind, "{name} ({way})");
    for (field, expected) in case.column("spec").unwrap().as_object().unwrap() {
        assert_eq!(&made[field], expected, "{name} ({way}): {field}");
    }
    if let Some(expected) = case.column("metadata") {
        let expected: BTreeMap<String, String> = serde_json::from_value(expected.clone()).unwrap();
        assert_eq!(submission.metadata, expected, "{name} ({way})");
    }
}

#[test]
fn the_tables_name_each_case_once_and_no_form_has_too_many_parts() {
    for table in [REFUSALS, ACCEPTED] {
        let cases = load(table);
        let names: std::collections::BTreeSet<&str> =
            cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
        for case in &cases {
            let parts = case.parts.as_ref().map_or(0, Vec::len);
            assert!(parts <= FORM_PARTS_MAX, "{}", case.name);
        }
    }
}

#[test]
fn every_code_that_a_body_alone_can_earn_is_in_the_table() {
    let seen: std::collections::BTreeSet<String> = load(REFUSALS)
        .iter()
        .map(|case| case.full().unwrap().code)
        .collect();
    let elsewhere = [
        ErrorCode::UnsupportedOperation,
        ErrorCode::FileUploadUnsupported,
        ErrorCode::MalformedBody,
        ErrorCode::ContentPolicy,
        ErrorCode::UnsupportedFile,
        ErrorCode::UnsupportedImage,
        ErrorCode::ImageTooSmall,
        ErrorCode::ImageTooLarge,
        ErrorCode::InvalidAspectRatio,
        ErrorCode::UnsupportedAudio,
        ErrorCode::AudioTooShort,
        ErrorCode::AudioTooLong,
    ];
    for code in ErrorCode::ALL {
        if code.http_status() == 400 && !elsewhere.contains(code) {
            assert!(seen.contains(code.as_str()), "{}", code.as_str());
        }
    }
}

/// No built-in card offers more than the bound on all items, so a roomier one is made for it.
#[test]
fn the_bound_on_all_reference_items_holds_on_a_model_that_takes_more() {
    let mut cards = built_in_cards();
    cards[0].capabilities.features.reference_images_max = 20;
    let catalog = ModelCatalog::new(cards).unwrap();
    let outcome = |images: usize, audios: usize| {
        let body = json!({
            "model": "kinora-a1", "prompt": "x",
            "reference_images": vec!["https://example.com/a.png"; images],
            "reference_audios": vec!["https://example.com/a.wav"; audios],
        });
        by_json(body.to_string().as_bytes(), &catalog)
    };
    assert!(outcome(REFERENCES_MAX - 1, 1).is_ok());
    for (images, audios) in [(REFERENCES_MAX, 1), (REFERENCES_MAX - 2, 3), (20, 3)] {
        let refusal = outcome(images, audios).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::UnsupportedCombination);
        assert_eq!(refusal.param.as_deref(), Some("reference_images"));
    }
}

/// A model that edits and sounds and drafts does not exist yet; when it does, nothing that an
/// edit cannot follow may be dropped in silence.
#[test]
fn an_edit_refuses_what_it_cannot_follow_on_any_model() {
    let mut cards = built_in_cards();
    cards[0].capabilities.features.edit = true;
    let catalog = ModelCatalog::new(cards).unwrap();
    for (field, value) in [("generate_audio", json!(false)), ("draft", json!(false))] {
        let body = json!({
            "model": "kinora-a1", "prompt": "x", field: value,
            "edit_task_id": "video_01k3v8r2n8p5c1w9g7d4x6m2ta",
        });
        let refusal = by_json(body.to_string().as_bytes(), &catalog).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::UnsupportedCombination);
        assert_eq!(refusal.param.as_deref(), Some(field));
    }
}

#[test]
fn the_final_of_a_draft_is_no_edit_on_any_model() {
    let mut cards = built_in_cards();
    cards[0].capabilities.features.edit = true;
    let catalog = ModelCatalog::new(cards).unwrap();
    let id = "video_01k3v8r2n8p5c1w9g7d4x6m2ta";
    for (field, value) in [("edit_task_id", json!(id)), ("edit_strength", json!(0.5))] {
        let body = json!({"model": "kinora-a1", "draft_task_id": id, field: value});
        let refusal = by_json(body.to_string().as_bytes(), &catalog).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::UnsupportedCombination);
        assert_eq!(refusal.param.as_deref(), Some(field));
    }
}

#[test]
fn an_alias_is_accepted_and_the_spec_carries_the_identifier() {
    let mut cards = built_in_cards();
    cards[0].aliases.push("sora-2".to_owned());
    let catalog = ModelCatalog::new(cards).unwrap();
    let submission = by_json(br#"{"model":"sora-2","prompt":"x"}"#, &catalog).unwrap();
    assert_eq!(submission.model(), "kinora-a1");
}

/// What is refused may be logged or shown; a URL may carry a signature, a prompt may be private.
#[test]
fn no_message_quotes_a_url_or_a_prompt() {
    let body = json!({
        "model": "kinora-a1", "prompt": "PRIVATE",
        "first_frame": "https://user:SECRET@example.com/?sig=SECRET",
    });
    let refusal = by_json(body.to_string().as_bytes(), &full()).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::InvalidUrl);
    assert!(!refusal.message.contains("SECRET"), "{}", refusal.message);

    let broken = br#"{"model":"kinora-a1","prompt":"PRIVATE" "#;
    let refusal = by_json(broken, &full()).unwrap_err();
    assert!(!refusal.message.contains("PRIVATE"), "{}", refusal.message);
}
