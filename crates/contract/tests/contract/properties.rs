//! What holds for every request, accepted or not: no panic, one meaning whatever the spelling,
//! and a spec that a store can keep and a caller can ask for again.

use kinora_contract::{
    FormFields, FrameSize, SubmitIntent, SubmitRequest, VideoInputs, VideoLength, VideoSpec,
    validate,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::cases::form_parts;
use crate::strategies::{Body, any_body, any_name, body, catalog, new_body};

fn parsed(body: &Body) -> SubmitRequest {
    SubmitRequest::from_fields(body.clone()).unwrap()
}

fn by_form(parts: &[(String, String)]) -> SubmitRequest {
    let mut form = FormFields::default();
    for (name, text) in parts {
        form.push(name, text.clone()).unwrap();
    }
    form.into_request().unwrap()
}

fn new_spec(request: &SubmitRequest, random_seed: u32) -> VideoSpec {
    match validate(request, &catalog(), random_seed).unwrap().intent {
        SubmitIntent::New(spec) => *spec,
        other => panic!("{other:?}"),
    }
}

/// The request that asks for `spec` in so many words.
fn asking_for(spec: &VideoSpec, sound_and_draft: bool) -> Body {
    let mut body = json!({"model": spec.model, "prompt": spec.prompt, "seed": spec.seed});
    body["negative_prompt"] = json!(spec.negative_prompt);
    body["seconds"] = match spec.seconds {
        VideoLength::Fixed(seconds) => json!(seconds),
        VideoLength::Auto => json!("auto"),
    };
    match spec.frame {
        FrameSize::Fixed(size) => body["size"] = json!(size),
        FrameSize::Adaptive(resolution) => {
            body["resolution"] = json!(resolution);
            body["aspect_ratio"] = json!("adaptive");
        }
    }
    match &spec.inputs {
        VideoInputs::Text => {}
        VideoInputs::Frames { first, last } => {
            body["first_frame"] = json!(first);
            body["last_frame"] = json!(last);
        }
        VideoInputs::References { images, audios } => {
            body["reference_images"] = json!(images);
            body["reference_audios"] = json!((!audios.is_empty()).then_some(audios));
        }
    }
    if sound_and_draft {
        body["generate_audio"] = json!(spec.generate_audio);
        body["draft"] = json!(spec.draft);
    }
    body.as_object().unwrap().clone()
}

/// `body` as JSON text with its fields in the order of `order`.
fn json_text(body: &Body, order: &[&String]) -> String {
    let field = |name: &&String| format!("{}:{}", json!(name), body[*name]);
    let fields: Vec<String> = order.iter().map(field).collect();
    format!("{{{}}}", fields.join(","))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let _ = SubmitRequest::from_json(&bytes);
    }

    #[test]
    fn no_damaged_request_panics(body in body(), place: Index, byte: u8, cut: bool) {
        let mut bytes = serde_json::to_vec(&body).unwrap();
        let place = place.index(bytes.len());
        if cut { bytes.truncate(place) } else { bytes[place] = byte }
        if let Ok(request) = SubmitRequest::from_json(&bytes) {
            let _ = validate(&request, &catalog(), 0);
        }
    }

    #[test]
    fn no_fields_panic_and_every_refusal_says_why(body in any_body(), seed: u32) {
        let outcome = SubmitRequest::from_fields(body)
            .and_then(|request| validate(&request, &catalog(), seed));
        if let Err(refusal) = outcome {
            prop_assert_eq!(refusal.code.http_status(), 400);
            prop_assert!(refusal.param.is_some());
            prop_assert!(refusal.message.ends_with(['.', '?']), "{}", refusal.message);
            prop_assert!(refusal.message.chars().count() < 600, "{}", refusal.message);
        }
    }

    #[test]
    fn no_form_parts_panic(parts in vec((any_name(), "(\\[[a-z_]*\\]?)?", any::<String>()), 0..9)) {
        let mut form = FormFields::default();
        for (name, index, text) in parts {
            if form.push(&format!("{name}{index}"), text).is_err() {
                return Ok(());
            }
        }
        if let Ok(request) = form.into_request() {
            let _ = validate(&request, &catalog(), 0);
        }
    }

    #[test]
    fn a_generated_request_is_accepted(body in body(), seed: u32) {
        let outcome = validate(&parsed(&body), &catalog(), seed);
        prop_assert!(outcome.is_ok(), "{:?}", outcome);
    }

    #[test]
    fn a_spec_survives_being_written_down(body in new_body(), seed: u32) {
        let spec = new_spec(&parsed(&body), seed);
        let text = serde_json::to_string(&spec).unwrap();
        prop_assert_eq!(serde_json::from_str::<VideoSpec>(&text).unwrap(), spec);
    }

    #[test]
    fn any_strength_survives_being_written_down(bits: u64) {
        let strength = f64::from_bits(bits);
        if strength.is_finite() {
            let text = serde_json::to_string(&strength).unwrap();
            prop_assert_eq!(serde_json::from_str::<f64>(&text).unwrap(), strength);
        }
    }

    #[test]
    fn a_spec_asked_for_again_is_the_same(body in new_body(), seed: u32, other_seed: u32) {
        let spec = new_spec(&parsed(&body), seed);
        let again = asking_for(&spec, spec.model == "kinora-a1");
        prop_assert_eq!(new_spec(&parsed(&again), other_seed), spec);
    }

    #[test]
    fn a_form_is_the_same_request_as_its_json(body in body(), seed: u32) {
        let (json, form) = (parsed(&body), by_form(&form_parts(&body)));
        prop_assert_eq!(json.fingerprint(), form.fingerprint());
        prop_assert_eq!(validate(&json, &catalog(), seed), validate(&form, &catalog(), seed));
    }

    #[test]
    fn order_and_nulls_do_not_matter(
        (body, order) in body().prop_flat_map(|body| {
            let names: Vec<String> = body.keys().cloned().collect();
            (Just(body), Just(names).prop_shuffle())
        }),
        absent in any_name(),
    ) {
        let order: Vec<&String> = order.iter().collect();
        let shuffled = SubmitRequest::from_json(json_text(&body, &order).as_bytes()).unwrap();
        prop_assert_eq!(shuffled.fingerprint(), parsed(&body).fingerprint());

        let mut with_null = body.clone();
        with_null.entry(absent).or_insert(Value::Null);
        prop_assert_eq!(parsed(&with_null).fingerprint(), parsed(&body).fingerprint());
    }

    #[test]
    fn leaving_out_any_field_changes_the_fingerprint(body in body()) {
        let whole = parsed(&body).fingerprint();
        for name in body.keys() {
            let mut less = body.clone();
            less.remove(name);
            prop_assert_ne!(parsed(&less).fingerprint(), whole.clone(), "{}", name);
        }
    }

    #[test]
    fn another_value_in_any_field_changes_the_fingerprint(body in body(), other in body()) {
        let request = parsed(&body);
        for (name, value) in other {
            let mut changed = body.clone();
            changed.insert(name, value);
            let changed = parsed(&changed);
            prop_assert_eq!(changed == request, changed.fingerprint() == request.fingerprint());
        }
    }
}

#[test]
fn fields_refused_by_name_are_part_of_the_fingerprint() {
    let plain = json!({"model": "kinora-a1", "prompt": "x"});
    let mut extended = plain.clone();
    extended["extend"] = json!("video_1");
    let [plain, extended] = [plain, extended].map(|body| parsed(body.as_object().unwrap()));
    assert_ne!(plain.fingerprint(), extended.fingerprint());
}
