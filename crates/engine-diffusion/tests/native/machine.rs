//! How the library is told to use the machine: what that must not change, and what it must.

use kinora_contract::{FrameSize, Size, VideoInputs, VideoSpec};
use kinora_engine::JobMaterials;
use kinora_engine_diffusion::{Family, Settings, Variant};

use crate::support::{SIZE, film, open, settings, spec, watched};

/// More than one tile of the VAE, which are 256 pixels wide.
const TILED: Size = Size::new(288, 160);

/// One frame and one step of a model of words; `None` where the folder has another.
fn least() -> Option<Settings> {
    let settings = settings().filter(|settings| {
        settings.family == Family::Wan
            && settings
                .variant
                .is_none_or(|variant| variant == Variant::Ti2v)
    })?;
    Some(Settings {
        fps: Some(1),
        steps: Some(1),
        ..settings
    })
}

#[test]
fn where_weights_lie_changes_no_frame() {
    let Some(settings) = least() else { return };
    let made = |settings: Settings| {
        let engine = open(settings);
        film(
            &engine,
            &spec(&engine, VideoInputs::Text),
            &JobMaterials::default(),
        )
    };
    let plain = made(settings.clone());
    let offloaded = Settings {
        offload_to_cpu: true,
        mmap: false,
        ..settings
    };
    assert_eq!(plain, made(offloaded));
}

#[test]
fn tiles_and_full_previews_have_the_size_of_the_clip() {
    let Some(settings) = least() else { return };
    let taesd = settings.vae.with_file_name("taesd.safetensors");
    if !taesd.exists() {
        println!("no {}: nothing was tested", taesd.display());
        return;
    }
    let settings = Settings {
        taesd: Some(taesd),
        vae_tiling: true,
        ..settings
    };
    let engine = open(settings);
    for size in [SIZE, TILED] {
        let spec = VideoSpec {
            frame: FrameSize::Fixed(size),
            ..spec(&engine, VideoInputs::Text)
        };
        let (_, shown) = watched(&engine, &spec, &JobMaterials::default());
        let sizes: Vec<Size> = shown.iter().map(|(_, picture)| picture.size).collect();
        println!("previews of {sizes:?}");
        let covers = |shown: &Size| shown.width >= size.width && shown.height >= size.height;
        assert!(sizes.len() == 1 && sizes.iter().all(covers), "{sizes:?}");
    }
}
