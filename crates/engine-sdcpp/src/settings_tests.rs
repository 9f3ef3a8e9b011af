//! Which settings are accepted, and how the others are refused.

use serde_json::{Value, json};

use super::*;

fn settings(more: &Value) -> Result<Settings, String> {
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

#[test]
fn three_files_make_a_model() {
    let read = settings(&json!({})).unwrap();
    let files = ("wan.gguf", "vae.safetensors", "umt5.gguf");
    assert_eq!(
        read,
        Settings::new(Family::Wan, files.0, files.1, files.2),
        "what is left out is what `new` leaves out"
    );
    assert_eq!((read.steps(), read.draft_steps(), read.fps()), (30, 12, 16));
    assert!(read.flash_attention && read.mmap && !read.vae_tiling);
    assert!((read.guidance() - 5.0).abs() < 1e-6);
    assert!((read.high_noise_guidance() - 5.0).abs() < 1e-6);
}

#[test]
fn what_is_written_is_read_back() {
    let read = settings(&json!({
        "variant": "flf2v", "high_noise_diffusion_model": "high.gguf", "sampler": "dpm++2m",
        "scheduler": "simple", "steps": 20, "guidance": 3.5, "high_noise_guidance": 4.5,
        "moe_boundary": 0.9, "flow_shift": 3.0, "fps": 24, "max_vram_gib": -1.0,
        "backend": "te=cpu", "threads": 8, "offload_to_cpu": true, "clip_vision": "clip.gguf",
    }))
    .unwrap();
    let text = serde_json::to_string(&read).unwrap();
    assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), read);
}

#[test]
fn every_name_of_a_sampler_and_scheduler_is_taken() {
    for sampler in Sampler::ALL {
        assert_eq!(
            settings(&json!({ "sampler": sampler.name() }))
                .unwrap()
                .sampler,
            Some(*sampler)
        );
    }
    for scheduler in Scheduler::ALL {
        let read = settings(&json!({ "scheduler": scheduler.name() })).unwrap();
        assert_eq!(read.scheduler, Some(*scheduler));
    }
}

#[test]
fn what_makes_no_sense_is_said_so() {
    let cases = [
        (json!({"stepz": 3}), "unknown field `stepz`"),
        (json!({"family": "sora"}), "unknown variant `sora`"),
        (json!({"vae": ""}), "vae: not a usable path"),
        (json!({"vae": "a\u{0}b"}), "vae: not a usable path"),
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
        (json!({"fps": 61}), "fps: 61 is not within 1 to 60"),
        (json!({"backend": "a\u{0}"}), "backend: has a NUL byte"),
    ];
    for (more, said) in cases {
        let error = settings(&more).unwrap_err();
        assert!(error.contains(said), "{more}: {error}");
    }
}

#[test]
fn not_a_number_is_in_no_range() {
    let mut read = settings(&json!({})).unwrap();
    read.guidance = Some(f32::NAN);
    assert!(matches!(
        read.validate(),
        Err(SettingsError::Range {
            key: "guidance",
            ..
        })
    ));
}

#[test]
fn a_draft_takes_no_more_steps_than_its_final() {
    let read = settings(&json!({"family": "wan-vace", "steps": 4})).unwrap();
    assert_eq!((read.steps(), read.draft_steps()), (4, 4));
}

#[test]
fn a_preset_replaces_what_it_names_and_leaves_the_rest() {
    let read =
        settings(&json!({"family": "wan-vace", "steps": 20, "draft_steps": 9, "guidance": 6.0}))
            .unwrap();
    assert_eq!(read.with_preset(&Preset::default()), read);
    let preset: Preset = serde_json::from_value(json!({"steps": 4, "guidance": 1.0})).unwrap();
    let quick = read.with_preset(&preset);
    quick.validate().unwrap();
    assert_eq!((quick.steps(), quick.draft_steps()), (4, 4));
    assert!((quick.guidance() - 1.0).abs() < 1e-6);
    assert_eq!((quick.family, &quick.vae), (read.family, &read.vae));
    assert!(serde_json::from_value::<Preset>(json!({"seed": 4})).is_err());
}
