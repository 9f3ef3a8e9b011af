//! Why a certificate and a key cannot sign. Messages name what to do, and hold nothing of a key.

/// Why these credentials cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// The file of certificates has none.
    #[error("the certificate file has no certificate in PEM format (-----BEGIN CERTIFICATE-----)")]
    NoCertificate,
    /// One of them is no X.509 certificate of version 3.
    #[error("certificate {0} of the file cannot be read: it must be X.509, version 3")]
    Unreadable(usize),
    /// A certificate was not issued by the one behind it.
    #[error(
        "certificate {0} of the file is not the issuer of the one before it: put the signer's own first, then its issuers"
    )]
    Order(usize),
    /// The first certificate is not made for signing files.
    #[error("the certificate is not for C2PA: {0}; ask for one with the profile of C2PA signers")]
    Profile(&'static str),
    /// It is no longer valid.
    #[error("the certificate expired on {0}: get a new one")]
    Expired(String),
    /// It is not yet valid.
    #[error("the certificate is not valid before {0}: check the clock of this machine")]
    NotYet(String),
    /// The file of the key has none that can be used.
    #[error(
        "the key file has no private key in PEM format without a password; `openssl pkcs8 -topk8 -nodes` writes one"
    )]
    NoKey,
    /// The key is of another kind than the certificate's, or damaged.
    #[error(
        "the key cannot be used: it must be of the certificate's kind (EC on P-256 or P-384, Ed25519, or RSA of 2048 bits or more)"
    )]
    Key,
    /// The key is that of another certificate.
    #[error("the key does not belong to the certificate: name the key for which it was issued")]
    Mismatch,
}
