//! Refuses an unknown field with a hint: our name for another service's field, or the most similar
//! known name.

use crate::error::{ErrorCode, Refusal};

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
) -> Refusal {
    let shown: String = name.chars().take(64).collect();
    let plain = plain(&shown);
    let peer = PEERS.iter().find(|(words, _)| words.contains(&&*plain));
    let hint = match peer {
        Some((_, hint)) => format!(" {hint}"),
        None => nearest(&shown, &plain, known)
            .map_or_else(String::new, |known| format!(" Did you mean '{known}'?")),
    };
    let message = format!("Unknown parameter: '{shown}'.{hint}");
    Refusal::of(ErrorCode::UnknownParameter, shown, message)
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
        let all = names.map(|known| (edit_distance(known, shown), known));
        let (distance, known) = all.min()?;
        (distance <= known.len().div_ceil(3)).then_some(known)
    })
}

/// Levenshtein's distance in characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
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
