//! Videos that a command of the operator signs: by the script of docs/provenance.md, judged by the C2PA project's own
//! reader; and commands that do not sign, whose videos nobody gets.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kinora_test_e2e::media::{top_boxes, xmp};
use kinora_test_e2e::{
    Client, DataFolder, Server, Setup, Video, blocks, kinora, run, until, workspace,
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Download, TINY, assert_plays, reaching_from, square};

/// Sets the command, its parts separated by commas.
const COMMAND: &str = "KINORA_RESULTS_SIGN_COMMAND";

/// The Python with the package of the C2PA project.
fn python() -> PathBuf {
    let python = workspace().join(".venv/bin/python");
    assert!(python.exists(), "./test installs c2pa-python");
    python
}

/// A folder with a certificate, its key, and the authority's certificate.
struct Studio(TempDir);

impl Studio {
    fn new() -> Self {
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
        let key = KeyPair::generate().unwrap();
        let own = params
            .signed_by(&key, &Issuer::new(authority, root_key))
            .unwrap();
        let studio = Self(tempfile::tempdir().unwrap());
        let script = blocks("docs/provenance.md");
        let mut script = script.into_iter().map(|block| block.text);
        let script = script.find(|text| text.contains("c2pa.Builder"));
        for (name, text) in [
            ("root.pem", root.pem()),
            ("certificate.pem", own.pem()),
            ("key.pem", key.serialize_pem()),
            ("sign.py", script.unwrap()),
        ] {
            fs::write(studio.path(name), text).unwrap();
        }
        studio
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn signing(&self, setup: Setup) -> Setup {
        let [script, certificate, key] =
            ["sign.py", "certificate.pem", "key.pem"].map(|name| self.path(name));
        let command = [
            &python(),
            &script,
            Path::new("{input}"),
            Path::new("{output}"),
            &certificate,
            &key,
        ];
        let parts = command.map(|part| part.to_str().unwrap());
        setup.set(COMMAND, parts.join(","))
    }

    /// What the reader says of a file, if it trusts the studio's authority.
    fn report(&self, film: &Path) -> Value {
        let output = Command::new(python())
            .arg(workspace().join("crates/test-e2e/python/c2pa_reader.py"))
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
    server.assert_logged(&["signing videos", "python"], 1);
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
    assert_eq!(created["parameters"]["com.example.model"], "kinora-a1");
    assert_eq!(
        created["parameters"]["com.example.engine"],
        video.text("engine")
    );
    let tool = concat!("Kinora ", env!("CARGO_PKG_VERSION"));
    assert_eq!(created["softwareAgent"]["name"], tool);
    assert!(!manifest.to_string().contains("paper boat"), "{manifest:#}");
    // One bit of a picture.
    let mut changed = film.bytes.clone();
    let picture = changed
        .windows(4)
        .position(|bytes| bytes == b"mdat")
        .unwrap()
        + 100;
    changed[picture] ^= 1;
    fs::write(film.path(), changed).unwrap();
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
    fs::write(&key, upstream.data().key().unwrap()).unwrap();
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

/// A shell script that is to sign videos; what it leaves is beside it.
struct Script(TempDir);

impl Script {
    fn new(text: &str) -> Self {
        let script = Self(tempfile::tempdir().unwrap());
        fs::write(script.path("sign.sh"), text).unwrap();
        script
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A service with one model, `tiny`.
    fn signing(&self) -> Setup {
        let command = format!("sh,{},{{input}},{{output}}", self.path("sign.sh").display());
        let setup = Setup::on(&DataFolder::default()).config(TINY);
        setup.set(COMMAND, command)
    }

    /// Waits until it has written this whole line into a file.
    fn line(&self, name: &str) -> String {
        until(name, || {
            let text = fs::read_to_string(self.path(name)).ok()?;
            text.strip_suffix('\n').map(str::to_owned)
        })
    }

    /// Waits until the process whose number is in the file is gone.
    fn wait_gone(&self, name: &str) {
        let process = Path::new("/proc").join(self.line(name));
        until("the end of the command", || {
            (!process.exists()).then_some(())
        });
    }
}

fn tiny() -> Value {
    json!({"model": "tiny", "prompt": "A paper boat crosses a pond", "seed": 7})
}

/// Nothing of a task is published or left in the scratch folder.
fn assert_nothing_left(server: &Server) {
    let data = server.data();
    until("an empty scratch folder", || {
        let films = data.files(".mp4");
        films.is_empty().then_some(())
    });
    assert_eq!(data.files_of_tasks(), [""; 0].map(PathBuf::from));
}

#[test]
fn a_video_that_cannot_be_signed_is_never_published() {
    for (text, why) in [
        (
            "echo 'the module has no key' >&2; exit 3",
            "exit status: 3: the module has no key",
        ),
        ("exit 0", "the signer wrote no file"),
        ("mkfifo \"$2\"", "the signer wrote no file"),
        ("echo garbage >\"$2\"", "the signed file is no MP4"),
        (
            "ffmpeg -nostdin -v error -t 1 -i \"$1\" -c copy \"$2\"",
            "the signed file is another video",
        ),
        // What it starts ends with it.
        (
            "sleep 1000 & echo $! >\"$0.pid\"; wait",
            "it took longer than 2 s",
        ),
    ] {
        let script = Script::new(text);
        let mut setup = script.signing();
        if text.contains(".pid") {
            setup = setup.set("KINORA_RESULTS_SIGN_TIMEOUT_SECONDS", 2);
        }
        let server = setup.start();
        let client = server.newcomer();
        let id = client.submit(&tiny()).id().to_owned();
        let failed = client.wait_for(&id, "failed");
        assert_eq!(
            failed["error"]["code"], "storage_failed",
            "{text}: {failed:#?}"
        );
        server.assert_logged(&["run failed", "signing: ", why, &id], 1);
        assert_eq!(
            client.get(&format!("/v1/videos/{id}/content")).status,
            409,
            "{text}"
        );
        assert_nothing_left(&server);
        // On a busy machine the limit may come before the file.
        if script.path("sign.sh.pid").exists() {
            script.wait_gone("sign.sh.pid");
        }
    }
}

#[test]
fn a_cancel_ends_the_command_which_knows_the_task_and_no_secret() {
    let script = Script::new("echo $$ >\"$0.pid\"; env >\"$0.env\"; cat >\"$0.json\"; sleep 1000");
    let server = script.signing().set("STUDIO_KEY", "a secret").start();
    let client = server.newcomer();
    let id = client.submit(&tiny()).id().to_owned();
    let told: Value = serde_json::from_str(&script.line("sign.sh.json")).unwrap();
    assert_eq!(told["task"], id);
    assert_eq!(told["model"], "tiny");
    assert_eq!(told["operation"], "created");
    assert_eq!(told["parent"], Value::Null);
    let environment = script.line("sign.sh.env");
    assert!(environment.contains("PATH="), "{environment}");
    for absent in ["STUDIO_KEY", "KINORA_"] {
        assert!(!environment.contains(absent), "{environment}");
    }
    client.post(&format!("/v1/videos/{id}/cancel"));
    script.wait_gone("sign.sh.pid");
    assert_eq!(client.wait_for(&id, "failed")["error"]["code"], "cancelled");
    assert_nothing_left(&server);
}

#[test]
fn a_command_that_cannot_run_stops_the_start_and_the_doctor_says_why() {
    for (command, named) in [
        (
            "no-such-signer,{input},{output}",
            "'no-such-signer' of results.sign_command is not found",
        ),
        ("sh,{input}", "must have the arguments {input} and {output}"),
    ] {
        let log = Setup::default()
            .set(COMMAND, command)
            .try_start()
            .unwrap_err();
        assert!(log.stderr.contains(named), "{named}: {log:#?}");
    }
    for (program, mark, named) in [
        ("sh", "ok ", "by sh"),
        ("no-such-signer", "BAD", "is not found"),
    ] {
        let data = tempfile::tempdir().unwrap();
        let mut doctor = kinora();
        doctor.args(["doctor", "--data"]).arg(data.path());
        doctor.env(COMMAND, format!("{program},{{input}},{{output}}"));
        let report = run(doctor).stdout;
        let line = report.lines().find(|line| line.contains("signatures"));
        let line = line.unwrap_or_else(|| panic!("{report}"));
        assert!(line.starts_with(mark) && line.contains(named), "{line}");
    }
}
