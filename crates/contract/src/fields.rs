//! Reads the fields of a request from JSON values and from a form's text. Refuses wrong types, and
//! unknown names with a hint: our name for another service's field, or the most similar known name.
//! [`crate::ranges`] checks the values.

use std::collections::BTreeMap;
use std::slice;

use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::error::{ErrorCode, RequestRefusal};
use crate::task::Priority;
use crate::uploaded;

/// How a field's text part of a form becomes a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    /// Stays text; `null` means absent.
    Text,
    /// Stays text, even `null`: a prompt may say so.
    Prose,
    /// `true` or `false`.
    Flag,
    /// A number.
    Number,
    /// Repeated parts, with or without `[]`.
    Texts,
    /// Parts named `field[key]`, or one part holding a JSON object.
    Pairs,
    /// Text, a part named `field[image_url]` or `field[file_id]`, or one part holding a JSON object.
    InputReference,
}

/// A type of field: its description, and how to read it.
pub(crate) struct FieldReader<T> {
    pub(crate) kind: FieldKind,
    /// The type as the documents name it.
    pub(crate) type_name: &'static str,
    /// The value of a field by its name; refuses another type.
    pub(crate) read: fn(&str, Value) -> Result<T, RequestRefusal>,
    /// The URLs in a value.
    pub(crate) urls: fn(&T) -> &[String],
}

pub(crate) const TEXT: FieldReader<String> = FieldReader {
    kind: FieldKind::Text,
    type_name: "string",
    read: text,
    urls: |_| &[],
};
pub(crate) const PROSE: FieldReader<String> = FieldReader {
    kind: FieldKind::Prose,
    ..TEXT
};
/// One of few words, which a refusal names: other services take a number.
pub(crate) const PRIORITY: FieldReader<String> = FieldReader {
    read: |name, value| {
        let words = format!("one of {}", Priority::names());
        text(name, value).map_err(|_| wrong_type(name, &words))
    },
    ..TEXT
};
pub(crate) const URL: FieldReader<String> = FieldReader {
    type_name: "URL",
    urls: slice::from_ref,
    ..TEXT
};
pub(crate) const INPUT_REFERENCE: FieldReader<String> = FieldReader {
    kind: FieldKind::InputReference,
    type_name: "URL, or `{\"image_url\": URL}`, or `{\"file_id\": ID}`",
    read: input_reference,
    urls: slice::from_ref,
};
pub(crate) const URLS: FieldReader<Vec<String>> = FieldReader {
    kind: FieldKind::Texts,
    type_name: "array of URLs",
    read: texts,
    urls: Vec::as_slice,
};
pub(crate) const SECONDS: FieldReader<SecondsField> = FieldReader {
    kind: FieldKind::Text,
    type_name: "integer, or a string that holds one",
    read: seconds,
    urls: |_| &[],
};
pub(crate) const FLAG: FieldReader<bool> = FieldReader {
    kind: FieldKind::Flag,
    type_name: "boolean",
    read: flag,
    urls: |_| &[],
};
pub(crate) const INTEGER: FieldReader<i64> = FieldReader {
    kind: FieldKind::Number,
    type_name: "integer",
    read: integer,
    urls: |_| &[],
};
pub(crate) const NUMBER: FieldReader<f64> = FieldReader {
    kind: FieldKind::Number,
    type_name: "number",
    read: number,
    urls: |_| &[],
};
pub(crate) const PAIRS: FieldReader<BTreeMap<String, String>> = FieldReader {
    kind: FieldKind::Pairs,
    type_name: "object of strings",
    read: pairs,
    urls: |_| &[],
};

/// Other services' fields for features that no model here has: refused as unsupported, not as
/// unknown.
pub(crate) const NEVER_SUPPORTED: &[&str] = &[
    "reference_videos",
    "reference_video",
    "video",
    "video_url",
    "extend",
    "extend_task_id",
    "source_task_id",
    "parent_task_id",
];

