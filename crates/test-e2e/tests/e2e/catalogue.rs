//! Models of the catalogue, added by name with the real binary: from stand-ins of the GPU, of the model hub and of the
//! Python packages to an MP4. What stops an addition is said, and the same command goes on afterwards.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use kinora_test_e2e::{DataFolder, Finished, Running, Setup, kinora, media, run, until};
use kinora_testkit::model_hub::{ModelHub, TransferFault};
use kinora_testkit::release_server::SD_SERVER;
use kinora_testkit::wheels::write_wheels;
use serde_json::{Value, json};

use crate::support::Download;

/// A model that both engines run.
const MODEL: &str = "wan2.1-t2v-1.3b";
const PIPELINE: &str = "Wan-AI/Wan2.1-T2V-1.3B-Diffusers";
const ENCODER: &str = "city96/umt5-xxl-encoder-gguf";
const PARTS: &str = "Comfy-Org/Wan_2.1_ComfyUI_repackaged";
/// Of nvidia-smi: index, UUID, name, MiB in all and free, compute capability, driver.
const GPU: &str = "0, GPU-8932f937-d72c-4106-c12f-20bd9faed9f6, NVIDIA GeForce RTX 4090, 24564, 24000, 8.9, 580.95.05";
const REQUIREMENTS: &str = include_str!("../../../engine-catalogue/environments/diffusers.txt");
/// As much of torch as loading a pipeline asks for.
const TORCH: &str = "\
__version__ = 'stand-in'
class dtype: pass
bfloat16 = float16 = float32 = dtype()
class cuda:
    is_available = staticmethod(lambda: False)
";
/// A pipeline that takes every switch and paints grey frames. An index with the key `broken` cannot be loaded.
const DIFFUSERS: &str = "\
__version__ = 'stand-in'
import json, pathlib

class Anything:
    def __getattr__(self, name): return Anything()
    def __call__(self, *args, **options): return Anything()
    from_config = classmethod(lambda cls, config, **options: cls())

class WanPipeline(Anything):
    @classmethod
    def from_pretrained(cls, model, **options):
        if 'broken' in json.loads((pathlib.Path(model) / 'model_index.json').read_text()):
            raise RuntimeError('these weights are broken')
        return cls()

def generate(self, job):
    for _ in range(job.frames):
        yield job.rgb(b'\\x80' * (3 * job.clip.width * job.clip.height))

import sys
engine = sys.modules.get('kinora_engine.diffusers._pipeline')
if engine is not None:
    engine.Pipeline.generate = generate
";

/// A machine with a GPU, and what it downloads from.
struct Machine {
    data: DataFolder,
    hub: ModelHub,
}

impl Machine {
    fn new() -> Self {
        let machine = Self {
            data: DataFolder::default(),
            hub: ModelHub::start(),
        };
        machine.set_gpu(GPU);
        for folder in ["wheels", "cache"] {
            fs::create_dir(machine.data.beside(folder)).unwrap();
        }
        machine.publish("first", json!({}));
        machine
    }

    /// With all packages of the environment.
    fn with_packages(self) -> Self {
        self.write_packages(REQUIREMENTS);
        self
    }

    fn write_packages(&self, requirements: &str) {
        let modules = [("torch", TORCH), ("diffusers", DIFFUSERS)];
        write_wheels(&self.data.beside("wheels"), requirements, &modules);
    }

    /// Lets `nvidia-smi` print this line.
    fn set_gpu(&self, line: &str) {
        self.write_program(
            "nvidia-smi",
            format!("#!/bin/sh\necho '{line}'\n").as_bytes(),
        );
    }

