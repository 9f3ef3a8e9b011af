//! A throw-away certificate authority, with an intermediate one below it.

use std::process::Command;
use std::sync::Arc;

use kinora_c2pa::{CredentialError, Signer};
use kinora_contract::{ManualClock, UnixMs};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// 2026-11-22.
pub(crate) const NOW_MS: UnixMs = 1_795_319_101_000;

/// The authority that validators are told to trust, and the one that signs certificates.
pub(crate) struct Authority {
    pub(crate) root_pem: String,
    pub(crate) intermediate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let params = |name: &str| {
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
            params.use_authority_key_identifier_extension = true;
            params
        };
        let [root_key, key] = [(); 2].map(|()| KeyPair::generate().unwrap());
        let root = params("Test root").self_signed(&root_key).unwrap();
        let root_issuer = Issuer::new(params("Test root"), root_key);
        let below = params("Test intermediate");
        let intermediate = below.signed_by(&key, &root_issuer).unwrap();
        Self {
            root_pem: root.pem(),
            intermediate_pem: intermediate.pem(),
            issuer: Issuer::new(below, key),
        }
    }

    /// A certificate for this key, with its issuer behind it.
    pub(crate) fn certify(&self, key: &KeyPair) -> String {
        self.certify_as(key, |_| {})
    }

    /// The same of another kind.
    pub(crate) fn certify_as(
        &self,
        key: &KeyPair,
        change: impl FnOnce(&mut CertificateParams),
    ) -> String {
        let mut params = signer_params();
        change(&mut params);
        let own = params.signed_by(key, &self.issuer).unwrap();
        own.pem() + &self.intermediate_pem
    }
}

/// What a signer's certificate says.
pub(crate) fn signer_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "Test studio");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::EmailProtection];
    params.use_authority_key_identifier_extension = true;
    params
}

/// A key as openssl writes it.
pub(crate) fn openssl(arguments: &[&str]) -> String {
    let output = Command::new("openssl").args(arguments).output();
    let output = output.unwrap_or_else(|error| {
        panic!("openssl is needed and could not be run ({error}); ./test installs it")
    });
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A signer at this time.
pub(crate) fn signer_at(
    now_ms: UnixMs,
    certificates: &str,
    key: &str,
) -> Result<(Signer, Arc<ManualClock>), CredentialError> {
    let clock = Arc::new(ManualClock::at(now_ms));
    let signer = Signer::new(certificates.as_bytes(), key.as_bytes(), clock.clone())?;
    Ok((signer, clock))
}
