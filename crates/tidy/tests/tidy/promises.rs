//! The map from promises to tests in `docs/guarantees.md`.

use std::collections::BTreeSet;

use crate::files::{root, rust};
use crate::style::assert_none;

const PAGE: &str = "docs/guarantees.md";
const HEADING: &str = "## Which tests show which promise";

/// The promises that the names of tests in this text carry, such as `P6`.
fn promises(text: &str) -> BTreeSet<String> {
    let names = text.split("fn p").skip(1);
    let numbers = names.filter_map(|rest| {
        let (number, rest) = rest.split_at_checked(2)?;
        let number: u32 = number.parse().ok()?;
        rest.starts_with('_').then(|| format!("P{number}"))
    });
    numbers.collect()
}

#[test]
fn the_map_of_promises_names_every_file_that_shows_one() {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let (_, map) = page.split_once(HEADING).unwrap();
    let map = map.split("\n## ").next().unwrap();
    let row = |promise: &str| {
        let start = format!("| {promise} |");
        map.lines().find(|line| line.starts_with(&start))
    };
    let mut missing = Vec::new();
    let mut found = BTreeSet::new();
    for file in rust() {
        // The name of a file, or of the folder whose `mod.rs` it is.
        let name = file
            .path
            .trim_end_matches(".rs")
            .rsplit('/')
            .next()
            .unwrap();
        for promise in promises(&file.text) {
            let named = row(&promise).is_some_and(|row| row.contains(name));
            if !named {
                missing.push(format!("{}: not in the row {promise} of {PAGE}", file.path));
            }
            found.insert(promise);
        }
    }
    assert_none(&missing);
    let all: BTreeSet<String> = (1..=19).map(|number| format!("P{number}")).collect();
    assert_eq!(found, all, "promises with tests");
}
