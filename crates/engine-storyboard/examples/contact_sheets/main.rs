//! Renders the fixed prompts of `examples/prompts.tsv` and lays frames of each onto labelled
//! sheets, so that two versions of the engine can be compared by eye. It judges nothing.
//!
//! ```sh
//! cargo run --release -p kinora-engine-storyboard --example contact_sheets -- --out sheets \
//!     [--prompts list.tsv] [--only 3,17] [--size 320x180] [--seconds 4] [--frames 3] \
//!     [--rows 5] [--columns 2] [--plain true]
//! ```
#![allow(clippy::print_stdout)]

mod list;
#[path = "../shared/page.rs"]
mod page;
#[path = "../shared/shots.rs"]
mod shots;

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use kinora_contract::id::TaskId;
use kinora_contract::{EditSpec, Size, VideoSpec};
use kinora_engine::{ClipPlanner, EngineError, JobMaterials, SourceVideo, VideoPlayback};
use kinora_engine_storyboard::Storyboard;
use list::Row;
use page::Page;

/// Height of the four lines over a row of frames.
const LABEL: u32 = 76;
/// Height of the only line of a plain sheet.
const LABEL_PLAIN: u32 = 24;
const STRENGTH: f64 = 0.6;

/// Another row's clip as the source of an edit.
#[derive(Clone, Debug)]
struct Clip {
    size: Size,
    frames: Arc<Vec<Vec<u8>>>,
    at: usize,
}

impl SourceVideo for Clip {
    fn size(&self) -> Size {
        self.size
    }

    fn fps(&self) -> u32 {
        24
    }

    fn frames(&self) -> u32 {
        self.frames.len() as u32
    }

    fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError> {
        Ok(Box::new(self.clone()))
    }
}

impl VideoPlayback for Clip {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        self.at += 1;
        Ok(self.frames.get(self.at - 1).cloned())
    }
}

/// How the sheets are asked for.
struct Ask {
    out: PathBuf,
    size: Size,
    seconds: u32,
    frames: u32,
    /// Prompts on a sheet, down and across.
    rows: u32,
    columns: u32,
    /// One line over each prompt, for a page that explains the rest.
    plain: bool,
}

impl Ask {
    /// Width and height of one prompt's part of a sheet.
    fn part(&self) -> (u32, u32) {
        (
            self.frames * self.size.width,
            self.label() + self.size.height,
        )
    }

    fn label(&self) -> u32 {
        if self.plain { LABEL_PLAIN } else { LABEL }
    }
}

fn argument(name: &str, default: &str) -> String {
    let words: Vec<String> = std::env::args().collect();
    let named = |pair: &&[String]| pair[0].strip_prefix("--") == Some(name);
    let value = words.windows(2).find(named).map(|pair| pair[1].clone());
    value.unwrap_or_else(|| default.to_owned())
}

/// What a row is rendered from: its spec, and for an edit the clip of another row.
fn order(row: &Row, all: &[Row], ask: &Ask) -> Result<(VideoSpec, JobMaterials), Box<dyn Error>> {
    let seed = row.edit_of.unwrap_or(row.number);
    let mut spec = shots::spec(&row.prompt, ask.size, ask.seconds, seed);
    spec.negative_prompt = (!row.avoid.is_empty()).then(|| row.avoid.clone());
    let mut materials = JobMaterials::default();
    if let Some(number) = row.edit_of {
        let source = all.iter().find(|one| one.number == number);
        let source = source.ok_or("an edit of a row that is not there")?;
        let (plain, none) = order(source, all, ask)?;
        materials.script = vec![Arc::new(plain.clone())];
        let last = f64::from(Storyboard::default().plan(&plain, &none)?.frames - 1);
        let every: Vec<f64> = (0..=last as u32).map(|nth| f64::from(nth) / last).collect();
        let frames = Arc::new(shots::frames(&plain, &none, &every)?);
        materials.source = Some(Arc::new(Clip {
            size: ask.size,
            frames,
            at: 0,
        }));
        materials.script = vec![Arc::new(plain)];
        spec.edit = Some(EditSpec {
            task_id: TaskId::from_parts(1, [1; 10]),
            strength: STRENGTH,
        });
    }
    Ok((spec, materials))
}

/// The lines over a row's frames.
fn label(row: &Row, warnings: &str) -> [String; 4] {
    let edit = row.edit_of.map(|of| format!("  [edit of {of}]"));
    let avoid = (!row.avoid.is_empty()).then(|| format!("  [negative prompt: {}]", row.avoid));
    let more = edit.or(avoid).unwrap_or_default();
    let own = match row.language.as_str() {
        "en" => "",
        _ => &row.prompt,
    };
    [
        format!("{} {}  {}{more}", row.number, row.language, row.english),
        own.to_owned(),
        format!("must show: {}", row.seen),
        format!("warnings: {warnings}"),
    ]
}

/// Lays one row onto the page, its upper left corner at `at`.
fn lay(
    page: &mut Page,
    row: &Row,
    all: &[Row],
    ask: &Ask,
    at: (u32, u32),
) -> Result<(), Box<dyn Error>> {
    let (spec, materials) = order(row, all, ask)?;
    // Neither the first nor the last frame, which a prompt may ask to be black.
    let share = |nth: u32| 0.1 + 0.8 * f64::from(nth) / f64::from((ask.frames - 1).max(1));
    let shares: Vec<f64> = (0..ask.frames).map(share).collect();
    for (nth, frame) in (0..).zip(shots::frames(&spec, &materials, &shares)?) {
        let place = (at.0 + nth * ask.size.width, at.1 + ask.label());
        page.paste(&frame, ask.size, place);
    }
    let warnings = Storyboard::default().warnings(&spec, &materials);
    let said: Vec<String> = warnings.into_iter().map(|one| one.message).collect();
    let right = at.0 + ask.part().0;
    let lines = label(row, &said.join(" | "));
    let lines = if ask.plain { &lines[..1] } else { &lines[..] };
    for (nth, line) in (0..).zip(lines) {
        page.write(line, (at.0 + 4, at.1 + 2 + nth * 18), 17.0, right);
    }
    println!("{}\t{}\t{}", row.number, row.english, said.join(" | "));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/prompts.tsv");
    let all = list::rows(&std::fs::read_to_string(argument("prompts", own))?)?;
    let only = argument("only", "");
    let only: Vec<&str> = only.split(',').filter(|one| !one.is_empty()).collect();
    let wanted = |row: &&Row| only.is_empty() || only.contains(&row.number.to_string().as_str());
    let rows: Vec<Row> = all.iter().filter(wanted).cloned().collect();
    let ask = Ask {
        out: argument("out", "sheets").into(),
        size: argument("size", "320x180").parse()?,
        seconds: argument("seconds", "4").parse()?,
        frames: argument("frames", "3").parse()?,
        rows: argument("rows", "5").parse()?,
        columns: argument("columns", "2").parse()?,
        plain: argument("plain", "false").parse()?,
    };
    std::fs::create_dir_all(&ask.out)?;
    let (wide, tall) = ask.part();
    let on_one = (ask.rows * ask.columns).max(1) as usize;
    for (nth, chunk) in rows.chunks(on_one).enumerate() {
        let down = (chunk.len() as u32).div_ceil(ask.columns);
        let mut page = Page::new(Size::new(ask.columns * wide, down * tall))?;
        for (place, row) in (0..).zip(chunk) {
            let at = (place % ask.columns * wide, place / ask.columns * tall);
            lay(&mut page, row, &all, &ask, at)?;
        }
        page.save(&ask.out.join(format!("sheet-{}.png", nth + 1)))?;
    }
    Ok(())
}
