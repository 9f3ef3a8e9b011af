//! An engine's process as the service starts it, for tests: it speaks the engine protocol, confines
//! itself as it is told, and opens the engine of the settings that it gets.

use std::io;

use kinora_engine::{EngineError, FrameKind};
use kinora_engine_sdcpp::SdcppKind;
use serde::Deserialize;

fn main() -> io::Result<()> {
    kinora_engine_host::serve(|request| {
        let kind = SdcppKind::deserialize(request.settings);
        let kind = kind.map_err(|error| EngineError::Failed(error.to_string()))?;
        kind.open(&request.name)
    })
}
