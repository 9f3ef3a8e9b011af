//! Which file of a crate uses which, read from the text of its paths: `use` trees, and paths in
//! code that begin with `crate`, `super`, `self`, a child or an imported module.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::SourceFile;

/// A crate and what its files name of each other, by paths within `src`.
#[derive(Debug)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) uses: BTreeMap<String, BTreeSet<String>>,
}

type Path = Vec<String>;

/// A file as a module.
#[derive(Debug, Default)]
struct Module {
    file: String,
    /// Names that stand for a path from the root: imports and children.
    names: BTreeMap<String, Path>,
    /// Of these, what is shown to others.
    shown: BTreeMap<String, Path>,
    /// Paths that its code names, from the root.
    named: Vec<Path>,
}

/// Every crate of `files` that has a `src`.
pub(crate) fn crates(files: &[SourceFile]) -> Vec<Crate> {
    let mut by_crate: BTreeMap<&str, BTreeMap<Path, Module>> = BTreeMap::new();
    for file in files {
        let Some((name, path)) = file
            .path
            .strip_prefix("crates/")
            .and_then(|rest| rest.split_once("/src/"))
        else {
            continue;
        };
        let module = Module::read(path, &file.text);
        by_crate
            .entry(name)
            .or_default()
            .insert(module_path(path), module);
    }
    by_crate
        .into_iter()
        .map(|(name, modules)| Crate {
            name: name.to_owned(),
            uses: uses(&modules),
        })
        .collect()
}

/// `a/b.rs` and `a/b/mod.rs` are the module `a::b`; the roots are the empty path.
fn module_path(file: &str) -> Path {
    let stem = file.trim_end_matches(".rs");
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    if matches!(stem, "lib" | "main" | "mod") {
        return Path::new();
    }
    stem.split('/').map(str::to_owned).collect()
}

fn uses(modules: &BTreeMap<Path, Module>) -> BTreeMap<String, BTreeSet<String>> {
    let of = |module: &Module| {
        let named = module.named.iter();
        let files = named.filter_map(|path| definer(modules, path, 8));
        files.filter(|file| *file != module.file).collect()
    };
    modules
        .values()
        .map(|module| (module.file.clone(), of(module)))
        .collect()
}

/// The file that defines what `path` names.
fn definer(modules: &BTreeMap<Path, Module>, path: &[String], steps: u32) -> Option<String> {
    // A module alone is no item of its.
    if modules.contains_key(path) {
        return None;
    }
    let length = (0..path.len())
        .rev()
        .find(|length| modules.contains_key(&path[..*length]))?;
    let module = &modules[&path[..length]];
    let Some(shown) = module.shown.get(&path[length]).filter(|_| steps > 0) else {
        return Some(module.file.clone());
    };
    let mut shown = shown.clone();
    shown.extend_from_slice(&path[length + 1..]);
    // An item of another crate belongs to the file that re-exports it.
    definer(modules, &shown, steps - 1).or_else(|| Some(module.file.clone()))
}

impl Module {
    fn read(file: &str, text: &str) -> Self {
        let own = module_path(file);
        let mut module = Self {
            file: file.to_owned(),
            ..Self::default()
        };
        let code = code(text);
        let mut rest = String::new();
        // Statement by statement: `use` and `mod` declare, all else names.
        for part in code.split_inclusive([';', '{', '}']) {
            rest.push_str(part);
            let start = declaration(&rest).map(|at| rest[at..].to_owned());
            match start {
                Some(statement)
                    if statement.trim_start().starts_with("mod ")
                        || words(&statement).contains(&"mod") =>
                {
                    if let Some(name) = statement.trim_end_matches(';').split_whitespace().last() {
                        let mut child = own.clone();
                        child.push(name.to_owned());
                        module.names.insert(name.to_owned(), child);
                    }
                    rest.clear();
                }
                Some(statement) if statement.ends_with(';') => {
                    module.import(&own, &statement);
                    rest.clear();
                }
                Some(_) => {}
                None => {
                    module.name(&own, &rest);
                    rest.clear();
                }
            }
        }
        module
    }

