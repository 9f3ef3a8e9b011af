//! Validation: turns a request and the catalog into a [`ValidatedRequest`], or returns the first error.
//! The order of the checks is part of the contract: model, fields that the model does not take,
//! ranges, combinations, URL syntax, total text (syntax, types and unknown fields were checked
//! before). Looks up nothing: drafts and sources of edits are found by the caller.

use std::collections::BTreeMap;

use crate::card::{Features, ModelCard, ModelCatalog};
use crate::error::{ErrorCode, RequestRefusal};
use crate::id::{FileId, TaskId};
use crate::limits::{MODEL_CHARS_MAX, REFERENCES_MAX, REQUEST_TEXT_BYTES_MAX};
use crate::ranges::RangedFields;
use crate::reference_url::AllowedPorts;
use crate::request::{FIELDS, RequestField, SecondsField, SubmitRequest};
use crate::spec::{SPEC_VERSION, VideoInputs, VideoSpec};
use crate::task::Priority;
use crate::{ranges, reference_url, uploaded};

/// A valid request.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidatedRequest {
    /// The video to make.
    pub intent: SubmitIntent,
    /// The caller's own notes.
    pub metadata: BTreeMap<String, String>,
    /// The webhook to call when the task ends.
    pub callback_url: Option<String>,
    /// Priority within the project.
    pub priority: Priority,
}

/// The kind of the requested video.
#[derive(Clone, Debug, PartialEq)]
pub enum SubmitIntent {
    /// A new video; the spec is complete.
    New(Box<VideoSpec>),
    /// The final of a draft: its spec comes from the draft ([`crate::derived_spec::final_spec`]).
    FinalOf {
        /// Canonical identifier of the model.
        model: String,
        /// The draft.
        draft: TaskId,
    },
    /// An edit: its length and size come from the source ([`crate::derived_spec::edit_spec`]).
    EditOf(Box<EditRequest>),
}

/// An edit whose source has not been looked up yet.
#[derive(Clone, Debug, PartialEq)]
pub struct EditRequest {
    /// Canonical identifier of the model.
    pub model: String,
    /// The source.
    pub source: TaskId,
    /// The change to make.
    pub prompt: String,
    /// Things to avoid.
    pub negative_prompt: Option<String>,
    /// How far the edit may depart from the source.
    pub strength: f64,
    /// Images to show.
    pub reference_images: Vec<String>,
    /// Seed of all randomness.
    pub seed: u32,
}

impl ValidatedRequest {
    /// The canonical identifier of the model.
    pub fn model(&self) -> &str {
        match &self.intent {
            SubmitIntent::New(spec) => &spec.model,
            SubmitIntent::FinalOf { model, .. } => model,
            SubmitIntent::EditOf(edit) => &edit.model,
        }
    }
}

/// Validates `request`. `random_seed` is used if the caller asks for a random seed.
///
/// # Errors
/// The first violation in the documented order, with its `param`.
pub fn validate(
    request: &SubmitRequest,
    catalog: &ModelCatalog,
    random_seed: u32,
) -> Result<ValidatedRequest, RequestRefusal> {
    // The order is documented, and clients see only the first error: do not reorder.
    let card = find_model(request, catalog)?;
    check_supported(request, card)?;
    let ranged = ranges::check_ranges(request, card, random_seed)?;
    check_combinations(request)?;
    check_urls(request)?;
    check_text(request)?;
    Ok(ValidatedRequest {
        priority: ranged.priority,
        intent: ranged.into_intent(request, card)?,
        metadata: request.metadata.clone().unwrap_or_default(),
        callback_url: request.callback_url.clone(),
    })
}

fn find_model<'c>(
    request: &SubmitRequest,
    catalog: &'c ModelCatalog,
) -> Result<&'c ModelCard, RequestRefusal> {
    match &request.model {
        Some(name) => named_model(name, catalog),
        None => Err(ranges::missing("model")),
    }
}

/// The model with this identifier or alias.
///
/// # Errors
/// `model_not_found`, with the models that there are.
pub fn named_model<'c>(
    name: &str,
    catalog: &'c ModelCatalog,
) -> Result<&'c ModelCard, RequestRefusal> {
    catalog.find(name).ok_or_else(|| {
        // No model has a longer name, so no real name is cut.
        let shown: String = name.chars().take(MODEL_CHARS_MAX).collect();
        let known: Vec<&str> = catalog
            .cards()
            .iter()
            .map(|card| card.id.as_str())
            .collect();
        let message = format!(
            "The model '{shown}' does not exist; available: {}.",
            known.join(", ")
        );
        RequestRefusal::for_param(ErrorCode::ModelNotFound, "model", message)
    })
}

