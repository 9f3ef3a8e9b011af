//! The combination rules: which fields exclude or need each other. Checked once every single field
//! is in range; the error names the field to remove.

use crate::error::{ErrorCode, Refusal};
use crate::limits::REFERENCES_MAX;
use crate::request::{FIELDS, Field, SubmitRequest};

fn clash(param: &str, message: impl Into<String>) -> Refusal {
    Refusal::of(ErrorCode::UnsupportedCombination, param, message)
}

/// Checks every rule in the documented order: fields in the order of their table, then the request as a whole.
pub(crate) fn check(request: &SubmitRequest) -> Result<(), Refusal> {
    for field in sent(request) {
        excluded(field, request)?;
        needed(field, request)?;
    }
    count_of_references(request)?;
    adaptive_needs_an_image(request)?;
    draft_task_stands_alone(request)?;
    edit_takes_its_form_from_the_source(request)
}

fn sent(request: &SubmitRequest) -> impl Iterator<Item = &'static Field> {
    FIELDS.iter().filter(|field| field.is_in(request))
}

/// The first of `names` that was sent.
fn first_sent(request: &SubmitRequest, names: &[&str]) -> Option<&'static str> {
    if names.is_empty() {
        // As for most fields of every request.
        return None;
    }
    sent(request)
        .find(|field| names.contains(&field.name))
        .map(|field| field.name)
}

fn excluded(field: &Field, request: &SubmitRequest) -> Result<(), Refusal> {
    let name = field.name;
    let Some(other) = first_sent(request, field.rules.excludes) else {
        return Ok(());
    };
    Err(clash(
        name,
        match (name, other) {
            ("input_reference", "first_frame") => {
                "'input_reference' is another name of 'first_frame': send one of them.".to_owned()
            }
            _ => format!("'{name}' cannot be combined with '{other}'."),
        },
    ))
}

fn needed(field: &Field, request: &SubmitRequest) -> Result<(), Refusal> {
    let needs = field.rules.needs;
    match needs.first() {
        Some(first) if first_sent(request, needs).is_none() => {
            let message = format!("'{}' needs '{first}'.", field.name);
            Err(clash(field.name, message))
        }
        _ => Ok(()),
    }
}

fn count_of_references(request: &SubmitRequest) -> Result<(), Refusal> {
    let lists = [&request.reference_images, &request.reference_audios];
    let count: usize = lists.into_iter().flatten().map(Vec::len).sum();
    if count > REFERENCES_MAX {
        let message = format!("At most {REFERENCES_MAX} reference items are allowed in all.");
        return Err(clash("reference_images", message));
    }
    Ok(())
}

fn adaptive_needs_an_image(request: &SubmitRequest) -> Result<(), Refusal> {
    if request.aspect_ratio.as_deref() == Some("adaptive") && !request.has_image() {
        let message = "'aspect_ratio' 'adaptive' follows the first image, and there is none.";
        return Err(clash("aspect_ratio", message));
    }
    Ok(())
}

fn draft_task_stands_alone(request: &SubmitRequest) -> Result<(), Refusal> {
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

fn edit_takes_its_form_from_the_source(request: &SubmitRequest) -> Result<(), Refusal> {
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
