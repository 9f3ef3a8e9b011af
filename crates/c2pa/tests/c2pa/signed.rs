//! What the C2PA project's reader finds in signed films, and in films that were changed afterwards.

use std::path::Path;

use kinora_c2pa::Signer;
use kinora_media::{Origin, Sealed, Sealer, VideoReader, probe};
use rcgen::KeyPair;
use serde_json::{Value, json};

use crate::authority::{Authority, NOW_MS, openssl, signer_at};
use crate::films::{film, provenance, report};

fn signer(authority: &Authority) -> Signer {
    let key = KeyPair::generate().unwrap();
    let certificates = authority.certify(&key);
    signer_at(NOW_MS, &certificates, &key.serialize_pem())
        .unwrap()
        .0
}

/// The codes of what the reader found good or bad.
fn codes(report: &Value, kind: &str) -> Vec<String> {
    let found = report["validation_results"]["activeManifest"][kind].as_array();
    let codes = found
        .into_iter()
        .flatten()
        .map(|one| one["code"].as_str().unwrap().to_owned());
    codes.collect()
}

/// The one manifest of a film that the reader believes wholly.
fn believed(report: &Value) -> &Value {
    assert_eq!(report["validation_state"], "Trusted", "{report:#}");
    assert_eq!(codes(report, "failure"), [""; 0], "{report:#}");
    let good = codes(report, "success");
    for code in [
        "signingCredential.trusted",
        "claimSignature.validated",
        "assertion.bmffHash.match",
    ] {
        assert!(good.iter().any(|one| one == code), "{code}: {report:#}");
    }
    let manifests = report["manifests"].as_object().unwrap();
    assert_eq!(manifests.len(), 1);
    &manifests[report["active_manifest"].as_str().unwrap()]
}

/// The data of an assertion.
fn assertion<'r>(manifest: &'r Value, label: &str) -> &'r Value {
    let assertions = manifest["assertions"].as_array().unwrap();
    let found = assertions.iter().find(|one| one["label"] == label);
    &found.unwrap_or_else(|| panic!("no {label}: {manifest:#}"))["data"]
}

fn frames(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = VideoReader::open(path).unwrap();
    std::iter::from_fn(|| reader.next_frame().unwrap()).collect()
}

#[test]
fn each_kind_of_key_makes_signatures_that_others_believe() {
    let authority = Authority::new();
    let generated = |algorithm| KeyPair::generate_for(algorithm).unwrap().serialize_pem();
    let sec1 = openssl(&["ecparam", "-name", "prime256v1", "-genkey", "-noout"]);
    let bits = ["-pkeyopt", "rsa_keygen_bits:2048"];
    let rsa = openssl(&[&["genpkey", "-quiet", "-algorithm", "RSA"], &bits[..]].concat());
    for (pem, algorithm) in [
        (generated(&rcgen::PKCS_ECDSA_P256_SHA256), "Es256"),
        (sec1, "Es256"),
        (generated(&rcgen::PKCS_ECDSA_P384_SHA384), "Es384"),
        (generated(&rcgen::PKCS_ED25519), "Ed25519"),
        (rsa, "Ps256"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let pkcs8 = if pem.contains("EC PRIVATE KEY") {
            let file = folder.path().join("key.pem");
            std::fs::write(&file, &pem).unwrap();
            openssl(&["pkcs8", "-topk8", "-nocrypt", "-in", file.to_str().unwrap()])
        } else {
            pem.clone()
        };
        let certificates = authority.certify(&KeyPair::from_pem(&pkcs8).unwrap());
        let (signer, _) = signer_at(NOW_MS, &certificates, &pem).unwrap();
        let path = film(folder.path());
        assert_eq!(signer.seal(&path, &provenance(None)).unwrap(), Sealed::Done);
        let report = report(&path, &authority.root_pem);
        let signature = &believed(&report)["signature_info"];
        assert_eq!(signature["alg"], algorithm);
        assert_eq!(signature["common_name"], "Test studio");
    }
}

#[test]
fn a_signed_film_shows_the_same_and_says_what_made_it() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let path = film(folder.path());
    let (pictures, plain) = (frames(&path), std::fs::read(&path).unwrap());
    assert_eq!(
        signer(&authority).seal(&path, &provenance(None)).unwrap(),
        Sealed::Done
    );
    assert!(frames(&path) == pictures);
    assert_eq!(probe(&path).unwrap().frames, 24);
    let signed = std::fs::read(&path).unwrap();
    // The label is still the last box.
    let label = plain
        .windows(4)
        .rposition(|bytes| bytes == b"uuid")
        .unwrap();
    assert!(signed.ends_with(&plain[label - 4..]));
    let report = report(&path, &authority.root_pem);
    let manifest = believed(&report);
    let actions = &assertion(manifest, "c2pa.actions.v2")["actions"];
    let [made] = &**actions.as_array().unwrap() else {
        panic!("{actions:#}");
    };
    let expected = provenance(None);
    assert_eq!(made["action"], "c2pa.created");
    assert_eq!(made["when"], "2026-11-22T03:45:01Z");
    assert_eq!(made["digitalSourceType"], expected.source.uri());
    assert_eq!(
        made["softwareAgent"],
        json!({"name": "Kinora", "version": "1.2.3"})
    );
    assert_eq!(made["parameters"]["kinora.model"], *expected.model);
    assert_eq!(made["parameters"]["kinora.engine"], "house/7");
    assert_eq!(manifest["instance_id"], "xmp.iid:video_1");
    assert!(manifest["ingredients"].is_null(), "{manifest:#}");
}

