//! The signature of a claim: `COSE_Sign1` with the claim detached (RFC 9052, 4.2 and 4.4) and the certificates in its
//! protected header (RFC 9360; C2PA specification, 13.2 and 14.5).

use crate::cbor::Value;
use crate::key::Key;

const SIGN1_TAG: u64 = 18;
const ALGORITHM: u64 = 1;
const CERTIFICATES: u64 = 33;

/// The header that the signature protects: the algorithm, and the certificates from the signer's own upwards.
fn protected(key: &Key, chain: &[Vec<u8>]) -> Vec<u8> {
    let certificates = match chain {
        [only] => Value::bytes(only),
        chain => Value::Array(chain.iter().map(|one| Value::bytes(one)).collect()),
    };
    let algorithm = Value::Negative(key.negated_algorithm());
    let header = vec![
        (Value::Unsigned(ALGORITHM), algorithm),
        (Value::Unsigned(CERTIFICATES), certificates),
    ];
    Value::Map(header).encoded()
}

/// The bytes that a signature of `claim` covers.
pub(crate) fn to_be_signed(key: &Key, chain: &[Vec<u8>], claim: &[u8]) -> Vec<u8> {
    let parts = [
        Value::text("Signature1"),
        Value::Bytes(protected(key, chain)),
        Value::Bytes(Vec::new()),
        Value::bytes(claim),
    ];
    Value::Array(parts.to_vec()).encoded()
}

/// The signed message without the claim.
pub(crate) fn sign1(key: &Key, chain: &[Vec<u8>], signature: Vec<u8>) -> Vec<u8> {
    let parts = [
        Value::Bytes(protected(key, chain)),
        Value::Map(Vec::new()),
        Value::Null,
        Value::Bytes(signature),
    ];
    Value::Tagged(SIGN1_TAG, Box::new(Value::Array(parts.to_vec()))).encoded()
}
