//! The provenance in a file: an XMP packet (ISO 16684-1) with the digital source type of the IPTC.
//! This file writes the packet; [`embed`] and [`label`](mod@label) put it into files. It signs
//! nothing.

mod embed;
mod label;

use std::fmt::Write;

pub(crate) use embed::{in_jpeg, in_webp, uuid_box};
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
    pub derived_from: Option<Origin>,
}

/// The video that another one starts from, by its identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The other one is an edit of it.
    Edited(String),
    /// It is the draft of the other one.
    Draft(String),
}

impl Origin {
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
                derived_from: Some(Origin::Edited(model.clone())),
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