/// `seconds` as sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum SecondsField {
    /// A whole number, in range or not.
    Number(i64),
    /// `"auto"` or -1.
    Auto,
    /// Anything else; refused as out of range, not as a wrong type.
    Other(String),
}

pub(crate) fn wrong_type(param: impl Into<String>, expected: &str) -> RequestRefusal {
    let param = param.into();
    let message = format!("'{param}' must be {expected}.");
    RequestRefusal::for_param(ErrorCode::InvalidType, param, message)
}

/// Takes the field `name` out of those sent; `None` where it is absent.
pub(crate) fn take<T>(
    sent: &mut Map<String, Value>,
    name: &str,
    reader: &FieldReader<T>,
) -> Result<Option<T>, RequestRefusal> {
    let value = sent.remove(name).map(|value| (reader.read)(name, value));
    value.transpose()
}

fn text(name: &str, value: Value) -> Result<String, RequestRefusal> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(wrong_type(name, "a string")),
    }
}

fn flag(name: &str, value: Value) -> Result<bool, RequestRefusal> {
    let flag = value.as_bool();
    flag.ok_or_else(|| wrong_type(name, "true or false"))
}

/// A whole number; as in JSON Schema, `9.0` is one. Numbers past `i64` are clamped; every range
/// refuses them anyway.
fn whole(value: &Value) -> Option<i64> {
    let Value::Number(number) = value else {
        return None;
    };
    if let Some(whole) = number.as_i64() {
        return Some(whole);
    }
    // Above `i64::MAX`. The exact number does not matter, only that it is whole and out of range.
    if number.is_u64() {
        return Some(i64::MAX);
    }
    let real = number.as_f64()?;
    (real.fract() == 0.0).then_some(real as i64)
}

fn integer(name: &str, value: Value) -> Result<i64, RequestRefusal> {
    whole(&value).ok_or_else(|| wrong_type(name, "an integer"))
}

fn number(name: &str, value: Value) -> Result<f64, RequestRefusal> {
    let number = value.as_f64();
    number.ok_or_else(|| wrong_type(name, "a number"))
}

/// `seconds` is a number, or a string that holds one or "auto"; other strings are wrong values, not wrong types.
/// A form sends text for both, so that text is parsed as a JSON number.
fn seconds(name: &str, value: Value) -> Result<SecondsField, RequestRefusal> {
    let field = match &value {
        Value::Number(number) => whole(&value).map_or_else(
            || SecondsField::Other(number.to_string()),
            SecondsField::Number,
        ),
        Value::String(text) if text == "auto" => SecondsField::Auto,
        Value::String(text) => text
            .parse::<Number>()
            .ok()
            .and_then(|number| whole(&Value::Number(number)))
            .map_or_else(|| SecondsField::Other(text.clone()), SecondsField::Number),
        _ => return Err(wrong_type(name, "an integer or a numeric string")),
    };
    Ok(match field {
        // -1 is documented as another spelling of "auto".
        SecondsField::Number(-1) => SecondsField::Auto,
        other => other,
    })
}

/// A URL, or OpenAI's object: `{"image_url": URL}` or `{"file_id": ID}`.
fn input_reference(name: &str, value: Value) -> Result<String, RequestRefusal> {
    let mut object = match value {
        Value::String(url) => return Ok(url),
        Value::Object(object) => object,
        _ => {
            return Err(wrong_type(
                name,
                "a URL string or an object with 'image_url' or 'file_id'",
            ));
        }
    };
    let is_known = |key: &&String| matches!(key.as_str(), "image_url" | "file_id");
    if let Some(other) = object.keys().find(|key| !is_known(key)) {
        let param = format!("{name}.{}", other.chars().take(64).collect::<String>());
        let message = format!("'{name}' takes only 'image_url' or 'file_id'.");
        return Err(RequestRefusal::for_param(
            ErrorCode::UnknownParameter,
            param,
            message,
        ));
    }
    match (object.remove("image_url"), object.remove("file_id")) {
        (Some(Value::String(url)), None | Some(Value::Null)) => Ok(url),
        (None | Some(Value::Null), Some(Value::String(id))) => Ok(uploaded::reference_by_id(&id)),
        (Some(Value::String(_)), Some(_)) => Err(wrong_type(
            name,
            "an object with either 'image_url' or 'file_id'",
        )),
        (_, Some(_)) => Err(wrong_type(format!("{name}.file_id"), "a string")),
        _ => Err(wrong_type(format!("{name}.image_url"), "a URL string")),
    }
}

