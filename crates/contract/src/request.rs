//! The submit request as sent, and the one table of its fields: name, type, which models take it,
//! which fields it excludes and needs. Parsing, forms, the rules of combination, the OpenAPI
//! document and the table in the docs derive from it. [`SubmitRequest::from_json`] checks syntax,
//! types and field names and nothing else, and so does a form ([`crate::form`]).
//! [`mod@crate::validate`] checks the rest.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::card::Features;
use crate::error::{ErrorCode, RequestRefusal};
pub use crate::fields::SecondsField;
use crate::fields::unknown_field;
use crate::fields::{
    self, FLAG, FieldKind, INPUT_REFERENCE, INTEGER, NEVER_SUPPORTED, NUMBER, PAIRS, PRIORITY,
    PROSE, SECONDS, TEXT, URL, URLS,
};
use crate::json;

/// The rules for a field. [`mod@crate::validate`] checks them.
#[derive(Clone, Copy)]
pub(crate) struct FieldRules {
    /// Whether a model takes the field.
    pub(crate) taken: fn(&Features) -> bool,
    /// Fields that this one cannot be combined with.
    pub(crate) excludes: &'static [&'static str],
    /// Requires at least one of these fields; empty: none.
    pub(crate) needs: &'static [&'static str],
    /// Whether it may accompany `draft_task_id`; the final takes all other fields from the draft.
    pub(crate) in_final: bool,
    /// Whether it may accompany `edit_task_id`; an edit keeps the source's form.
    pub(crate) in_edit: bool,
}

/// A field that every model takes and that can be combined with every other, except in a final.
const FREE: FieldRules = FieldRules {
    taken: |_| true,
    excludes: &[],
    needs: &[],
    in_final: false,
    in_edit: true,
};

/// A field that determines the form of a video, which an edit takes from its source.
const OF_FORM: FieldRules = FieldRules {
    in_edit: false,
    ..FREE
};

/// One field of a submit request.
pub struct RequestField {
    /// Which one, for code that must know every field.
    pub key: FieldKey,
    /// Its name, in JSON and in a form.
    pub name: &'static str,
    /// Its type in words.
    pub type_name: &'static str,
    pub(crate) kind: FieldKind,
    pub(crate) rules: FieldRules,
    about: &'static str,
    sent: fn(&SubmitRequest) -> bool,
    urls: fn(&SubmitRequest) -> &[String],
}

impl RequestField {
    /// Its meaning, in Markdown.
    pub fn about(&self) -> &'static str {
        self.about.trim_start()
    }

    /// The fields that cannot be combined with it, in the order of the table; without those that a
    /// final or an edit takes from elsewhere.
    pub fn excludes(&self) -> impl Iterator<Item = &'static str> {
        FIELDS
            .iter()
            .filter(|other| {
                other.rules.excludes.contains(&self.name)
                    || self.rules.excludes.contains(&other.name)
            })
            .map(|field| field.name)
    }

    /// Whether it may accompany `edit_task_id`.
    pub fn in_edit(&self) -> bool {
        self.rules.in_edit
    }

    /// The fields of which it requires one.
    pub fn needs(&self) -> &'static [&'static str] {
        self.rules.needs
    }

    pub(crate) fn is_in(&self, request: &SubmitRequest) -> bool {
        (self.sent)(request)
    }

    /// The URLs in this field of `request`, each with its param, such as `first_frame` or
    /// `reference_images[2]`.
    pub(crate) fn urls<'r>(
        &self,
        request: &'r SubmitRequest,
    ) -> impl Iterator<Item = (String, &'r str)> {
        let urls = (self.urls)(request).iter().enumerate();
        urls.map(move |(index, url)| {
            let param = match self.kind {
                FieldKind::Texts => format!("{}[{index}]", self.name),
                _ => self.name.to_owned(),
            };
            (param, url.as_str())
        })
    }
}

