//! Which recipe of a model fits a machine, and with which settings. Pure: the machine is an argument.

use std::path::PathBuf;

use crate::entry::{
    CatalogueEntry, ClipMemory, DiffusersRecipe, EngineChoice, ModelRecipe, SdcppVariant,
    engine_table,
};
use crate::environment::{EnvironmentKind, SdServerBuild};
use crate::machine::{GpuApi, GpuInfo, Machine, gigabytes, select_gpus};
use crate::memory::{FILLED_MAX, MemoryNeeds, OffloadMode, WeightPlacement};

/// The earliest driver for CUDA 13, with which torch is built (NVIDIA, "CUDA Compatibility", table 1).
const CUDA_13_DRIVER: f64 = 580.0;
/// The earliest driver for CUDA 12, with which `sd-server` is built (the same table).
const CUDA_12_DRIVER: f64 = 525.0;
/// The earliest compute capability of both: Turing's. CUDA 13 builds for no earlier one, and neither do the authors of the CUDA 12
/// build of `sd-server`.
const COMPUTE_MIN: f64 = 7.5;

/// What the operator asks for; all are optional.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// A GPU by its number or the beginning of its UUID, or `cpu`.
    pub device: Option<String>,
    /// An engine.
    pub engine: Option<EngineChoice>,
    /// A quantisation, by its label.
    pub variant: Option<String>,
    /// The operator's own build of `sd-server`.
    pub sd_server: Option<PathBuf>,
}

/// How a model will run on a machine.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The model.
    pub entry: &'static CatalogueEntry,
    /// The chosen way to run it.
    pub recipe: &'static ModelRecipe,
    /// The GPU; `None` for the processor.
    pub device: Option<GpuInfo>,
    /// Whether the machine has other GPUs, so that the card must name this one.
    pub is_one_of_many: bool,
    /// The quantisation, if the recipe has some.
    pub variant: Option<&'static SdcppVariant>,
    /// The models' resolutions, where the device is too small for all those of the card.
    pub resolutions: &'static [String],
    /// Where the weights wait, and whether a clip is decoded by tiles.
    pub placement: WeightPlacement,
    /// Memory that a run needs on the device by arithmetic, in units of 10^9 bytes.
    pub needs_gigabytes: f64,
    /// Size of the files, approximately.
    pub download_gigabytes: f64,
    /// The programs that it needs.
    pub environment: EnvironmentKind,
    /// The reasons, in a sentence.
    pub why: String,
}

/// The first recipe of `entry` that fits `machine`: first without moving layers over the bus in each step, which takes
/// several times as long, and then with it. Of several GPUs, the one with the most memory.
///
/// # Errors
/// Why no recipe fits: a sentence each, with what would help.
pub fn choose(
    entry: &'static CatalogueEntry,
    machine: &Machine,
    wishes: &Wishes,
) -> Result<Choice, Vec<String>> {
    let ways = ways(entry, wishes)?;
    let devices = devices(machine, wishes)?;
    let mut reasons: Vec<String> = Vec::new();
    for may_move_layers in [false, true] {
        reasons.clear();
        for (recipe, ways) in &ways {
            // The reason is that of the largest GPU; of the last quantisation and the last clips, which need the least.
            let mut reason = None;
            for way in ways {
                reason = None;
                for device in &devices {
                    let trial = Trial {
                        entry,
                        recipe,
                        way: *way,
                        device: *device,
                        machine,
                        wishes,
                        may_move_layers,
                    };
                    match trial.choice() {
                        Ok(choice) => return Ok(choice),
                        Err(why) => reason = reason.or(Some(why)),
                    }
                }
            }
            reasons.extend(reason);
        }
    }
    reasons.extend(machine.problems.iter().cloned());
    Err(reasons)
}

