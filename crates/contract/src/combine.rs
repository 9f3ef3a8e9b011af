//! The combination rules: which fields exclude or need each other. Checked after every single
//! field was found in range; the first broken rule is reported, on the field to take away.

use crate::error::{ErrorCode, Refusal};
use crate::limits::REFERENCES_MAX;
use crate::request::SubmitRequest;

fn clash(param: &str, message: impl Into<String>) -> Refusal {
    Refusal::of(ErrorCode::UnsupportedCombination, param, message)
}

/// Checks every rule in the documented order.
pub(crate) fn check(request: &SubmitRequest) -> Result<(), Refusal> {
    size_excludes_its_parts(request)?;
    frames(request)?;
    references(request)?;
    adaptive_needs_an_image(request)?;
    draft_task_stands_alone(request)?;
    edit_takes_its_shape_from_the_source(request)
}

fn size_excludes_its_parts(request: &SubmitRequest) -> Result<(), Refusal> {
    let parts = [
        ("resolution", request.resolution.is_some()),
        ("aspect_ratio", request.aspect_ratio.is_some()),
    ];
    match parts
        .iter()
        .find(|(_, sent)| *sent && request.size.is_some())
    {
        Some((param, _)) => Err(clash(
            param,
            format!("'{param}' cannot be combined with 'size'."),
        )),
        None => Ok(()),
    }
}

fn frames(request: &SubmitRequest) -> Result<(), Refusal> {
    let first = request.first_frame.is_some() || request.input_reference.is_some();
    if request.first_frame.is_some() && request.input_reference.is_some() {
        return Err(clash(
            "input_reference",
            "'input_reference' is another name of 'first_frame': send one of them.",
        ));
    }
    if request.last_frame.is_some() && !first {
        return Err(clash("last_frame", "'last_frame' needs 'first_frame'."));
    }
    Ok(())
}

fn references(request: &SubmitRequest) -> Result<(), Refusal> {
    let images = request.reference_images.as_ref().map_or(0, Vec::len);
    let audios = request.reference_audios.as_ref().map_or(0, Vec::len);
    let frames = [
        ("input_reference", request.input_reference.is_some()),
        ("first_frame", request.first_frame.is_some()),
        ("last_frame", request.last_frame.is_some()),
    ];
    if let Some((frame, _)) = frames.iter().find(|(_, sent)| *sent && images > 0) {
        let message = format!("'reference_images' cannot be combined with '{frame}'.");
        return Err(clash("reference_images", message));
    }
    if audios > 0 && images == 0 {
        let message = "'reference_audios' needs at least one of 'reference_images'.";
        return Err(clash("reference_audios", message));
    }
    if images + audios > REFERENCES_MAX {
        let message = format!("At most {REFERENCES_MAX} reference items are allowed in all.");
        return Err(clash("reference_images", message));
    }
    Ok(())
}

fn adaptive_needs_an_image(request: &SubmitRequest) -> Result<(), Refusal> {
    let image = request.first_frame.is_some()
        || request.input_reference.is_some()
        || request.reference_images.is_some();
    if request.aspect_ratio.as_deref() == Some("adaptive") && !image {
        let message = "'aspect_ratio' 'adaptive' follows the first image, and there is none.";
        return Err(clash("aspect_ratio", message));
    }
    Ok(())
}

fn draft_task_stands_alone(request: &SubmitRequest) -> Result<(), Refusal> {
    if request.draft_task_id.is_none() {
        return Ok(());
    }
    let others = [
        ("prompt", request.prompt.is_some()),
        ("negative_prompt", request.negative_prompt.is_some()),
        ("seconds", request.seconds.is_some()),
        ("size", request.size.is_some()),
        ("resolution", request.resolution.is_some()),
        ("aspect_ratio", request.aspect_ratio.is_some()),
        ("input_reference", request.input_reference.is_some()),
        ("first_frame", request.first_frame.is_some()),
        ("last_frame", request.last_frame.is_some()),
        ("reference_images", request.reference_images.is_some()),
        ("reference_audios", request.reference_audios.is_some()),
        ("generate_audio", request.generate_audio.is_some()),
        ("seed", request.seed.is_some()),
        ("draft", request.draft.is_some()),
        ("edit_task_id", request.edit_task_id.is_some()),
        ("edit_strength", request.edit_strength.is_some()),
    ];
    match others.iter().find(|(_, sent)| *sent) {
        Some((param, _)) => {
            let message = format!(
                "'{param}' cannot accompany 'draft_task_id': the final takes it from the draft."
            );
            Err(clash(param, message))
        }
        None => Ok(()),
    }
}

fn edit_takes_its_shape_from_the_source(request: &SubmitRequest) -> Result<(), Refusal> {
    if request.edit_task_id.is_none() {
        return match request.edit_strength {
            Some(_) => Err(clash(
                "edit_strength",
                "'edit_strength' needs 'edit_task_id'.",
            )),
            None => Ok(()),
        };
    }
    let others = [
        ("seconds", request.seconds.is_some()),
        ("size", request.size.is_some()),
        ("resolution", request.resolution.is_some()),
        ("aspect_ratio", request.aspect_ratio.is_some()),
        ("input_reference", request.input_reference.is_some()),
        ("first_frame", request.first_frame.is_some()),
        ("last_frame", request.last_frame.is_some()),
        ("reference_audios", request.reference_audios.is_some()),
        ("generate_audio", request.generate_audio.is_some()),
        ("draft", request.draft.is_some()),
    ];
    match others.iter().find(|(_, sent)| *sent) {
        Some((param, _)) => {
            let message = format!(
                "'{param}' cannot accompany 'edit_task_id': an edit keeps the source's form."
            );
            Err(clash(param, message))
        }
        None => Ok(()),
    }
}
