//! The part of a shared device that an engine needs: the keys `device` and `memory_megabytes` of an engine.

use kinora_engine::Output;
use toml::{Table, Value};

/// The part of a device that an engine needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lodging {
    /// The name of the device.
    pub(crate) device: String,
    /// What its processes together need while they are loaded.
    pub(crate) memory_megabytes: u32,
}

impl Lodging {
    /// Takes the keys of an engine's device out of its table.
    pub(super) fn read(table: &mut Table) -> Result<Option<Self>, String> {
        match (table.remove("device"), table.remove("memory_megabytes")) {
            (None, None) => Ok(None),
            (Some(Value::String(device)), Some(Value::Integer(megabytes))) => {
                let memory_megabytes = u32::try_from(megabytes).ok().filter(|need| *need > 0);
                let memory_megabytes =
                    memory_megabytes.ok_or("memory_megabytes must be at least 1")?;
                Ok(Some(Self {
                    device,
                    memory_megabytes,
                }))
            }
            (Some(_), None) => Err(
                "it shares a device, so it needs `memory_megabytes`, the memory that it takes there"
                    .to_owned(),
            ),
            (None, Some(_)) => Err(
                "`memory_megabytes` is the memory on a shared device; name it with `device`, or set \
                 host.memory_megabytes to bound its processes"
                    .to_owned(),
            ),
            _ => Err("`device` must be a string and `memory_megabytes` an integer".to_owned()),
        }
    }

    /// What is wrong with an engine of this output that shares a device.
    pub(super) fn wrong(output: &Output<'_>) -> Option<&'static str> {
        match output {
            Output::Films(films) if films.can_unload() => None,
            Output::Films(_) => {
                Some("its servers cannot be told to leave a device, so it has no `device`")
            }
            Output::Frames(frames) => {
                let program = frames.program();
                let is_on_many = program.is_some_and(|program| program.devices.len() > 1);
                is_on_many.then_some(
                    "it has several `devices` of its own, and can share only one; define an engine for each",
                )
            }
        }
    }
}
