//! Encodes `multipart/form-data` (RFC 7578) in memory. The boundary is a hash of the contents, so
//! no content can contain it, and no randomness is needed.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::upstream::Encoded;

/// One part. The caller has checked names and media types: no quotes, no line breaks.
pub struct Part {
    /// The name of the field.
    pub name: String,
    /// Its value.
    pub content: Content,
}

/// The value of a [`Part`].
pub enum Content {
    /// A field of text.
    Text(String),
    /// A file.
    File {
        /// Its name, for the server.
        file_name: String,
        /// Its media type.
        media_type: String,
        /// Its content.
        bytes: Bytes,
    },
}

impl Part {
    fn head(&self) -> String {
        let name = &self.name;
        match &self.content {
            Content::Text(_) => format!("content-disposition: form-data; name=\"{name}\"\r\n\r\n"),
            Content::File {
                file_name,
                media_type,
                ..
            } => format!(
                "content-disposition: form-data; name=\"{name}\"; filename=\"{file_name}\"\r\n\
                 content-type: {media_type}\r\n\r\n"
            ),
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Text(text) => text.as_bytes(),
            Content::File { bytes, .. } => bytes,
        }
    }
}

/// Encodes the parts as one body.
pub fn encode(parts: &[Part]) -> Encoded {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.name.as_bytes());
        hash.update(part.bytes());
    }
    let boundary: String = hash.finalize()[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut body = Vec::new();
    for part in parts {
        body.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
        body.extend_from_slice(part.head().as_bytes());
        body.extend_from_slice(part.bytes());
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Encoded {
        content_type: format!("multipart/form-data; boundary={boundary}"),
        body: body.into(),
    }
}
