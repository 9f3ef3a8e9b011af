//! Generated requests: accepted ones of every kind, and arbitrary fields with arbitrary values.
//! Generated specs and times stay within what a store may hold.

use kinora_contract::{AspectRatio, ModelCatalog, Resolution, TaskId};
use kinora_contract::{ModelCard, built_in_cards};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

pub(crate) type Body = Map<String, Value>;

pub(crate) fn catalog() -> ModelCatalog {
    ModelCatalog::new(built_in_cards()).unwrap()
}

pub(crate) fn task_id() -> impl Strategy<Value = TaskId> {
    (0_u64..1 << 48, any::<[u8; 10]>()).prop_map(|(time, random)| TaskId::from_parts(time, random))
}

fn text(chars_max: usize) -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..chars_max).prop_map(|chars| chars.into_iter().collect())
}

fn url() -> impl Strategy<Value = Value> {
    "https?://[a-z]{1,9}\\.example/[a-z0-9/_.-]{0,20}(\\?s=[A-Za-z0-9%]{0,9})?"
        .prop_map(Value::from)
}

fn seconds(card: &ModelCard) -> BoxedStrategy<Value> {
    let can = &card.capabilities;
    let numbers = (can.seconds_min..=can.seconds_max).prop_flat_map(|seconds| {
        let spellings = [
            json!(seconds),
            json!(seconds.to_string()),
            json!(f64::from(seconds)),
        ];
        select(spellings.to_vec())
    });
    if can.features.auto_duration {
        let auto = select(vec![json!("auto"), json!(-1), json!("-1")]);
        prop_oneof![3 => numbers, 1 => auto].boxed()
    } else {
        numbers.boxed()
    }
}

/// Some of `size`, `resolution` and `aspect_ratio`.
fn shape(card: &ModelCard, with_image: bool) -> impl Strategy<Value = Body> + use<> {
    let size = select(card.capabilities.sizes.clone())
        .prop_map(|size| fields([("size", Some(json!(size)))]));
    let mut ratios: Vec<&str> = AspectRatio::ALL.iter().map(|ratio| ratio.name()).collect();
    if with_image {
        ratios.push("adaptive");
    }
    let resolutions: Vec<&str> = Resolution::ALL.iter().map(|one| one.name()).collect();
    let parts = (of(select(resolutions)), of(select(ratios))).prop_map(|(resolution, ratio)| {
        fields([
            ("resolution", resolution.map(Value::from)),
            ("aspect_ratio", ratio.map(Value::from)),
        ])
    });
    prop_oneof![1 => size, 2 => parts]
}

/// Reference material in every allowed form.
fn inputs(card: &ModelCard) -> impl Strategy<Value = Body> + use<> {
    let can = card.capabilities.features;
    let first = (
        select(vec!["first_frame", "input_reference"]),
        url(),
        of(url()),
    );
    let frames =
        first.prop_map(|(name, first, last)| fields([(name, Some(first)), ("last_frame", last)]));
    let object =
        url().prop_map(|url| fields([("input_reference", Some(json!({"image_url": url})))]));
    let images = vec(url(), 1..=can.reference_images_max as usize);
    let audios = vec(url(), 0..=can.reference_audios_max as usize);
    let references = (images, audios).prop_map(|(images, audios)| {
        let audios = (!audios.is_empty()).then(|| Value::from(audios));
        fields([
            ("reference_images", Some(images.into())),
            ("reference_audios", audios),
        ])
    });
    prop_oneof![Just(Body::new()), frames, object, references]
}

fn fields<const N: usize>(pairs: [(&str, Option<Value>); N]) -> Body {
    let sent = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
    pairs.into_iter().filter_map(sent).collect()
}

fn prompt() -> impl Strategy<Value = Value> {
    (text(40), "\\S", text(40)).prop_map(|(before, solid, after)| json!(before + &solid + &after))
}

fn metadata() -> impl Strategy<Value = Option<Value>> {
    of(
        btree_map(text(20).prop_map(|key| format!("k{key}")), text(40), 1..9)
            .prop_map(|pairs| json!(pairs)),
    )
}

fn seed() -> impl Strategy<Value = Option<Value>> {
    of(prop_oneof![Just(-1), 0..=i64::from(u32::MAX)].prop_map(Value::from))
}

