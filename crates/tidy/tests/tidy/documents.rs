//! The tables in `docs/api.md` that derive from the code, each between `<!-- NAME:start -->` and
//! `<!-- NAME:end -->`, compared exactly. `KINORA_UPDATE_DOCS=1` writes them anew instead.

use std::fmt::Write;
use std::fs;

use kinora_contract::error::ErrorKind;
use kinora_contract::limits::{self, Limit};
use kinora_contract::{
    AspectRatio, ErrorCode, FailureCode, Features, ModelCard, Resolution, built_in_cards,
};
use kinora_engine::Engine;
use kinora_engine::storyboard::Storyboard;

use crate::files::root;

const PAGE: &str = "docs/api.md";

/// All tables in one test: two tests that rewrite one page would race.
#[test]
fn the_tables_of_the_api_page_are_what_the_code_does() {
    let path = root().join(PAGE);
    let written = fs::read_to_string(&path).unwrap();
    let tables = [
        ("models", models()),
        ("sizes", sizes()),
        ("limits", limits()),
        ("errors", errors()),
        ("failures", failures()),
    ];
    let mut expected = written.clone();
    for (name, table) in &tables {
        expected = with_block(&expected, name, table);
    }
    if std::env::var_os("KINORA_UPDATE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
        return;
    }
    for (name, table) in &tables {
        assert!(
            with_block(&written, name, table) == written,
            "the table '{name}' of {PAGE} is out of date; it should read:\n\n{table}\n\
             `KINORA_UPDATE_DOCS=1 cargo test -p kinora-tidy` writes it."
        );
    }
}

/// `page` with what stands between the markers of `name` replaced by `table`.
fn with_block(page: &str, name: &str, table: &str) -> String {
    let (start, end) = (
        format!("<!-- {name}:start -->\n"),
        format!("<!-- {name}:end -->"),
    );
    let split = page.split_once(&start).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some((before, after))
    });
    let Some((before, after)) = split else {
        panic!("{PAGE} has no place for the table '{name}': {start}{end}");
    };
    format!("{before}{start}\n{table}\n{end}{after}")
}

fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(N));
    for row in rows {
        writeln!(text, "| {} |", row.join(" | ")).unwrap();
    }
    text
}

fn limits() -> String {
    let row = |limit: &Limit| {
        let name = format!("`{}`", limit.name);
        let unit = match limit.value {
            1.0 => limit.unit.trim_end_matches('s'),
            _ => limit.unit,
        };
        let value = format!("{} {unit}", grouped(limit.value));
        [limit.meaning.to_owned(), value.trim_end().to_owned(), name]
    };
    table(["what", "limit", "constant"], limits::TABLE.iter().map(row))
}

/// A whole number with commas between its thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn errors() -> String {
    let row = |code: &ErrorCode| {
        let kind: ErrorKind = code.kind();
        [
            code.http_status().to_string(),
            format!("`{}`", kind.as_str()),
            format!("`{}`", code.as_str()),
        ]
    };
    table(["HTTP", "`type`", "`code`"], ErrorCode::ALL.iter().map(row))
}

fn failures() -> String {
    let row = |code: &FailureCode| [format!("`{}`", code.as_str()), code.sentence().to_owned()];
    table(
        ["`error.code`", "usual message"],
        FailureCode::ALL.iter().map(row),
    )
}

fn sizes() -> String {
    let resolutions = Resolution::ALL.into_iter();
    let row = |ratio: AspectRatio| {
        let mut cells = [
            format!("`{}`", ratio.name()),
            String::new(),
            String::new(),
            String::new(),
        ];
        for (cell, resolution) in cells[1..].iter_mut().zip(resolutions.clone()) {
            *cell = format!("`{}`", resolution.size(ratio));
        }
        cells
    };
    let [low, middle, high] = Resolution::ALL.map(Resolution::name);
    table(
        ["", low, middle, high],
        AspectRatio::ALL.into_iter().map(row),
    )
}

/// Both models as the contract has them, and as the embedded engine serves them.
fn models() -> String {
    let engine = Storyboard::default().describe().features;
    let cards = built_in_cards();
    let columns: Vec<(String, Features, &ModelCard)> = cards
        .iter()
        .flat_map(|card| {
            let own = card.capabilities.features;
            let served = own.restricted_to(engine);
            [
                (format!("`{}`", card.id), own, card),
                (format!("`{}` on `{}`", card.id, card.engine), served, card),
            ]
        })
        .collect();
    let mut text = String::from("| |");
    columns
        .iter()
        .for_each(|(name, ..)| write!(text, " {name} |").unwrap());
    writeln!(text, "\n|---|{}", "---|".repeat(columns.len())).unwrap();
    for (what, cell) in ROWS {
        write!(text, "| {what} |").unwrap();
        columns
            .iter()
            .for_each(|(_, can, card)| write!(text, " {} |", cell(can, card)).unwrap());
        text.push('\n');
    }
    text
}

type Cell = fn(&Features, &ModelCard) -> String;

const ROWS: &[(&str, Cell)] = &[
    ("text to video", |_, _| yes(true)),
    ("length", |_, card| {
        let can = &card.capabilities;
        format!(
            "{} to {} s, default {} s",
            can.seconds_min, can.seconds_max, can.seconds_default
        )
    }),
    ("sizes", |_, card| {
        format!("{} listed", card.capabilities.sizes.len())
    }),
    ("sound (`generate_audio`)", |can, _| yes(can.audio_output)),
    (
        "first frame (`first_frame`, `input_reference`)",
        |can, _| yes(can.first_frame),
    ),
    ("last frame (`last_frame`)", |can, _| yes(can.last_frame)),
    ("reference images (`reference_images`)", |can, _| {
        up_to(can.reference_images_max)
    }),
    ("reference audio (`reference_audios`)", |can, _| {
        up_to(can.reference_audios_max)
    }),
    ("automatic length (`seconds: \"auto\"`)", |can, _| {
        yes(can.auto_duration)
    }),
    (
        "drafts and their finals (`draft`, `draft_task_id`)",
        |can, _| yes(can.draft),
    ),
    ("edits (`edit_task_id`, `edit_strength`)", |can, _| {
        yes(can.edit)
    }),
    ("reference video, continuation", |_, _| yes(false)),
];

fn yes(can: bool) -> String {
    (if can { "yes" } else { "no" }).to_owned()
}

fn up_to(max: u32) -> String {
    if max == 0 {
        yes(false)
    } else {
        format!("1 to {max}")
    }
}
