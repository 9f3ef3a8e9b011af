//! Links of the documents: each leads to a file of this checkout and to a heading in it, and the list of the book's
//! pages names every page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::files::{root, texts};
use crate::style::assert_none;

#[test]
fn links_between_documents_lead_somewhere() {
    let root = root();
    let documents = texts();
    let documents = documents.iter().filter(|file| file.has_extension("md"));
    let pages: BTreeMap<PathBuf, &str> = documents
        .map(|file| (PathBuf::from(&file.path), &*file.text))
        .collect();
    let anchors: BTreeMap<&PathBuf, BTreeSet<String>> = pages
        .iter()
        .map(|(path, text)| (path, anchors(text)))
        .collect();
    let mut broken = Vec::new();
    for (page, text) in &pages {
        for target in targets(text) {
            let (path, heading) = match target.split_once('#') {
                Some((path, heading)) => (path, Some(heading)),
                None => (target.as_str(), None),
            };
            let file = match path {
                "" => page.clone(),
                _ => normal(&page.parent().unwrap().join(path)),
            };
            let has_heading = |heading: &str| {
                anchors
                    .get(&file)
                    .is_some_and(|anchors| anchors.contains(heading))
            };
            if !root.join(&file).exists() || !heading.is_none_or(has_heading) {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert_none(&broken);
}

#[test]
fn the_book_has_every_page() {
    let root = root();
    let summary = fs::read_to_string(root.join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<String> = targets(&summary).into_iter().collect();
    let files = fs::read_dir(root.join("docs")).unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let missing: Vec<String> = names
        .filter(|name| name.ends_with(".md") && name != "SUMMARY.md" && !listed.contains(name))
        .collect();
    assert_none(&missing);
}

/// Where the links and pictures of a text lead, without those to other hosts.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        let links = line.split("](").skip(1);
        for target in links.filter_map(|rest| rest.split(')').next()) {
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !target.contains(char::is_whitespace) {
                found.push(target.to_owned());
            }
        }
    }
    found
}

/// The names by which links reach the headings of a text: as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in prose(text) {
        let title = line.trim_start_matches('#');
        if title.starts_with(' ') && title.len() < line.len() {
            let name = anchor(title.trim());
            let more = (1..).map(|number| format!("{name}-{number}"));
            let mut names = std::iter::once(name.clone()).chain(more);
            found.insert(names.find(|name| !found.contains(name)).unwrap());
        }
    }
    found
}

/// The name of a heading in links to it.
pub(crate) fn anchor(title: &str) -> String {
    let title = title.to_lowercase();
    let kept = title.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then_some(c),
    });
    kept.collect()
}

/// The lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !fence && !inside
    })
}

/// A path without `..` and `.`.
fn normal(path: &Path) -> PathBuf {
    let mut kept = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                kept.pop();
            }
            Component::CurDir => (),
            part => kept.push(part),
        }
    }
    kept
}
