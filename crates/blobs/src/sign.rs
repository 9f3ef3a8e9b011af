//! Signed URLs: the holder may read one variant of one task's result, or one uploaded file, until it
//! expires, and nothing else. HMAC-SHA256 (RFC 2104) over everything it grants. Only the exact spelling
//! that [`UrlSigner::sign`] and [`UrlSigner::sign_file`] produce is accepted.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use hmac::{Hmac, KeyInit, Mac};
use kinora_contract::{FileId, TaskId, hex};
use sha2::{Digest, Sha256};

/// Separates these signatures from all other uses of the secret.
const DOMAIN: &str = "kinora result address, version 1";
/// Separates the signatures of uploaded files from those of results.
const FILE_DOMAIN: &str = "kinora file address, version 1";

/// 32 secret bytes. Never printed, not even by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret([u8; 32]);

impl SigningSecret {
    /// A secret of these bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads the secret from the file at `path`, 64 hexadecimal digits; `None` if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read or contains anything else.
    pub fn load(path: &Path) -> io::Result<Option<Self>> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The secret bytes, to be stored in an equally safe place.
    pub const fn bytes(&self) -> [u8; 32] {
        self.0
    }

    fn parse(text: &str) -> io::Result<Self> {
        let line = text.strip_suffix('\n').unwrap_or(text);
        let bytes = from_hex(line).ok_or_else(|| {
            io::Error::new(
                ErrorKind::InvalidData,
                "the secret is not 64 hexadecimal digits",
            )
        })?;
        Ok(Self(bytes))
    }

    /// Identifies the secret without revealing it; part of the signed text.
    fn id(&self) -> String {
        let digest = Sha256::new()
            .chain_update(DOMAIN)
            .chain_update(self.0)
            .finalize();
        hex::text(&digest[..4])
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Makes and verifies signed URLs.
#[derive(Debug)]
pub struct UrlSigner(RwLock<SigningSecrets>);

/// The secrets whose signatures are accepted.
#[derive(Debug)]
struct SigningSecrets {
    /// Signs.
    current: KeyedMac,
    previous: Option<KeyedMac>,
}

/// A secret, ready to sign: the constant part of every signature is computed once.
#[derive(Clone)]
struct KeyedMac {
    mac: Hmac<Sha256>,
    /// [`SigningSecret::id`].
    id: String,
}

impl KeyedMac {
    fn new(secret: &SigningSecret) -> Self {
        // RFC 2104 pads a key shorter than the hash's block with zeros.
        let mut block = [0_u8; 64];
        block[..32].copy_from_slice(&secret.0);
        Self {
            mac: KeyInit::new(&block.into()),
            id: secret.id(),
        }
    }

    fn mac(&self, granted: Granted<'_>, expires_at_s: u64) -> Hmac<Sha256> {
        let id = &self.id;
        let message = match granted {
            Granted::Result { task, variant } => {
                // The length makes the message unambiguous, whatever the variant's name contains.
                let length = variant.len();
                format!("{DOMAIN}\nGET\n{task}\n{length}:{variant}\n{expires_at_s}\n{id}")
            }
            Granted::File(file) => format!("{FILE_DOMAIN}\nGET\n{file}\n{expires_at_s}\n{id}"),
        };
        self.mac.clone().chain_update(message)
    }
}

/// What a signature opens.
#[derive(Clone, Copy)]
enum Granted<'a> {
    Result { task: TaskId, variant: &'a str },
    File(FileId),
}

impl fmt::Debug for KeyedMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyed(..)")
    }
}

impl UrlSigner {
    /// Signs with `current`, and also accepts signatures of `previous`, so a secret can be rotated
    /// without invalidating existing URLs.
    pub fn new(current: SigningSecret, previous: Option<SigningSecret>) -> Self {
        Self(RwLock::new(SigningSecrets {
            current: KeyedMac::new(&current),
            previous: previous.as_ref().map(KeyedMac::new),
        }))
    }

    /// Signs with `current` from now on, and accepts no other signature.
    pub fn replace(&self, current: &SigningSecret) {
        let new = SigningSecrets {
            current: KeyedMac::new(current),
            previous: None,
        };
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
    }

