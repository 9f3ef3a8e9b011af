//! The provenance in a file: an XMP packet (ISO 16684-1) with the digital source type of the IPTC,
//! and its places in MP4, WebP and JPEG files (XMP part 3: ISO 16684-3, and Adobe's specification
//! of the same number, 1.1.3 and 1.2.7; for WebP, RFC 9649, 2.7). It signs nothing.

mod label;

use std::fmt::Write;

use crate::MediaError;
pub use label::label;

/// Prefix of the document identifier that packets of other files refer to (XMP part 2, 2.2).
const DOCUMENT: &str = "xmp.did:";

/// The origin of the pictures, in the IPTC's terms:
/// <https://cv.iptc.org/newscodes/digitalsourcetype/>.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigitalSource {
    /// A trained model.
    TrainedAlgorithmicMedia,
    /// A program without training.
    AlgorithmicMedia,
    /// A trained model and a given video.
    CompositeWithTrainedAlgorithmicMedia,
}

impl DigitalSource {
    /// The term's identifier in the IPTC's vocabulary.
    pub const fn uri(self) -> &'static str {
        match self {
            Self::TrainedAlgorithmicMedia => {
                "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"
            }
            Self::AlgorithmicMedia => {
                "http://cv.iptc.org/newscodes/digitalsourcetype/algorithmicMedia"
            }
            Self::CompositeWithTrainedAlgorithmicMedia => {
                "http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia"
            }
        }
    }

    const fn is_trained(self) -> bool {
        !matches!(self, Self::AlgorithmicMedia)
    }
}

/// The origin of a video and its stills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// The origin of the pictures.
    pub source: DigitalSource,
    /// The program: name and version.
    pub tool: String,
    /// Start of the work, as an ISO 8601 date.
    pub created: String,
    /// The model's public name.
    pub model: String,
    /// The engine as `name/version`.
    pub engine: String,
    /// The identifier of this video.
    pub id: String,
    /// The video that this one starts from.
    pub derived_from: Option<ParentVideo>,
}

/// The video that another one starts from, by its identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentVideo {
    /// The other one is an edit of it.
    Edited(String),
    /// It is the draft of the other one.
    Draft(String),
}

impl ParentVideo {
    /// The identifier.
    pub fn id(&self) -> &str {
        match self {
            Self::Edited(id) | Self::Draft(id) => id,
        }
    }
}

impl Provenance {
    /// The XMP packet. The fields may contain any text; characters that XML does not allow become
    /// U+FFFD.
    pub fn packet(&self) -> String {
        let mut properties = String::new();
        let mut set = |name: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = write!(properties, "\n    {name}=\"{}\"", escaped(value));
        };
        let (model, engine) = (&*self.model, &*self.engine);
        set("Iptc4xmpExt:DigitalSourceType", self.source.uri());
        // The IPTC defines these two for AI systems only.
        if self.source.is_trained() {
            set("Iptc4xmpExt:AISystemUsed", model);
            set("Iptc4xmpExt:AISystemVersionUsed", engine);
        }
        set("xmp:CreatorTool", &self.tool);
        set("xmp:CreateDate", &self.created);
        set("dc:identifier", &self.id);
        set("xmpMM:DocumentID", &format!("{DOCUMENT}{}", self.id));
        set("kinora:Model", model);
        set("kinora:Engine", engine);
        let derived = self
            .derived_from
            .as_ref()
            .map_or_else(String::new, |origin| {
                let id = escaped(&format!("{DOCUMENT}{}", origin.id()));
                format!("   <xmpMM:DerivedFrom stRef:documentID=\"{id}\"/>\n")
            });
        format!("{HEAD}{properties}>\n{derived}{TAIL}")
    }
}

const HEAD: &str = concat!(
    "<?xpacket begin=\"\u{feff}\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n",
    "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\n",
    " <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n",
    "  <rdf:Description rdf:about=\"\"\n",
    "    xmlns:Iptc4xmpExt=\"http://iptc.org/std/Iptc4xmpExt/2008-02-29/\"\n",
    "    xmlns:dc=\"http://purl.org/dc/elements/1.1/\"\n",
    "    xmlns:xmp=\"http://ns.adobe.com/xap/1.0/\"\n",
    "    xmlns:xmpMM=\"http://ns.adobe.com/xap/1.0/mm/\"\n",
    "    xmlns:stRef=\"http://ns.adobe.com/xap/1.0/sType/ResourceRef#\"\n",
    "    xmlns:kinora=\"urn:x-kinora:provenance/\"",
);
const TAIL: &str = "  </rdf:Description>\n </rdf:RDF>\n</x:xmpmeta>\n<?xpacket end=\"r\"?>";

/// `text` within an attribute's double quotes (XML 1.0, 2.2 to 2.4).
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // A parser would turn them into spaces.
            '\t' | '\n' | '\r' => {
                let _ = write!(safe, "&#{};", u32::from(character));
            }
            '\0'..'\u{20}' | '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

/// Identifies the `uuid` box with a packet.
const XMP_UUID: [u8; 16] = [
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The attribute's value as a parser of XML reads it.
    fn unescaped(text: &str) -> String {
        let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\"")];
        let codes = [("&#9;", "\t"), ("&#10;", "\n"), ("&#13;", "\r")];
        let mut text = text.to_owned();
        for (entity, character) in named.into_iter().chain(codes) {
            text = text.replace(entity, character);
        }
        text.replace("&amp;", "&")
    }

    proptest! {
        #[test]
        fn hostile_texts_stay_within_their_attributes(model in "\\PC*|[<>&\"'\\x00-\\x1f]{0,40}", id in "(?s).{0,40}") {
            let packet = Provenance {
                source: DigitalSource::TrainedAlgorithmicMedia,
                tool: "Kinora".to_owned(),
                created: "2026-11-22T03:45:00Z".to_owned(),
                model: model.clone(),
                engine: "storyboard/1".to_owned(),
                id,
                derived_from: Some(ParentVideo::Edited(model.clone())),
            }
            .packet();
            // No text opens or closes anything: there are as many of each as without it.
            prop_assert_eq!(packet.matches('<').count(), 9);
            prop_assert_eq!(packet.matches('>').count(), 9);
            let (_, value) = packet.split_once("kinora:Model=\"").unwrap();
            let (value, _) = value.split_once('"').unwrap();
            let is_lost = |one: char| one < ' ' && !"\t\n\r".contains(one) || ('\u{fffe}'..='\u{ffff}').contains(&one);
            prop_assert_eq!(unescaped(value), model.replace(is_lost, "\u{fffd}"));
            prop_assert!(!packet.chars().any(|one| one < ' ' && one != '\n'));
        }
    }
}
