//! The shape of files: short, opened by what they are, and free of leftovers.

use std::collections::BTreeSet;

use crate::files::{crate_folders, manifest, root, rust, texts};

const LINES_MAX: usize = 800;

pub(crate) fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn no_file_is_longer_than_a_reader_s_patience() {
    let too_long: Vec<String> = rust()
        .iter()
        .filter(|file| file.text.lines().count() > LINES_MAX)
        .map(|file| {
            format!(
                "{}: {} lines, split it",
                file.path,
                file.text.lines().count()
            )
        })
        .collect();
    assert_none(&too_long);
}

#[test]
fn most_files_fit_on_a_few_screens() {
    let mut lengths: Vec<usize> = rust()
        .iter()
        .map(|file| file.text.lines().count())
        .collect();
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    assert!(
        median <= LINES_MAX / 4,
        "the median file has {median} lines"
    );
}

#[test]
fn every_file_opens_by_saying_what_it_is() {
    let silent: Vec<String> = rust()
        .iter()
        .filter(|file| {
            let opening = file.text.lines().next().unwrap_or_default();
            !opening.starts_with("//! ") || opening.len() < 15
        })
        .map(|file| format!("{}: opens without a `//!` line", file.path))
        .collect();
    assert_none(&silent);
}

/// Scripts and styles of the web page and of its tests.
#[test]
fn scripts_and_styles_are_as_short_and_open_in_the_same_way() {
    let mut wrong = Vec::new();
    for file in texts() {
        let opening = match file.path.rsplit_once('.').map(|(_, ending)| ending) {
            Some("js") => ["/** @file ", "/**\n * @file "],
            Some("css") => ["/* "; 2],
            Some("mjs" | "mts") => ["// "; 2],
            _ => continue,
        };
        if !opening.iter().any(|one| file.text.starts_with(one)) {
            wrong.push(format!("{}: opens without saying what it is", file.path));
        }
        if file.text.lines().count() > LINES_MAX {
            wrong.push(format!("{}: too long, split it", file.path));
        }
    }
    assert_none(&wrong);
}

/// Manifests turn examples off where there are none: to look for them, rustdoc would compile each crate.
#[test]
fn examples_in_comments_are_run() {
    let mut wrong = Vec::new();
    for folder in crate_folders() {
        let manifest = manifest(&format!("crates/{folder}/Cargo.toml"));
        let library = manifest.get("lib").and_then(|table| table.get("doctest"));
        let is_off = library.and_then(toml::Value::as_bool) == Some(false);
        let sources = format!("crates/{folder}/src/");
        let files = rust();
        let mut own = files.iter().filter(|file| file.path.starts_with(&sources));
        if is_off && own.any(|file| has_example(&file.text)) {
            wrong.push(format!(
                "crates/{folder}: has an example, and `doctest = false`"
            ));
        }
    }
    assert_none(&wrong);
}

/// Whether a comment has a block of code without a language, or in Rust. Any block ends with a bare line.
fn has_example(text: &str) -> bool {
    let fences = text.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("/// ```")
            .or_else(|| line.strip_prefix("//! ```"))
    });
    let fences: Vec<&str> = fences.collect();
    let opened = fences.iter().step_by(2);
    opened
        .into_iter()
        .any(|language| matches!(*language, "" | "rust" | "no_run" | "should_panic"))
}

#[test]
fn nothing_unfinished_is_left_behind() {
    // In two halves each, so that this file does not find itself.
    let leftovers = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("db", "g!("),
        concat!("FIX", "ME"),
        concat!("X", "XX"),
    ];
    let mut found = Vec::new();
    for file in rust() {
        for (number, line) in file.text.lines().enumerate() {
            for word in leftovers.iter().filter(|word| has_word(line, word)) {
                found.push(format!("{}:{}: {word}", file.path, number + 1));
            }
        }
    }
    assert_none(&found);
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(place, _)| {
        let before = line[..place].chars().next_back();
        let after = line[place + word.len()..].chars().next();
        let joined = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !joined(before) && (word.ends_with('(') || !joined(after))
    })
}

#[test]
fn no_path_of_one_machine_is_written_down() {
    let paths = [
        concat!("/wo", "rk/"),
        concat!("/fa", "rm/"),
        concat!("/ro", "ot/"),
    ];
    let mut found = Vec::new();
    for file in texts() {
        for (number, line) in file.text.lines().enumerate() {
            for path in paths.iter().filter(|path| has_path(line, path)) {
                found.push(format!("{}:{}: {path}", file.path, number + 1));
            }
        }
    }
    assert_none(&found);
}

/// Whether `line` names the absolute `path`: a relative path that contains the same words does not count.
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(place, _)| {
        let before = line[..place].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '~'))
    })
}

#[test]
fn every_text_file_ends_with_one_newline_and_no_line_with_white_space() {
    let mut wrong = Vec::new();
    for file in texts() {
        let written_here = ["rs", "toml", "md", "sh"]
            .iter()
            .any(|one| file.has_extension(one));
        if !written_here || file.text.is_empty() {
            continue;
        }
        if !file.text.ends_with('\n') || file.text.ends_with("\n\n") {
            wrong.push(format!("{}: end it with one newline", file.path));
        }
        let blank_end = |(_, line): &(usize, &str)| line.ends_with([' ', '\t']);
        for (number, _) in file.text.lines().enumerate().filter(blank_end) {
            wrong.push(format!(
                "{}:{}: white space at the end",
                file.path,
                number + 1
            ));
        }
    }
    assert_none(&wrong);
}

#[test]
fn every_crate_takes_the_workspace_s_lints() {
    let takes_them = |folder: &String| {
        let manifest = manifest(&format!("crates/{folder}/Cargo.toml"));
        let shared = manifest
            .get("lints")
            .and_then(|lints| lints.get("workspace"));
        shared.and_then(toml::Value::as_bool) == Some(true)
    };
    let others: Vec<String> = crate_folders()
        .into_iter()
        .filter(|folder| !takes_them(folder))
        .collect();
    assert_none(&others);
}

#[test]
fn every_crate_forbids_unsafe_code_but_two_that_allow_it_where_they_call_c() {
    let (mut forbidding, mut allowing) = (BTreeSet::new(), BTreeSet::new());
    for file in rust() {
        if file.text.contains("#![forbid(unsafe_code)]") {
            forbidding.insert(file.path.clone());
        }
        if ["allow", "expect", "warn"]
            .iter()
            .any(|level| file.text.contains(&format!("{level}(unsafe_code")))
        {
            allowing.insert(file.path);
        }
    }
    let roots = crate_folders()
        .into_iter()
        .flat_map(|folder| ["lib", "main"].map(|root| format!("crates/{folder}/src/{root}.rs")));
    let open: Vec<String> = roots
        .filter(|path| root().join(path).exists() && !forbidding.contains(path))
        .collect();
    assert_eq!(open, ["crates/media-h264/src/lib.rs"]);
    let expected = ["crates/media-h264/src/lib.rs"];
    assert_eq!(allowing, BTreeSet::from(expected.map(str::to_owned)));
}
