//! Reads DER (ITU-T X.690): elements with short tags and lengths of up to four bytes, as certificates have them.

/// One element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) body: &'a [u8],
    /// With its header.
    pub(crate) whole: &'a [u8],
}

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OID: u8 = 0x06;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;

/// Reads elements one after another.
#[derive(Clone, Debug)]
pub(crate) struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next element if it has this tag; otherwise it stays the next.
    pub(crate) fn optional(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut ahead = self.clone();
        let element = ahead.next().filter(|element| element.tag == tag)?;
        *self = ahead;
        Some(element.body)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    /// The next element; `None` at the end, and from the first one that cannot be read.
    fn next(&mut self) -> Option<Element<'a>> {
        let bytes = self.0;
        let [tag, first, ..] = *bytes else {
            return None;
        };
        let (header, length) = match first {
            0..=0x7f => (2, usize::from(first)),
            0x81..=0x84 => {
                let count = usize::from(first & 0x7f);
                let length = bytes.get(2..2 + count)?;
                let length = length
                    .iter()
                    .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
                (2 + count, length)
            }
            _ => return None,
        };
        let end = header.checked_add(length)?;
        let (whole, rest) = bytes.split_at_checked(end)?;
        self.0 = rest;
        Some(Element {
            tag,
            body: &whole[header..],
            whole,
        })
    }
}

/// An element of this tag around `body`, which has less than 64 KiB.
pub(crate) fn element(tag: u8, body: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes();
    let header: &[u8] = match (high, low) {
        (0, 0..0x80) => &[tag, low],
        (0, _) => &[tag, 0x81, low],
        _ => &[tag, 0x82, high, low],
    };
    [header, body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for length in [0, 1, 127, 128, 255, 256, 65_535] {
            let body = vec![7; length];
            let whole = element(SEQUENCE, &body);
            let expected = Element {
                tag: SEQUENCE,
                body: &body,
                whole: &whole,
            };
            assert_eq!(Elements::of(&whole).next(), Some(expected));
            assert_eq!(Elements::of(&whole[..whole.len() - 1]).next(), None);
        }
    }

    #[test]
    fn lengths_without_end_or_sense_end_the_reading() {
        for bytes in [
            &[0x30, 0x80, 0, 0][..],
            &[0x30, 0x85, 0, 0, 0, 0, 0],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[0x30],
        ] {
            assert_eq!(Elements::of(bytes).next(), None);
        }
    }
}
