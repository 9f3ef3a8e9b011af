//! The boxes of a manifest store (JUMBF, ISO/IEC 19566-5): superboxes, each with a description and its content.

/// What a superbox holds, by the first four bytes of its type (C2PA specification, 11.1).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Store,
    Manifest,
    Assertions,
    Claim,
    Signature,
    /// One data item of CBOR.
    Cbor,
}

/// The rest of every type.
const TYPE_TAIL: [u8; 12] = [
    0x00, 0x11, 0x00, 0x10, 0x80, 0x00, 0x00, 0xaa, 0x00, 0x38, 0x9b, 0x71,
];
/// It can be asked for by name, and has one.
const IS_NAMED: u8 = 0b11;

impl Kind {
    const fn code(self) -> &'static [u8; 4] {
        match self {
            Self::Store => b"c2pa",
            Self::Manifest => b"c2ma",
            Self::Assertions => b"c2as",
            Self::Claim => b"c2cl",
            Self::Signature => b"c2cs",
            Self::Cbor => b"cbor",
        }
    }
}

/// A superbox around `content`.
pub(crate) fn superbox(kind: Kind, label: &str, content: &[u8]) -> Vec<u8> {
    plain(b"jumb", &described(kind, label, content))
}

/// The inside of a superbox around one item of CBOR: what references to it hash (C2PA specification, 8.4.2.3).
pub(crate) fn described_cbor(kind: Kind, label: &str, item: &[u8]) -> Vec<u8> {
    described(kind, label, &plain(b"cbor", item))
}

/// A superbox with this inside.
pub(crate) fn closed(inside: &[u8]) -> Vec<u8> {
    plain(b"jumb", inside)
}

fn described(kind: Kind, label: &str, content: &[u8]) -> Vec<u8> {
    let description = [
        kind.code(),
        &TYPE_TAIL[..],
        &[IS_NAMED],
        label.as_bytes(),
        &[0],
    ];
    let mut inside = plain(b"jumd", &description.concat());
    inside.extend(content);
    inside
}

/// A box. Manifests have a few thousand bytes, so a size always fits.
fn plain(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(8 + body.len()).unwrap_or(u32::MAX);
    [&size.to_be_bytes()[..], kind, body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_superbox_names_its_type_and_its_label() {
        let made = closed(&described_cbor(Kind::Cbor, "a", &[0xf6]));
        let expected: &[&[u8]] = &[
            &[0, 0, 0, 44],
            b"jumb",
            &[0, 0, 0, 27],
            b"jumdcbor",
            &TYPE_TAIL,
            &[3, b'a', 0],
            &[0, 0, 0, 9],
            b"cbor",
            &[0xf6],
        ];
        assert_eq!(made, expected.concat());
    }
}