/// Refuses fields, and values that name a capability, that the model does not take.
fn check_supported(request: &SubmitRequest, card: &ModelCard) -> Result<(), RequestRefusal> {
    let can: &Features = &card.capabilities.features;
    let unsupported = |param: &str| {
        let message = format!("'{param}' is not supported on the model '{}'.", card.id);
        RequestRefusal::for_param(ErrorCode::UnsupportedParameter, param, message)
    };
    if let Some(name) = request.never_supported {
        return Err(unsupported(name));
    }
    let mut sent = FIELDS.iter().filter(|field| field.is_in(request));
    if let Some(field) = sent.find(|field| !(field.rules.taken)(can)) {
        return Err(unsupported(field.name));
    }
    let unsupported_value = |param: &str, value: &str| {
        let message = format!(
            "'{value}' as '{param}' is not supported on the model '{}'.",
            card.id
        );
        RequestRefusal::for_param(ErrorCode::UnsupportedValue, param, message)
    };
    if request.seconds == Some(SecondsField::Auto) && !can.auto_duration {
        return Err(unsupported_value("seconds", "auto"));
    }
    if request.aspect_ratio.as_deref() == Some("adaptive") && !can.takes_images() {
        return Err(unsupported_value("aspect_ratio", "adaptive"));
    }
    check_image(request, card)
}

/// Requires an image if the model starts from one.
fn check_image(request: &SubmitRequest, card: &ModelCard) -> Result<(), RequestRefusal> {
    let can = &card.capabilities.features;
    let is_of_another = request.draft_task_id.is_some() || request.edit_task_id.is_some();
    if can.text_to_video || is_of_another || request.has_image() {
        return Ok(());
    }
    let param = if can.first_frame {
        "first_frame"
    } else {
        "reference_images"
    };
    let message = format!(
        "The model '{}' starts from an image: '{param}' is required.",
        card.id
    );
    let code = ErrorCode::MissingRequiredParameter;
    Err(RequestRefusal::for_param(code, param, message))
}

fn check_urls(request: &SubmitRequest) -> Result<(), RequestRefusal> {
    for (param, url) in request.urls() {
        match uploaded::named_id(url) {
            Some(id) if param == "input_reference" => check_file_id(id, &param)?,
            _ => reference_url::check(url, &param)?,
        }
    }
    Ok(())
}

fn check_file_id(id: &str, param: &str) -> Result<(), RequestRefusal> {
    if id.parse::<FileId>().is_ok() {
        return Ok(());
    }
    let message = format!("The 'file_id' of '{param}' must be the id of an uploaded file.");
    Err(RequestRefusal::for_param(
        ErrorCode::InvalidValue,
        param,
        message,
    ))
}

/// Refuses a URL whose port is not among `ports`, unless it names one of this service's `own` files.
/// Every other check of the URL has passed.
///
/// # Errors
/// `invalid_url`.
pub fn check_ports(
    request: &SubmitRequest,
    ports: &AllowedPorts,
    own: impl Fn(&str) -> bool,
) -> Result<(), RequestRefusal> {
    for (param, url) in request.urls().filter(|(_, url)| !own(url)) {
        reference_url::check_port(url, &param, ports)?;
    }
    Ok(())
}

/// Refuses a request whose texts exceed the total limit although each part is within its own.
fn check_text(request: &SubmitRequest) -> Result<(), RequestRefusal> {
    // Prompts count as they will be stored, without surrounding white space.
    let prompts = [&request.prompt, &request.negative_prompt];
    let prompts = prompts.into_iter().flatten().map(|text| text.trim().len());
    let pairs = request.metadata.iter().flatten();
    let pairs = pairs.map(|(key, value)| key.len() + value.len());
    let urls = request.urls().map(|(_, url)| url.len());
    let bytes: usize = prompts.chain(pairs).chain(urls).sum();
    if bytes <= REQUEST_TEXT_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "Prompts, URLs and metadata have {bytes} bytes together; at most \
         {REQUEST_TEXT_BYTES_MAX} are allowed. Shorten one of them."
    );
    Err(RequestRefusal::new(ErrorCode::InvalidValue, message))
}

impl RangedFields {
    fn into_intent(
        self,
        request: &SubmitRequest,
        card: &ModelCard,
    ) -> Result<SubmitIntent, RequestRefusal> {
        if let Some(draft) = self.draft_task {
            return Ok(SubmitIntent::FinalOf {
                model: card.id.clone(),
                draft,
            });
        }
        let prompt = self.prompt.ok_or_else(|| ranges::missing("prompt"))?;
        if let Some(source) = self.edit_task {
            return Ok(SubmitIntent::EditOf(Box::new(EditRequest {
                model: card.id.clone(),
                source,
                prompt,
                negative_prompt: self.negative_prompt,
                strength: self.strength,
                reference_images: request.reference_images.clone().unwrap_or_default(),
                seed: self.seed,
            })));
        }
        // Sound is on by default where the model has it.
        let can_sound = card.capabilities.features.audio_output;
        Ok(SubmitIntent::New(Box::new(VideoSpec {
            version: SPEC_VERSION,
            model: card.id.clone(),
            prompt,
            negative_prompt: self.negative_prompt,
            seconds: self.seconds,
            frame: self.frame,
            seed: self.seed,
            generate_audio: request.generate_audio.unwrap_or(can_sound),
            inputs: inputs(request),
            draft: request.draft.unwrap_or(false),
            final_of: None,
            edit: None,
        })))
    }
}