    fn secrets(&self) -> RwLockReadGuard<'_, SigningSecrets> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The query that opens `variant` of this task's result before `expires_at_s` (Unix seconds):
    /// `expires=1760000000&signature=` and 64 hexadecimal digits. A result URL may put
    /// `variant=NAME&` in front of it.
    pub fn sign(&self, task: TaskId, variant: &str, expires_at_s: u64) -> String {
        self.query(Granted::Result { task, variant }, expires_at_s)
    }

    /// As [`Self::sign`], for an uploaded file.
    pub fn sign_file(&self, file: FileId, expires_at_s: u64) -> String {
        self.query(Granted::File(file), expires_at_s)
    }

    fn query(&self, granted: Granted<'_>, expires_at_s: u64) -> String {
        let mac = self.secrets().current.mac(granted, expires_at_s);
        let tag = mac.finalize();
        let mut query = format!("expires={expires_at_s}&signature=");
        hex::push(&mut query, &tag.into_bytes());
        query
    }

    /// Verifies the raw query of a request for `variant` of this task's result. Only what
    /// [`UrlSigner::sign`] returned is accepted, with or without a leading `variant=NAME&`: other
    /// orders, extra or repeated parameters and percent-encodings are refused. The comparison takes
    /// the same time for every wrong signature.
    ///
    /// # Errors
    /// [`SignatureError`].
    pub fn verify(
        &self,
        task: TaskId,
        variant: &str,
        raw_query: &str,
        now_s: u64,
    ) -> Result<(), SignatureError> {
        let signed = raw_query
            .strip_prefix("variant=")
            .and_then(|rest| rest.strip_prefix(variant))
            .and_then(|rest| rest.strip_prefix('&'))
            .unwrap_or(raw_query);
        self.check(Granted::Result { task, variant }, signed, now_s)
    }

    /// As [`Self::verify`], for the query that [`Self::sign_file`] returned.
    ///
    /// # Errors
    /// [`SignatureError`].
    pub fn verify_file(
        &self,
        file: FileId,
        raw_query: &str,
        now_s: u64,
    ) -> Result<(), SignatureError> {
        self.check(Granted::File(file), raw_query, now_s)
    }

    fn check(&self, granted: Granted<'_>, signed: &str, now_s: u64) -> Result<(), SignatureError> {
        let (expires_at_s, tag) = parse(signed).ok_or(SignatureError::Malformed)?;
        let right = |keyed: &KeyedMac| keyed.mac(granted, expires_at_s).verify(&tag.into());
        let secrets = self.secrets();
        // Both are always computed, and joined without a short circuit, so the time does not
        // show which secret signed.
        let current = right(&secrets.current).is_ok();
        let previous = secrets
            .previous
            .as_ref()
            .is_some_and(|keyed| right(keyed).is_ok());
        if !(current | previous) {
            return Err(SignatureError::Wrong);
        }
        // After the signature, so that `Expired` is said only about a genuine URL.
        if now_s >= expires_at_s {
            return Err(SignatureError::Expired);
        }
        Ok(())
    }
}

/// Why a signed URL is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Not the spelling of a signed URL.
    #[error("not a signed URL")]
    Malformed,
    /// Not signed by this service for this task, variant and time.
    #[error("wrong signature")]
    Wrong,
    /// Correctly signed, but expired.
    #[error("the signed URL has expired")]
    Expired,
}

fn parse(query: &str) -> Option<(u64, [u8; 32])> {
    let (expires, signature) = query.strip_prefix("expires=")?.split_once("&signature=")?;
    let expires_at_s: u64 = expires.parse().ok()?;
    // One spelling per number: no sign, no leading zero.
    (expires_at_s.to_string() == expires).then_some(())?;
    Some((expires_at_s, from_hex(signature)?))
}

fn digit(c: u8) -> Option<u8> {
    match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    }
}

/// Lower-case digits only: one spelling per value.
fn from_hex(text: &str) -> Option<[u8; 32]> {
    let text: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0_u8; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}
