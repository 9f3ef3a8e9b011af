//! Details that types cannot express: lists of values, patterns and bounds, from the same tables
//! that validation reads. They are applied to the generated document as a merge patch (RFC 7386).

use kinora_contract::limits::{
    FILE_PURPOSE_CHARS_MAX, FILE_SECONDS_MAX, FILE_SECONDS_MIN, IDEMPOTENCY_KEY_CHARS_MAX,
    METADATA_KEY_CHARS_MAX, METADATA_PAIRS_MAX, METADATA_VALUE_CHARS_MAX,
    NEGATIVE_PROMPT_CHARS_MAX, PAGE_LIMIT_MAX, PAGE_LIMIT_MIN, PAUSE_REASON_CHARS_MAX,
    PROMPT_CHARS_MAX, SECONDS_DEFAULT, SECONDS_MAX, SECONDS_MIN, SEED_MAX, URL_BYTES_MAX,
};
use kinora_contract::request::{FIELDS, FieldKey};
use kinora_contract::{AspectRatio, Features, ModelCatalog, Priority, Resolution, Size, Status};
use serde_json::{Map, Value, json};

use crate::result_files::ResultVariant;

/// Applies these details to `document`.
pub(super) fn make_exact(document: &mut Value, catalog: &ModelCatalog) {
    merge(
        document,
        &json!({"components": {"schemas": schemas(catalog)}}),
    );
    add_lengths(document, catalog);
    let Some(Value::Object(paths)) = document.get_mut("paths") else {
        return;
    };
    for (path, operations) in paths {
        let operations = operations.as_object_mut().into_iter().flatten();
        for (_, operation) in operations {
            exact_operation(path, operation);
        }
    }
}

fn exact_operation(path: &str, operation: &mut Value) {
    let parameters = operation.get_mut("parameters");
    for parameter in parameters
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let name = parameter["name"].as_str().unwrap_or_default();
        if let Some(schema) = parameter_schema(path, name) {
            parameter["schema"] = schema;
        }
    }
    if path.starts_with("/v1/videos/") && path.ends_with("/content") {
        let types = ResultVariant::ALL.map(|variant| {
            let bytes = json!({"schema": {"type": "string", "format": "binary"}});
            (variant.media_type().to_owned(), bytes)
        });
        let content = Value::Object(types.into_iter().collect());
        for status in ["200", "206"] {
            operation["responses"][status]["content"] = content.clone();
        }
    }
}

fn parameter_schema(path: &str, name: &str) -> Option<Value> {
    Some(match name {
        "id" if path.contains("/videos/") => task_id(),
        "id" if path.contains("/files/") => file_id(),
        "after" if path.ends_with("/files") => file_id(),
        "after" => task_id(),
        "limit" => json!({
            "type": "integer", "format": "int32",
            "minimum": PAGE_LIMIT_MIN, "maximum": PAGE_LIMIT_MAX,
        }),
        "order" => json!({"type": "string", "enum": ["asc", "desc"]}),
        "variant" => json!({"type": "string", "enum": ResultVariant::ALL.map(ResultVariant::name)}),
        "expires" => json!({"type": "integer", "format": "int64", "minimum": 0}),
        "signature" => json!({"type": "string"}),
        "Idempotency-Key" => json!({
            "type": "string", "pattern": "^[!-~]+$",
            "minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARS_MAX,
        }),
        _ => return None,
    })
}

