//! Videos that are signed with the operator's certificate, judged by the C2PA project's own reader; and certificates
//! that stop a start.

use std::path::{Path, PathBuf};
use std::process::Command;

use kinora_e2e::media::{top_boxes, xmp};
use kinora_e2e::{Client, DataFolder, Server, Setup, Video, kinora, run, workspace};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Download, assert_plays, reaching_from, square};

/// A folder with a certificate, its key, and the authority's certificate.
struct Studio(TempDir);

impl Studio {
    fn new() -> Self {
        Self::until(2100)
    }

    /// Its certificate is valid until this year begins.
    fn until(year: i32) -> Self {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root_key = KeyPair::generate().unwrap();
        let root = authority.self_signed(&root_key).unwrap();
        let mut params = CertificateParams::default();
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "A studio");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::EmailProtection];
        params.use_authority_key_identifier_extension = true;
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let own = params
            .signed_by(&key, &Issuer::new(authority, root_key))
            .unwrap();
        let studio = Self(tempfile::tempdir().unwrap());
        for (name, text) in [
            ("root.pem", root.pem()),
            ("certificate.pem", own.pem()),
            ("key.pem", key.serialize_pem()),
        ] {
            std::fs::write(studio.path(name), text).unwrap();
        }
        let chmod = Command::new("chmod")
            .arg("600")
            .arg(studio.path("key.pem"))
            .status();
        assert!(chmod.unwrap().success());
        studio
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn signing(&self, setup: Setup) -> Setup {
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| self.path(name));
        setup
            .set("KINORA_PROVENANCE_CERTIFICATE_FILE", certificate.display())
            .set("KINORA_PROVENANCE_KEY_FILE", key.display())
    }

    /// What the reader says of a file, if it trusts the studio's authority.
    fn report(&self, film: &Path) -> Value {
        let python = workspace().join(".venv/bin/python");
        assert!(python.exists(), "./test installs c2pa-python");
        let output = Command::new(python)
            .arg(workspace().join("crates/c2pa/tests/reader.py"))
            .args([film, &self.path("root.pem")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The manifest of a file that the reader believes wholly.
    fn believed(&self, film: &Path) -> Value {
        let report = self.report(film);
        assert_eq!(report["validation_state"], "Trusted", "{report:#}");
        report["manifests"][report["active_manifest"].as_str().unwrap()].clone()
    }
}

fn made(client: &Client, body: &Value) -> (Video, Download) {
    let video = client.wait_completed(client.submit(body).id());
    let film = Download::of(client, &video.content());
    (video, film)
}

/// The actions that a manifest tells of.
fn actions(manifest: &Value) -> &Vec<Value> {
    let assertions = manifest["assertions"].as_array().unwrap();
    let actions = assertions
        .iter()
        .find(|one| one["label"] == "c2pa.actions.v2");
    actions.unwrap()["data"]["actions"].as_array().unwrap()
}

#[test]
fn a_signed_video_is_believed_plays_and_keeps_its_label() {
    let studio = Studio::new();
    let server = studio.signing(Setup::default()).start();
    server.assert_logged(&["signing videos", "A studio"], 1);
    let client = server.newcomer();
    let (video, film) = made(&client, &square("kinora-a1"));
    assert_eq!(
        top_boxes(&film.bytes),
        ["ftyp", "uuid", "moov", "mdat", "uuid"]
    );
    assert_plays(&client, &video);
    let manifest = studio.believed(&film.path());
    let [created] = &**actions(&manifest) else {
        panic!("{manifest:#}");
    };
    let label = xmp(&film.path());
    assert_eq!(label["XMP-dc:Identifier"], video.id());
    let source = &created["digitalSourceType"];
    assert_eq!(*source, label["XMP-iptcExt:DigitalSourceType"]);
    assert_eq!(created["action"], "c2pa.created");
    assert_eq!(created["parameters"]["kinora.model"], "kinora-a1");
    assert_eq!(created["parameters"]["kinora.engine"], video.text("engine"));
    assert_eq!(
        created["softwareAgent"]["version"],
        env!("CARGO_PKG_VERSION")
    );
    assert!(!manifest.to_string().contains("paper boat"), "{manifest:#}");
    // One bit of a picture.
    let mut changed = film.bytes.clone();
    let picture = changed
        .windows(4)
        .position(|bytes| bytes == b"mdat")
        .unwrap()
        + 100;
    changed[picture] ^= 1;
    std::fs::write(film.path(), changed).unwrap();
    let report = studio.report(&film.path());
    assert_eq!(report["validation_state"], "Invalid", "{report:#}");
    let failure = &report["validation_results"]["activeManifest"]["failure"][0];
    assert_eq!(failure["code"], "assertion.bmffHash.mismatch", "{report:#}");
}

#[test]
fn finals_and_edits_of_signed_videos_name_them_as_ingredients() {
    let studio = Studio::new();
    let server = studio.signing(Setup::default()).start();
    let client = server.newcomer();
    let mut body = square("kinora-a1");
    body["draft"] = json!(true);
    let (draft, _) = made(&client, &body);
    let final_of = json!({"model": "kinora-a1", "draft_task_id": draft.id()});
    let edit =
        json!({"model": "kinora-b1", "prompt": "The same in snow", "edit_task_id": draft.id()});
    for (body, relationship, first) in [
        (final_of, "inputTo", "c2pa.created"),
        (edit, "parentOf", "c2pa.opened"),
    ] {
        let (video, film) = made(&client, &body);
        assert_plays(&client, &video);
        let manifest = studio.believed(&film.path());
        let ingredient = &manifest["ingredients"][0];
        let source = format!("xmp.iid:{}", draft.id());
        assert_eq!(ingredient["instance_id"], source, "{manifest:#}");
        assert_eq!(ingredient["relationship"], relationship);
        assert_eq!(actions(&manifest)[0]["action"], first);
    }
}

/// A service that has its videos made by `upstream`.
fn front(upstream: &Server) -> Setup {
    let key = upstream.data().path().join("key-for-front");
    std::fs::write(&key, upstream.data().key().unwrap()).unwrap();
    let base_url = upstream.base_url();
    let settings = format!(
        "[[engines]]\n\
         name = \"studio\"\n\
         kind = \"remote\"\n\
         dialect = \"kinora\"\n\
         base_urls = [\"{base_url}/v1\"]\n\
         key_file = \"{}\"\n\
         model = \"kinora-a1\"\n\
         sound = true\n\
         poll_milliseconds = 100\n\
         poll_milliseconds_max = 300\n\
         [[models]]\n\
         card = \"kinora-a1\"\n\
         id = \"kinora-a1\"\n\
         engine = \"studio\"\n",
        key.display()
    );
    reaching_from(Setup::on(&DataFolder::default())).config(&settings)
}

#[test]
fn films_of_other_servers_are_signed_unless_their_maker_has_signed_them() {
    let (theirs, ours) = (Studio::new(), Studio::new());
    for (upstream, signs) in [
        (Setup::default(), true),
        (theirs.signing(Setup::default()), false),
    ] {
        let upstream = upstream.start();
        let front = ours.signing(front(&upstream)).start();
        let client = front.newcomer();
        let (video, film) = made(&client, &square("kinora-a1"));
        assert_plays(&client, &video);
        let signer = if signs { &ours } else { &theirs };
        let manifest = signer.believed(&film.path());
        let made = actions(&manifest)[0]["digitalSourceType"].as_str().unwrap();
        assert_eq!(
            made.ends_with("/trainedAlgorithmicMedia"),
            signs,
            "{manifest:#}"
        );
        let told = xmp(&film.path());
        assert_eq!(told["XMP-dc:Identifier"] == *video.id(), signs, "{told:#}");
    }
}

#[test]
fn a_certificate_that_cannot_sign_stops_the_start_and_the_doctor_says_why() {
    let (studio, other, old) = (Studio::new(), Studio::new(), Studio::until(2025));
    let key = std::fs::read_to_string(studio.path("key.pem")).unwrap();
    let certificate = "KINORA_PROVENANCE_CERTIFICATE_FILE";
    let mixed = studio
        .signing(Setup::default())
        .set(certificate, other.path("certificate.pem").display());
    let missing = studio
        .signing(Setup::default())
        .set(certificate, "/no/such.pem");
    let single = studio.signing(Setup::default()).set(certificate, "");
    for (setup, named) in [
        (mixed, "the key does not belong to the certificate"),
        (
            missing,
            "provenance.certificate_file /no/such.pem cannot be read",
        ),
        (single, "provenance.key_file need each other"),
        (
            old.signing(Setup::default()),
            "expired on 2025-01-01T00:00:00Z: get a new one",
        ),
    ] {
        let log = setup.try_start().unwrap_err();
        assert!(log.stderr.contains(named), "{named}: {log:#?}");
        let secret = key.lines().nth(1).unwrap();
        assert!(!log.stderr.contains(secret), "{log:#?}");
    }
    for (studio, mark, named) in [
        (&studio, "ok ", "by \"A studio\" until 2100-01-01T00:00:00Z"),
        (&old, "BAD", "expired on 2025-01-01T00:00:00Z"),
    ] {
        let data = tempfile::tempdir().unwrap();
        let mut command = kinora();
        command.args(["doctor", "--data"]).arg(data.path());
        for (variable, name) in [
            (certificate, "certificate"),
            ("KINORA_PROVENANCE_KEY_FILE", "key"),
        ] {
            command.env(variable, studio.path(&format!("{name}.pem")));
        }
        let report = run(command).stdout;
        let line = report.lines().find(|line| line.contains("c2pa signature"));
        let line = line.unwrap_or_else(|| panic!("{report}"));
        assert!(line.starts_with(mark) && line.contains(named), "{line}");
    }
}
