//! What must hold for every provider.

use kinora_contract::{
    Amount, CardRecord, Currency, FailureCode, Features, FrameSize, ModelCard, Money, VideoInputs,
    VideoLength, VideoSpec, uploaded,
};
use kinora_engine::conformance::film;
use kinora_engine::{EngineError, JobControl};
use kinora_testkit::providers::{Fate, Submit};
use serde_json::Value;
use toml::Table;

use crate::common::{frames, references, spec};
use crate::logs::Logs;
use crate::support::{
    FACE, FIRST, KEY, LAST, ProviderCase, Studio, VOICE, configuration, connect, engines,
    set_for_test,
};
use crate::{cases_a, cases_b};

fn all() -> impl Iterator<Item = &'static ProviderCase> {
    cases_a::ALL.iter().chain(cases_b::ALL)
}

/// The public code of a failure.
fn code(failed: Result<(), EngineError>) -> FailureCode {
    match failed.unwrap_err() {
        EngineError::CodedFailure { code, .. } | EngineError::JobFailed { code, .. } => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_example_of_the_page_on_providers_is_an_engine() {
    let page = include_str!("../../../../docs/providers.md");
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next();
    let example: Table = example.unwrap().parse().unwrap();
    let mut settings = example["engines"][0].as_table().unwrap().clone();
    let folder = tempfile::tempdir().unwrap();
    set_for_test(&mut settings, "http://127.0.0.1:1", folder.path(), KEY);
    let can = connect(settings).describe().features;
    assert!(can.first_frame && !can.last_frame && !can.negative_prompt);
    assert_eq!((can.reference_images_max, can.audio_output), (0, false));
}

/// Every kind of input that a model takes.
fn inputs(can: Features) -> Vec<VideoInputs> {
    let mut inputs = Vec::new();
    if can.text_to_video {
        inputs.push(VideoInputs::Text);
    }
    if can.first_frame {
        inputs.push(frames(FIRST, None));
    }
    if can.last_frame {
        inputs.push(frames(FIRST, Some(LAST)));
    }
    if can.reference_images_max > 0 {
        let images = vec![FACE; can.reference_images_max.min(9) as usize];
        let sounds = vec![VOICE; can.reference_audios_max.min(3) as usize];
        inputs.push(references(&images, &sounds));
    }
    inputs
}

/// Every request at the limits of a card.
fn requests(card: &ModelCard) -> Vec<VideoSpec> {
    let can = &card.capabilities;
    let mut specs = Vec::new();
    for inputs in inputs(can.features) {
        for size in &can.sizes {
            for seconds in [can.seconds_min, can.seconds_max] {
                let mut spec = spec(inputs.clone());
                spec.frame = FrameSize::Fixed(*size);
                spec.seconds = VideoLength::Fixed(seconds);
                spec.seed = u32::MAX;
                spec.generate_audio = can.features.audio_output;
                let rain = || "rain".to_owned();
                spec.negative_prompt = can.features.negative_prompt.then(rain);
                specs.push(spec);
            }
        }
    }
    specs
}

#[tokio::test]
async fn a_provider_takes_all_that_a_ready_made_card_promises() {
    for case in all() {
        for settings in engines(case.name) {
            let name = settings["name"].as_str().unwrap().to_owned();
            let studio = Studio::of(case, settings, KEY, |_, _| {});
            let cards = configuration(case.name)["models"]
                .as_array()
                .unwrap()
                .clone();
            let mut cards: Vec<CardRecord> = cards
                .into_iter()
                .map(|card| card.try_into().unwrap())
                .collect();
            cards.retain(|card| card.engine == name);
            assert!(!cards.is_empty(), "{name} of {} has no card", case.name);
            for record in cards {
                let can = studio.engine.describe().features;
                let card = record.card(can);
                let card = card.unwrap_or_else(|error| panic!("{name}: {error}"));
                for spec in requests(&card) {
                    let made = studio.film_unchanged(&spec).await;
                    let refused = studio.provider.refusals();
                    assert!(made.is_ok(), "{made:?} {refused:?}: {spec:?}");
                }
            }
            assert_eq!(studio.provider.refusals(), [""; 0], "{}", case.name);
        }
    }
}

#[tokio::test]
async fn every_provider_keeps_what_makers_of_films_promise() {
    for case in all() {
        let kept = film::check(async || Studio::open(case)).await;
        kept.unwrap_or_else(|broken| panic!("{}: {broken}", case.name));
    }
}

#[tokio::test]
async fn each_kind_of_input_is_sent_as_the_provider_wants_it() {
    for case in all() {
        let studio = Studio::open(case);
        let mut expected = Vec::<Submit>::new();
        for (inputs, line, body) in (case.requests)() {
            let made = studio.film(&spec(inputs)).await;
            let refused = studio.provider.refusals();
            made.unwrap_or_else(|error| panic!("{}: {error} {refused:?}", case.name));
            expected.push((line.to_owned(), body));
        }
        assert_eq!(studio.provider.submits(), expected, "{}", case.name);
        assert_eq!(studio.provider.refusals(), [""; 0], "{}", case.name);
    }
}

/// `body` with `data:` URLs instead of addresses.
fn with_data(body: &Value) -> Value {
    match body {
        Value::String(text) if text.starts_with("https://e.org/") => {
            "data:image/png;base64,ZmFjZQ==".into()
        }
        Value::Array(items) => items.iter().map(with_data).collect(),
        Value::Object(fields) => {
            let pairs = fields.iter();
            pairs
                .map(|(name, value)| (name.clone(), with_data(value)))
                .collect()
        }
        other => other.clone(),
    }
}

#[tokio::test]
async fn an_uploaded_picture_goes_inside_the_request_or_is_refused_unsent() {
    for case in all() {
        let framed = |(inputs, ..): &(VideoInputs, &str, Value)| {
            matches!(inputs, VideoInputs::Frames { last: None, .. })
        };
        let Some((_, line, body)) = (case.requests)().into_iter().find(framed) else {
            continue;
        };
        let studio = Studio::open(case);
        let spec = spec(frames(&uploaded::reference_by_key("inputs/1"), None));
        let made = studio.film(&spec);
        if case.takes_data {
            made.await
                .unwrap_or_else(|error| panic!("{}: {error}", case.name));
            let expected = [(line.to_owned(), with_data(&body))];
            assert_eq!(studio.provider.submits(), expected, "{}", case.name);
        } else {
            made.await.unwrap_err();
            assert!(studio.provider.requests().is_empty(), "{}", case.name);
        }
    }
}

#[tokio::test]
async fn content_against_the_provider_s_policy_fails_the_task_with_that_code() {
    for case in all() {
        let studio = Studio::open(case);
        studio
            .provider
            .set(|behaviour| behaviour.fate = Fate::Moderated);
        let failed = studio.film(&spec(VideoInputs::Text)).await;
        assert_eq!(code(failed), FailureCode::ContentPolicy, "{}", case.name);
        assert_eq!(studio.provider.submits().len(), 1, "{}", case.name);

        if case.moderates_submits {
            studio
                .provider
                .set(|behaviour| behaviour.moderates_submits = true);
            let failed = studio.film(&spec(VideoInputs::Text)).await;
            assert_eq!(code(failed), FailureCode::ContentPolicy, "{}", case.name);
            // It is not the provider's fault: the next task is sent.
            studio.provider.set(|behaviour| {
                behaviour.moderates_submits = false;
                behaviour.fate = Fate::Succeeding;
            });
            studio.film(&spec(VideoInputs::Text)).await.unwrap();
        }
    }
}

/// What a stand-in charges for a film, in millionths of a dollar.
const CHARGED: &[(&str, u64)] = &[
    ("openrouter", 1_512_000),
    ("runway", 600_000),
    ("xai", 350_000),
];

#[tokio::test]
async fn what_a_provider_charged_is_told() {
    for case in all() {
        let studio = Studio::open(case);
        let (mut spec, control) = (spec(VideoInputs::Text), JobControl::default());
        (case.fit)(&mut spec);
        studio.film_with(&spec, &control).await.unwrap();
        let told = control.reported_cost().map(|cost| (case.name, cost));
        let expected = CHARGED.iter().find(|(name, _)| *name == case.name);
        let expected = expected.map(|(name, micros)| {
            let (amount, currency) = (Amount::from_micros(*micros), Currency::USD);
            (*name, Money { amount, currency })
        });
        assert_eq!(told, expected);
    }
}

#[tokio::test]
async fn a_submit_without_an_answer_is_not_repeated() {
    for case in all() {
        let studio = Studio::open(case);
        studio.provider.set(|behaviour| behaviour.unanswered = 1);
        studio.film(&spec(VideoInputs::Text)).await.unwrap_err();
        assert_eq!(studio.provider.submits().len(), 1, "{}", case.name);
        assert_eq!(studio.provider.looks(), 0, "{}", case.name);
    }
}

#[tokio::test]
async fn a_film_at_another_origin_is_read_without_the_key_and_only_where_that_is_allowed() {
    for case in all().filter(|case| case.links_films) {
        let named = Studio::with(case, KEY, |settings, provider| {
            let origins = vec![provider.other_origin()];
            settings.insert("result_origins".to_owned(), origins.into());
        });
        named.provider.set(|behaviour| behaviour.moves_films = true);
        named.film(&spec(VideoInputs::Text)).await.unwrap();
        assert!(
            !named.provider.requests_elsewhere().is_empty(),
            "{}",
            case.name
        );
        assert_eq!(named.provider.refusals(), [""; 0], "{}", case.name);

        let unnamed = Studio::open(case);
        unnamed
            .provider
            .set(|behaviour| behaviour.moves_films = true);
        unnamed.film(&spec(VideoInputs::Text)).await.unwrap_err();
        assert!(
            unnamed.provider.requests_elsewhere().is_empty(),
            "{}",
            case.name
        );
    }
}

#[tokio::test]
async fn a_job_that_the_provider_forgot_is_not_followed_forever() {
    for case in all() {
        let studio = Studio::open(case);
        studio
            .provider
            .set(|behaviour| behaviour.fate = Fate::Endless);
        let spec = spec(VideoInputs::Text);
        let making = studio.film(&spec);
        tokio::pin!(making);
        while studio.provider.looks() == 0 {
            let ended = tokio::time::timeout(std::time::Duration::from_millis(1), &mut making);
            assert!(ended.await.is_err(), "{}", case.name);
        }
        studio
            .provider
            .set(|behaviour| behaviour.fate = Fate::Succeeding);
        studio.provider.forget();
        let _ = making.await;
        assert!(studio.provider.submits().len() <= 2, "{}", case.name);
    }
}

#[tokio::test]
async fn a_wrong_key_is_found_by_asking_the_server() {
    for case in all() {
        for (key, is_right) in [(KEY, true), ("wrong-access:wrong-secret", false)] {
            if !is_right && !case.tells_wrong_keys {
                continue;
            }
            let studio = Studio::with(case, key, |_, _| {});
            let report = studio.engine.ask_servers().await.remove(0);
            let name = case.name;
            assert_eq!(report.refusal.is_none(), is_right, "{name}: {report:?}");
        }
    }
}

#[tokio::test]
async fn a_key_is_in_no_log_no_error_and_no_body() {
    let (logs, _second, _guard) = Logs::start();
    let mut errors = String::new();
    for case in all() {
        let studio = Studio::open(case);
        for fate in [Fate::Succeeding, Fate::Failing, Fate::Moderated] {
            studio.provider.set(|behaviour| behaviour.fate = fate);
            let ended = studio.film(&spec(VideoInputs::Text)).await;
            errors.push_str(&format!("{ended:?}"));
        }
        studio.provider.set(|behaviour| behaviour.unanswered = 1);
        errors.push_str(&format!(
            "{:?}",
            studio.film(&spec(VideoInputs::Text)).await
        ));
        for (_, body) in studio.provider.submits() {
            errors.push_str(&body.to_string());
        }
    }
    let shown = logs.text() + &errors;
    assert!(shown.contains("submitted"), "there are logs");
    assert!(!shown.contains("marked-"), "{shown}");
}
