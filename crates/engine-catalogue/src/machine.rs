//! This machine: its GPUs, as their drivers list them, and its main memory. It opens no library of a driver.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `nvidia-smi` is asked about each GPU.
const NVIDIA_QUERY: &str =
    "--query-gpu=index,uuid,name,memory.total,memory.free,compute_cap,driver_version";
/// The makers of GPUs, by their numbers of the PCI.
const NVIDIA: &str = "0x10de";
const AMD: &str = "0x1002";
const INTEL: &str = "0x8086";

/// A machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// The GPUs that engines can use.
    pub gpus: Vec<GpuInfo>,
    /// What is wrong with other GPUs, with advice.
    pub problems: Vec<String>,
    /// Main memory; 0 if that is not known.
    pub memory_bytes: u64,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuInfo {
    /// Its number: of NVIDIA's as `nvidia-smi` has it, of others as `vulkan0`.
    pub index: String,
    /// Its UUID, if it has one.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// Its memory; 0 if that is not known.
    pub memory_bytes: u64,
    /// The part of it that no program holds, if that is known.
    pub free_bytes: Option<u64>,
    /// How programs reach it.
    pub api: GpuApi,
}

/// How programs reach a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuApi {
    /// By NVIDIA's CUDA.
    Cuda {
        /// Compute capability, such as `8.9`.
        compute: String,
        /// Version of the driver, such as `580.65.06`.
        driver: String,
    },
    /// By Vulkan, which the drivers of all makers have.
    Vulkan,
}

impl GpuInfo {
    /// Its memory, in units of 10^9 bytes.
    pub fn gigabytes(&self) -> f64 {
        gigabytes(self.memory_bytes)
    }
}

impl Machine {
    /// Asks the drivers. It never fails: what cannot be used is a problem.
    pub fn ask() -> Self {
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self::from_answers(nvidia_gpus(), Path::new("/sys"), &memory)
    }

    /// A machine by the answers of its drivers, the folder of the kernel's devices, and the kernel's account of memory.
    fn from_answers(nvidia: Result<Vec<GpuInfo>, String>, sys: &Path, memory: &str) -> Self {
        let (mut gpus, why) = match nvidia {
            Ok(gpus) => (gpus, "nvidia-smi lists no GPU".to_owned()),
            Err(why) => (Vec::new(), why),
        };
        let lacks_driver = gpus.is_empty() && has_nvidia_device(sys);
        gpus.extend(vulkan_gpus(sys));
        Self {
            gpus,
            problems: Vec::from_iter(lacks_driver.then(|| no_driver(&why))),
            memory_bytes: total_memory(memory).unwrap_or(0),
        }
    }
}

/// What to do about a GPU of NVIDIA that cannot be used.
fn no_driver(why: &str) -> String {
    format!(
        "This machine has a GPU of NVIDIA, but its driver does not work: {why}. Install the driver (on Ubuntu: \
         sudo ubuntu-drivers install; on Debian: the package nvidia-driver), restart, and check with nvidia-smi."
    )
}

/// The GPUs of NVIDIA, or why they are not known.
///
/// # Errors
/// The reason, without a full stop.
pub fn nvidia_gpus() -> Result<Vec<GpuInfo>, String> {
    let asked = Command::new("nvidia-smi")
        .arg(NVIDIA_QUERY)
        .arg("--format=csv,noheader,nounits")
        .output();
    let asked = asked.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "nvidia-smi is not installed".to_owned(),
        _ => format!("nvidia-smi could not be started ({error})"),
    })?;
    let text = String::from_utf8_lossy(&asked.stdout);
    if !asked.status.success() {
        // It explains itself on the standard output.
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        let line = line.unwrap_or("it printed nothing");
        return Err(format!("nvidia-smi failed ({}): {line}", asked.status));
    }
    // A line that cannot be read hides no other GPU.
    let gpus: Vec<GpuInfo> = text.lines().filter_map(parse_gpu).collect();
    if gpus.is_empty() && !text.trim().is_empty() {
        return Err("the output of nvidia-smi could not be read".to_owned());
    }
    Ok(gpus)
}

