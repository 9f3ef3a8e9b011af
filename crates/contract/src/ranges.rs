//! Checks the range of each field by itself, and fills in defaults. [`crate::combine`] checks
//! combinations; whether the model supports a field was checked before.

use crate::card::ModelCard;
use crate::error::{ErrorCode, Refusal};
use crate::id::TaskId;
use crate::limits::{
    METADATA_KEY_CHARS_MAX, METADATA_PAIRS_MAX, METADATA_VALUE_CHARS_MAX,
    NEGATIVE_PROMPT_CHARS_MAX, PROMPT_CHARS_MAX, SEED_MAX,
};
use crate::priority::Priority;
use crate::request::{SecondsField, SubmitRequest};
use crate::size::{AspectRatio, Resolution, Size};
use crate::spec::{FrameSize, Seconds};

/// Default of `edit_strength`.
pub(crate) const EDIT_STRENGTH_DEFAULT: f64 = 0.6;

/// The fields that have a range, within it and with their defaults.
pub(crate) struct Ranged {
    pub(crate) prompt: Option<String>,
    pub(crate) negative_prompt: Option<String>,
    pub(crate) seconds: Seconds,
    pub(crate) frame: FrameSize,
    pub(crate) seed: u32,
    pub(crate) strength: f64,
    pub(crate) draft_task: Option<TaskId>,
    pub(crate) edit_task: Option<TaskId>,
    pub(crate) priority: Priority,
}

/// Checks every field, in the order of the public table.
pub(crate) fn check(
    request: &SubmitRequest,
    card: &ModelCard,
    random_seed: u32,
) -> Result<Ranged, Refusal> {
    let negative_limit = NEGATIVE_PROMPT_CHARS_MAX;
    let mut ranged = Ranged {
        prompt: prompt(request)?,
        negative_prompt: trimmed(
            "negative_prompt",
            request.negative_prompt.as_ref(),
            negative_limit,
        )?
        .filter(|text| !text.is_empty()),
        seconds: seconds(request, card)?,
        frame: frame(request, card)?,
        seed: seed(request, random_seed)?,
        strength: strength(request)?,
        draft_task: task_id(
            request.draft_task_id.as_ref(),
            "draft_task_id",
            ErrorCode::DraftNotUsable,
        )?,
        edit_task: task_id(
            request.edit_task_id.as_ref(),
            "edit_task_id",
            ErrorCode::EditSourceNotUsable,
        )?,
        priority: Priority::default(),
    };
    check_counts(request, card)?;
    check_metadata(request)?;
    ranged.priority = priority(request)?;
    Ok(ranged)
}

pub(crate) fn missing(param: &str) -> Refusal {
    let message = format!("Missing required parameter: '{param}'.");
    Refusal::of(ErrorCode::MissingRequiredParameter, param, message)
}

fn invalid(param: &str, message: impl Into<String>) -> Refusal {
    Refusal::of(ErrorCode::InvalidValue, param, message)
}

fn prompt(request: &SubmitRequest) -> Result<Option<String>, Refusal> {
    let prompt = trimmed("prompt", request.prompt.as_ref(), PROMPT_CHARS_MAX)?;
    match &prompt {
        None if request.draft_task_id.is_none() => Err(missing("prompt")),
        Some(text) if text.is_empty() => Err(invalid("prompt", "'prompt' must not be empty.")),
        _ => Ok(prompt),
    }
}

