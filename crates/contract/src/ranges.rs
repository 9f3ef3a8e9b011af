//! The ranges of single fields, checked in the order of their table and read with their defaults.
//! [`mod@crate::validate`] decides which fields go together; it has checked before that the model supports
//! them.

use crate::card::ModelCard;
use crate::error::{ErrorCode, RequestRefusal};
use crate::id::TaskId;
use crate::limits::{
    METADATA_KEY_CHARS_MAX, METADATA_PAIRS_MAX, METADATA_VALUE_CHARS_MAX,
    NEGATIVE_PROMPT_CHARS_MAX, PROMPT_CHARS_MAX, SEED_MAX,
};
use crate::request::{FIELDS, FieldKey, SecondsField, SubmitRequest};
use crate::size::{AspectRatio, Resolution, Size};
use crate::spec::{FrameSize, VideoLength};
use crate::task::Priority;

/// Default of `edit_strength`.
pub(crate) const EDIT_STRENGTH_DEFAULT: f64 = 0.6;

/// The fields that have a range, within it and with their defaults.
pub(crate) struct RangedFields {
    pub(crate) prompt: Option<String>,
    pub(crate) negative_prompt: Option<String>,
    pub(crate) seconds: VideoLength,
    pub(crate) frame: FrameSize,
    pub(crate) seed: u32,
    pub(crate) strength: f64,
    pub(crate) draft_task: Option<TaskId>,
    pub(crate) edit_task: Option<TaskId>,
    pub(crate) priority: Priority,
    size: Option<Size>,
    resolution: Option<Resolution>,
}

/// Checks every field in the order of the public table, which is that of [`FIELDS`].
pub(crate) fn check_ranges(
    request: &SubmitRequest,
    card: &ModelCard,
    random_seed: u32,
) -> Result<RangedFields, RequestRefusal> {
    let mut ranged = RangedFields {
        prompt: None,
        negative_prompt: None,
        seconds: VideoLength::Auto,
        frame: FrameSize::Fixed(card.capabilities.size_default()),
        seed: random_seed,
        strength: EDIT_STRENGTH_DEFAULT,
        draft_task: None,
        edit_task: None,
        priority: Priority::default(),
        size: None,
        resolution: None,
    };
    for field in FIELDS {
        ranged.check_field(field.key, request, card)?;
    }
    Ok(ranged)
}

impl RangedFields {
    /// Checks one field, and stores its value or default.
    fn check_field(
        &mut self,
        field: FieldKey,
        request: &SubmitRequest,
        card: &ModelCard,
    ) -> Result<(), RequestRefusal> {
        let features = &card.capabilities.features;
        match field {
            FieldKey::prompt => self.prompt = prompt(request)?,
            FieldKey::negative_prompt => self.negative_prompt = negative_prompt(request)?,
            FieldKey::seconds => self.seconds = seconds(request, card)?,
            FieldKey::size => self.size = size(request, card)?,
            FieldKey::resolution => self.resolution = resolution(request, card)?,
            // `size`, `resolution` and `aspect_ratio` name the frame together. With the last of them, each has
            // passed its own check, so the frame is determined here.
            FieldKey::aspect_ratio => {
                let shape = shape(request)?;
                self.frame = match self.size {
                    Some(size) => FrameSize::Fixed(size),
                    None => frame_of_parts(self.resolution, shape, card)?,
                };
            }
            FieldKey::reference_images => {
                let (urls, max) = (&request.reference_images, features.reference_images_max);
                count("reference_images", urls.as_ref(), max, card)?;
            }
            FieldKey::reference_audios => {
                let (urls, max) = (&request.reference_audios, features.reference_audios_max);
                count("reference_audios", urls.as_ref(), max, card)?;
            }
            FieldKey::seed => self.seed = seed(request, self.seed)?,
            FieldKey::draft_task_id => {
                let (id, code) = (request.draft_task_id.as_ref(), ErrorCode::DraftNotUsable);
                self.draft_task = task_id(id, "draft_task_id", code)?;
            }
            FieldKey::edit_task_id => {
                let (id, code) = (
                    request.edit_task_id.as_ref(),
                    ErrorCode::EditSourceNotUsable,
                );
                self.edit_task = task_id(id, "edit_task_id", code)?;
            }
            FieldKey::edit_strength => self.strength = strength(request)?,
            FieldKey::metadata => check_metadata(request)?,
            FieldKey::priority => self.priority = priority(request)?,
            // Every value of the right type is in range: the model was found before, and URLs are checked
            // afterwards.
            FieldKey::model
            | FieldKey::input_reference
            | FieldKey::first_frame
            | FieldKey::last_frame
            | FieldKey::generate_audio
            | FieldKey::draft
            | FieldKey::callback_url => {}
        }
        Ok(())
    }
}

pub(crate) fn missing(param: &str) -> RequestRefusal {
    let message = format!("Missing required parameter: '{param}'.");
    RequestRefusal::for_param(ErrorCode::MissingRequiredParameter, param, message)
}

