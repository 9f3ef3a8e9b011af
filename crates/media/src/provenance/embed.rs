//! Embeds an XMP packet in MP4, WebP and JPEG files (XMP part 3: ISO 16684-3, and Adobe's
//! specification of the same number, 1.1.3 and 1.2.7; for WebP, RFC 9649, 2.7).

use crate::MediaError;

/// Identifies the `uuid` box with a packet.
pub(super) const XMP_UUID: [u8; 16] = [
    0xbe, 0x7a, 0xcf, 0xcb, 0x97, 0xa9, 0x42, 0xe8, 0x9c, 0x71, 0x99, 0x94, 0x91, 0xe3, 0xaf, 0xac,
];
/// Identifies the JPEG segment with a packet.
const JPEG_SIGNATURE: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
/// The flag for a packet in the first byte of `VP8X`.
const WEBP_HAS_XMP: u8 = 0x04;

/// A box for the top level of an MP4.
pub(crate) fn uuid_box(packet: &str) -> Result<Vec<u8>, MediaError> {
    let size = u32::try_from(8 + XMP_UUID.len() + packet.len()).map_err(|_| too_long())?;
    Ok([
        &size.to_be_bytes()[..],
        b"uuid",
        &XMP_UUID,
        packet.as_bytes(),
    ]
    .concat())
}

/// Returns `jpeg` with the packet in a segment after its `APP0`.
pub(crate) fn in_jpeg(jpeg: &[u8], packet: &str) -> Result<Vec<u8>, MediaError> {
    // Start of image, then `APP0`: our own encoder always writes them in this order.
    let [0xff, 0xd8, 0xff, 0xe0, high, low, ..] = jpeg else {
        return Err(not_jfif());
    };
    let head_end = 4 + usize::from(u16::from_be_bytes([*high, *low]));
    let (head, rest) = jpeg.split_at_checked(head_end).ok_or_else(not_jfif)?;
    let length = 2 + JPEG_SIGNATURE.len() + packet.len();
    let length = u16::try_from(length).map_err(|_| too_long())?.to_be_bytes();
    let segment = [
        &[0xff, 0xe1],
        &length[..],
        JPEG_SIGNATURE,
        packet.as_bytes(),
    ];
    Ok([head, &segment.concat(), rest].concat())
}

/// Converts `webp`, a simple lossy file, to the extended form with the packet.
pub(crate) fn in_webp(webp: &[u8], packet: &str) -> Result<Vec<u8>, MediaError> {
    let picture = webp.get(12..).ok_or_else(not_simple_webp)?;
    // The chunk's header, then that of a key frame of VP8 (RFC 6386, 9.1).
    let [
        b'V',
        b'P',
        b'8',
        b' ',
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        0x9d,
        0x01,
        0x2a,
        size @ ..,
    ] = picture
    else {
        return Err(not_simple_webp());
    };
    let [w0, w1, h0, h1, ..] = size else {
        return Err(not_simple_webp());
    };
    let ([a, b, c, _], [d, e, f, _]) = (side_minus_one(*w0, *w1), side_minus_one(*h0, *h1));
    // `VP8X`: flags, three reserved bytes, then width and height minus one in 24 bits each.
    let extended = [WEBP_HAS_XMP, 0, 0, 0, a, b, c, d, e, f];
    let mut body = b"WEBP".to_vec();
    body.extend(chunk(b"VP8X", &extended)?);
    body.extend(picture);
    body.extend(chunk(b"XMP ", packet.as_bytes())?);
    chunk(b"RIFF", &body)
}

/// A RIFF chunk: its length does not include the padding byte.
fn chunk(kind: &[u8; 4], body: &[u8]) -> Result<Vec<u8>, MediaError> {
    let length = u32::try_from(body.len()).map_err(|_| too_long())?;
    let padding = &[0][..body.len() % 2];
    Ok([kind, &length.to_le_bytes()[..], body, padding].concat())
}

/// A side of 14 bits in a key frame, as `VP8X` stores it: minus one.
fn side_minus_one(low: u8, high: u8) -> [u8; 4] {
    let pixels = u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
    pixels.saturating_sub(1).to_le_bytes()
}

fn not_jfif() -> MediaError {
    MediaError::Picture("a JPEG without JFIF header".into())
}

fn not_simple_webp() -> MediaError {
    MediaError::Picture("a WebP that is not simple and lossy".into())
}

fn too_long() -> MediaError {
    MediaError::Mux("the packet of metadata is too long".into())
}
