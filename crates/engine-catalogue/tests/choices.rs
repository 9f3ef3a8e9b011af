//! What each model of the catalogue gets on each machine: the table in `choices.txt`, which a reader can check. Write it
//! anew with `KINORA_UPDATE_DOCS=1`.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use kinora_engine_catalogue::{
    CatalogueEntry, EngineChoice, EnvironmentKind, GpuApi, GpuInfo, Machine, ModelRecipe,
    OffloadMode, SdServerBuild, Wishes, catalogue, choose, find,
};

fn nvidia(index: &str, name: &str, mebibytes: u64, driver: &str, compute: &str) -> GpuInfo {
    GpuInfo {
        index: index.to_owned(),
        uuid: format!("GPU-{index}0000000"),
        name: name.to_owned(),
        memory_bytes: mebibytes << 20,
        free_bytes: None,
        api: GpuApi::Cuda {
            compute: compute.to_owned(),
            driver: driver.to_owned(),
        },
    }
}

fn vulkan(name: &str, mebibytes: u64) -> GpuInfo {
    GpuInfo {
        index: "vulkan0".to_owned(),
        uuid: String::new(),
        name: name.to_owned(),
        memory_bytes: mebibytes << 20,
        free_bytes: None,
        api: GpuApi::Vulkan,
    }
}

fn machine(gpus: Vec<GpuInfo>, main_gigabytes: u64) -> Machine {
    Machine {
        gpus,
        problems: Vec::new(),
        memory_bytes: main_gigabytes << 30,
    }
}

/// The machines of the table.
fn machines() -> Vec<(&'static str, Machine)> {
    let new = |name, mebibytes| vec![nvidia("0", name, mebibytes, "580.95.05", "8.9")];
    let mut without_driver = machine(Vec::new(), 64);
    let problem = "This machine has a GPU of NVIDIA, but its driver does not work.";
    without_driver.problems.push(problem.to_owned());
    vec![
        ("no GPU", machine(Vec::new(), 64)),
        ("NVIDIA without a driver", without_driver),
        ("NVIDIA 8 GB", machine(new("RTX 4060", 8188), 64)),
        ("NVIDIA 12 GB", machine(new("RTX 4070", 12_282), 64)),
        ("NVIDIA 16 GB", machine(new("RTX 4080", 16_376), 64)),
        ("NVIDIA 24 GB", machine(new("RTX 4090", 24_564), 128)),
        (
            "NVIDIA 24 GB, 16 GB of main memory",
            machine(new("RTX 4090", 24_564), 16),
        ),
        ("NVIDIA 48 GB", machine(new("L40S", 46_068), 128)),
        ("NVIDIA 80 GB", machine(new("H100", 81_559), 256)),
        (
            "NVIDIA 24 GB, driver 535",
            machine(
                vec![nvidia("0", "RTX 3090", 24_576, "535.183.01", "8.6")],
                128,
            ),
        ),
        (
            "NVIDIA 16 GB, Pascal",
            machine(
                vec![nvidia("0", "Tesla P100", 16_384, "580.95.05", "6.0")],
                64,
            ),
        ),
        (
            "AMD 16 GB",
            machine(vec![vulkan("Radeon RX 7800 XT", 16_368)], 64),
        ),
        ("Intel", machine(vec![vulkan("Intel GPU 0x56a0", 0)], 64)),
    ]
}

fn outcome(entry: &'static CatalogueEntry, machine: &Machine, wishes: &Wishes) -> String {
    match choose(entry, machine, wishes) {
        Ok(choice) => {
            let engine = match choice.recipe {
                ModelRecipe::Diffusers(_) => "diffusers",
                ModelRecipe::Sdcpp(_) => "sdcpp",
            };
            let label = choice.variant.map_or("", |variant| &variant.label);
            let gigabytes = choice.download_gigabytes;
            format!(
                "{engine} {label}, {gigabytes:.1} GB to load; {}",
                choice.why
            )
            .replace(" ,", ",")
        }
        Err(reasons) => reasons.join("\n    "),
    }
}

