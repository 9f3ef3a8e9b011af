//! Which settings are accepted, and how the others are refused.

use serde_json::{Value, json};

use super::*;

/// Settings of a Wan model with `more`.
pub(crate) fn read(more: &Value) -> Result<Settings, String> {
    let mut all = json!({
        "family": "wan",
        "diffusion_model": "wan.gguf",
        "vae": "vae.safetensors",
        "text_encoder": "umt5.gguf",
    });
    let fields = all.as_object_mut().unwrap();
    for (key, value) in more.as_object().unwrap() {
        fields.insert(key.clone(), value.clone());
    }
    let read: Settings = serde_json::from_value(all).map_err(|error| error.to_string())?;
    read.validate().map_err(|error| error.to_string())?;
    Ok(read)
}

/// The same, where they are known to be valid.
pub(crate) fn settings(more: &Value) -> Settings {
    read(more).unwrap()
}

#[test]
fn three_files_make_a_model() {
    let read = settings(&json!({}));
    let files: Vec<&str> = read.files().filter_map(|(_, path)| path.to_str()).collect();
    assert_eq!(files, ["wan.gguf", "vae.safetensors", "umt5.gguf"]);
    assert_eq!((read.steps(), read.draft_steps(), read.fps()), (30, 12, 16));
    assert!(read.flash_attention && read.mmap && !read.vae_tiling);
    assert!((read.guidance() - 5.0).abs() < 1e-6);
    assert!((read.high_noise_guidance() - 5.0).abs() < 1e-6);
}

#[test]
fn every_setting_has_a_key() {
    let read = settings(&json!({
        "variant": "flf2v", "high_noise_diffusion_model": "high.gguf", "sampler": "dpm++2m",
        "scheduler": "simple", "steps": 20, "guidance": 3.5, "high_noise_guidance": 4.5,
        "moe_boundary": 0.9, "flow_shift": 3.0, "fps": 24, "max_vram_gib": -1.0,
        "backend": "te=cpu", "threads": 8, "offload_to_cpu": true, "clip_vision": "clip.gguf",
    }));
    assert_eq!((read.steps(), read.fps(), read.threads), (20, 24, Some(8)));
    assert_eq!(read.sampler.map(Sampler::name), Some("dpm++2m"));
    assert_eq!(read.scheduler.map(Scheduler::name), Some("simple"));
    assert!(read.offload_to_cpu && (read.high_noise_guidance() - 4.5).abs() < 1e-6);
}

#[test]
fn what_makes_no_sense_is_said_so() {
    let cases = [
        (json!({"stepz": 3}), "unknown field `stepz`"),
        (json!({"family": "sora"}), "unknown variant `sora`"),
        (json!({"vae": ""}), "vae: its path is empty"),
        (
            json!({"audio_vae": "a"}),
            "audio_vae: not used by wan models",
        ),
        (
            json!({"family": "ltx", "clip_vision": "a"}),
            "clip_vision: not used by ltx models",
        ),
        (
            json!({"family": "ltx", "variant": "i2v"}),
            "variant: not used by ltx",
        ),
        (
            json!({"moe_boundary": 0.5}),
            "moe_boundary: not used by a model without high_noise_diffusion_model",
        ),
        (
            json!({"draft_steps": 4}),
            "draft_steps: not used by a model that makes no drafts",
        ),
        (json!({"steps": 0}), "steps: 0 is not within 1 to 100"),
        (
            json!({"family": "wan-vace", "steps": 8, "draft_steps": 9}),
            "draft_steps: 9 is not within 1 to 8",
        ),
        (
            json!({"guidance": 0.5}),
            "guidance: 0.5 is not within 1 to 30",
        ),
        (
            json!({"max_vram_gib": -2.0}),
            "max_vram_gib: -2 is not within 0.1 to 10000",
        ),
        (
            json!({"loras": [{"path": "a.safetensors"}]}),
            "loras: 'a.safetensors' is not a path below loras_folder",
        ),
        (
            json!({"loras_folder": "l", "loras": [{"path": "../a"}]}),
            "loras: '../a'",
        ),
        (
            json!({"loras_folder": "l", "loras": [{"path": "a", "weight": 11.0}]}),
            "loras.weight: 11",
        ),
        (
            json!({"loras_folder": "l", "loras": [{"path": "a", "high_noise": true}]}),
            "loras.high_noise: not used by",
        ),
        (json!({"taesd": "a"}), "unknown field `taesd`"),
        (json!({"vae": "a\0b"}), "vae: its path"),
        (json!({"backend": "a\0"}), "backend: it contains a NUL"),
        (json!({"fps": 61}), "fps: 61 is not within 1 to 60"),
    ];
    for (more, said) in cases {
        let error = read(&more).unwrap_err();
        assert!(error.contains(said), "{more}: {error}");
    }
}

#[test]
fn not_a_number_is_in_no_range() {
    let mut read = settings(&json!({}));
    read.guidance = Some(f32::NAN);
    let error = read.validate().unwrap_err();
    assert!(
        error.0.starts_with("guidance: NaN is not within"),
        "{error}"
    );
}

#[test]
fn a_draft_takes_no_more_steps_than_its_final() {
    let read = settings(&json!({"family": "wan-vace", "steps": 4}));
    assert_eq!((read.steps(), read.draft_steps()), (4, 4));
}

#[test]
fn a_preset_replaces_what_it_names_and_leaves_the_rest() {
    let read =
        settings(&json!({"family": "wan-vace", "steps": 20, "draft_steps": 9, "guidance": 6.0}));
    let with = |preset: Value| read.with_preset(preset.as_object().unwrap());
    assert_eq!(with(json!({})).unwrap(), read);
    let quick = with(json!({"steps": 4, "guidance": 1.0})).unwrap();
    assert_eq!((quick.steps(), quick.draft_steps()), (4, 4));
    assert!((quick.guidance() - 1.0).abs() < 1e-6);
    assert_eq!((quick.family, &quick.vae), (read.family, &read.vae));
    assert!(with(json!({"seed": 4})).is_err());
}
