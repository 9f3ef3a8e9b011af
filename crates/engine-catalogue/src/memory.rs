//! What an engine needs of a device by arithmetic (`[engines.memory]`), and how much less with other settings of its
//! command. It knows the settings of the Python package's diffusers engine.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Table;

/// Share of a device's memory that the arithmetic may fill. Activations, the driver and other
/// programs use the rest.
pub(crate) const FILLED_MAX: f64 = 0.9;

/// The figures, in units of 10^9 bytes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryNeeds {
    /// Memory of the device for which the settings were chosen.
    pub device_gigabytes: f64,
    /// Weights of each part on the device, in their types there.
    pub parts_gigabytes: BTreeMap<String, f64>,
    /// The largest single layer.
    pub layer_gigabytes: f64,
    /// What a step of the largest clip needs beside the weights, where that is known.
    #[serde(default)]
    pub step_gigabytes: f64,
    /// What decoding the largest clip needs: its peak, or its largest tensor where only that is known.
    pub decode_gigabytes: f64,
    /// The same by tiles.
    pub tiled_decode_gigabytes: f64,
}

/// The settings of an engine that decide how much memory it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightPlacement {
    /// Which weights wait in main memory.
    pub offload: OffloadMode,
    /// Whether a clip is decoded by tiles.
    pub tiles: bool,
    /// Whether the engine can offload layers.
    pub has_layers: bool,
}

/// Which weights wait in main memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffloadMode {
    /// None.
    None,
    /// All parts but the one at work.
    Model,
    /// All layers but the one at work.
    Layers,
}

impl MemoryNeeds {
    /// The first thing that is wrong with the figures.
    pub fn problem(&self) -> Option<&'static str> {
        let parts = self.parts_gigabytes.values().copied();
        let others = [
            self.device_gigabytes,
            self.layer_gigabytes,
            self.decode_gigabytes,
            self.tiled_decode_gigabytes,
        ];
        let is_good = !self.parts_gigabytes.is_empty()
            && self.step_gigabytes >= 0.0
            && parts
                .chain(others)
                .all(|size| size.is_finite() && size > 0.0);
        (!is_good).then_some("memory: sizes must be above 0, and parts_gigabytes must name a part")
    }

    /// Minimum memory of a run, in units of 10^9 bytes: the weights on the device, and what decoding
    /// needs.
    pub fn required_gigabytes(&self, placement: WeightPlacement) -> f64 {
        let decode = if placement.tiles {
            self.tiled_decode_gigabytes
        } else {
            self.decode_gigabytes
        };
        // The peak of a run. Without offload all weights stay on the device; by model one part at a
        // time is there; by layers one layer. While a clip is decoded, what that needs is
        // there as well, and by model the decoder (`vae`) with it. For example, with parts of 10.0, 11.4
        // and 2.8 GB, a layer of 2.1 GB and 9.0 GB to decode: 33.2 GB, or max(11.4, 2.8 + 9.0) =
        // 11.8 GB, or 11.1 GB. With tiles of 1.3 GB these are 25.5, 11.4 and 3.4 GB.
        // A step counts like decoding, where its figure is known: both are never there together.
        let work = decode.max(self.step_gigabytes);
        let parts = &self.parts_gigabytes;
        match placement.offload {
            OffloadMode::None => self.weights_gigabytes() + work,
            OffloadMode::Model => {
                let decoder = parts.get("vae").copied().unwrap_or(0.0) + decode;
                let parts = parts.iter().map(|(name, size)| {
                    let is_transformer = name.starts_with("transformer");
                    size + if is_transformer {
                        self.step_gigabytes
                    } else {
                        0.0
                    }
                });
                parts.fold(decoder, f64::max)
            }
            OffloadMode::Layers => self.layer_gigabytes + work,
        }
    }

    /// All weights. Those of an engine with offload wait in main memory.
    pub fn weights_gigabytes(&self) -> f64 {
        self.parts_gigabytes.values().sum()
    }

    /// Whether a device with so much memory is enough.
    pub fn fits(&self, placement: WeightPlacement, device_gigabytes: f64) -> bool {
        self.required_gigabytes(placement) <= FILLED_MAX * device_gigabytes
    }

    /// The quickest settings for a device with so much memory, if any fit.
    pub fn proposal(
        &self,
        current: WeightPlacement,
        device_gigabytes: f64,
    ) -> Option<WeightPlacement> {
        let mut placements = current.alternatives();
        placements.find(|one| self.fits(*one, device_gigabytes))
    }
}

impl WeightPlacement {
    /// Reads the placement from an engine's table.
    pub fn from_engine(table: &Table) -> Self {
        let settings = table.get("settings");
        let [offload, pipeline] = ["offload", "pipeline"].map(|key| settings?.get(key)?.as_str());
        let layers = settings.and_then(|settings| {
            settings
                .get("offload_options")?
                .get("offload_type")?
                .as_str()
        });
        Self {
            offload: match (offload, layers) {
                (Some("sequential"), _) | (Some("group"), Some("leaf_level")) => {
                    OffloadMode::Layers
                }
                // Groups of blocks need less than the parts, by their number.
                (Some("model" | "group"), _) => OffloadMode::Model,
                _ => OffloadMode::None,
            },
            tiles: settings
                .and_then(|settings| settings.get("vae_tiling")?.as_bool())
                .unwrap_or(false),
            has_layers: !pipeline.unwrap_or_default().ends_with("ModularPipeline"),
        }
    }

    /// The placements of the same engine, the quickest first.
    pub fn alternatives(self) -> impl Iterator<Item = Self> {
        // Each further offload moves more weights over the bus in every run. Tiles cost little time, so they are tried
        // before the next offload.
        let offloads = [OffloadMode::None, OffloadMode::Model, OffloadMode::Layers];
        let offloads = offloads
            .into_iter()
            .filter(move |offload| self.has_layers || *offload != OffloadMode::Layers);
        offloads.flat_map(move |offload| {
            [self.tiles, true].map(|tiles| Self {
                offload,
                tiles,
                ..self
            })
        })
    }

    /// The settings, as a configuration has them.
    pub fn settings(self) -> String {
        let offload = match self.offload {
            OffloadMode::None => "offload = \"none\"",
            OffloadMode::Model => "offload = \"model\"",
            OffloadMode::Layers => {
                "offload = \"group\", offload_options = { offload_type = \"leaf_level\" }"
            }
        };
        format!("{offload}, vae_tiling = {}", self.tiles)
    }
}

#[cfg(test)]
mod tests;