fn inputs(request: &SubmitRequest) -> VideoInputs {
    let first = request
        .first_frame
        .as_ref()
        .or(request.input_reference.as_ref());
    match (first, &request.reference_images) {
        (Some(first), _) => VideoInputs::Frames {
            first: first.clone(),
            last: request.last_frame.clone(),
        },
        (None, Some(images)) => VideoInputs::References {
            images: images.clone(),
            audios: request.reference_audios.clone().unwrap_or_default(),
        },
        (None, None) => VideoInputs::Text,
    }
}

fn clash(param: &str, message: impl Into<String>) -> RequestRefusal {
    RequestRefusal::for_param(ErrorCode::UnsupportedCombination, param, message)
}

/// Checks which fields exclude or need each other, in the documented order: fields in the order of their
/// table, then the request as a whole. The error names the field to remove.
fn check_combinations(request: &SubmitRequest) -> Result<(), RequestRefusal> {
    for field in sent(request) {
        excluded(field, request)?;
        needed(field, request)?;
    }
    count_of_references(request)?;
    adaptive_needs_an_image(request)?;
    draft_task_stands_alone(request)?;
    edit_takes_its_form_from_the_source(request)
}

fn sent(request: &SubmitRequest) -> impl Iterator<Item = &'static RequestField> {
    FIELDS.iter().filter(|field| field.is_in(request))
}

/// The first of `names` that was sent.
fn first_sent(request: &SubmitRequest, names: &[&str]) -> Option<&'static str> {
    if names.is_empty() {
        // Most fields have no such rule: skip the search, which would look at every field.
        return None;
    }
    sent(request)
        .find(|field| names.contains(&field.name))
        .map(|field| field.name)
}

fn excluded(field: &RequestField, request: &SubmitRequest) -> Result<(), RequestRefusal> {
    let name = field.name;
    let Some(other) = first_sent(request, field.rules.excludes) else {
        return Ok(());
    };
    Err(clash(
        name,
        match (name, other) {
            // The usual sentence would be true but puzzling: both mean the same image.
            ("input_reference", "first_frame") => {
                "'input_reference' is another name of 'first_frame': send one of them.".to_owned()
            }
            _ => format!("'{name}' cannot be combined with '{other}'."),
        },
    ))
}

fn needed(field: &RequestField, request: &SubmitRequest) -> Result<(), RequestRefusal> {
    let needs = field.rules.needs;
    match needs.first() {
        Some(first) if first_sent(request, needs).is_none() => {
            let message = format!("'{}' needs '{first}'.", field.name);
            Err(clash(field.name, message))
        }
        _ => Ok(()),
    }
}

fn count_of_references(request: &SubmitRequest) -> Result<(), RequestRefusal> {
    let lists = [&request.reference_images, &request.reference_audios];
    let count: usize = lists.into_iter().flatten().map(Vec::len).sum();
    if count > REFERENCES_MAX {
        let message = format!("At most {REFERENCES_MAX} reference items are allowed in all.");
        return Err(clash("reference_images", message));
    }
    Ok(())
}

fn adaptive_needs_an_image(request: &SubmitRequest) -> Result<(), RequestRefusal> {
    if request.aspect_ratio.as_deref() == Some("adaptive") && !request.has_image() {
        let message = "'aspect_ratio' 'adaptive' follows the first image, and there is none.";
        return Err(clash("aspect_ratio", message));
    }
    Ok(())
}

fn draft_task_stands_alone(request: &SubmitRequest) -> Result<(), RequestRefusal> {
    // The field that cannot stay is named, not `draft_task_id`, whose presence says what the client
    // wants.
    let stranger = sent(request).find(|field| !field.rules.in_final);
    let Some(other) = stranger.filter(|_| request.draft_task_id.is_some()) else {
        return Ok(());
    };
    let message = format!(
        "'{}' cannot accompany 'draft_task_id': the final takes it from the draft.",
        other.name
    );
    Err(clash(other.name, message))
}

fn edit_takes_its_form_from_the_source(request: &SubmitRequest) -> Result<(), RequestRefusal> {
    let stranger = sent(request).find(|field| !field.rules.in_edit);
    let Some(other) = stranger.filter(|_| request.edit_task_id.is_some()) else {
        return Ok(());
    };
    let message = format!(
        "'{}' cannot accompany 'edit_task_id': an edit keeps the source's form.",
        other.name
    );
    Err(clash(other.name, message))
}