/// A line of the output, with memory in MiB. Some devices share the main memory and report none of their own.
fn parse_gpu(line: &str) -> Option<GpuInfo> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [index, uuid, name, total, free, compute, driver] = fields[..] else {
        return None;
    };
    let bytes = |text: &str| Some(text.parse::<u64>().ok()?.saturating_mul(1 << 20));
    Some(GpuInfo {
        index: index.to_owned(),
        uuid: uuid.to_owned(),
        name: name.to_owned(),
        memory_bytes: bytes(total).unwrap_or(0),
        free_bytes: bytes(free),
        api: GpuApi::Cuda {
            compute: compute.to_owned(),
            driver: driver.to_owned(),
        },
    })
}

/// The GPUs of other makers. AMD's driver says how much memory a GPU has; Intel's does not.
fn vulkan_gpus(sys: &Path) -> Vec<GpuInfo> {
    let mut gpus = Vec::new();
    for card in folders(&sys.join("class/drm")) {
        let name = card.file_name().unwrap_or_default().to_string_lossy();
        // `card0` is a GPU, and `card0-DP-1` one of its plugs.
        let number = name.strip_prefix("card");
        if number.is_none_or(|number| number.parse::<u32>().is_err()) {
            continue;
        }
        let device = card.join("device");
        let maker = match trimmed(&device.join("vendor")).as_deref() {
            Some(AMD) => "AMD",
            Some(INTEL) => "Intel",
            _ => continue,
        };
        let bytes = |file: &str| trimmed(&device.join(file))?.parse::<u64>().ok();
        let total = bytes("mem_info_vram_total").unwrap_or(0);
        let used = bytes("mem_info_vram_used");
        let product = trimmed(&device.join("product_name")).filter(|name| !name.is_empty());
        let id = trimmed(&device.join("device")).unwrap_or_default();
        gpus.push(GpuInfo {
            index: format!("vulkan{}", gpus.len()),
            uuid: String::new(),
            name: product.unwrap_or_else(|| format!("{maker} GPU {id}")),
            memory_bytes: total,
            free_bytes: used.map(|used| total.saturating_sub(used)),
            api: GpuApi::Vulkan,
        });
    }
    gpus
}

/// Whether a display controller of NVIDIA is on the PCI.
fn has_nvidia_device(sys: &Path) -> bool {
    folders(&sys.join("bus/pci/devices")).iter().any(|device| {
        // Class 0x03 are display controllers; the same cards have sound as well.
        let is_display = trimmed(&device.join("class")).is_some_and(|it| it.starts_with("0x03"));
        is_display && trimmed(&device.join("vendor")).as_deref() == Some(NVIDIA)
    })
}

/// Main memory, of the line `MemTotal:  32768 kB`.
fn total_memory(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
}

/// The entries of a folder, sorted; none if it cannot be read.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn trimmed(file: &Path) -> Option<String> {
    Some(fs::read_to_string(file).ok()?.trim().to_owned())
}

/// In units of 10^9 bytes.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
pub(crate) fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

