//! Parses boxes and their fields in a byte slice, big-endian (ISO/IEC 14496-12, 4.2). Every read is
//! checked; nothing is copied or allocated.

use crate::MediaError;

const SHORT: MediaError = MediaError::Malformed("a box is too short");

/// A box's kind and body.
pub(crate) type BoxEntry<'a> = ([u8; 4], &'a [u8]);

/// The boxes in `body`, each as kind and body; stops after the first error.
pub(crate) fn children(mut body: &[u8]) -> impl Iterator<Item = Result<BoxEntry<'_>, MediaError>> {
    std::iter::from_fn(move || {
        // QuickTime ends some lists with four zero bytes.
        if body.len() < 8 {
            return None;
        }
        let split = split_box(body);
        body = split.as_ref().map_or(&[], |(_, rest)| rest);
        Some(split.map(|(entry, _)| entry))
    })
}

/// The first child of this kind.
pub(crate) fn child<'a>(body: &'a [u8], wanted: &[u8; 4]) -> Result<&'a [u8], MediaError> {
    optional_child(body, wanted)?.ok_or(MediaError::Malformed("a required box is missing"))
}

/// The first child of this kind, if any.
pub(crate) fn optional_child<'a>(
    body: &'a [u8],
    wanted: &[u8; 4],
) -> Result<Option<&'a [u8]>, MediaError> {
    for entry in children(body) {
        let (kind, content) = entry?;
        if &kind == wanted {
            return Ok(Some(content));
        }
    }
    Ok(None)
}

/// The first box and the bytes after it.
fn split_box(bytes: &[u8]) -> Result<(BoxEntry<'_>, &[u8]), MediaError> {
    let mut fields = BoxFields::new(bytes);
    let (size, kind) = (fields.u32()?, fields.array()?);
    // Size 0: to the end of the parent. Size 1: the size follows the kind, in 64 bits.
    let (header, size) = match size {
        0 => (8, bytes.len() as u64),
        1 => (16, fields.u64()?),
        size => (8, u64::from(size)),
    };
    let size = usize::try_from(size).map_err(|_| SHORT)?;
    if size < header || size > bytes.len() {
        return Err(MediaError::Malformed("a box exceeds its parent"));
    }
    let (whole, rest) = bytes.split_at(size);
    Ok(((kind, &whole[header..]), rest))
}

/// Reads fields in sequence.
pub(crate) struct BoxFields<'a>(&'a [u8]);

impl<'a> BoxFields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], MediaError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, MediaError> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, MediaError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, MediaError> {
        self.array().map(u32::from_be_bytes)
    }

    /// The next field if `is_there`, otherwise `default`.
    pub(crate) fn u32_if(&mut self, is_there: bool, default: u32) -> Result<u32, MediaError> {
        if is_there { self.u32() } else { Ok(default) }
    }

    pub(crate) fn u64(&mut self) -> Result<u64, MediaError> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn skip(&mut self, bytes: usize) -> Result<&mut Self, MediaError> {
        self.0 = self.0.get(bytes..).ok_or(SHORT)?;
        Ok(self)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }
}