/// One way to run a recipe.
#[derive(Clone, Copy)]
enum Way {
    Diffusers(&'static DiffusersRecipe),
    Sdcpp(&'static ClipMemory, &'static SdcppVariant),
}

/// What the operator leaves of the recipes.
fn ways(
    entry: &'static CatalogueEntry,
    wishes: &Wishes,
) -> Result<Vec<(&'static ModelRecipe, Vec<Way>)>, Vec<String>> {
    let wanted = |recipe: &&ModelRecipe| wishes.engine.is_none_or(|one| one == recipe.engine());
    let ways = entry.recipes.iter().filter(wanted).map(|recipe| {
        let ways = match recipe {
            // An operator who names a build or a quantisation of the other engine wants that one.
            ModelRecipe::Diffusers(_) if wishes.variant.is_some() => Vec::new(),
            ModelRecipe::Diffusers(_) if wishes.sd_server.is_some() => Vec::new(),
            ModelRecipe::Diffusers(recipe) => vec![Way::Diffusers(recipe)],
            ModelRecipe::Sdcpp(recipe) => {
                let label = wishes.variant.as_deref();
                let named = |variant: &&SdcppVariant| {
                    label.is_none_or(|label| label.eq_ignore_ascii_case(&variant.label))
                };
                let clips = recipe.clips.iter().flat_map(|clip| {
                    let variants = recipe.variants.iter().filter(named);
                    variants.map(move |variant| Way::Sdcpp(clip, variant))
                });
                clips.collect()
            }
        };
        (recipe, ways)
    });
    let ways: Vec<_> = ways.collect();
    if ways.iter().any(|(_, ways)| !ways.is_empty()) {
        return Ok(ways);
    }
    Err(vec![format!(
        "The catalogue cannot run {} as asked; it knows: {}.",
        entry.name,
        known_ways(entry)
    )])
}

/// The engines and quantisations of a model, for an operator who named another.
fn known_ways(entry: &CatalogueEntry) -> String {
    let names = entry.recipes.iter().map(|recipe| match recipe {
        ModelRecipe::Diffusers(_) => "--engine diffusers".to_owned(),
        ModelRecipe::Sdcpp(recipe) => {
            let labels = recipe.variants.iter().map(|variant| variant.label.as_str());
            let labels: Vec<_> = labels.collect();
            format!("--engine sdcpp with --variant {}", labels.join(" or "))
        }
    });
    names.collect::<Vec<_>>().join("; ")
}

/// The devices to try, the largest first; `None` is the processor.
fn devices<'m>(
    machine: &'m Machine,
    wishes: &Wishes,
) -> Result<Vec<Option<&'m GpuInfo>>, Vec<String>> {
    if let Some(name) = &wishes.device {
        if name == "cpu" {
            return Ok(vec![None]);
        }
        let found = select_gpus(&machine.gpus, std::slice::from_ref(name));
        let found = found.map_err(|name| {
            let known = machine.gpus.iter().map(title).chain(["cpu".to_owned()]);
            let known: Vec<_> = known.collect();
            vec![format!(
                "This machine has no device '{name}'; it has {}.",
                known.join(", ")
            )]
        })?;
        return Ok(found.into_iter().map(Some).collect());
    }
    let mut gpus: Vec<&GpuInfo> = machine.gpus.iter().collect();
    gpus.sort_by_key(|gpu| std::cmp::Reverse(gpu.memory_bytes));
    if gpus.is_empty() {
        let none = "No GPU that models can use was found. Kinora asks nvidia-smi, and the kernel for GPUs of AMD and Intel. \
                    To try a model on the processor, which takes hours for a clip, add --device cpu.";
        let mut reasons = machine.problems.clone();
        reasons.push(none.to_owned());
        return Err(reasons);
    }
    Ok(gpus.into_iter().map(Some).collect())
}

/// One way on one device.
struct Trial<'m> {
    entry: &'static CatalogueEntry,
    recipe: &'static ModelRecipe,
    way: Way,
    device: Option<&'m GpuInfo>,
    machine: &'m Machine,
    wishes: &'m Wishes,
    may_move_layers: bool,
}

