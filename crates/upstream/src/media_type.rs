//! Media types in calls: whether one may be written into a header, and the file ending that goes with it.

/// `type/subtype` with the characters allowed in media types (RFC 6838, 4.2).
pub fn is_media_type(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    text.len() <= 127
        && text
            .split_once('/')
            .is_some_and(|(kind, sub)| is_name(kind) && is_name(sub))
}

/// The ending of a file of this type, for servers that check it.
pub fn file_ending(media_type: &str) -> &'static str {
    match media_type {
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/webp" => "webp",
        "image/gif" => "gif",
        "audio/wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/mp4" => "m4a",
        "audio/flac" => "flac",
        "audio/ogg" => "ogg",
        "audio/webm" => "webm",
        "video/mp4" => "mp4",
        _ => "bin",
    }
}
