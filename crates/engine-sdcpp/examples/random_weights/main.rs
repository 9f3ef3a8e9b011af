//! Writes weights of every family in the true formats and names, filled with random numbers, and in
//! the true shapes where the library fixes them: to try a build, a machine or a whole service
//! without a download. What they make is noise.

mod clip_vision;
mod format;
mod gemma;
mod ltx;
mod ltx_audio;
mod ltx_vae;
mod models;
mod tensor;
mod umt5;
mod vae;
mod wan;
mod writer;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use format::Format;
use models::Recipe;
use tensor::{Kind, Tensor};

const HELP: &str = "\
Writes random weights of a model in the true formats, names and shapes, and settings for them.

  cargo run --release -p kinora-engine-sdcpp --example random_weights -- MODEL FOLDER [OPTIONS]

MODEL is one of
  wan          Wan 2.1 T2V 1.3B: 0.9 GB, and 3.2 GB of text encoder
  wan-vace     Wan 2.1 VACE 1.3B, with 1 of its 15 control blocks: the same and a little
  wan-i2v      a first frame, with CLIP vision, at the size of 1.3B: 1.1 and 1.3 GB, and the text
  wan-flf2v    Wan 2.1 FLF2V 14B: 9.2 and 1.3 GB, and the text
  wan2.2-ti2v  Wan 2.2 TI2V 5B: 2.8 and 1.4 GB, and the text
  wan2.2-i2v   Wan 2.2 I2V A14B, one file for both experts: 8.1 GB, and the text
  ltx          LTX-2.3 with sound, narrow and of few blocks: 0.2 GB, and 2.7 GB about words

OPTIONS
  --type TYPE       q4_0 (default), q8_0 or f16: of large tensors; the more bytes, the slower
  --without-text    an empty text encoder: the library then runs without one, words have no
                    influence, and a clip takes seconds instead of a minute
  --seed NUMBER     another seed gives other weights (default 1); the same one the same bytes

For example, and then a clip from them:
  cargo run --release -p kinora-engine-sdcpp --example random_weights -- wan weights --without-text
  KINORA_SD_SERVER=/path/sd-server KINORA_SDCPP_WEIGHTS=$PWD/weights cargo test -p kinora-engine-sdcpp --test server
";

fn write_file(path: &Path, format: Format, tensors: &[Tensor], seed: u64) -> io::Result<()> {
    let bytes: u64 = tensors.iter().map(Tensor::bytes).sum();
    let gigabytes = bytes as f64 / 1e9;
    writeln!(io::stderr(), "{}: {gigabytes:.2} GB", path.display())?;
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    format.write(&mut file, tensors, seed)?;
    file.flush()
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let mut places = Vec::new();
    let (mut kind, mut text, mut seed) = (Kind::Q4_0, true, 1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--type" => {
                kind = match value()?.as_str() {
                    "q4_0" => Kind::Q4_0,
                    "q8_0" => Kind::Q8_0,
                    "f16" => Kind::F16,
                    other => return Err(format!("{other}: no such type")),
                };
            }
            "--without-text" => text = false,
            "--seed" => seed = value()?.parse().map_err(|_| "--seed needs a number")?,
            other if other.starts_with('-') => return Err(format!("{other}: no such option")),
            _ => places.push(argument),
        }
    }
    let [model, folder] = places.as_slice() else {
        return Err("give a model and a folder".to_owned());
    };
    let recipe = models::recipe(model, kind, text)?;
    write(&recipe, Path::new(folder), seed).map_err(|error| format!("{folder}: {error}"))
}

fn write(recipe: &Recipe, folder: &Path, seed: u64) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut settings = recipe.settings.to_owned();
    for (index, (key, format, tensors)) in recipe.parts.iter().enumerate() {
        let name = format!("{key}.{}", format.extension());
        write_file(&folder.join(&name), *format, tensors, seed ^ index as u64)?;
        settings += &format!("{key} = \"{name}\"\n");
    }
    fs::write(folder.join("settings.toml"), settings)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // There is nowhere left to say that an output is closed.
    if arguments.is_empty() || arguments.iter().any(|one| one == "--help" || one == "-h") {
        let _ = io::stdout().write_all(HELP.as_bytes());
        return ExitCode::SUCCESS;
    }
    if let Err(why) = run(arguments.into_iter()) {
        let _ = writeln!(io::stderr(), "{why}; --help tells more");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
