//! What the pages for developers and operators say of the code by name: the crates, and lines of the log.

use crate::files::{crate_folders, root, rust};

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

#[test]
fn the_architecture_has_every_crate_in_its_table() {
    let page = page("ARCHITECTURE.md");
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let crates: String = rows.filter_map(|line| line.split('|').nth(2)).collect();
    for folder in crate_folders() {
        assert!(crates.contains(&format!("`{folder}`")), "{folder}");
    }
}

#[test]
fn every_crate_of_the_product_says_what_it_is() {
    let of_tests = ["bench", "test-e2e", "test-fuzz", "test-sim", "tidy"];
    for folder in crate_folders() {
        let readme = root().join("crates").join(&folder).join("README.md");
        let text = std::fs::read_to_string(readme).unwrap_or_default();
        let says_what_not = text.contains("**It refuses**");
        assert!(
            says_what_not || of_tests.contains(&&*folder),
            "crates/{folder}/README.md: what it is, and what it refuses"
        );
    }
}

#[test]
fn lines_of_the_log_that_pages_quote_are_written() {
    let quoted = [
        ("SECURITY.md", "child processes are only partly sandboxed"),
        ("docs/operations.md", "log lines dropped"),
        (
            "docs/operations.md",
            "storage failing; claims paused until it recovers",
        ),
        (
            "docs/operations.md",
            "storage recovered; claiming tasks again",
        ),
        ("docs/operations.md", "disk space below the reserve"),
    ];
    let code = rust();
    for (name, line) in quoted {
        assert!(page(name).contains(&format!("`{line}`")), "{name}: {line}");
        let is_written = |text: &str| text.contains(&format!("\"{line}"));
        let mut sources = code
            .iter()
            .filter(|file| !file.path.starts_with("crates/tidy"));
        assert!(sources.any(|file| is_written(&file.text)), "{line}");
    }
}