fn invalid(param: &str, message: impl Into<String>) -> RequestRefusal {
    RequestRefusal::for_param(ErrorCode::InvalidValue, param, message)
}

fn prompt(request: &SubmitRequest) -> Result<Option<String>, RequestRefusal> {
    let prompt = trimmed("prompt", request.prompt.as_ref(), PROMPT_CHARS_MAX)?;
    match &prompt {
        // A final takes the prompt of its draft.
        None if request.draft_task_id.is_none() => Err(missing("prompt")),
        Some(text) if text.is_empty() => Err(invalid("prompt", "'prompt' must not be empty.")),
        _ => Ok(prompt),
    }
}

/// The text without surrounding white space, if it has at most `limit` characters (Unicode scalar
/// values).
fn trimmed(
    param: &str,
    text: Option<&String>,
    limit: usize,
) -> Result<Option<String>, RequestRefusal> {
    let Some(text) = text.map(|text| text.trim()) else {
        return Ok(None);
    };
    let count = text.chars().count();
    if count > limit {
        let message = format!("'{param}' has {count} characters; at most {limit} are allowed.");
        return Err(invalid(param, message));
    }
    Ok(Some(text.to_owned()))
}

fn negative_prompt(request: &SubmitRequest) -> Result<Option<String>, RequestRefusal> {
    let text = request.negative_prompt.as_ref();
    let text = trimmed("negative_prompt", text, NEGATIVE_PROMPT_CHARS_MAX)?;
    Ok(text.filter(|text| !text.is_empty()))
}

fn seconds(request: &SubmitRequest, card: &ModelCard) -> Result<VideoLength, RequestRefusal> {
    let can = &card.capabilities;
    let (min, max) = (can.seconds_min, can.seconds_max);
    match &request.seconds {
        None => Ok(VideoLength::Fixed(can.seconds_default)),
        Some(SecondsField::Auto) => Ok(VideoLength::Auto),
        Some(SecondsField::Number(number))
            if u32::try_from(*number).is_ok_and(|seconds| can.makes(seconds)) =>
        {
            Ok(VideoLength::Fixed(u32::try_from(*number).unwrap_or(max)))
        }
        Some(_) => {
            let auto = if can.features.auto_duration {
                ", or \"auto\""
            } else {
                ""
            };
            let allowed = match &can.seconds {
                None => format!("a whole number from {min} to {max}"),
                Some(lengths) => format!("one of {}", joined(lengths)),
            };
            let message = format!("'seconds' must be {allowed}{auto}.");
            Err(invalid("seconds", message))
        }
    }
}

fn size(request: &SubmitRequest, card: &ModelCard) -> Result<Option<Size>, RequestRefusal> {
    let Some(text) = &request.size else {
        return Ok(None);
    };
    let sizes = &card.capabilities.sizes;
    let listed = text.parse::<Size>().ok();
    let listed = listed.filter(|size| sizes.contains(size));
    listed.map(Some).ok_or_else(|| {
        let sizes = joined(sizes);
        invalid("size", format!("'size' must be one of {sizes}."))
    })
}

/// The frame that `resolution` and `aspect_ratio` name; the card supplies an omitted one.
fn frame_of_parts(
    resolution: Option<Resolution>,
    shape: Option<RequestedShape>,
    card: &ModelCard,
) -> Result<FrameSize, RequestRefusal> {
    let can = &card.capabilities;
    let refuse = |param, message| {
        let code = ErrorCode::UnsupportedValue;
        Err(RequestRefusal::for_param(code, param, message))
    };
    // A card need not have the default resolution and shape, so the default size is the card's, not
    // composed of two defaults.
    if (resolution, shape) == (None, None) {
        return Ok(FrameSize::Fixed(can.size_default()));
    }
    let chosen = resolution.unwrap_or_else(|| {
        // The client named only a shape: choose a resolution that has it.
        can.resolution_default(|one| match shape {
            None => can.offers(one),
            Some(RequestedShape::Ratio(ratio)) => can.has(one, ratio),
            Some(RequestedShape::Adaptive) => can.adapts(one),
        })
    });
    let ratio = match shape {
        None => can.ratio_default(chosen),
        Some(RequestedShape::Ratio(ratio)) => ratio,
        Some(RequestedShape::Adaptive) if can.adapts(chosen) => {
            return Ok(FrameSize::Adaptive(chosen));
        }
        Some(RequestedShape::Adaptive) => {
            let (id, name) = (&card.id, chosen.name());
            let what = format!("'adaptive' is not supported on the model '{id}' at {name}.");
            return refuse("aspect_ratio", what);
        }
    };
    let size = chosen.size(ratio);
    if can.sizes.contains(&size) {
        return Ok(FrameSize::Fixed(size));
    }
    // Blame the field that the client sent; with both, the one that comes first in the table.
    let param = match resolution {
        Some(_) => "resolution",
        None => "aspect_ratio",
    };
    refuse(
        param,
        format!("The size {size} is not offered on the model '{}'.", card.id),
    )
}