fn schemas(catalog: &ModelCatalog) -> Value {
    let submit = submit_fields(catalog);
    // In an edit, the path or `video` names the source instead.
    let taken = FIELDS.iter().filter(|field| {
        field.in_edit() && !["draft_task_id", "edit_task_id"].contains(&field.name)
    });
    let taken = taken.map(|field| (field.name.to_owned(), submit[field.name].clone()));
    let mut edit = Value::Object(taken.collect::<Map<_, _>>());
    let prompt = json!({
        "type": "string", "minLength": 1, "maxLength": PROMPT_CHARS_MAX, "pattern": NOT_BLANK,
    });
    edit["prompt"] = prompt;
    edit["model"] = or_null(&submit["model"]);
    edit["model"]["description"] = json!("A model that supports edits. Default: the first one.");
    let remix = json!({"properties": edit.clone(), "additionalProperties": false});
    edit["video"] = json!({"$ref": "#/components/schemas/VideoRef"});
    json!({
        "SubmitRequest": {"properties": submit},
        "EditVideo": {"properties": edit, "additionalProperties": false},
        "RemixVideo": remix,
        "VideoRef": {"properties": {"id": task_id()}, "additionalProperties": false},
        "Video": {"properties": {
            "id": task_id(),
            "object": {"enum": ["video"]},
            "seed": {"format": "int64", "maximum": SEED_MAX},
            "progress": {"minimum": 0, "maximum": 100},
        }},
        "CancelVideos": {
            "properties": {"status": {"enum": [Status::Queued.as_str()]}},
            "additionalProperties": false,
        },
        "PauseModel": {
            "properties": {"reason": {"maxLength": PAUSE_REASON_CHARS_MAX}},
            "additionalProperties": false,
        },
        "ResumeModel": {"additionalProperties": false},
        "VideosCancelled": {"properties": {"object": {"enum": ["videos.cancelled"]}}},
        "VideoList": {"properties": {"object": {"enum": ["list"]}}},
        "VideoDeleted": {"properties": {"object": {"enum": ["video.deleted"]}}},
        "CreateFile": {"properties": {
            "purpose": {"minLength": 1, "maxLength": FILE_PURPOSE_CHARS_MAX},
            "expires_after[anchor]": {"enum": ["created_at"]},
            "expires_after[seconds]": {
                "format": "int64", "minimum": FILE_SECONDS_MIN, "maximum": FILE_SECONDS_MAX,
            },
        }, "additionalProperties": false},
        "File": {"properties": {
            "id": file_id(),
            "object": {"enum": ["file"]},
            "status": {"enum": ["processed"]},
        }},
        "FileList": {"properties": {"object": {"enum": ["list"]}}},
        "FileDeleted": {"properties": {"object": {"enum": ["file"]}}},
    })
}

/// The fields of a submit.
fn submit_fields(catalog: &ModelCatalog) -> Value {
    Value::Object(
        FIELDS
            .iter()
            .map(|field| {
                let mut schema = submit_field(field.key, catalog);
                if schema.get("description").is_none() {
                    schema["description"] = json!(field.about());
                }
                (field.name.to_owned(), schema)
            })
            .collect(),
    )
}

/// The schema details of a submit field that its type cannot express.
fn submit_field(field: FieldKey, catalog: &ModelCatalog) -> Value {
    let urls = |most: fn(&Features) -> u32| {
        let cards = catalog.cards().iter();
        let most = cards.map(|card| most(&card.capabilities.features)).max();
        json!({
            "type": ["array", "null"], "minItems": 1, "maxItems": most.unwrap_or(0).max(1),
            "items": url(),
        })
    };
    let one_of = |values: Value| or_null(&json!({"type": "string", "enum": values}));
    match field {
        FieldKey::model => json!({"type": "string", "enum": model_names(catalog)}),
        FieldKey::prompt => {
            json!({"type": ["string", "null"], "minLength": 1, "maxLength": PROMPT_CHARS_MAX, "pattern": NOT_BLANK})
        }
        FieldKey::negative_prompt => json!({
            "type": ["string", "null"], "maxLength": NEGATIVE_PROMPT_CHARS_MAX,
        }),
        FieldKey::seconds => seconds(catalog),
        FieldKey::size => one_of(json!(sizes(catalog))),
        FieldKey::resolution => one_of(json!(Resolution::ALL.map(Resolution::name))),
        FieldKey::aspect_ratio => one_of(json!(ratios())),
        FieldKey::input_reference => input_reference(),
        FieldKey::first_frame | FieldKey::last_frame | FieldKey::callback_url => or_null(&url()),
        FieldKey::reference_images => urls(|can| can.reference_images_max),
        FieldKey::reference_audios => urls(|can| can.reference_audios_max),
        FieldKey::seed => json!({
            "type": ["integer", "null"], "format": "int64", "minimum": -1, "maximum": SEED_MAX,
        }),
        FieldKey::draft_task_id | FieldKey::edit_task_id => or_null(&task_id()),
        FieldKey::edit_strength => json!({
            "type": ["number", "null"], "format": "double", "minimum": 0, "maximum": 1,
        }),
        FieldKey::metadata => metadata(),
        FieldKey::priority => one_of(json!(Priority::ALL.map(Priority::name))),
        // Their type says all.
        FieldKey::generate_audio | FieldKey::draft => json!({}),
    }
}