    fn write_program(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.data.beside("bin").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Publishes the pipeline with these weights, and `more` in its index; returns the commit.
    fn publish(&self, weights: &str, more: Value) -> String {
        let mut index = json!({"_class_name": "WanPipeline", "vae": ["diffusers", "AutoencoderKLWan"],
            "transformer": ["diffusers", "WanTransformer3DModel"], "text_encoder": ["transformers", "UMT5EncoderModel"]});
        index
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let large = weights.repeat(100_000);
        self.hub.publish(
            PIPELINE,
            [
                ("model_index.json", index.to_string().into_bytes()),
                ("README.md", b"not needed".to_vec()),
                ("transformer/config.json", b"{}".to_vec()),
                (
                    "transformer/diffusion_pytorch_model.safetensors",
                    large.into_bytes(),
                ),
                ("vae/diffusion_pytorch_model.safetensors", weights.into()),
            ],
        )
    }

    /// `kinora models` on the data folder of this machine.
    fn command(&self, arguments: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap();
        let wheels = self.data.beside("wheels");
        let mut command = kinora();
        command.arg("models").args(arguments);
        command.arg("--data").arg(self.data.path());
        command
            .env(
                "PATH",
                format!("{}:{path}", self.data.beside("bin").display()),
            )
            .env("KINORA_WEIGHTS_HUB_URL", self.hub.base_url())
            .env("PIP_NO_INDEX", "1")
            .env("PIP_FIND_LINKS", &wheels)
            .env("UV_NO_INDEX", "1")
            .env("UV_FIND_LINKS", &wheels)
            .env("UV_CACHE_DIR", self.data.beside("cache"));
        command
    }

    fn models(&self, arguments: &[&str]) -> Finished {
        run(self.command(arguments))
    }

    /// A path in the data folder.
    fn path(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    fn card(&self) -> PathBuf {
        self.path(&format!("models.d/{MODEL}.toml"))
    }

    /// The folder of a commit of the pipeline.
    fn weights(&self, commit: &str) -> PathBuf {
        self.path("weights").join(PIPELINE).join(&commit[..12])
    }

    /// The names in a folder; none if there is no folder.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| !name.starts_with('.')).collect()
    }
}

/// Asserts that `text` has these parts in their order.
fn assert_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("{part:?} is missing or out of order: {text}");
        };
        rest = after;
    }
}

#[test]
fn one_command_adds_a_model_and_the_service_makes_its_clips() {
    let machine = Machine::new().with_packages();
    let commit = machine.publish("first", json!({}));
    let added = machine.models(&["add", MODEL]).ok();
    assert_in_order(
        &added,
        &[
            "1/5 machine: GPU 0 (NVIDIA GeForce RTX 4090)",
            "2/5 plan: diffusers",
            "licence: Apache-2.0",
            "4 files",
            "3/5 engine",
            "4/5 weights",
            "5/5 check",
            "loaded in",
            "kinora serve",
            &format!("--model {MODEL}"),
        ],
    );
    let weights = machine.weights(&commit);
    assert!(weights.join("model_index.json").is_file() && !weights.join("README.md").exists());
    let requests = machine.hub.requests().len();
    let again = machine.models(&["add", MODEL]).ok();
    assert!(again.contains("added already"), "{again}");
    assert_eq!(machine.hub.requests().len(), requests, "the hub was asked");
    let list: Value = serde_json::from_str(&machine.models(&["list", "--json"]).ok()).unwrap();
    let mut models = list.as_array().unwrap().iter();
    let model = models.find(|model| model["model"] == MODEL).unwrap();
    assert_eq!(model["state"], "installed");

    let server = Setup::on(&machine.data).start();
    let client = server.client();
    let video = client.submit(&json!({"model": MODEL, "prompt": "A paper boat", "seconds": 2}));
    let video = client.wait_completed(video.id());
    let file = Download::of(&client, &video.content());
    assert_eq!(media::probe(&file.path()).video["codec_name"], "h264");
    drop(server);

    let removed = machine.models(&["remove", MODEL]).ok();
    assert!(
        removed.contains(&format!("{MODEL} is removed.")),
        "{removed}"
    );
    for folder in ["models.d", "weights", "engines"] {
        assert_eq!(machine.names(folder), [""; 0], "{folder}");
    }
}

