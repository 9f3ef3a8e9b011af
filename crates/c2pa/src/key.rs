//! The signer's private key: EC on P-256 or P-384, Ed25519, or RSA, with the algorithm of COSE that each has (C2PA
//! specification, 13.2.1).

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RSA_PSS_SHA256, RsaKeyPair,
};
use rustls_pki_types::PrivateKeyDer;

use crate::CredentialError;
use crate::certificate::Certificate;
use crate::der::{OCTET_STRING, OID, SEQUENCE, element};

const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// Of an RSA key; the libraries that validate sign with no shorter one.
const RSA_BYTES_MIN: usize = 256;

/// A private key with what its kind signs by.
pub(crate) enum Key {
    Ec(EcdsaKeyPair, Curve),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

#[derive(Clone, Copy)]
pub(crate) enum Curve {
    P256,
    P384,
}

impl Curve {
    const fn algorithm(self) -> &'static EcdsaSigningAlgorithm {
        match self {
            Self::P256 => &ECDSA_P256_SHA256_FIXED_SIGNING,
            Self::P384 => &ECDSA_P384_SHA384_FIXED_SIGNING,
        }
    }

    const fn oid(self) -> &'static [u8] {
        match self {
            Self::P256 => P256,
            Self::P384 => P384,
        }
    }
}

impl Key {
    /// Reads a key of the certificate's kind, and checks that it is the certificate's.
    pub(crate) fn of(
        certificate: &Certificate<'_>,
        der: &PrivateKeyDer<'_>,
    ) -> Result<Self, CredentialError> {
        let read = match (certificate.algorithm, certificate.curve) {
            (EC, Some(P256)) => ec(Curve::P256, der),
            (EC, Some(P384)) => ec(Curve::P384, der),
            (ED25519, _) => match der {
                PrivateKeyDer::Pkcs8(key) => {
                    let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.secret_pkcs8_der());
                    key.ok().map(Self::Ed25519)
                }
                _ => None,
            },
            (RSA, _) => rsa(der),
            _ => None,
        };
        let key = read.ok_or(CredentialError::Key)?;
        if key.public() == certificate.public_key {
            Ok(key)
        } else {
            Err(CredentialError::Mismatch)
        }
    }

    fn public(&self) -> &[u8] {
        match self {
            Self::Ec(key, _) => key.public_key().as_ref(),
            Self::Ed25519(key) => key.public_key().as_ref(),
            Self::Rsa(key) => key.public_key().as_ref(),
        }
    }

    /// The number of its algorithm, which is negative, as -1 minus it (IANA registry of COSE algorithms).
    pub(crate) const fn negated_algorithm(&self) -> u64 {
        match self {
            // ES256: -7.
            Self::Ec(_, Curve::P256) => 6,
            // ES384: -35.
            Self::Ec(_, Curve::P384) => 34,
            // EdDSA: -8.
            Self::Ed25519(_) => 7,
            // PS256: -37.
            Self::Rsa(_) => 36,
        }
    }

    /// How long each signature is.
    pub(crate) fn signature_bytes(&self) -> usize {
        match self {
            Self::Ec(_, Curve::P256) | Self::Ed25519(_) => 64,
            Self::Ec(_, Curve::P384) => 96,
            Self::Rsa(key) => key.public().modulus_len(),
        }
    }

    /// The signature over `message`; `None` if the system gives no random numbers.
    pub(crate) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Ec(key, _) => {
                let signature = key.sign(&random, message).ok()?;
                Some(signature.as_ref().to_vec())
            }
            Self::Ed25519(key) => Some(key.sign(message).as_ref().to_vec()),
            Self::Rsa(key) => {
                let mut signature = vec![0; self.signature_bytes()];
                key.sign(&RSA_PSS_SHA256, &random, message, &mut signature)
                    .ok()?;
                Some(signature)
            }
        }
    }
}

fn ec(curve: Curve, der: &PrivateKeyDer<'_>) -> Option<Key> {
    let wrapped;
    let pkcs8 = match der {
        PrivateKeyDer::Pkcs8(key) => key.secret_pkcs8_der(),
        // The form that `openssl ecparam -genkey` writes.
        PrivateKeyDer::Sec1(key) => {
            wrapped = in_pkcs8(curve, key.secret_sec1_der());
            &wrapped
        }
        _ => return None,
    };
    let key = EcdsaKeyPair::from_pkcs8(curve.algorithm(), pkcs8, &SystemRandom::new());
    key.ok().map(|key| Key::Ec(key, curve))
}

/// A key of SEC 1 in the form of PKCS #8 (RFC 5208, 5).
fn in_pkcs8(curve: Curve, sec1: &[u8]) -> Vec<u8> {
    const VERSION: &[u8] = &[0x02, 0x01, 0x00];
    let kind = [element(OID, EC), element(OID, curve.oid())].concat();
    let kind = element(SEQUENCE, &kind);
    let key = element(OCTET_STRING, sec1);
    element(SEQUENCE, &[VERSION, &kind, &key].concat())
}

fn rsa(der: &PrivateKeyDer<'_>) -> Option<Key> {
    let key = match der {
        PrivateKeyDer::Pkcs8(key) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
        PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
        _ => return None,
    };
    let key = key.ok()?;
    (key.public().modulus_len() >= RSA_BYTES_MIN).then_some(Key::Rsa(key))
}