/// Pattern: at least one character other than white space.
const NOT_BLANK: &str = r"\S";

fn task_id() -> Value {
    // 128 bits in base 32: the first digit holds three of them.
    json!({"type": "string", "pattern": "^video_[0-7][0-9a-hjkmnp-tv-z]{25}$"})
}

fn file_id() -> Value {
    json!({"type": "string", "pattern": "^file_[0-7][0-9a-hjkmnp-tv-z]{25}$"})
}

fn url() -> Value {
    json!({
        "type": "string", "format": "uri", "maxLength": URL_BYTES_MAX,
        "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://[^\\s]+$",
    })
}

fn seconds(catalog: &ModelCatalog) -> Value {
    let cards = || catalog.cards().iter().map(|card| &card.capabilities);
    let shortest = cards().map(|can| can.seconds_min).min();
    let longest = cards().map(|can| can.seconds_max).max();
    let (shortest, longest) = (
        shortest.unwrap_or(SECONDS_MIN),
        longest.unwrap_or(SECONDS_MAX),
    );
    let mut defaults: Vec<u32> = cards().map(|can| can.seconds_default).collect();
    defaults.dedup();
    let default = match *defaults {
        [same] => format!("Default {same}."),
        _ => "The default is the model's `seconds_default`.".to_owned(),
    };
    json!({
        "type": null,
        "anyOf": [
            {"type": "integer", "format": "int32", "minimum": -1, "maximum": longest},
            {"type": "string", "pattern": "^(auto|-1|[1-9][0-9]?)$"},
            {"type": "null"},
        ],
        "description": format!(
            "Length in seconds, {shortest} to {longest}, as a number or a numeric string; `\"auto\"` (or -1) \
             lets the model choose, where it supports this. {default}"
        ),
        "example": cards().next().map_or(SECONDS_DEFAULT, |can| can.seconds_default),
    })
}

/// Describes the lengths that models list, where any does.
fn add_lengths(document: &mut Value, catalog: &ModelCatalog) {
    let mut cards = catalog.cards().iter();
    if !cards.any(|card| card.capabilities.seconds.is_some()) {
        return;
    }
    let parts = document.pointer_mut("/components/schemas/Capabilities/allOf");
    let parts = parts.and_then(Value::as_array_mut).into_iter().flatten();
    for part in parts.filter(|part| part.get("properties").is_some()) {
        part["properties"]["seconds"] = json!({
            "type": "array", "items": {"type": "integer", "format": "int32"},
            "description": "Allowed lengths in seconds. Absent: every whole second from `seconds_min` to \
                            `seconds_max`.",
        });
    }
}

fn input_reference() -> Value {
    json!({
        "type": null,
        "anyOf": [
            url(),
            {
                "type": "object", "title": "InputReference",
                "properties": {"image_url": url()},
                "required": ["image_url"], "additionalProperties": false,
            },
            {
                "type": "object", "title": "InputFileReference",
                "properties": {"file_id": file_id()},
                "required": ["file_id"], "additionalProperties": false,
            },
            {"type": "null"},
        ],
    })
}

fn metadata() -> Value {
    json!({
        "type": ["object", "null"],
        "maxProperties": METADATA_PAIRS_MAX,
        "propertyNames": {"type": "string", "minLength": 1, "maxLength": METADATA_KEY_CHARS_MAX},
        "additionalProperties": {"type": "string", "maxLength": METADATA_VALUE_CHARS_MAX},
    })
}

fn model_names(catalog: &ModelCatalog) -> Vec<&str> {
    let names = catalog.cards().iter().flat_map(|card| {
        let aliases = card.aliases.iter().map(String::as_str);
        std::iter::once(card.id.as_str()).chain(aliases)
    });
    names.collect()
}

/// Every size that at least one model supports.
fn sizes(catalog: &ModelCatalog) -> Vec<String> {
    let mut sizes: Vec<Size> = Vec::new();
    for card in catalog.cards() {
        for size in &card.capabilities.sizes {
            if !sizes.contains(size) {
                sizes.push(*size);
            }
        }
    }
    sizes.iter().map(Size::to_string).collect()
}

fn ratios() -> Vec<&'static str> {
    let named = AspectRatio::ALL.iter().map(|one| one.name());
    named.chain(["adaptive"]).collect()
}

