//! The arithmetic by examples.

use super::*;

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 0.051
}

fn memory() -> MemoryNeeds {
    toml::from_str(
        "device_gigabytes = 24\nparts_gigabytes = { transformer = 10.0, text_encoder = 11.4, vae = 2.8 }\n\
         layer_gigabytes = 2.1\ndecode_gigabytes = 9.0\ntiled_decode_gigabytes = 1.3",
    )
    .unwrap()
}

fn placement(settings: &str) -> WeightPlacement {
    WeightPlacement::from_engine(&toml::from_str(&format!("settings = {{ {settings} }}")).unwrap())
}

#[test]
fn the_need_follows_from_the_settings() {
    let needs = |settings: &str| memory().required_gigabytes(placement(settings));
    assert!(near(needs(""), 33.2));
    assert!(near(needs("vae_tiling = true"), 25.5));
    assert!(near(needs("offload = \"model\""), 11.8));
    assert!(near(needs("offload = \"model\", vae_tiling = true"), 11.4));
    assert!(near(
        needs("offload = \"sequential\", vae_tiling = true"),
        3.4
    ));
    let layers = "offload = \"group\", offload_options = { offload_type = \"leaf_level\" }";
    assert!(near(needs(layers), 11.1));
}

#[test]
fn the_first_settings_that_fit_are_proposed() {
    let proposed = |settings: &str, device| {
        let proposal = memory().proposal(placement(settings), device);
        proposal.map(WeightPlacement::settings)
    };
    let none = "offload = \"none\", vae_tiling = ";
    assert_eq!(proposed("", 80.0), Some(format!("{none}false")));
    assert_eq!(proposed("", 32.0), Some(format!("{none}true")));
    assert_eq!(
        proposed("", 25.8).as_deref(),
        Some("offload = \"model\", vae_tiling = false")
    );
    assert_eq!(
        proposed("", 8.0).as_deref(),
        Some(
            "offload = \"group\", offload_options = { offload_type = \"leaf_level\" }, vae_tiling = true"
        )
    );
    assert_eq!(
        proposed("pipeline = \"MiniMaxH3ModularPipeline\"", 8.0),
        None
    );
    assert_eq!(proposed("", 3.0), None);
}