#[test]
fn an_addition_goes_on_after_each_step_that_failed() {
    let machine = Machine::new();
    let commit = machine.publish("first", json!({"broken": true}));
    // The programs.
    let without = REQUIREMENTS.replace("diffusers==", "# diffusers==");
    machine.write_packages(&without);
    let done = machine.models(&["add", MODEL]);
    assert_eq!(done.status.code(), Some(1), "{done:#?}");
    assert!(done.stderr.contains("diffusers"), "{done:#?}");
    machine.write_packages(REQUIREMENTS);
    // The download.
    let file = "transformer/diffusion_pytorch_model.safetensors";
    machine
        .hub
        .fail(file, TransferFault::StallAfter(300_000), 1);
    let adding = Running::start(machine.command(&["add", MODEL]));
    let part = machine
        .weights(&commit)
        .join("transformer/.diffusion_pytorch_model.safetensors.part");
    until("the first bytes", || {
        let part = fs::metadata(&part).ok()?;
        (part.len() > 0).then_some(())
    });
    adding.interrupt();
    let done = adding.finished();
    assert_eq!(done.status.code(), Some(130), "{done:#?}");
    assert!(
        done.stderr.contains("Run the same command again"),
        "{done:#?}"
    );
    // The check.
    let done = machine.models(&["add", MODEL]);
    assert_eq!(done.status.code(), Some(1), "{done:#?}");
    assert!(
        done.stdout.contains("these weights are broken"),
        "{done:#?}"
    );
    assert!(done.stderr.contains("was not added"), "{done:#?}");
    let requests = machine.hub.requests();
    assert!(
        requests
            .iter()
            .any(|request| request.header("range").is_some()),
        "nothing was resumed"
    );
    assert_eq!(machine.names("models.d"), [""; 0]);
    // The publisher mends it.
    machine.publish("first", json!({}));
    machine.models(&["add", MODEL]).ok();
    assert!(machine.card().is_file());
}

#[test]
fn an_update_switches_to_new_files_and_a_change_of_options_too() {
    let machine = Machine::new().with_packages();
    let first = machine.publish("first", json!({}));
    machine.models(&["add", MODEL, "--no-check"]).ok();
    let same = machine.models(&["update"]).ok();
    assert!(
        same.contains("up to date") && same.ends_with("Nothing has changed.\n"),
        "{same}"
    );
    let second = machine.publish("other", json!({}));
    // A broken download changes nothing.
    machine.hub.fail(
        "vae/diffusion_pytorch_model.safetensors",
        TransferFault::WrongBytes,
        1,
    );
    let before = fs::read_to_string(machine.card()).unwrap();
    let done = machine.models(&["update", "--no-check"]);
    assert_eq!(done.status.code(), Some(1), "{done:#?}");
    assert!(done.stderr.contains("SHA-256"), "{done:#?}");
    assert_eq!(fs::read_to_string(machine.card()).unwrap(), before);
    assert!(machine.weights(&first).is_dir());
    machine.models(&["update", "--no-check"]).ok();
    assert!(machine.weights(&second).is_dir() && !machine.weights(&first).exists());
    let text = fs::read_to_string(machine.card()).unwrap();
    assert!(
        text.contains(&second[..12]) && !text.contains(&first[..12]),
        "{text}"
    );
    let unknown = machine.models(&["update", "wan2.2-ti2v-5b"]);
    assert!(
        unknown.stderr.contains("is not a model that"),
        "{unknown:#?}"
    );

    add_by_server(&machine).ok();
    assert!(!machine.weights(&second).exists(), "the pipeline stayed");
    assert_eq!(machine.names("engines"), [""; 0], "the environment stayed");
    let removed = machine.models(&["remove", MODEL, "--keep-files"]).ok();
    assert!(removed.contains("is removed"), "{removed}");
    assert!(!machine.card().exists() && machine.path("weights").join(ENCODER).is_dir());
}

