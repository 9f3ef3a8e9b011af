//! The bytes that a task takes in a list. Pages are limited by bytes, since a hundred tasks may
//! have a hundred words or several megabytes.

use crate::spec::Inputs;
use crate::task::{State, Task};

/// Numbers, identifiers, field names and three signed URLs.
const FIXED_BYTES: usize = 2048;

/// An upper estimate of the task object's JSON (with URLs of up to a few hundred characters), and
/// of the reference URLs held while it is written.
pub fn listed_bytes(task: &Task) -> usize {
    let spec = &task.spec;
    let metadata = task.metadata.iter();
    let failure = match &task.state {
        // Sent twice: as `error` and as `fail_reason`.
        State::Failed(failure) => 2 * json_bytes(&failure.message),
        _ => 0,
    };
    let warnings = task.warnings.iter();
    let warnings = warnings.map(|one| json_bytes(&one.code) + json_bytes(&one.message) + 24);
    FIXED_BYTES
        + json_bytes(&spec.prompt)
        + spec.negative_prompt.as_ref().map_or(0, String::len)
        + metadata
            .map(|(key, value)| json_bytes(key) + json_bytes(value) + 6)
            .sum::<usize>()
        + failure
        + warnings.sum::<usize>()
        + input_bytes(&spec.inputs)
}

fn input_bytes(inputs: &Inputs) -> usize {
    match inputs {
        Inputs::Text => 0,
        Inputs::Frames { first, last } => first.len() + last.as_ref().map_or(0, String::len),
        Inputs::References { images, audios } => images.iter().chain(audios).map(String::len).sum(),
    }
}

/// The length of `text` within the quotes of a JSON string.
fn json_bytes(text: &str) -> usize {
    // Most texts need no escapes; a loop without branches checks many bytes at a time.
    let mut has_escapes = false;
    for byte in text.as_bytes() {
        has_escapes |= (*byte < 0x20) | (*byte == b'"') | (*byte == b'\\');
    }
    if !has_escapes {
        return text.len();
    }
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0..0x20 => 6,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_count_as_they_are_written() {
        for text in [
            "",
            "plain",
            "\"\\\n\r\t\u{8}\u{c}",
            "\0\u{1}\u{1f}\u{7f}",
            "é夜🌊",
        ] {
            let written = serde_json::to_string(text).unwrap();
            assert_eq!(json_bytes(text), written.len() - 2, "{written}");
        }
    }
}