impl fmt::Debug for RequestField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Makes [`SubmitRequest`], [`FieldKey`], the parser and [`FIELDS`] of rows `name: TYPE = READER, RULES;`.
//
// One table instead of a struct, a parser, rules and a schema that would have to agree. The places that
// need more than a row says (a field's range) match on `FieldKey`, and do not compile without a new field.
macro_rules! request_fields {
    ($($(#[doc = $about:literal])+ $(#[schema($($schema:tt)+)])? $(#[serde($($serde:tt)+)])?
       $name:ident: $value:ty = $reader:ident, $rules:expr;)+) => {
        /// A submit request as sent: fields of the right types, not yet validated.
        /// `null` means absent. Unknown fields are refused.
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(deny_unknown_fields)]
        pub struct SubmitRequest {
            $($(#[doc = $about])+ $(#[cfg_attr(feature = "openapi", schema($($schema)+))])? $(#[serde($($serde)+)])?
            pub $name: Option<$value>,)+
            /// The first field, by name, that no model takes; such a request is refused.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "openapi", schema(ignore))]
            pub never_supported: Option<&'static str>,
        }

        /// A key for each field, named as the field is. A `match` on it covers all fields: a new one does not compile
        /// before each such place knows it.
        #[allow(non_camel_case_types, missing_docs, reason = "the names of the fields, which are described there")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum FieldKey {
            $($name),+
        }

        /// Every field that some model takes, in the order in which they are judged.
        pub static FIELDS: &[RequestField] = &[$(RequestField {
            key: FieldKey::$name,
            name: stringify!($name),
            type_name: $reader.type_name,
            kind: $reader.kind,
            rules: $rules,
            about: concat!($($about),+),
            sent: |request| request.$name.is_some(),
            urls: |request| request.$name.as_ref().map_or(&[], $reader.urls),
        }),+];

        /// Takes out of `sent` every field that some model takes.
        fn take(sent: &mut Map<String, Value>) -> Result<SubmitRequest, RequestRefusal> {
            Ok(SubmitRequest {
                $($name: fields::take(sent, stringify!($name), &$reader)?,)+
                never_supported: NEVER_SUPPORTED.iter().copied().find(|name| sent.contains_key(*name)),
            })
        }
    };
}

request_fields! {
    /// The model, by identifier or alias of `GET /v1/models`. Required.
    #[schema(required, example = "kinora-a1")]
    model: String = TEXT, FieldRules { in_final: true, ..FREE };

    /// Description of the video; 1 to 5,000 characters after trimming. Required, except with
    /// `draft_task_id`.
    #[schema(example = "A red balloon drifts over the sea at dawn")]
    prompt: String = PROSE, FREE;

    /// Things to avoid; up to 2,500 characters after trimming. Empty is the same as absent.
    negative_prompt: String = PROSE, FieldRules { taken: |can| can.negative_prompt, ..FREE };

    /// Length in seconds, as a number or a numeric string, within the model's range; `"auto"` (or
    /// -1) lets the model choose, where it supports this. Default 5, or the model's
    /// `seconds_default`.
    #[schema(value_type = Option<String>)]
    seconds: SecondsField = SECONDS, OF_FORM;

    /// One of the model's listed sizes, `"WIDTHxHEIGHT"`. Default: the size that the next two
    /// fields name, or the model's first size if it does not have that one.
    #[schema(example = "1280x720")]
    size: String = TEXT, OF_FORM;

    /// `480p`, `720p` (default) or `1080p`: with `aspect_ratio`, another way to name a listed size.
    #[schema(example = "720p")]
    resolution: String = TEXT, FieldRules { excludes: &["size"], ..OF_FORM };

    /// `16:9` (default), `9:16`, `1:1`, `4:3`, `3:4`, `21:9`, or `adaptive`: the shape nearest to
    /// that of the first image. `adaptive` requires an image, and a model that offers every shape
    /// of the resolution.
    #[schema(example = "16:9")]
    aspect_ratio: String = TEXT, FieldRules { excludes: &["size"], ..OF_FORM };

    /// OpenAI's name for `first_frame`: a URL, or an object with `image_url` or with the `file_id` of
    /// an uploaded file.
    input_reference: String = INPUT_REFERENCE, FieldRules {
        taken: |can| can.first_frame,
        excludes: &["first_frame"],
        ..OF_FORM
    };

    /// URL of the image that the video starts with.
    first_frame: String = URL, FieldRules { taken: |can| can.first_frame, ..OF_FORM };

    /// URL of the image that the video ends with.
    last_frame: String = URL, FieldRules {
        taken: |can| can.last_frame,
        needs: &["first_frame", "input_reference"],
        ..OF_FORM
    };

    /// URLs of images to show: at least one, at most as many as the model takes.
    reference_images: Vec<String> = URLS, FieldRules {
        taken: |can| can.reference_images_max > 0,
        excludes: &["input_reference", "first_frame", "last_frame"],
        ..FREE
    };

    /// URLs of sound to hear: at least one, 15 seconds in all.
    reference_audios: Vec<String> = URLS, FieldRules {
        taken: |can| can.reference_audios_max > 0,
        needs: &["reference_images"],
        ..OF_FORM
    };

    /// Whether the result has a sound track. Default `true` on models with sound; other models do
    /// not take it.
    generate_audio: bool = FLAG, FieldRules { taken: |can| can.audio_output, ..OF_FORM };

    /// 0 to 4,294,967,295, or -1 (default) for a random one. The seed used is returned.
    seed: i64 = INTEGER, FREE;

    /// `true` for a quick preview at 480p in the shape of the video. Its final uses the same
    /// seed and inputs.
    draft: bool = FLAG, FieldRules { taken: |can| can.draft, ..OF_FORM };

    /// A completed draft of this project and model, to render as a final. Only `model`, `metadata`,
    /// `callback_url` and `priority` may accompany it.
    draft_task_id: String = TEXT, FieldRules { taken: |can| can.draft, in_final: true, ..FREE };

    /// A completed task of this project, of any model, whose video to edit. The edit takes its
    /// length and size, and has no sound.
    edit_task_id: String = TEXT, FieldRules { taken: |can| can.edit, ..FREE };

    /// 0.0 to 1.0 (default 0.6): how far an edit may depart from its source.
    edit_strength: f64 = NUMBER, FieldRules { taken: |can| can.edit, needs: &["edit_task_id"], ..FREE };

    /// Up to 16 pairs of strings, returned unchanged: keys of 1 to 64, values of up to 512
    /// characters.
    metadata: BTreeMap<String, String> = PAIRS, FieldRules { in_final: true, ..FREE };

    /// URL that receives a signed POST when the task ends (see `docs/webhooks.md`). The operator
    /// must have created a signing secret for the project's callbacks.
    // Omitted from the fingerprint if absent, so that fingerprints of earlier versions stay valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    callback_url: String = URL, FieldRules { in_final: true, ..FREE };

    /// `low`, `normal` (default) or `high`: the order of the project's own waiting tasks. It has no
    /// effect between projects; finals and edits do not inherit it.
    #[schema(example = "normal")]
    // Omitted from the fingerprint if absent, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: String = PRIORITY, FieldRules { in_final: true, ..FREE };
}