/// The GPUs that `devices` name by their number or the beginning of their UUID: the first one if `devices` is empty.
///
/// # Errors
/// The name of a device that is not among `gpus`.
pub fn select_gpus<'g>(
    gpus: &'g [GpuInfo],
    devices: &[String],
) -> Result<Vec<&'g GpuInfo>, String> {
    let mut named: Vec<&GpuInfo> = Vec::new();
    for name in devices.iter().flat_map(|entry| entry.split(',')) {
        // CUDA takes the beginning of a UUID.
        let is_uuid = name.starts_with("GPU-");
        let mut gpus = gpus.iter();
        let gpu = gpus.find(|gpu| gpu.index == name || is_uuid && gpu.uuid.starts_with(name));
        named.push(gpu.ok_or_else(|| name.to_owned())?);
    }
    if devices.is_empty() {
        named.extend(gpus.first());
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "0, GPU-8932f937, NVIDIA GeForce RTX 4090, 24564, 23012, 8.9, 580.95.05";

    fn device(sys: &Path, folder: &str, files: &[(&str, &str)]) {
        let folder = sys.join(folder);
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), format!("{text}\n")).unwrap();
        }
    }

    #[test]
    fn a_line_of_nvidia_smi_is_a_gpu() {
        let gpu = parse_gpu(LINE).unwrap();
        assert_eq!(gpu.memory_bytes, 24_564 << 20);
        assert_eq!(gpu.free_bytes, Some(23_012 << 20));
        let without_free = LINE.replace("23012", "[N/A]");
        assert_eq!(parse_gpu(&without_free).unwrap().free_bytes, None);
        let without_memory = LINE.replace("24564", "[N/A]");
        assert_eq!(parse_gpu(&without_memory).unwrap().memory_bytes, 0);
        let longer = format!("{LINE}, 1");
        for other in ["", "0, GPU-1, NVIDIA, 1", &longer] {
            assert_eq!(parse_gpu(other), None, "{other}");
        }
    }

    #[test]
    fn the_kernel_lists_the_gpus_of_other_makers() {
        let sys = tempfile::tempdir().unwrap();
        let sys = sys.path();
        let amd = [
            ("vendor", AMD),
            ("device", "0x744c"),
            ("mem_info_vram_total", "17163091968"),
            ("mem_info_vram_used", "163091968"),
        ];
        device(sys, "class/drm/card1/device", &amd);
        device(sys, "class/drm/card1-DP-1/device", &amd);
        device(sys, "class/drm/renderD128/device", &amd);
        device(
            sys,
            "class/drm/card2/device",
            &[("vendor", INTEL), ("device", "0x56a0")],
        );
        device(sys, "class/drm/card3/device", &[("vendor", "0x1a03")]);
        let memory = "MemFree: 1 kB\nMemTotal:       32768 kB\n";
        let machine = Machine::from_answers(Err("none".to_owned()), sys, memory);
        let [amd, intel] = &machine.gpus[..] else {
            panic!("{machine:?}")
        };
        assert_eq!(
            (amd.index.as_str(), amd.memory_bytes),
            ("vulkan0", 17_163_091_968)
        );
        assert_eq!(amd.free_bytes, Some(17_000_000_000));
        assert_eq!(
            (intel.name.as_str(), intel.memory_bytes),
            ("Intel GPU 0x56a0", 0)
        );
        assert_eq!(machine.memory_bytes, 32 << 20);
        assert!(machine.problems.is_empty());
    }

    #[test]
    fn a_gpu_without_a_driver_is_a_problem_with_advice() {
        let sys = tempfile::tempdir().unwrap();
        let sys = sys.path();
        let missing = || Err("nvidia-smi is not installed".to_owned());
        // The sound of the card alone is no GPU.
        device(
            sys,
            "bus/pci/devices/0000:01:00.1",
            &[("vendor", NVIDIA), ("class", "0x040300")],
        );
        assert_eq!(Machine::from_answers(missing(), sys, "").problems, [""; 0]);
        device(
            sys,
            "bus/pci/devices/0000:01:00.0",
            &[("vendor", NVIDIA), ("class", "0x030000")],
        );
        for answer in [missing(), Ok(Vec::new())] {
            let machine = Machine::from_answers(answer, sys, "");
            let [problem] = &machine.problems[..] else {
                panic!("{machine:?}")
            };
            assert!(problem.contains("Install the driver"), "{problem}");
        }
        let gpu = parse_gpu(LINE).unwrap();
        assert!(
            Machine::from_answers(Ok(vec![gpu]), sys, "")
                .problems
                .is_empty()
        );
    }
}
