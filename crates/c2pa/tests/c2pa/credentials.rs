//! Certificates and keys that cannot sign, or that no validator would accept: each is refused with what to do.

use kinora_c2pa::CredentialError;
use kinora_media::{Sealed, Sealer};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, date_time_ymd};

use crate::authority::{Authority, NOW_MS, signer_at, signer_params};
use crate::films::{film, provenance};

fn refusal(certificates: &str, key: &str) -> CredentialError {
    let signer = signer_at(NOW_MS, certificates, key).map(|(signer, _)| signer);
    signer.unwrap_err()
}

#[test]
fn a_certificate_that_validators_refuse_is_refused_at_once() {
    let (authority, key) = (Authority::new(), KeyPair::generate().unwrap());
    type Change<'a> = &'a dyn Fn(&mut CertificateParams);
    let wrong: [(Change<'_>, &str); 7] = [
        (
            &|params| params.not_after = date_time_ymd(2026, 11, 1),
            "expired on 2026-11-01T00:00:00Z",
        ),
        (
            &|params| params.not_before = date_time_ymd(2027, 1, 1),
            "not valid before 2027-01-01",
        ),
        (&|params| params.key_usages.clear(), "digitalSignature"),
        (
            &|params| params.extended_key_usages.clear(),
            "1.3.6.1.4.1.62558.2.1",
        ),
        (
            &|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth],
            "emailProtection",
        ),
        (
            &|params| params.use_authority_key_identifier_extension = false,
            "authority key identifier",
        ),
        (
            &|params| params.key_usages.push(KeyUsagePurpose::KeyCertSign),
            "authority's",
        ),
    ];
    for (change, named) in wrong {
        let certificates = authority.certify_as(&key, change);
        let error = refusal(&certificates, &key.serialize_pem()).to_string();
        assert!(error.contains(named), "{error}");
    }
    let alone = signer_params().self_signed(&key).unwrap().pem();
    let error = refusal(&alone, &key.serialize_pem()).to_string();
    assert!(error.contains("self-signed"), "{error}");
}

#[test]
fn files_that_do_not_fit_each_other_are_refused() {
    let (authority, key) = (Authority::new(), KeyPair::generate().unwrap());
    let (certificates, key_pem) = (authority.certify(&key), key.serialize_pem());
    let other = KeyPair::generate().unwrap().serialize_pem();
    let other_kind = KeyPair::generate_for(&rcgen::PKCS_ED25519)
        .unwrap()
        .serialize_pem();
    let encrypted = key_pem.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let broken = certificates.replacen("MII", "MIA", 1);
    let own = certificates
        .split_inclusive("-----END CERTIFICATE-----\n")
        .next()
        .unwrap();
    for (certificates, key, expected) in [
        (&*certificates, &*other, CredentialError::Mismatch),
        (&certificates, &other_kind, CredentialError::Key),
        (&certificates, &encrypted, CredentialError::NoKey),
        (&certificates, &certificates, CredentialError::NoKey),
        (&key_pem, &key_pem, CredentialError::NoCertificate),
        ("", &key_pem, CredentialError::NoCertificate),
        (&broken, &key_pem, CredentialError::Unreadable(1)),
        (
            &format!("{own}{}{}", authority.root_pem, authority.intermediate_pem),
            &key_pem,
            CredentialError::Order(2),
        ),
    ] {
        let error = refusal(certificates, key);
        assert_eq!(error, expected);
        assert!(!error.to_string().contains("MII"), "{error}");
    }
}

#[test]
fn a_certificate_that_expires_meanwhile_signs_nothing_more() {
    let (authority, key) = (Authority::new(), KeyPair::generate().unwrap());
    let certificates = authority.certify_as(&key, |params| {
        params.not_after = date_time_ymd(2026, 11, 23);
    });
    let (signer, clock) = signer_at(NOW_MS, &certificates, &key.serialize_pem()).unwrap();
    assert_eq!(signer.name(), "Test studio");
    let folder = tempfile::tempdir().unwrap();
    let path = film(folder.path());
    let before = std::fs::read(&path).unwrap();
    clock.set(signer.not_after_ms() + 1);
    let Sealed::Not(why) = signer.seal(&path, &provenance(None)).unwrap() else {
        panic!("it was signed");
    };
    assert!(why.contains("expired on 2026-11-23"), "{why}");
    assert!(std::fs::read(&path).unwrap() == before);
    assert!(!format!("{signer:?}").contains("key"), "{signer:?}");
}
