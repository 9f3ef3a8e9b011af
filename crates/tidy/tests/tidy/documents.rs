//! The tables in `docs/api.md` and the README that derive from the code, each between `<!-- NAME:start -->` and
//! `<!-- NAME:end -->`, compared exactly. `KINORA_UPDATE_DOCS=1` writes them anew instead.

use std::fmt::Write;
use std::fs;

use kinora_contract::error::ErrorKind;
use kinora_contract::limits::{self, LimitRow};
use kinora_contract::request::{FIELDS, RequestField};
use kinora_contract::{
    AspectRatio, ErrorCode, FailureCode, Features, ModelCard, Resolution, built_in_cards,
};
use kinora_engine::ClipPlanner;
use kinora_engine_storyboard::Storyboard;

use crate::files::root;

/// All tables in one test: two tests that rewrite one page would race.
#[test]
fn the_tables_of_the_documents_are_what_the_code_does() {
    let api = [
        ("fields", fields()),
        ("models", models()),
        ("sizes", sizes()),
        ("limits", limits()),
        ("errors", errors()),
        ("failures", failures()),
    ];
    assert_tables("docs/api.md", &api);
    assert_tables("README.md", &[("models", models())]);
}

/// The documents show the cards; this is why that is also what a fresh service does.
#[test]
fn the_embedded_engine_serves_everything_that_the_cards_name() {
    let engine = Storyboard::default().describe().features;
    for card in built_in_cards() {
        let own = card.capabilities.features;
        assert_eq!(own.restricted_to(engine), own, "{}", card.id);
    }
}

/// Asserts that each table is what stands between its markers in `page`, or puts it there.
pub(crate) fn assert_tables(page: &str, tables: &[(&str, String)]) {
    let path = root().join(page);
    let written = fs::read_to_string(&path).unwrap();
    let mut expected = written.clone();
    for (name, table) in tables {
        expected = with_block(page, &expected, name, table);
    }
    if std::env::var_os("KINORA_UPDATE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
        return;
    }
    for (name, table) in tables {
        assert!(
            with_block(page, &written, name, table) == written,
            "the table '{name}' of {page} is out of date; it should read:\n\n{table}\n\
             `KINORA_UPDATE_DOCS=1 cargo test -p kinora-tidy` writes it."
        );
    }
}

/// `text` of `page` with what stands between the markers of `name` replaced by `table`.
fn with_block(page: &str, text: &str, name: &str, table: &str) -> String {
    let (start, end) = (
        format!("<!-- {name}:start -->\n"),
        format!("<!-- {name}:end -->"),
    );
    let split = text.split_once(&start).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some((before, after))
    });
    let Some((before, after)) = split else {
        panic!("{page} has no place for the table '{name}': {start}{end}");
    };
    format!("{before}{start}\n{table}\n{end}{after}")
}

/// A table of Markdown with these columns.
pub(crate) fn table<const N: usize>(
    head: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(N));
    for row in rows {
        writeln!(text, "| {} |", row.join(" | ")).unwrap();
    }
    text
}

fn limits() -> String {
    let row = |limit: &LimitRow| {
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

/// A number with commas between its thousands.
fn grouped(value: f64) -> String {
    if value.fract() != 0.0 {
        return value.to_string();
    }
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

/// Both models as their cards describe them.
fn fields() -> String {
    let names = |names: &mut dyn Iterator<Item = &str>, between: &str| {
        let quoted: Vec<_> = names.map(|name| format!("`{name}`")).collect();
        quoted.join(between)
    };
    let row = |field: &RequestField| {
        let of_form = (!field.in_edit()).then_some("edit_task_id");
        [
            format!("`{}`", field.name),
            field.type_name.to_owned(),
            field.about().to_owned(),
            names(&mut field.excludes().chain(of_form), ", "),
            names(&mut field.needs().iter().copied(), " or "),
        ]
    };
    let head = ["field", "type", "meaning", "not with", "only with"];
    table(head, FIELDS.iter().map(row))
}

fn models() -> String {
    let cards = built_in_cards();
    let mut text = String::from("| |");
    for card in &cards {
        write!(text, " `{}` |", card.id).unwrap();
    }
    writeln!(text, "\n|---|{}", "---|".repeat(cards.len())).unwrap();
    for (what, cell) in ROWS {
        write!(text, "| {what} |").unwrap();
        for card in &cards {
            write!(text, " {} |", cell(&card.capabilities.features, card)).unwrap();
        }
        text.push('\n');
    }
    text
}

type Cell = fn(&Features, &ModelCard) -> String;

const ROWS: &[(&str, Cell)] = &[
    ("text to video", |can, _| yes(can.text_to_video)),
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
    ("reference video", |_, _| yes(false)),
    ("continuation of a video", |_, _| yes(false)),
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
