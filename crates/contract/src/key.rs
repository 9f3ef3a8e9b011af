//! API keys as text: `kinora_`, 30 base-62 characters, 6 characters of checksum. The checksum
//! detects typos without a store; only the SHA-256 of a key is ever stored.

use std::fmt;

use sha2::{Digest, Sha256};

const PREFIX: &str = "kinora_";
const SECRET_CHARS: usize = 30;
const CHECKSUM_CHARS: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The full text of an API key. `Debug` hides it; print it only deliberately, with `reveal`.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText(String);

impl KeyText {
    /// Makes a key from random bytes: 30 characters, 178 bits in all. Bytes that would favour some
    /// characters are skipped.
    ///
    /// `None` if too few of the 64 bytes were usable (less than once in 10^20): draw again.
    pub fn from_random(random: &[u8; 64]) -> Option<Self> {
        // 248 is the largest multiple of 62 in a byte: without the bytes above, all characters are equally
        // likely.
        let usable = random.iter().filter(|byte| **byte < 248);
        let secret: String = usable
            .take(SECRET_CHARS)
            .map(|byte| char::from(BASE62[usize::from(byte % 62)]))
            .collect();
        (secret.len() == SECRET_CHARS).then(|| {
            Self(format!(
                "{PREFIX}{secret}{}",
                String::from_utf8_lossy(&checksum(&secret))
            ))
        })
    }

    /// Parses a key; `None` if its shape or checksum is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        is_well_formed(text).then(|| Self(text.to_owned()))
    }

    /// SHA-256 of a key's text, without copying it; `None` if its shape or checksum is wrong.
    pub fn sha256_of(text: &str) -> Option<[u8; 32]> {
        is_well_formed(text).then(|| Sha256::digest(text.as_bytes()).into())
    }

    /// SHA-256 of the full text, the form in which stores keep a key.
    pub fn sha256(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// The text itself, to show once.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}…")
    }
}

fn is_well_formed(text: &str) -> bool {
    let Some(body) = text.strip_prefix(PREFIX) else {
        return false;
    };
    let plain = body.len() == SECRET_CHARS + CHECKSUM_CHARS
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !plain {
        return false;
    }
    let (secret, sum) = body.split_at(SECRET_CHARS);
    checksum(secret) == sum.as_bytes()
}

/// CRC-32 (ISO-HDLC, as in zip) of the secret in base 62, most significant digit first.
fn checksum(secret: &str) -> [u8; CHECKSUM_CHARS] {
    // The scheme of GitHub's tokens: a checksum lets scanners for leaked secrets recognise a key
    // without asking this service, and refuses typos without a query.
    let mut rest = crc32fast::hash(secret.as_bytes());
    let mut digits = [b'0'; CHECKSUM_CHARS];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    digits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> KeyText {
        let bytes: Vec<u8> = (0..64).map(|n: u8| n.wrapping_mul(37)).collect();
        KeyText::from_random(&bytes.try_into().unwrap()).unwrap()
    }

    #[test]
    fn a_key_has_the_documented_shape_and_reads_back() {
        let key = sample();
        assert_eq!(key.reveal().len(), 7 + 30 + 6);
        assert_eq!(KeyText::parse(key.reveal()), Some(key.clone()));
        assert_eq!(format!("{key:?}"), "kinora_…");
    }

    #[test]
    fn every_single_character_change_is_seen() {
        let text = sample().reveal().to_owned();
        for place in 0..text.len() {
            for other in BASE62
                .iter()
                .map(|byte| char::from(*byte))
                .chain(['_', '-', ' '])
            {
                let mut changed: Vec<char> = text.chars().collect();
                if changed[place] == other {
                    continue;
                }
                changed[place] = other;
                assert_eq!(KeyText::parse(&changed.iter().collect::<String>()), None);
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = KeyText::parse(&text);
        }
    }
}