impl Trial<'_> {
    /// The choice, or the reason against it.
    fn choice(&self) -> Result<Choice, String> {
        match self.way {
            Way::Diffusers(recipe) => self.by_diffusers(recipe),
            Way::Sdcpp(clip, variant) => self.by_sdcpp(clip, variant),
        }
    }

    fn by_diffusers(&self, recipe: &'static DiffusersRecipe) -> Result<Choice, String> {
        let unfit = |why: String| format!("By diffusers: {why}.");
        let gpu = self.device.filter(|gpu| gpu.api != GpuApi::Vulkan);
        let gpu = gpu.ok_or_else(|| unfit("it needs a GPU of NVIDIA".to_owned()))?;
        check_cuda_13(gpu).map_err(unfit)?;
        let card = self.recipe.card();
        let engine = engine_table(&card).cloned().unwrap_or_default();
        let needs = engine.get("memory").cloned();
        let needs: Option<MemoryNeeds> = needs.and_then(|needs| needs.try_into().ok());
        let mut needs =
            needs.ok_or_else(|| unfit("its card has no figures of memory".to_owned()))?;
        needs.step_gigabytes = recipe.step_gigabytes;
        let current = WeightPlacement::from_engine(&engine);
        let placement = self.place(&needs, current).map_err(unfit)?;
        let (needs, download) = (needs.required_gigabytes(placement), recipe.gigabytes);
        Ok(self.chosen(placement, needs, download, EnvironmentKind::Diffusers))
    }

    fn by_sdcpp(
        &self,
        clip: &'static ClipMemory,
        variant: &'static SdcppVariant,
    ) -> Result<Choice, String> {
        let unfit = |why: String| format!("By stable-diffusion.cpp with {}: {why}.", variant.label);
        let needs = variant.memory(clip);
        let build = match self.device {
            None => SdServerBuild::Cpu,
            // NVIDIA's drivers have Vulkan too, for GPUs and drivers that the other build does not take.
            Some(gpu) if can_run_cuda_12(gpu) => SdServerBuild::Cuda12,
            Some(_) => SdServerBuild::Vulkan,
        };
        let current = WeightPlacement {
            offload: OffloadMode::None,
            // Vulkan's drivers limit each buffer to 2 or 4 GiB, and decoding at once needs one that is larger. On the processor
            // they save memory.
            tiles: build != SdServerBuild::Cuda12,
            has_layers: false,
        };
        let placement = self.place(&needs, current).map_err(unfit)?;
        let own = self.wishes.sd_server.clone();
        let build = own.map_or(build, SdServerBuild::Given);
        let (needs, download) = (needs.required_gigabytes(placement), variant.gigabytes());
        Ok(self.chosen(placement, needs, download, EnvironmentKind::SdServer(build)))
    }

    /// The quickest placement that fits the GPU and the main memory; on the processor, the current one.
    fn place(
        &self,
        needs: &MemoryNeeds,
        current: WeightPlacement,
    ) -> Result<WeightPlacement, String> {
        let main = gigabytes(self.machine.memory_bytes);
        let has_room = |needs: f64| main == 0.0 || needs <= FILLED_MAX * main;
        let Some(gpu) = self.device else {
            let needs = needs.required_gigabytes(current);
            return has_room(needs).then_some(current).ok_or_else(|| {
                format!("it needs {needs:.1} GB, and this machine has {main:.1} GB of main memory")
            });
        };
        if gpu.memory_bytes == 0 {
            // Intel's driver does not say it. An operator who names the device knows it.
            return match self.wishes.device {
                Some(_) => Ok(WeightPlacement {
                    offload: OffloadMode::Model,
                    tiles: true,
                    ..current
                }),
                None => Err(format!(
                    "{} does not say how much memory it has; if you know that it is enough, add --device {}",
                    title(gpu),
                    gpu.index
                )),
            };
        }
        let memory = gpu.gigabytes();
        let mut all: Vec<WeightPlacement> = current.alternatives().collect();
        all.retain(|one| self.may_move_layers || one.offload != OffloadMode::Layers);
        let Some(quickest) = all.iter().find(|one| needs.fits(**one, memory)) else {
            let least = all.iter().map(|one| needs.required_gigabytes(*one));
            let least = least.fold(f64::INFINITY, f64::min);
            return Err(format!(
                "it needs {least:.1} GB at least, and of the {memory:.1} GB of {} it may fill {:.1}",
                title(gpu),
                FILLED_MAX * memory
            ));
        };
        let weights = needs.weights_gigabytes();
        if quickest.offload == OffloadMode::None || has_room(weights) {
            return Ok(*quickest);
        }
        Err(format!(
            "{} is too small for all weights, and {weights:.1} GB of them would wait in main memory, which has {main:.1} GB",
            title(gpu)
        ))
    }

    fn chosen(
        &self,
        placement: WeightPlacement,
        needs_gigabytes: f64,
        download_gigabytes: f64,
        environment: EnvironmentKind,
    ) -> Choice {
        let offload = match placement.offload {
            OffloadMode::None => "all weights on it",
            OffloadMode::Model => "one part of the weights on it at a time",
            OffloadMode::Layers => "one layer of the weights on it at a time",
        };
        let tiles = if placement.tiles {
            ", decoded by tiles"
        } else {
            ""
        };
        let device = match self.device {
            None => "the processor".to_owned(),
            Some(gpu) if gpu.memory_bytes == 0 => title(gpu),
            Some(gpu) => format!("{} with {:.1} GB", title(gpu), gpu.gigabytes()),
        };
        let (variant, resolutions): (_, &'static [String]) = match self.way {
            Way::Diffusers(_) => (None, &[]),
            Way::Sdcpp(clip, variant) => (Some(variant), &clip.resolutions),
        };
        let clips = match resolutions {
            [] => String::new(),
            some => format!(", clips of {}", some.join(" and ")),
        };
        Choice {
            entry: self.entry,
            recipe: self.recipe,
            device: self.device.cloned(),
            is_one_of_many: self.machine.gpus.len() > 1,
            variant,
            resolutions,
            placement,
            needs_gigabytes,
            download_gigabytes,
            environment,
            why: format!("{device}; a run needs {needs_gigabytes:.1} GB: {offload}{tiles}{clips}"),
        }
    }
}