#[test]
fn an_edit_opens_its_source_and_a_final_has_its_draft_as_an_input() {
    let authority = Authority::new();
    let signer = signer(&authority);
    for (origin, relationship, expected) in [
        (
            Origin::Edited("video_0".to_owned()),
            "parentOf",
            &["c2pa.opened", "c2pa.edited"][..],
        ),
        (
            Origin::Draft("video_0".to_owned()),
            "inputTo",
            &["c2pa.created"],
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = film(folder.path());
        assert_eq!(
            signer.seal(&path, &provenance(Some(origin))).unwrap(),
            Sealed::Done
        );
        let report = report(&path, &authority.root_pem);
        let manifest = believed(&report);
        let ingredient = &manifest["ingredients"][0];
        assert_eq!(ingredient["instance_id"], "xmp.iid:video_0", "{manifest:#}");
        assert_eq!(ingredient["relationship"], relationship);
        let actions = assertion(manifest, "c2pa.actions.v2")["actions"]
            .as_array()
            .unwrap();
        let names: Vec<_> = actions
            .iter()
            .map(|action| action["action"].as_str().unwrap())
            .collect();
        assert_eq!(names, expected);
        let refers = actions[0]["parameters"]["ingredients"][0]["url"]
            .as_str()
            .unwrap();
        assert!(refers.ends_with("c2pa.ingredient.v3"), "{actions:#?}");
    }
}

#[test]
fn no_byte_behind_the_first_box_changes_unnoticed() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let path = film(folder.path());
    signer(&authority).seal(&path, &provenance(None)).unwrap();
    let signed = std::fs::read(&path).unwrap();
    let find = |what: &[u8]| {
        signed
            .windows(what.len())
            .rposition(|bytes| bytes == what)
            .unwrap()
    };
    // In the pictures, in the index, in the label, in what the manifest says, and one box more.
    let in_pictures = find(b"mdat") + 40;
    for (at, code) in [
        (in_pictures, "assertion.bmffHash.mismatch"),
        (find(b"mvhd") + 12, "assertion.bmffHash.mismatch"),
        (find(b"dc:identifier") + 16, "assertion.bmffHash.mismatch"),
        (find(b"kinora.model") + 20, "assertion.hashedURI.mismatch"),
        (find(b"instanceID") + 20, "claimSignature.mismatch"),
        (signed.len(), "assertion.bmffHash.mismatch"),
    ] {
        let mut changed = signed.clone();
        match changed.get_mut(at) {
            Some(byte) => *byte ^= 1,
            None => changed.extend(b"\0\0\0\x08free"),
        }
        let path = folder.path().join("changed.mp4");
        std::fs::write(&path, &changed).unwrap();
        let report = report(&path, &authority.root_pem);
        assert_eq!(report["validation_state"], "Invalid", "{at}: {report:#}");
        let bad = codes(&report, "failure");
        assert!(bad.iter().any(|one| one == code), "{code}: {bad:?}");
    }
}

#[test]
fn a_signed_film_is_not_signed_again_nor_one_whose_boxes_are_others() {
    let signer = signer(&Authority::new());
    let folder = tempfile::tempdir().unwrap();
    let path = film(folder.path());
    let plain = std::fs::read(&path).unwrap();
    signer.seal(&path, &provenance(None)).unwrap();
    let signed = std::fs::read(&path).unwrap();
    let fragmented = [&plain[..], b"\0\0\0\x08moof"].concat();
    let mut compressed = plain.clone();
    let trak = plain.windows(4).position(|bytes| bytes == b"trak").unwrap();
    compressed[trak..trak + 4].copy_from_slice(b"cmov");
    for (bytes, reason) in [
        (&signed[..], "its maker has signed it"),
        (&fragmented, "fragmented"),
        (&compressed, "compressed"),
        (&plain[..plain.len() - 1], "cut off"),
        (b"", "empty"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let Sealed::Not(why) = signer.seal(&path, &provenance(None)).unwrap() else {
            panic!("it was signed: {reason}");
        };
        assert!(why.contains(reason), "{why}");
        assert!(std::fs::read(&path).unwrap() == bytes);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
