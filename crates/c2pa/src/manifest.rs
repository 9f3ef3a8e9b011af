//! What a manifest says: its assertions, the claim that binds them, and the claim's signature (C2PA specification 2.2,
//! sections 10, 11 and 18). Nothing of the request is in it, as in the label.

use kinora_media::{Origin, Provenance};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use crate::cbor::Value;
use crate::jumbf::{Kind, closed, described_cbor, superbox};
use crate::layout::{C2PA_UUID, UUID_AT};

const ALGORITHM: &str = "sha256";
const CLAIM: &str = "c2pa.claim.v2";
const SIGNATURE: &str = "c2pa.signature";
const ASSERTIONS: &str = "c2pa.assertions";
const HASH: &str = "c2pa.hash.bmff.v3";
const ACTIONS: &str = "c2pa.actions.v2";
const INGREDIENT: &str = "c2pa.ingredient.v3";
/// Of our own identifiers of media.
const INSTANCE: &str = "xmp.iid:";
/// The tag of a date.
const DATE_TAG: u64 = 0;

/// A manifest that lacks the hash of its film and the signature.
pub(crate) struct Manifest<'a> {
    provenance: &'a Provenance,
    /// Its name, which no other manifest has.
    label: String,
}

/// One assertion, as it lies in the store.
struct Assertion {
    label: &'static str,
    inside: Vec<u8>,
}

impl Assertion {
    fn new(label: &'static str, content: &Value) -> Self {
        Self {
            label,
            inside: described_cbor(Kind::Cbor, label, &content.encoded()),
        }
    }

    /// A reference to it, with its hash.
    fn reference(&self) -> Value {
        let url = format!("self#jumbf={ASSERTIONS}/{}", self.label);
        let hash = digest(&SHA256, &self.inside);
        Value::map([
            ("url", Value::Text(url)),
            ("hash", Value::bytes(hash.as_ref())),
        ])
    }
}

impl<'a> Manifest<'a> {
    /// A manifest of its own; `None` if the system gives no random numbers.
    pub(crate) fn new(provenance: &'a Provenance) -> Option<Self> {
        let mut random = [0; 16];
        SystemRandom::new().fill(&mut random).ok()?;
        Some(Self {
            provenance,
            label: format!("urn:c2pa:{}", uuid(random)),
        })
    }

    /// The manifest store for a film with this hash, if `sign` signs the claim.
    pub(crate) fn store(
        &self,
        hash: &[u8],
        sign: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let mut assertions = vec![Assertion::new(HASH, &binding(hash))];
        let origin = self.provenance.derived_from.as_ref();
        let ingredient = origin.map(|origin| Assertion::new(INGREDIENT, &ingredient(origin)));
        let reference = ingredient.as_ref().map(Assertion::reference);
        assertions.push(Assertion::new(ACTIONS, &self.actions(reference)));
        assertions.extend(ingredient);
        let claim = self.claim(&assertions).encoded();
        let signature = sign(&claim)?;
        let assertions: Vec<u8> = assertions
            .iter()
            .flat_map(|assertion| closed(&assertion.inside))
            .collect();
        let content = [
            superbox(Kind::Assertions, ASSERTIONS, &assertions),
            closed(&described_cbor(Kind::Claim, CLAIM, &claim)),
            closed(&described_cbor(Kind::Signature, SIGNATURE, &signature)),
        ];
        let manifest = superbox(Kind::Manifest, &self.label, &content.concat());
        Some(superbox(Kind::Store, "c2pa", &manifest))
    }

    fn claim(&self, assertions: &[Assertion]) -> Value {
        let references = assertions.iter().map(Assertion::reference).collect();
        let signature = format!("self#jumbf=/c2pa/{}/{SIGNATURE}", self.label);
        let instance = format!("{INSTANCE}{}", self.provenance.id);
        Value::map([
            ("alg", Value::text(ALGORITHM)),
            ("instanceID", Value::Text(instance)),
            ("claim_generator_info", self.program()),
            ("signature", Value::Text(signature)),
            ("created_assertions", Value::Array(references)),
        ])
    }

    /// The program's name and version.
    fn program(&self) -> Value {
        let tool = &self.provenance.tool;
        let (name, version) = tool.rsplit_once(' ').unwrap_or((tool, ""));
        let program = Value::map([("name", Value::text(name))]);
        if version.is_empty() {
            return program;
        }
        program.with("version", Value::text(version))
    }

    /// The actions: an edit opens its source and changes it; everything else is created, a final with the help of
    /// its draft.
    fn actions(&self, ingredient: Option<Value>) -> Value {
        let Provenance { model, engine, .. } = self.provenance;
        let made_by = [
            ("kinora.model", Value::text(model)),
            ("kinora.engine", Value::text(engine)),
        ];
        let ingredients = |one| Value::Array(vec![one]);
        let made = |name, parameters| {
            self.action(name)
                .with(
                    "digitalSourceType",
                    Value::text(self.provenance.source.uri()),
                )
                .with("description", Value::Text(format!("By the model {model}")))
                .with("parameters", parameters)
        };
        let actions = match (&self.provenance.derived_from, ingredient) {
            (Some(Origin::Edited(_)), Some(source)) => {
                let source = Value::map([("ingredients", ingredients(source))]);
                vec![
                    self.action("c2pa.opened").with("parameters", source),
                    made("c2pa.edited", Value::map(made_by)),
                ]
            }
            (_, Some(draft)) => {
                let parameters = Value::map(made_by).with("ingredients", ingredients(draft));
                vec![made("c2pa.created", parameters)]
            }
            (_, None) => vec![made("c2pa.created", Value::map(made_by))],
        };
        Value::map([("actions", Value::Array(actions))])
    }

    fn action(&self, name: &str) -> Value {
        let created = Value::text(&self.provenance.created);
        Value::map([
            ("action", Value::text(name)),
            ("when", Value::Tagged(DATE_TAG, Box::new(created))),
            ("softwareAgent", self.program()),
        ])
    }
}

/// The hash of all boxes but these: the manifest's own, and two that every validator leaves out (18.6).
fn binding(hash: &[u8]) -> Value {
    let marked = Value::map([
        ("offset", Value::Unsigned(UUID_AT)),
        ("value", Value::bytes(&C2PA_UUID)),
    ]);
    let path = |path| Value::map([("xpath", Value::text(path))]);
    let exclusions = vec![
        path("/uuid").with("data", Value::Array(vec![marked])),
        path("/ftyp"),
        path("/mfra"),
    ];
    Value::map([
        ("exclusions", Value::Array(exclusions)),
        ("alg", Value::text(ALGORITHM)),
        ("hash", Value::bytes(hash)),
        ("name", Value::text("whole file")),
    ])
}

/// The video that this one starts from, by its identifier.
fn ingredient(origin: &Origin) -> Value {
    let (relationship, id) = match origin {
        Origin::Edited(id) => ("parentOf", id),
        Origin::Draft(id) => ("inputTo", id),
    };
    Value::map([
        ("relationship", Value::text(relationship)),
        ("dc:title", Value::text(id)),
        ("dc:format", Value::text("video/mp4")),
        ("instanceID", Value::Text(format!("{INSTANCE}{id}"))),
    ])
}

/// A UUID of version 4 (RFC 9562, 5.4).
fn uuid(mut random: [u8; 16]) -> String {
    random[6] = random[6] & 0x0f | 0x40;
    random[8] = random[8] & 0x3f | 0x80;
    let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let [one, two, three, four, five] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|at| &hex[at]);
    format!("{one}-{two}-{three}-{four}-{five}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_its_version_and_variant() {
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
    }
}