fn texts(name: &str, value: Value) -> Result<Vec<String>, RequestRefusal> {
    let Value::Array(items) = value else {
        return Err(wrong_type(name, "an array of URL strings"));
    };
    items
        .into_iter()
        .enumerate()
        .map(|(index, item)| match item {
            Value::String(text) => Ok(text),
            _ => Err(wrong_type(format!("{name}[{index}]"), "a URL string")),
        })
        .collect()
}

fn pairs(name: &str, value: Value) -> Result<BTreeMap<String, String>, RequestRefusal> {
    let Value::Object(object) = value else {
        return Err(wrong_type(name, "an object of strings"));
    };
    object
        .into_iter()
        .map(|(key, value)| match value {
            Value::String(text) => Ok((key, text)),
            _ => Err(wrong_type(name, "an object whose values are strings")),
        })
        .collect()
}

/// Words of other video services, in lower case without separators, and what to use instead.
const PEERS: &[(&[&str], &str)] = &[
    (
        &[
            "duration",
            "durationseconds",
            "length",
            "videolength",
            "numseconds",
        ],
        "Use 'seconds'.",
    ),
    (
        &["fps", "framerate", "frames", "numframes"],
        "The model chooses; give 'seconds'.",
    ),
    (
        &["ratio", "aspect", "videoaspectratio"],
        "Use 'aspect_ratio'.",
    ),
    (
        &["width", "height", "videosize", "dimensions"],
        "Use 'size', such as \"1280x720\".",
    ),
    (&["quality", "videoquality"], "Use 'resolution' or 'size'."),
    (
        &[
            "image",
            "imageurl",
            "imgurl",
            "inputimage",
            "startimage",
            "startframe",
            "firstframeimage",
            "firstframeurl",
        ],
        "Use 'first_frame' or 'input_reference', with a URL.",
    ),
    (
        &[
            "imagetail",
            "endimage",
            "endframe",
            "lastframeimage",
            "lastframeurl",
            "tailimage",
            "tailimageurl",
        ],
        "Use 'last_frame', with a URL.",
    ),
    (
        &[
            "images",
            "imageurls",
            "referenceimage",
            "referenceimageurls",
            "refimages",
            "inputreferences",
        ],
        "Use 'reference_images', with an array of URLs.",
    ),
    (
        &["audio", "sound", "withaudio", "enableaudio"],
        "Use 'generate_audio' for a sound track, or 'reference_audios' with an array of URLs.",
    ),
    (
        &["audios", "audiourl", "audiourls", "referenceaudio"],
        "Use 'reference_audios', with an array of URLs.",
    ),
    (
        &["frameimages"],
        "Use 'first_frame' and 'last_frame', with URLs.",
    ),
    (&["text", "input", "textprompt"], "Use 'prompt'."),
    (
        &[
            "n",
            "count",
            "numvideos",
            "samplecount",
            "variants",
            "nvariants",
        ],
        "One request makes one video.",
    ),
    (
        &["webhook", "webhookurl", "callback"],
        "Use 'callback_url'.",
    ),
    (&["negative"], "Use 'negative_prompt'."),
    (
        &[
            "lora",
            "loras",
            "steps",
            "numsteps",
            "numinferencesteps",
            "guidance",
            "guidancescale",
            "cfgscale",
        ],
        "The operator of the service sets it for the model.",
    ),
    (
        &["user", "safetyidentifier", "enduserid"],
        "Put your own identifiers into 'metadata'.",
    ),
];

