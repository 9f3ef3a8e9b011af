//! The command line of the server, and whether this version of it has every option that a model
//! needs: it would refuse an unknown option only after its help, and ignores unknown names.

use std::collections::BTreeSet;
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
    let names = arguments.iter().map(|argument| {
        let name = argument.split_once('=').map(|(name, _)| name);
        name.unwrap_or(argument)
    });
    names.into_iter().find(|name| RESERVED.contains(name))
}

/// The options for a model, without the address.
pub(crate) fn options(settings: &Settings) -> Vec<ServerOption> {
    let file = |path: &Path| Some(path.as_os_str().to_owned());
    let mut options: Vec<ServerOption> = settings
        .files()
        .map(|(role, path)| (option_of(role, settings.family), file(path)))
        .collect();
    // Without them the server lists the working directory, which the sandbox closes, and answers 500.
    let loras = settings.loras_folder.as_deref();
    options.push((
        "--lora-model-dir",
        file(loras.unwrap_or(Path::new(NOWHERE))),
    ));
    options.push(("--hires-upscalers-dir", Some(NOWHERE.into())));
    for (switch, is_on) in [
        ("--diffusion-fa", settings.flash_attention),
        ("--offload-to-cpu", settings.offload_to_cpu),
        ("--mmap", settings.mmap),
    ] {
        if is_on {
            options.push((switch, None));
        }
    }
    for (name, value) in [
        (
            "--max-vram",
            settings.max_vram_gib.map(|gib| gib.to_string()),
        ),
        ("--backend", settings.backend.clone()),
        ("--threads", settings.threads.map(|count| count.to_string())),
    ] {
        if let Some(value) = value {
            options.push((name, Some(value.into())));
        }
    }
    options
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
    let listed = listed_options(help);
    let mut names = options.iter().map(|(name, _)| *name);
    names.find(|name| !listed.contains(name))
}

/// Whether a server with this help looks at the last frame of a Wan 2.2 TI2V model. Versions before
/// LTX-2, which brought the option for its connectors, pass over it.
pub(crate) fn ends_ti2v_clips(help: &str) -> bool {
    listed_options(help).contains("--embeddings-connectors")
}

fn listed_options(help: &str) -> BTreeSet<&str> {
    help.split(|c: char| c.is_whitespace() || c == ',')
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::new(Family::Wan, "wan.gguf", "vae.safetensors", "umt5.gguf")
    }

    #[test]
    fn settings_become_options() {
        let all = Settings {
            loras_folder: Some("loras".into()),
            offload_to_cpu: true,
            max_vram_gib: Some(-1.0),
            threads: Some(8),
            mmap: false,
            ..settings()
        };
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
             --lora-model-dir loras --hires-upscalers-dir /nonexistent --diffusion-fa --offload-to-cpu --max-vram -1 --threads 8"
        );
        let ltx = Settings {
            family: Family::Ltx,
            ..settings()
        };
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
        for (name, _) in options(&settings()) {
            assert!(RESERVED.contains(&name), "{name}");
        }
    }
}