/// The value of `aspect_ratio`.
#[derive(Clone, Copy, PartialEq)]
enum RequestedShape {
    Ratio(AspectRatio),
    Adaptive,
}

fn resolution(
    request: &SubmitRequest,
    card: &ModelCard,
) -> Result<Option<Resolution>, RequestRefusal> {
    let Some(name) = &request.resolution else {
        return Ok(None);
    };
    let Some(resolution) = Resolution::from_name(name) else {
        let names: Vec<&str> = Resolution::ALL.iter().map(|one| one.name()).collect();
        let message = format!("'resolution' must be one of {}.", names.join(", "));
        return Err(invalid("resolution", message));
    };
    if !card.capabilities.offers(resolution) {
        let message = format!("{name} is not offered on the model '{}'.", card.id);
        let code = ErrorCode::UnsupportedValue;
        return Err(RequestRefusal::for_param(code, "resolution", message));
    }
    Ok(Some(resolution))
}

fn shape(request: &SubmitRequest) -> Result<Option<RequestedShape>, RequestRefusal> {
    let ratio = match request.aspect_ratio.as_deref() {
        None => return Ok(None),
        Some("adaptive") => return Ok(Some(RequestedShape::Adaptive)),
        Some(name) => AspectRatio::from_name(name),
    };
    ratio
        .map(|ratio| Some(RequestedShape::Ratio(ratio)))
        .ok_or_else(|| {
            let names: Vec<&str> = AspectRatio::ALL.iter().map(|one| one.name()).collect();
            let message = format!(
                "'aspect_ratio' must be one of {}, adaptive.",
                names.join(", ")
            );
            invalid("aspect_ratio", message)
        })
}

fn priority(request: &SubmitRequest) -> Result<Priority, RequestRefusal> {
    let Some(name) = &request.priority else {
        return Ok(Priority::default());
    };
    Priority::from_name(name).ok_or_else(|| {
        let names = Priority::names();
        invalid("priority", format!("'priority' must be one of {names}."))
    })
}

fn joined<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    items.join(", ")
}

fn seed(request: &SubmitRequest, random_seed: u32) -> Result<u32, RequestRefusal> {
    match request.seed {
        None | Some(-1) => Ok(random_seed),
        Some(seed) => u32::try_from(seed).map_err(|_| {
            invalid(
                "seed",
                format!("'seed' must be -1 or from 0 to {SEED_MAX}."),
            )
        }),
    }
}

fn strength(request: &SubmitRequest) -> Result<f64, RequestRefusal> {
    match request.edit_strength {
        None => Ok(EDIT_STRENGTH_DEFAULT),
        Some(strength) if (0.0..=1.0).contains(&strength) => Ok(strength),
        Some(_) => Err(invalid(
            "edit_strength",
            "'edit_strength' must be from 0.0 to 1.0.",
        )),
    }
}

fn task_id(
    text: Option<&String>,
    param: &str,
    code: ErrorCode,
) -> Result<Option<TaskId>, RequestRefusal> {
    let Some(text) = text else {
        return Ok(None);
    };
    let id = text.parse().map_err(|_| {
        RequestRefusal::for_param(code, param, format!("'{param}' is not a valid task id."))
    })?;
    Ok(Some(id))
}

/// Whether a list of URLs that was sent holds as many as the model takes.
fn count(
    param: &str,
    urls: Option<&Vec<String>>,
    max: u32,
    card: &ModelCard,
) -> Result<(), RequestRefusal> {
    let count = urls.map(Vec::len);
    if count.is_none_or(|count| (1..=max as usize).contains(&count)) {
        return Ok(());
    }
    let id = &card.id;
    let message = format!("'{param}' must hold 1 to {max} URLs on the model '{id}'.");
    Err(invalid(param, message))
}

fn check_metadata(request: &SubmitRequest) -> Result<(), RequestRefusal> {
    let Some(pairs) = &request.metadata else {
        return Ok(());
    };
    if pairs.len() > METADATA_PAIRS_MAX {
        let message = format!("'metadata' may hold at most {METADATA_PAIRS_MAX} pairs.");
        return Err(invalid("metadata", message));
    }
    for (key, value) in pairs {
        if key.is_empty() || key.chars().count() > METADATA_KEY_CHARS_MAX {
            let message =
                format!("A key of 'metadata' must have 1 to {METADATA_KEY_CHARS_MAX} characters.");
            return Err(invalid("metadata", message));
        }
        if value.chars().count() > METADATA_VALUE_CHARS_MAX {
            let message = format!(
                "A value of 'metadata' may have at most {METADATA_VALUE_CHARS_MAX} characters."
            );
            return Err(invalid("metadata", message));
        }
    }
    Ok(())
}