#[test]
fn the_table_has_every_choice() {
    let mut table = String::new();
    for entry in catalogue() {
        let _ = writeln!(table, "{}", entry.name);
        for (name, machine) in machines() {
            let outcome = outcome(entry, &machine, &Wishes::default());
            let _ = writeln!(table, "  {name}:\n    {outcome}");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/choices.txt");
    if std::env::var_os("KINORA_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == table,
        "tests/choices.txt is not what the code chooses: look at the difference after KINORA_UPDATE_DOCS=1"
    );
}

#[test]
fn every_file_of_the_catalogue_is_embedded_and_complete() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("catalogue");
    let files = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = files
        .map(|file| {
            file.unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    // Sorted like the file system's names, so one that does not parse is missing here.
    let entries: Vec<&str> = catalogue()
        .iter()
        .map(|entry| entry.name.as_str())
        .collect();
    assert_eq!(entries, names);
    for entry in catalogue() {
        assert!(!entry.recipes.is_empty(), "{}", entry.name);
        let largest = machine(vec![nvidia("0", "largest", 400_000, "600.1", "10.0")], 2000);
        for recipe in &entry.recipes {
            let labels: Vec<Option<String>> = match recipe {
                ModelRecipe::Diffusers(_) => vec![None],
                ModelRecipe::Sdcpp(recipe) => {
                    let labels = recipe
                        .variants
                        .iter()
                        .map(|variant| Some(variant.label.clone()));
                    labels.collect()
                }
            };
            for variant in labels {
                let wishes = Wishes {
                    engine: Some(recipe.engine()),
                    variant,
                    ..Wishes::default()
                };
                let choice = choose(entry, &largest, &wishes).unwrap();
                assert_eq!(
                    choice.placement.offload,
                    OffloadMode::None,
                    "{}",
                    entry.name
                );
            }
        }
    }
}

#[test]
fn close_names_are_offered() {
    for (name, expected) in [
        ("wan2.2-ti2v-5", "did you mean wan2.2-ti2v-5b?"),
        ("Wan2.2 TI2V 5B", "did you mean wan2.2-ti2v-5b?"),
        ("cogvideo", "did you mean cogvideox-5b?"),
        ("a\nb", "'a\\nb'; it has cogvideox-5b, hunyuanvideo-1.5"),
    ] {
        let error = find(name).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(find("wan2.2-ti2v-5b").unwrap().name, "wan2.2-ti2v-5b");
}

#[test]
fn wishes_are_obeyed_or_refused() {
    let entry = find("wan2.2-ti2v-5b").unwrap();
    let gpus = vec![
        nvidia("0", "RTX 3060", 12_288, "580.95.05", "8.6"),
        nvidia("1", "RTX 4090", 24_564, "580.95.05", "8.9"),
    ];
    let machine = machine(gpus, 64);
    let with = |change: fn(&mut Wishes)| {
        let mut wishes = Wishes::default();
        change(&mut wishes);
        choose(entry, &machine, &wishes)
    };
    let index = |change| with(change).unwrap().device.unwrap().index;
    assert_eq!(index(|_| {}), "1", "the largest");
    assert_eq!(index(|it| it.device = Some("0".to_owned())), "0");
    assert_eq!(index(|it| it.device = Some("GPU-00".to_owned())), "0");
    let own = with(|it| it.sd_server = Some(PathBuf::from("/opt/sd-server"))).unwrap();
    assert_eq!(own.recipe.engine(), EngineChoice::Sdcpp);
    let given = SdServerBuild::Given(PathBuf::from("/opt/sd-server"));
    assert_eq!(own.environment, EnvironmentKind::SdServer(given));
    let small = with(|it| it.variant = Some("q4_k_m".to_owned()));
    assert_eq!(small.unwrap().variant.unwrap().label, "Q4_K_M");
    let cpu = with(|it| it.device = Some("cpu".to_owned())).unwrap();
    let build = EnvironmentKind::SdServer(SdServerBuild::Cpu);
    assert_eq!(cpu.environment, build);
    assert!(cpu.device.is_none() && cpu.placement.tiles);
    let refused = |change| with(change).unwrap_err().concat();
    let error = refused(|it| it.device = Some("7".to_owned()));
    let known = "no device '7'; it has device 0 (RTX 3060), device 1";
    assert!(error.contains(known), "{error}");
    let error = refused(|it| it.variant = Some("Q2_K".to_owned()));
    assert!(error.contains("--variant Q8_0 or Q4_K_M"), "{error}");
}