/// Adds the model by the operator's own server of stable-diffusion.cpp.
fn add_by_server(machine: &Machine) -> Finished {
    let files = [
        (
            "split_files/diffusion_models/wan2.1_t2v_1.3B_fp16.safetensors",
            b"transformer".to_vec(),
        ),
        ("split_files/vae/wan_2.1_vae.safetensors", b"vae".to_vec()),
        (
            "split_files/text_encoders/other.safetensors",
            b"not needed".to_vec(),
        ),
    ];
    machine.hub.publish(PARTS, files);
    machine.hub.publish(
        ENCODER,
        [("umt5-xxl-encoder-Q8_0.gguf", b"encoder".to_vec())],
    );
    let server = machine.write_program("my-sd-server", SD_SERVER);
    let server = server.to_str().unwrap();
    let done = machine.models(&[
        "add",
        MODEL,
        "--engine",
        "sdcpp",
        "--sd-server",
        server,
        "--no-check",
    ]);
    let text = fs::read_to_string(machine.card()).unwrap_or_default();
    assert!(text.contains(server), "{done:#?}\n{text}");
    assert!(
        text.contains("split_files/vae") && !text.contains("text_encoders/other"),
        "{text}"
    );
    done
}

/// A GPU, arguments, a variable, and the exit code and the parts of the message that follow.
type Refusal<'a> = (
    &'a str,
    &'a [&'a str],
    (&'a str, &'a str),
    i32,
    &'a [&'a str],
);

/// A variable that changes nothing.
const IN_C: (&str, &str) = ("LANG", "C");

