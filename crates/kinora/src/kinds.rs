//! The registry of engine kinds, one line each; no other code depends on which kinds exist. An
//! unknown kind is refused with the list of all.

use std::fmt;
use std::sync::Arc;

use kinora_engine::EngineKind;
use kinora_engine_host::ProcessKind;
use kinora_engine_sdcpp::SdcppKind;
use kinora_engine_storyboard::StoryboardKind;
use kinora_engine_upstreams::comfyui::ComfyKind;
use kinora_engine_upstreams::dialects::RemoteKind;
use serde::de::DeserializeOwned;
use toml::Table;
use toml::de::Error;

/// Every kind, by its `kind` in `[[engines]]`.
const KINDS: &[RegisteredKind] = &[
    RegisteredKind::new::<StoryboardKind>("storyboard"),
    RegisteredKind::new::<RemoteKind>("remote"),
    RegisteredKind::new::<SdcppKind>("sdcpp"),
    RegisteredKind::new::<ProcessKind>("process"),
    RegisteredKind::new::<ComfyKind>("comfyui"),
];

/// One kind of engine.
#[derive(Clone, Copy)]
pub(crate) struct RegisteredKind {
    pub(crate) name: &'static str,
    read: fn(Table) -> Result<Arc<dyn EngineKind>, Error>,
}

impl RegisteredKind {
    const fn new<K: EngineKind + DeserializeOwned + 'static>(name: &'static str) -> Self {
        Self {
            name,
            read: read::<K>,
        }
    }

    /// Reads the settings of an engine of this kind, without those common to all engines.
    pub(crate) fn read(self, settings: Table) -> Result<Arc<dyn EngineKind>, Error> {
        (self.read)(settings)
    }
}

fn read<K: EngineKind + DeserializeOwned + 'static>(
    settings: Table,
) -> Result<Arc<dyn EngineKind>, Error> {
    // serde checks types and unknown keys; what it cannot express, `EngineKind::check` does later,
    // with the engine's name at hand.
    let settings: K = settings.try_into()?;
    Ok(Arc::new(settings))
}

/// The kind with this name; the error lists all names.
pub(crate) fn find(name: &str) -> Result<RegisteredKind, String> {
    let found = KINDS.iter().find(|kind| kind.name == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        names.join(", ")
    })
}

impl fmt::Debug for RegisteredKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