/// Refuses a driver or a GPU that is too old for torch.
fn check_cuda_13(gpu: &GpuInfo) -> Result<(), String> {
    let GpuApi::Cuda { compute, driver } = &gpu.api else {
        return Ok(());
    };
    let title = title(gpu);
    if is_before(driver, CUDA_13_DRIVER) {
        return Err(format!(
            "the driver of {title} is {driver}, and torch, which is built with CUDA 13, needs {CUDA_13_DRIVER} or later; \
             install a newer driver and restart"
        ));
    }
    if is_before(compute, COMPUTE_MIN) {
        return Err(format!(
            "{title} has compute capability {compute}, and torch, which is built with CUDA 13, needs {COMPUTE_MIN} or later \
             (GeForce RTX 20)"
        ));
    }
    Ok(())
}

/// Whether the CUDA build of `sd-server` runs on a GPU.
fn can_run_cuda_12(gpu: &GpuInfo) -> bool {
    match &gpu.api {
        GpuApi::Cuda { compute, driver } => {
            !is_before(driver, CUDA_12_DRIVER) && !is_before(compute, COMPUTE_MIN)
        }
        GpuApi::Vulkan => false,
    }
}

/// Whether a version or capability is earlier than `min`, by its first two numbers. One that cannot be read is that of a GPU newer
/// than this program.
fn is_before(version: &str, min: f64) -> bool {
    let end = version.match_indices('.').nth(1).map(|(end, _)| end);
    let number = version.get(..end.unwrap_or(version.len()));
    number.is_some_and(|text| text.parse().is_ok_and(|number: f64| number < min))
}

/// `device 0 (NVIDIA GeForce RTX 4090)`.
fn title(gpu: &GpuInfo) -> String {
    format!("device {} ({})", gpu.index, gpu.name)
}