fn assert_refused(machine: &Machine, refusals: &[Refusal<'_>]) {
    for (gpu, arguments, variable, code, parts) in refusals {
        machine.set_gpu(gpu);
        let mut command = machine.command(arguments);
        command.env(variable.0, variable.1);
        let done = run(command);
        assert_eq!(done.status.code(), Some(*code), "{arguments:?}: {done:#?}");
        for part in *parts {
            assert!(done.stderr.contains(part), "{part}: {done:#?}");
        }
    }
    for folder in ["models.d", "weights", "engines"] {
        assert_eq!(machine.names(folder), [""; 0], "{folder}");
    }
}

#[test]
fn what_this_machine_cannot_do_is_said_before_anything_is_downloaded() {
    let machine = Machine::new();
    let small = GPU.replace("24564, 24000", "512, 500");
    let old = GPU.replace("580.95.05", "470.82.01");
    let refusals: &[Refusal<'_>] = &[
        (
            GPU,
            &["add", "wan2.1-t2v-1.3"][..],
            IN_C,
            1,
            &["wan2.1-t2v-1.3b"][..],
        ),
        (
            GPU,
            &["add", MODEL, "--device", "7"],
            IN_C,
            1,
            &["no device '7'", "RTX 4090"],
        ),
        (
            GPU,
            &["add", MODEL, "--variant", "Q1"],
            IN_C,
            1,
            &["does not fit", "--engine"],
        ),
        (
            GPU,
            &["add", MODEL, "--engine", "other"],
            IN_C,
            2,
            &["diffusers", "sdcpp"],
        ),
        (
            GPU,
            &["add", MODEL, "--sd-server", "/no/such/file"],
            IN_C,
            2,
            &["--sd-server"],
        ),
        (
            &small,
            &["add", MODEL],
            IN_C,
            1,
            &["does not fit", "RTX 4090", "GB"],
        ),
        (
            &old,
            &["add", MODEL, "--engine", "diffusers"],
            IN_C,
            1,
            &["470.82.01", "580"],
        ),
    ];
    assert_refused(&machine, refusals);
}

#[test]
fn what_the_hub_refuses_is_said_and_a_dry_run_changes_nothing() {
    let machine = Machine::new();
    let down = ("KINORA_WEIGHTS_HUB_URL", "http://127.0.0.1:1");
    let other = ("KINORA_WEIGHTS_HUB_URL", "hub");
    machine.hub.gate(PARTS, "token");
    let sdcpp = &["add", MODEL, "--engine", "sdcpp"][..];
    let refusals: &[Refusal<'_>] = &[
        (
            GPU,
            &["add", MODEL],
            down,
            3,
            &["could not be asked", "127.0.0.1:1"],
        ),
        (GPU, &["add", MODEL], other, 1, &["weights.hub_url"]),
        (
            GPU,
            sdcpp,
            IN_C,
            4,
            &["Accept the licence", "weights.token_file"],
        ),
    ];
    assert_refused(&machine, refusals);
    machine.set_gpu(GPU);
    let dry = machine.models(&["add", MODEL, "--dry-run"]).ok();
    assert_in_order(&dry, &["2/5 plan", "4 files", "Nothing was done"]);
    assert_refused(&machine, &[]);
}

#[test]
fn a_full_disk_is_seen_before_the_first_byte() {
    let machine = Machine::new();
    machine.publish(&"weights".repeat(20), json!({}));
    let data = machine.data.path();
    fs::create_dir(&data).unwrap();
    let inner = machine.command(&["add", MODEL]);
    let script = format!(
        "mount -t tmpfs -o size=4m tmpfs {} && exec \"$0\" \"$@\"",
        data.display()
    );
    let mut command = crate::cli::bare("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    command.arg(inner.get_program()).args(inner.get_args());
    let variables = inner
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    command.envs(variables);
    let done = run(command);
    assert_eq!(done.status.code(), Some(1), "{done:#?}");
    assert!(
        done.stderr.contains(" free, and ") && done.stderr.contains("are needed"),
        "{done:#?}"
    );
    assert!(!done.stdout.contains("3/5"), "{done:#?}");
}

#[test]
fn the_catalogue_says_what_fits_this_machine() {
    let machine = Machine::new();
    let text = machine.models(&["list", "--available"]).ok();
    let line = text.lines().find(|line| line.starts_with(MODEL)).unwrap();
    assert!(
        line.contains("Apache-2.0") && line.contains("fits: diffusers"),
        "{line}"
    );
    assert!(text.contains("NVIDIA GeForce RTX 4090"), "{text}");
    let list = machine.models(&["list", "--available", "--json"]).ok();
    let list: Value = serde_json::from_str(&list).unwrap();
    let mut models = list.as_array().unwrap().iter();
    let model = models.find(|model| model["name"] == MODEL).unwrap();
    assert_eq!(
        (&model["fits"], &model["choice"]["engine"]),
        (&json!(true), &json!("diffusers"))
    );
    machine.set_gpu(&GPU.replace("24564, 24000", "512, 500"));
    let text = machine.models(&["list", "--available"]).ok();
    let line = text.lines().find(|line| line.starts_with(MODEL)).unwrap();
    assert!(line.contains("does not fit"), "{line}");
}

#[test]
fn a_name_that_the_configuration_has_is_not_added() {
    let machine = Machine::new();
    let config = machine.data.beside("kinora.toml");
    let text = format!("[[models]]\nid = \"{MODEL}\"\nengine = \"storyboard\"\n");
    fs::write(&config, text).unwrap();
    let mut command = machine.command(&["add", MODEL]);
    command.arg("--config").arg(&config);
    let done = run(command);
    assert!(
        done.stderr.contains("of its own: rename or remove it"),
        "{done:#?}"
    );
    // A file that somebody put there is read by the service as well, and refused with its name.
    let own = Path::new(&machine.path("models.d")).join("own.toml");
    fs::write(&own, "listen = \"[::]:80\"\n").unwrap();
    let Err(done) = Setup::on(&machine.data).try_start() else {
        panic!("the service started");
    };
    assert!(
        done.stderr.contains("own.toml") && done.stderr.contains("'listen'"),
        "{done:#?}"
    );
}