/// The text without surrounding white space, if it has at most `limit` characters (Unicode scalar
/// values).
fn trimmed(param: &str, text: Option<&String>, limit: usize) -> Result<Option<String>, Refusal> {
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

fn seconds(request: &SubmitRequest, card: &ModelCard) -> Result<Seconds, Refusal> {
    let can = &card.capabilities;
    let (min, max) = (can.seconds_min, can.seconds_max);
    match &request.seconds {
        None => Ok(Seconds::Fixed(can.seconds_default)),
        Some(SecondsField::Auto) => Ok(Seconds::Auto),
        Some(SecondsField::Number(number))
            if u32::try_from(*number).is_ok_and(|seconds| can.makes(seconds)) =>
        {
            Ok(Seconds::Fixed(u32::try_from(*number).unwrap_or(max)))
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

fn frame(request: &SubmitRequest, card: &ModelCard) -> Result<FrameSize, Refusal> {
    if let Some(text) = &request.size {
        let listed = text
            .parse::<Size>()
            .ok()
            .filter(|size| card.capabilities.sizes.contains(size));
        let Some(size) = listed else {
            let sizes = joined(&card.capabilities.sizes);
            return Err(invalid("size", format!("'size' must be one of {sizes}.")));
        };
        // Check the other two as well, so that an invalid one is reported before the combination.
        resolution(request)?;
        shape(request)?;
        return Ok(FrameSize::Fixed(size));
    }
    frame_of_parts(resolution(request)?, shape(request)?, card)
}

/// The frame that `resolution` and `aspect_ratio` name; the card supplies an omitted one.
fn frame_of_parts(
    resolution: Option<Resolution>,
    shape: Option<Shape>,
    card: &ModelCard,
) -> Result<FrameSize, Refusal> {
    let can = &card.capabilities;
    let refuse = |param, message| {
        let code = ErrorCode::UnsupportedValue;
        Err(Refusal::of(code, param, message))
    };
    let fits = |one| match shape {
        None => can.offers(one),
        Some(Shape::Ratio(ratio)) => can.has(one, ratio),
        Some(Shape::Adaptive) => can.adapts(one),
    };
    if (resolution, shape) == (None, None) {
        return Ok(FrameSize::Fixed(can.size_default()));
    }
    let chosen = resolution.unwrap_or_else(|| can.resolution_default(fits));
    let ratio = match shape {
        None => can.ratio_default(chosen),
        Some(Shape::Ratio(ratio)) => ratio,
        Some(Shape::Adaptive) if can.adapts(chosen) => return Ok(FrameSize::Adaptive(chosen)),
        Some(Shape::Adaptive) => {
            let (id, name) = (&card.id, chosen.name());
            if can.offers(chosen) || resolution.is_none() {
                let what = format!("'adaptive' is not supported on the model '{id}' at {name}.");
                return refuse("aspect_ratio", what);
            }
            return refuse(
                "resolution",
                format!("{name} is not offered on the model '{id}'."),
            );
        }
    };
    let size = chosen.size(ratio);
    if can.sizes.contains(&size) {
        return Ok(FrameSize::Fixed(size));
    }
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
enum Shape {
    Ratio(AspectRatio),
    Adaptive,
}

fn resolution(request: &SubmitRequest) -> Result<Option<Resolution>, Refusal> {
    let Some(name) = &request.resolution else {
        return Ok(None);
    };
    Resolution::from_name(name).map(Some).ok_or_else(|| {
        let names: Vec<&str> = Resolution::ALL.iter().map(|one| one.name()).collect();
        invalid(
            "resolution",
            format!("'resolution' must be one of {}.", names.join(", ")),
        )
    })
}

fn shape(request: &SubmitRequest) -> Result<Option<Shape>, Refusal> {
    let ratio = match request.aspect_ratio.as_deref() {
        None => return Ok(None),
        Some("adaptive") => return Ok(Some(Shape::Adaptive)),
        Some(name) => AspectRatio::from_name(name),
    };
    ratio.map(|ratio| Some(Shape::Ratio(ratio))).ok_or_else(|| {
        let names: Vec<&str> = AspectRatio::ALL.iter().map(|one| one.name()).collect();
        let message = format!(
            "'aspect_ratio' must be one of {}, adaptive.",
            names.join(", ")
        );
        invalid("aspect_ratio", message)
    })
}

fn priority(request: &SubmitRequest) -> Result<Priority, Refusal> {
    let Some(name) = &request.priority else {
        return Ok(Priority::default());
    };
    Priority::from_name(name).ok_or_else(|| {
        let names = Priority::ALL.map(Priority::name).join(", ");
        invalid("priority", format!("'priority' must be one of {names}."))
    })
}

fn joined<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    items.join(", ")
}

fn seed(request: &SubmitRequest, random_seed: u32) -> Result<u32, Refusal> {
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

fn strength(request: &SubmitRequest) -> Result<f64, Refusal> {
    match request.edit_strength {
        None => Ok(EDIT_STRENGTH_DEFAULT),
        Some(strength) if (0.0..=1.0).contains(&strength) => Ok(strength),
        Some(_) => Err(invalid(
            "edit_strength",
            "'edit_strength' must be from 0.0 to 1.0.",
        )),
    }
}

fn task_id(text: Option<&String>, param: &str, code: ErrorCode) -> Result<Option<TaskId>, Refusal> {
    let Some(text) = text else {
        return Ok(None);
    };
    let id = text
        .parse()
        .map_err(|_| Refusal::of(code, param, format!("'{param}' is not a valid task id.")))?;
    Ok(Some(id))
}

fn check_counts(request: &SubmitRequest, card: &ModelCard) -> Result<(), Refusal> {
    let can = &card.capabilities.features;
    let lists = [
        (
            "reference_images",
            &request.reference_images,
            can.reference_images_max,
        ),
        (
            "reference_audios",
            &request.reference_audios,
            can.reference_audios_max,
        ),
    ];
    for (param, list, max) in lists {
        let count = list.as_ref().map(Vec::len);
        if count.is_some_and(|count| count == 0 || count > max as usize) {
            let message = format!(
                "'{param}' must hold 1 to {max} URLs on the model '{}'.",
                card.id
            );
            return Err(invalid(param, message));
        }
    }
    Ok(())
}

fn check_metadata(request: &SubmitRequest) -> Result<(), Refusal> {
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
