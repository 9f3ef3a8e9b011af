//! How this machine and a model on it look to an operator.

use kinora_engine_catalogue::{Choice, EngineChoice, GpuInfo, Machine, OffloadMode};

use crate::output::printable;

/// The GPUs and the memory of a machine.
pub(super) fn machine_text(machine: &Machine) -> String {
    let gpus = machine.gpus.iter().map(|gpu| {
        let free = gpu.free_bytes.map(|bytes| bytes as f64 / 1e9);
        let free = free.map_or_else(String::new, |free| format!(" ({free:.1} free)"));
        let memory = match gpu.memory_bytes {
            0 => String::new(),
            _ => format!(", {:.1} GB{free}", gpu.gigabytes()),
        };
        format!("{}{memory}", gpu_text(gpu))
    });
    let mut parts: Vec<String> = gpus.collect();
    if parts.is_empty() {
        parts.push("no GPU that engines can use".to_owned());
    }
    if machine.memory_bytes > 0 {
        let gigabytes = machine.memory_bytes as f64 / 1e9;
        parts.push(format!("{gigabytes:.0} GB of main memory"));
    }
    parts.join("; ")
}

/// What runs a model: `diffusers`, or `sdcpp Q8_0`.
pub(super) fn program_text(choice: &Choice) -> String {
    let variant = choice.variant.map(|variant| format!(" {}", variant.label));
    format!("{}{}", engine_text(choice), variant.unwrap_or_default())
}

/// How a model will run: `diffusers, model offload, 11.4 GB on GPU 0 (NVIDIA GeForce RTX 4090)`.
pub(super) fn needs_text(choice: &Choice) -> String {
    let mut parts = vec![program_text(choice)];
    match choice.placement.offload {
        OffloadMode::None => {}
        OffloadMode::Model => parts.push("model offload".to_owned()),
        OffloadMode::Layers => parts.push("offload by layers".to_owned()),
    }
    let device = choice.device.as_ref();
    let device = device.map_or_else(|| "the processor".to_owned(), gpu_text);
    parts.push(format!("{:.1} GB on {device}", choice.needs_gigabytes));
    parts.join(", ")
}

/// The engine, as --engine has it.
pub(super) fn engine_text(choice: &Choice) -> &'static str {
    match choice.recipe.engine() {
        EngineChoice::Diffusers => "diffusers",
        EngineChoice::Sdcpp => "sdcpp",
    }
}

fn gpu_text(gpu: &GpuInfo) -> String {
    format!("GPU {} ({})", printable(&gpu.index), printable(&gpu.name))
}