    fn import(&mut self, own: &Path, statement: &str) {
        let is_shown = words(statement)
            .first()
            .is_some_and(|word| word.starts_with("pub"));
        let Some((_, tree)) = statement.split_once("use ") else {
            return;
        };
        let mut leaves = Vec::new();
        spread(tree.trim_end_matches(';'), &[], &mut leaves);
        for (path, alias) in leaves {
            let Some(path) = self.absolute(own, &path) else {
                continue;
            };
            if is_shown {
                self.shown.insert(alias.clone(), path.clone());
            } else {
                self.named.push(path.clone());
            }
            self.names.insert(alias, path);
        }
    }

    /// Notes every path in `code`.
    fn name(&mut self, own: &Path, code: &str) {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        for word in code.split(|c: char| !is_part(c)) {
            let path: Path = word.split("::").map(str::to_owned).collect();
            if path.len() > 1
                && let Some(path) = self.absolute(own, &path)
            {
                self.named.push(path);
            }
        }
    }

    /// `path` from the root of its crate; `None` for another crate's and for what is local.
    fn absolute(&self, own: &Path, path: &[String]) -> Option<Path> {
        let mut base = own.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                base.pop();
                while rest.get(1).is_some_and(|next| next == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            name => base = self.names.get(name)?.clone(),
        }
        base.extend(rest[1..].iter().filter(|part| !part.is_empty()).cloned());
        Some(base)
    }
}

/// Where a `use` or `mod` declaration begins, if `text` ends with one, perhaps unfinished.
fn declaration(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start().len();
    let first: Vec<&str> = words(&text[start..]);
    let visible = first.first().is_some_and(|word| word.starts_with("pub"));
    let keyword = first
        .iter()
        .skip(usize::from(visible))
        .find(|word| !word.starts_with("in ") && **word != "crate)");
    match keyword.copied() {
        Some("use") => Some(start),
        Some("mod") if text.trim_end().ends_with(';') => Some(start),
        _ => None,
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().take(4).collect()
}

/// The leaves of a `use` tree, each with the name that it gets.
fn spread(tree: &str, prefix: &[String], leaves: &mut Vec<(Path, String)>) {
    let tree = tree.trim();
    if let Some((head, inner)) = tree.split_once('{') {
        let mut prefix = prefix.to_vec();
        let head = head.trim().trim_end_matches("::");
        prefix.extend(
            head.split("::")
                .filter(|part| !part.is_empty())
                .map(str::to_owned),
        );
        let inner = inner.trim_end();
        let inner = inner.strip_suffix('}').unwrap_or(inner);
        for part in split(inner) {
            spread(part, &prefix, leaves);
        }
        return;
    }
    if tree.is_empty() {
        return;
    }
    let (path, alias) = match tree.split_once(" as ") {
        Some((path, alias)) => (path.trim(), Some(alias.trim())),
        None => (tree, None),
    };
    let mut whole = prefix.to_vec();
    whole.extend(
        path.split("::")
            .filter(|part| *part != "self" || prefix.is_empty())
            .map(str::to_owned),
    );
    let name = alias.map_or_else(|| whole.last().cloned().unwrap_or_default(), str::to_owned);
    leaves.push((whole, name));
}

/// The parts of a group between its own commas.
fn split(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_u32, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[start..]);
    parts
}

/// The text without comments, attributes, and the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = text.lines().map(|line| match line.find("//") {
        Some(at) if line[..at].matches('"').count() % 2 == 0 => &line[..at],
        _ => line,
    });
    let (mut kept, mut of_tests) = (String::new(), false);
    for line in lines {
        if line.trim_start().starts_with("#[") {
            of_tests |= line.trim() == "#[cfg(test)]";
            continue;
        }
        // An import or a module of tests is one line.
        if !std::mem::take(&mut of_tests) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}
