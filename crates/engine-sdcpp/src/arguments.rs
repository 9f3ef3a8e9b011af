//! The command line of the server, and whether this version of it has every option that a model
//! needs: it would refuse an unknown option only after its help, and ignores unknown names.

use std::ffi::OsString;
use std::path::Path;

use crate::family::{Family, Role};
use crate::settings::Settings;

/// An option and its value; a switch has none.
pub(crate) type ServerOption = (&'static str, Option<OsString>);

/// A folder that never exists.
const NOWHERE: &str = "/nonexistent";

/// Options that this crate sets, or whose output it could not read.
const RESERVED: &[&str] = &[
    "--listen-ip",
    "-l",
    "--listen-port",
    "--color",
    "--model",
    "-m",
    "--diffusion-model",
    "--high-noise-diffusion-model",
    "--vae",
    "--audio-vae",
    "--t5xxl",
    "--llm",
    "--clip_vision",
    "--embeddings-connectors",
    "--lora-model-dir",
    "--hires-upscalers-dir",
    "--diffusion-fa",
    "--offload-to-cpu",
    "--max-vram",
    "--backend",
    "--mmap",
    "--threads",
    "-t",
];

/// The first of an operator's arguments that is set by a setting.
pub(crate) fn reserved(arguments: &[String]) -> Option<&str> {
    let mut names = arguments
        .iter()
        .map(|argument| argument.split('=').next().unwrap_or(argument));
    names.find(|name| RESERVED.contains(name))
}

/// The options for a model, without the address.
pub(crate) fn options(settings: &Settings) -> Vec<ServerOption> {
    let files = settings
        .files()
        .map(|(role, path)| (option_of(role, settings.family), Some(path.into())));
    // Without folders the server lists the working directory, which the sandbox closes, and answers 500.
    let loras = settings
        .loras_folder
        .as_deref()
        .unwrap_or(Path::new(NOWHERE));
    let max_vram = settings.max_vram_gib.map(|gib| gib.to_string());
    let threads = settings.threads.map(|count| count.to_string());
    let values = [
        ("--lora-model-dir", Some(loras.into())),
        ("--hires-upscalers-dir", Some(NOWHERE.into())),
        ("--max-vram", max_vram.map(OsString::from)),
        ("--backend", settings.backend.clone().map(OsString::from)),
        ("--threads", threads.map(OsString::from)),
    ];
    let values = values.into_iter().filter(|(_, value)| value.is_some());
    let switches = [
        ("--diffusion-fa", settings.flash_attention),
        ("--offload-to-cpu", settings.offload_to_cpu),
        ("--mmap", settings.mmap),
    ];
    let switches = switches.into_iter().filter(|(_, is_on)| *is_on);
    let switches = switches.map(|(name, _)| (name, None));
    files.chain(values).chain(switches).collect()
}

fn option_of(role: Role, family: Family) -> &'static str {
    match (role, family) {
        (Role::DiffusionModel, _) => "--diffusion-model",
        (Role::HighNoiseDiffusionModel, _) => "--high-noise-diffusion-model",
        (Role::Vae, _) => "--vae",
        (Role::AudioVae, _) => "--audio-vae",
        (Role::TextEncoder, Family::Wan | Family::WanVace) => "--t5xxl",
        (Role::TextEncoder, Family::Ltx) => "--llm",
        (Role::ClipVision, _) => "--clip_vision",
        (Role::EmbeddingsConnectors, _) => "--embeddings-connectors",
    }
}

/// The first of `options` that the server's help does not list.
pub(crate) fn missing_option(options: &[ServerOption], help: &str) -> Option<&'static str> {
    let mut names = options.iter().map(|(name, _)| *name);
    names.find(|name| !lists(help, name))
}

/// Whether a server with this help looks at the last frame of a Wan 2.2 TI2V model. Versions before
/// LTX-2, which brought the option for its connectors, pass over it.
pub(crate) fn ends_ti2v_clips(help: &str) -> bool {
    lists(help, "--embeddings-connectors")
}

fn lists(help: &str, option: &str) -> bool {
    help.split(|c: char| c.is_whitespace() || c == ',')
        .any(|word| word == option)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::tests::settings;

    #[test]
    fn settings_become_options() {
        let all = settings(&json!({
            "loras_folder": "loras", "offload_to_cpu": true, "max_vram_gib": -1.0, "threads": 8, "mmap": false,
        }));
        let written: Vec<String> = options(&all)
            .into_iter()
            .map(|(name, value)| match value {
                Some(value) => format!("{name} {}", value.to_str().unwrap()),
                None => name.to_owned(),
            })
            .collect();
        assert_eq!(
            written.join(" "),
            "--diffusion-model wan.gguf --vae vae.safetensors --t5xxl umt5.gguf \
             --lora-model-dir loras --hires-upscalers-dir /nonexistent --max-vram -1 --threads 8 --diffusion-fa --offload-to-cpu"
        );
        let ltx = settings(&json!({"family": "ltx"}));
        assert!(options(&ltx).iter().any(|(name, _)| *name == "--llm"));
    }

    #[test]
    fn options_that_the_help_lacks_are_found() {
        let help = "  -t, --threads <int>   threads\n  --diffusion-fa  a\n  --backend-x  b\n";
        let option = |name| vec![(name, None)];
        assert_eq!(missing_option(&option("--threads"), help), None);
        assert_eq!(missing_option(&option("--diffusion-fa"), help), None);
        assert_eq!(
            missing_option(&option("--backend"), help),
            Some("--backend")
        );
    }

    #[test]
    fn what_settings_set_is_no_extra_argument() {
        let given = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&one| one.to_owned()).collect();
            reserved(&arguments).map(str::to_owned)
        };
        assert_eq!(given(&["--vae-conv-direct", "--type", "q8_0"]), None);
        assert_eq!(
            given(&["--listen-port=9"]),
            Some("--listen-port".to_owned())
        );
        assert_eq!(given(&["-v", "--vae", "x"]), Some("--vae".to_owned()));
        for (name, _) in options(&settings(&json!({}))) {
            assert!(RESERVED.contains(&name), "{name}");
        }
    }
}