/// Refuses an unknown field, with a hint if there is one. `known` lists the accepted names.
pub(crate) fn unknown_field(
    name: &str,
    known: impl Iterator<Item = &'static str> + Clone,
) -> RequestRefusal {
    // The name comes from the client: quote only its beginning, whatever its length.
    let shown: String = name.chars().take(64).collect();
    let plain = plain(&shown);
    let peer = PEERS.iter().find(|(words, _)| words.contains(&&*plain));
    let hint = match peer {
        Some((_, hint)) => format!(" {hint}"),
        None => nearest(&shown, &plain, known)
            .map_or_else(String::new, |known| format!(" Did you mean '{known}'?")),
    };
    let message = format!("Unknown parameter: '{shown}'.{hint}");
    RequestRefusal::for_param(ErrorCode::UnknownParameter, shown, message)
}

/// `aspectRatio` and `aspect-ratio` as `aspectratio`.
fn plain(name: &str) -> String {
    let separators = ['_', '-', '.'];
    let kept = name.chars().filter(|char| !separators.contains(char));
    kept.flat_map(char::to_lowercase).collect()
}

fn nearest(
    shown: &str,
    plain_name: &str,
    names: impl Iterator<Item = &'static str> + Clone,
) -> Option<&'static str> {
    let same = names.clone().find(|known| plain(known) == plain_name);
    same.or_else(|| {
        // Up to a third of the known name may differ: "promt" leads to "prompt", but a word of
        // another meaning leads to nothing.
        let all = names.map(|known| (edit_distance(known, shown), known));
        let (distance, known) = all.min()?;
        (distance <= known.len().div_ceil(3)).then_some(known)
    })
}

/// Levenshtein's distance in characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    // One row of the usual matrix; `diagonal` is the value that the last step overwrote.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::FIELDS;

    fn known() -> impl Iterator<Item = &'static str> + Clone {
        FIELDS.iter().map(|field| field.name)
    }

    #[test]
    fn the_words_of_other_services_lead_to_ours() {
        for (word, ours) in [
            ("duration", "'seconds'"),
            ("ratio", "'aspect_ratio'"),
            ("aspectRatio", "'aspect_ratio'"),
            ("negativePrompt", "'negative_prompt'"),
            ("image", "'first_frame'"),
            ("image_url", "'input_reference'"),
            ("images", "'reference_images'"),
            ("width", "'size'"),
            ("height", "'size'"),
            ("audio", "'generate_audio'"),
            ("audio", "'reference_audios'"),
            ("n", "one video"),
            ("user", "'metadata'"),
            ("webhook", "'callback_url'"),
            ("webhook_url", "'callback_url'"),
            ("input_references", "'reference_images'"),
            ("frame_images", "'first_frame'"),
            ("lora", "operator"),
            ("loras", "operator"),
            ("steps", "operator"),
            ("num_inference_steps", "operator"),
            ("guidance_scale", "operator"),
            ("n_variants", "one video"),
            ("variants", "one video"),
            ("tail_image_url", "'last_frame'"),
            ("negative", "'negative_prompt'"),
            ("promt", "'prompt'"),
            ("model_name", "Unknown parameter: 'model_name'."),
        ] {
            let refusal = unknown_field(word, known());
            assert!(
                refusal.message.contains(ours),
                "{word}: {}",
                refusal.message
            );
            assert_eq!(refusal.param.as_deref(), Some(word));
            assert_eq!(refusal.code, ErrorCode::UnknownParameter);
        }
    }

    #[test]
    fn no_word_of_others_is_one_of_ours_and_each_is_plain() {
        let words = PEERS.iter().flat_map(|(words, _)| *words);
        for word in words {
            assert_eq!(plain(word), *word);
            assert!(known().all(|known| plain(known) != *word), "{word}");
        }
    }
}