/// Extends a schema by `null`, which means absent.
fn or_null(schema: &Value) -> Value {
    let mut schema = schema.clone();
    schema["type"] = json!([schema["type"], "null"]);
    if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        values.push(Value::Null);
    }
    schema
}

/// RFC 7386: objects are merged, `null` removes, everything else replaces.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else {
        return;
    };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::{CardRecord, built_in_cards};

    use super::*;

    #[test]
    fn a_served_models_own_names_are_in_its_document() {
        let mut cards = built_in_cards();
        cards.truncate(1);
        cards[0].id = "studio-one".to_owned();
        cards[0].aliases = vec!["sora-2".to_owned()];
        let document = crate::document(&ModelCatalog::new(cards).unwrap());
        let document: Value = serde_json::from_str(&document).unwrap();
        let fields = &document["components"]["schemas"]["SubmitRequest"]["properties"];
        assert_eq!(fields["model"]["enum"], json!(["studio-one", "sora-2"]));
        assert_eq!(fields["reference_images"]["maxItems"], 9);
        assert_eq!(fields["seed"]["format"], "int64");
    }

    /// A patch for a name that is no field would add a property of its own, and a field without one would lack its text.
    #[test]
    fn a_submit_has_exactly_the_fields_of_the_table_each_with_its_words() {
        let document = crate::document(&ModelCatalog::new(built_in_cards()).unwrap());
        let document: Value = serde_json::from_str(&document).unwrap();
        let fields = &document["components"]["schemas"]["SubmitRequest"]["properties"];
        let mut names: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
        names.sort_unstable();
        let documented: Vec<&String> = fields.as_object().unwrap().keys().collect();
        assert_eq!(documented, names);
        for name in names {
            assert!(fields[name]["description"].is_string(), "{name}");
        }
    }

    #[test]
    fn a_models_own_sizes_and_lengths_are_in_its_document() {
        let document = |record: &str| -> Value {
            let record: CardRecord = toml::from_str(record).unwrap();
            let card = record.card(Features::ALL).unwrap();
            let document = crate::document(&ModelCatalog::new(vec![card]).unwrap());
            serde_json::from_str(&document).unwrap()
        };
        let own = "id = \"own\"\nengine = \"e\"\nsizes = [\"1152x640\"]\nseconds = [2, 3, 7]";
        let own = document(own);
        let schemas = &own["components"]["schemas"];
        let fields = &schemas["SubmitRequest"]["properties"];
        assert_eq!(fields["size"]["enum"], json!(["1152x640", null]));
        assert_eq!(fields["seconds"]["anyOf"][0]["maximum"], 7);
        let text = fields["seconds"]["description"].as_str().unwrap();
        assert!(
            text.contains("2 to 7") && text.contains("Default 3."),
            "{text}"
        );
        let lengths = |schemas: &Value| {
            schemas["Capabilities"]
                .to_string()
                .contains("Allowed lengths")
        };
        assert!(lengths(schemas));
        let usual = document("id = \"usual\"\nengine = \"e\"");
        assert!(!lengths(&usual["components"]["schemas"]));
    }

    #[test]
    fn the_forms_of_an_edit_take_what_may_accompany_its_source() {
        let document = crate::document(&ModelCatalog::new(built_in_cards()).unwrap());
        let document: Value = serde_json::from_str(&document).unwrap();
        let fields = |form: &str| document["components"]["schemas"][form]["properties"].clone();
        for form in ["EditVideo", "RemixVideo"] {
            let (submit, own) = (fields("SubmitRequest"), fields(form));
            for name in ["callback_url", "metadata", "edit_strength"] {
                assert_eq!(own[name], submit[name], "{form}: {name}");
            }
            for name in ["draft_task_id", "edit_task_id", "seconds"] {
                assert!(own.get(name).is_none(), "{form}: {name}");
            }
        }
    }

    #[test]
    fn a_patch_merges_replaces_and_removes() {
        let mut target = json!({"a": {"b": 1, "c": [1, 2]}, "d": 1});
        merge(
            &mut target,
            &json!({"a": {"b": null, "c": [3]}, "e": {"f": {}}}),
        );
        assert_eq!(target, json!({"a": {"c": [3]}, "d": 1, "e": {"f": {}}}));
    }
}