/// A request that makes a new video.
pub(crate) fn new_body() -> impl Strategy<Value = Body> {
    select(built_in_cards()).prop_flat_map(|card| {
        let can = card.capabilities.features;
        let id = card.id.clone();
        let shaped = inputs(&card).prop_flat_map({
            let card = card.clone();
            move |inputs| {
                let with_image = !inputs.is_empty();
                shape(&card, with_image).prop_map(move |mut shape| {
                    shape.extend(inputs.clone());
                    shape
                })
            }
        });
        let flags = (of(any::<bool>()), of(any::<bool>()));
        let rest = (
            prompt(),
            of(text(60)),
            of(seconds(&card)),
            seed(),
            metadata(),
            flags,
        );
        (shaped, rest).prop_map(move |(mut body, rest)| {
            let (prompt, negative, seconds, seed, metadata, (audio, draft)) = rest;
            body.extend(fields([
                ("model", Some(json!(id))),
                ("prompt", Some(prompt)),
                ("negative_prompt", negative.map(Value::from)),
                ("seconds", seconds),
                ("seed", seed),
                ("metadata", metadata),
                (
                    "generate_audio",
                    audio.filter(|_| can.audio_output).map(Value::from),
                ),
                ("draft", draft.filter(|_| can.draft).map(Value::from)),
            ]));
            body
        })
    })
}

/// An accepted request: a new video, the final of a draft, or an edit.
pub(crate) fn body() -> impl Strategy<Value = Body> {
    let last = (task_id(), metadata()).prop_map(|(id, metadata)| {
        fields([
            ("model", Some(json!("kinora-a1"))),
            ("draft_task_id", Some(json!(id))),
            ("metadata", metadata),
        ])
    });
    let rest = (prompt(), of(text(60)), of(0.0..=1.0), seed(), metadata());
    let edit = (task_id(), of(vec(url(), 1..=4)), rest).prop_map(|(id, images, rest)| {
        let (prompt, negative, strength, seed, metadata) = rest;
        fields([
            ("model", Some(json!("kinora-b1"))),
            ("edit_task_id", Some(json!(id))),
            ("reference_images", images.map(Value::from)),
            ("prompt", Some(prompt)),
            ("negative_prompt", negative.map(Value::from)),
            ("edit_strength", strength.map(Value::from)),
            ("seed", seed),
            ("metadata", metadata),
        ])
    });
    prop_oneof![4 => new_body(), 1 => last, 1 => edit]
}

/// Any JSON value, often one that some field would take.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-2_i64..20).prop_map(Value::from),
        text(20).prop_map(Value::from),
        select(vec![
            "auto",
            "5",
            "720p",
            "1280x720",
            "16:9",
            "adaptive",
            "kinora-a1",
            "kinora-b1",
            "high"
        ])
        .prop_map(Value::from),
        url(),
        task_id().prop_map(|id| json!(id)),
    ];
    leaf.prop_recursive(3, 24, 8, |inner| {
        let name = prop_oneof![Just("image_url".to_owned()), text(9)];
        prop_oneof![
            vec(inner.clone(), 0..14).prop_map(Value::from),
            btree_map(name, inner, 0..18).prop_map(|pairs| json!(pairs)),
        ]
    })
}

/// A field's name: of one that exists, of one that is refused by name, or any text.
pub(crate) fn any_name() -> impl Strategy<Value = String> {
    const NAMES: &[&str] = &[
        "model",
        "prompt",
        "negative_prompt",
        "seconds",
        "size",
        "resolution",
        "aspect_ratio",
        "input_reference",
        "first_frame",
        "last_frame",
        "reference_images",
        "reference_audios",
        "generate_audio",
        "seed",
        "draft",
        "draft_task_id",
        "edit_task_id",
        "edit_strength",
        "metadata",
        "priority",
        "reference_videos",
        "video",
        "extend",
    ];
    prop_oneof![8 => select(NAMES).prop_map(str::to_owned), 1 => text(80)]
}

/// Arbitrary fields, laid over an accepted request or over nothing.
pub(crate) fn any_body() -> impl Strategy<Value = Body> {
    let base = prop_oneof![Just(Body::new()), body()];
    (base, btree_map(any_name(), any_value(), 0..6)).prop_map(|(mut body, over)| {
        body.extend(over);
        body
    })
}