/// The type of the field `name`. Only `edits` has `video`, an object.
pub(crate) fn kind(name: &str) -> Option<FieldKind> {
    if name == "video" {
        return Some(FieldKind::Pairs);
    }
    let field = FIELDS.iter().find(|field| field.name == name)?;
    Some(field.kind)
}

pub(crate) fn is_known(name: &str) -> bool {
    FIELDS.iter().any(|field| field.name == name) || NEVER_SUPPORTED.contains(&name)
}

fn unknown(name: &str) -> RequestRefusal {
    unknown_field(name, FIELDS.iter().map(|field| field.name))
}

/// The fields of a JSON body. Reading stops at the first unknown name that is not `null`, and at
/// the bound on values.
///
/// # Errors
/// `invalid_json`, `unknown_parameter` or `invalid_value`, whichever comes first in the body.
pub fn json_fields(body: &[u8]) -> Result<Map<String, Value>, RequestRefusal> {
    json::parse_object(body, |name| {
        if is_known(name) {
            Ok(())
        } else {
            Err(unknown(name))
        }
    })
}

impl SubmitRequest {
    /// Parses a JSON body.
    ///
    /// # Errors
    /// As [`json_fields`] and [`SubmitRequest::from_fields`].
    pub fn from_json(body: &[u8]) -> Result<Self, RequestRefusal> {
        Self::from_fields(json_fields(body)?)
    }

    /// Reads fields that are already JSON values.
    ///
    /// # Errors
    /// `invalid_type` or `unknown_parameter`, in this order.
    pub fn from_fields(mut sent: Map<String, Value>) -> Result<Self, RequestRefusal> {
        // `null` means absent, even for an unknown name: clients serialise their unset fields like
        // that.
        sent.retain(|_, value| !value.is_null());
        let request = take(&mut sent)?;
        // Several unknown names: report the first by name. The order of the map depends on a feature of
        // serde_json that any crate of the build may enable.
        match sent
            .keys()
            .filter(|name| !NEVER_SUPPORTED.contains(&name.as_str()))
            .min()
        {
            Some(name) => Err(unknown(name)),
            None => Ok(request),
        }
    }

    /// Every URL in the request with its param, in the order of the table.
    pub fn urls(&self) -> impl Iterator<Item = (String, &str)> {
        FIELDS.iter().flat_map(|field| field.urls(self))
    }

    /// Lets `change` change the URL of each reference.
    pub fn change_references(&mut self, change: impl FnMut(&mut String)) {
        let single = [
            &mut self.input_reference,
            &mut self.first_frame,
            &mut self.last_frame,
        ];
        let lists = [&mut self.reference_images, &mut self.reference_audios];
        let lists = lists.into_iter().flatten().flatten();
        single.into_iter().flatten().chain(lists).for_each(change);
    }

    /// Whether the request has an image that the shape of the video can follow.
    pub(crate) fn has_image(&self) -> bool {
        self.first_frame.is_some()
            || self.input_reference.is_some()
            || self.reference_images.is_some()
    }

    /// SHA-256 of the request in a normal form: equal for equal fields, in any order, as JSON or as
    /// a form.
    ///
    /// # Errors
    /// `invalid_value` if a field cannot be serialised, which never happens to a parsed request.
    pub fn fingerprint(&self) -> Result<[u8; 32], RequestRefusal> {
        // Fields are serialised in the order of the table, and maps by key, so equal requests have
        // equal bytes. Absent fields of newer versions are left out: the fingerprints that a store
        // holds stay valid.
        let normal = serde_json::to_vec(self).map_err(|_| {
            RequestRefusal::new(ErrorCode::InvalidValue, "the request cannot be written")
        })?;
        Ok(Sha256::digest(normal).into())
    }
}
