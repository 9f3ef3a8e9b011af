//! The figures of the ready-made configurations follow from their sizes and settings.

use std::path::Path;

use kinora_engine_catalogue::{OffloadMode, WeightPlacement};

use crate::config::{Config, EngineSettings};

/// What decides the largest tensor of a decoder, by the sources of diffusers 0.42.1.
struct Decoder {
    /// Values per pixel of its widest layer, which it has `scale` times smaller in both directions.
    channels: f64,
    scale: f64,
    /// Frames that it decodes at a time. `None`: all.
    frames: Option<f64>,
    bytes: f64,
    /// Sides of a tile, if it can work by tiles.
    tile: Option<(f64, f64)>,
}

/// Peaks of decoding 5 s in 32-bit floats with Wan's decoders, as a whole and by tiles: counted by running those of
/// diffusers 0.42.1 on tensors without data. They hold many tensors at a time, so the largest one says too little.
fn wan_decoding(name: &str, pixels: f64) -> (f64, f64) {
    match name {
        "wan2.2-ti2v-5b" => (20.7, 6.1),
        _ if pixels > 832.0 * 480.0 => (18.8, 4.2),
        _ => (8.2, 1.8),
    }
}

/// The other configurations, with their decoders. `autoencoder_kl_ltx2.py` has 128 channels at a quarter of the size,
/// `autoencoder_kl_hunyuanvideo15.py` 128 and `autoencoder_kl_cogvideox.py` 256 at the full size. MiniMax-H3 turns the
/// clip into floats as a whole.
fn decoder(name: &str) -> Decoder {
    let whole = |channels, scale, bytes, tile| Decoder {
        channels,
        scale,
        frames: None,
        bytes,
        tile,
    };
    match name {
        name if name.starts_with("ltx") => whole(128.0, 4.0, 2.0, Some((512.0, 512.0))),
        "hunyuanvideo-1.5" => whole(128.0, 1.0, 2.0, Some((256.0, 256.0))),
        "cogvideox-5b" => Decoder {
            frames: Some(8.0),
            ..whole(256.0, 1.0, 2.0, Some((360.0, 240.0)))
        },
        "minimax-h3" => whole(3.0, 1.0, 4.0, None),
        other => panic!("no decoder is known of {other}"),
    }
}

/// What decoding the largest clip needs, at once and by tiles: a counted peak, or the largest tensor, which is of
/// features, or the clip itself.
fn decoding(engine: &EngineSettings, config: &Config) -> (f64, f64) {
    let card = config.models[0]
        .card(kinora_contract::Features::ALL)
        .unwrap();
    let can = &card.capabilities;
    let area = |size: &kinora_contract::Size| f64::from(size.width) * f64::from(size.height);
    let pixels = can.sizes.iter().map(area).fold(0.0, f64::max);
    if engine.name.starts_with("wan") {
        return wan_decoding(&engine.name, pixels);
    }
    let decoder = decoder(&engine.name);
    let promises = match engine.settings.output() {
        kinora_engine::EngineOutput::Frames(frames) => frames.program().unwrap().promises,
        kinora_engine::EngineOutput::Films(_) => unreachable!(),
    };
    let frames = f64::from(promises.grid.frames(card_seconds(can) * promises.fps));
    let clip = 3.0 * frames * pixels * decoder.bytes;
    let features = |pixels: f64| {
        let at_a_time = decoder.frames.unwrap_or(frames);
        decoder.channels * at_a_time * pixels / decoder.scale.powi(2) * decoder.bytes
    };
    let tile = decoder
        .tile
        .map_or(pixels, |(width, height)| width * height);
    let gigabytes = |bytes: f64| bytes / 1e9;
    (
        gigabytes(features(pixels).max(clip)),
        gigabytes(features(tile.min(pixels)).max(clip)),
    )
}

/// The longest clip.
fn card_seconds(can: &kinora_contract::Capabilities) -> u32 {
    let listed = can
        .seconds
        .as_ref()
        .and_then(|all| all.iter().max().copied());
    listed.unwrap_or(can.seconds_max)
}

/// All of them, with their texts.
fn ready() -> Vec<(String, Config)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/diffusers");
    let files = std::fs::read_dir(folder).unwrap();
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        (text, Config::read(Some(&path), &[]).unwrap())
    };
    files.map(|file| read(file.unwrap().path())).collect()
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 0.051
}

#[test]
fn every_ready_configuration_fits_the_device_that_it_names() {
    for (text, config) in ready() {
        let engine = &config.engines[0];
        let name = &engine.name;
        let Some(memory) = &engine.memory else {
            assert_eq!(name, "ltx-2.5", "{name} has no figures");
            assert!(text.contains("# Memory: unknown"), "{name}");
            continue;
        };
        let placement = WeightPlacement::from_engine(&engine.definition.table);
        let (needs, device) = (
            memory.required_gigabytes(placement),
            memory.device_gigabytes,
        );
        assert!(
            memory.fits(placement, device),
            "{name}: {needs} of {device}"
        );
        let said = format!("# Memory: {needs:.1} GB by arithmetic, for a GPU with {device} GB.");
        assert!(text.contains(&said), "{name} does not say: {said}");
        let (whole, tiled) = decoding(engine, &config);
        assert!(near(memory.decode_gigabytes, whole), "{name}: {whole}");
        assert!(
            near(memory.tiled_decode_gigabytes, tiled),
            "{name}: {tiled}"
        );
    }
}

#[test]
fn the_page_has_the_figures_of_all_ready_configurations() {
    let page = include_str!("../../../../../docs/models.md");
    for (_, config) in ready() {
        let engine = &config.engines[0];
        let Some(memory) = &engine.memory else {
            continue;
        };
        let placement = WeightPlacement::from_engine(&engine.definition.table);
        let needs = |offload| {
            let possible = offload != OffloadMode::Layers || placement.has_layers;
            let needs = memory.required_gigabytes(WeightPlacement {
                offload,
                ..placement
            });
            if possible {
                format!("{needs:.1}")
            } else {
                "–".to_owned()
            }
        };
        let [none, model, layers] =
            [OffloadMode::None, OffloadMode::Model, OffloadMode::Layers].map(needs);
        let chosen = match placement.offload {
            OffloadMode::None => "none",
            OffloadMode::Model => "model",
            OffloadMode::Layers => "group",
        };
        let (name, device) = (&engine.name, memory.device_gigabytes);
        let row = format!("| {name} | {none} | {model} | {layers} | {chosen}, {device} GB |");
        assert!(page.contains(&row), "missing: {row}");
    }
}
