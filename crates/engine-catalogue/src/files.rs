//! Which files of the model hub a choice needs: patterns of names in repositories, and for stable-diffusion.cpp the
//! addresses in its card.

use toml::Table;
use url::Url;

use crate::choice::Choice;
use crate::entry::{ModelRecipe, RepositoryFiles, engine_table};

/// A file that the card of stable-diffusion.cpp names.
pub(crate) struct ModelFile {
    /// The key of `[engines.model]` that has its path.
    pub(crate) key: String,
    /// `ORGANISATION/NAME`.
    pub(crate) repository: String,
    /// Branch, tag or commit.
    revision: String,
    /// Path in the repository.
    pub(crate) path: String,
}

impl RepositoryFiles {
    /// Whether the file at `path` is needed. Hidden ones, such as `.gitattributes`, never are.
    pub(crate) fn takes(&self, path: &str) -> bool {
        let matches = |patterns: &[String]| patterns.iter().any(|one| matches_pattern(one, path));
        let is_hidden = path.split('/').any(|name| name.starts_with('.'));
        let is_included = self.include.is_empty() || matches(&self.include);
        is_included && !is_hidden && !matches(&self.exclude)
    }
}

/// The files of a choice, by repository.
pub(crate) fn repositories(choice: &Choice) -> Vec<RepositoryFiles> {
    if let ModelRecipe::Diffusers(recipe) = choice.recipe {
        return recipe.repositories.clone();
    }
    let mut repositories: Vec<RepositoryFiles> = Vec::new();
    for file in model_files(choice) {
        let mut known = repositories.iter_mut();
        let known = known.find(|one| one.id == file.repository && one.revision == file.revision);
        match known {
            Some(one) => one.include.push(file.path),
            None => repositories.push(RepositoryFiles {
                id: file.repository,
                revision: file.revision,
                include: vec![file.path],
                exclude: Vec::new(),
            }),
        }
    }
    repositories
}

/// The files of the card, those of the chosen quantisation in place of its own.
pub(crate) fn model_files(choice: &Choice) -> Vec<ModelFile> {
    let card = choice.recipe.card();
    let own = |path: &str| {
        let files = engine_table(&card)?.get("files")?.as_array()?;
        let mut files = files.iter().filter_map(toml::Value::as_table);
        let file = files.find(|file| text(file, "path") == Some(path))?;
        text(file, "url")
    };
    let model = engine_table(&card).and_then(|engine| engine.get("model")?.as_table());
    let mut files = Vec::new();
    for (key, value) in model.into_iter().flatten() {
        let replaced = choice.variant.and_then(|variant| variant.files.get(key));
        let address = replaced
            .map(String::as_str)
            .or_else(|| own(value.as_str()?));
        files.extend(address.and_then(|address| hub_file(key, address)));
    }
    files
}

fn text<'t>(table: &'t Table, key: &str) -> Option<&'t str> {
    table.get(key)?.as_str()
}

/// Takes `https://HUB/ORGANISATION/NAME/resolve/REVISION/PATH` apart.
fn hub_file(key: &str, address: &str) -> Option<ModelFile> {
    let url = Url::parse(address).ok()?;
    let mut parts = url.path().trim_start_matches('/').splitn(5, '/');
    let (organisation, name) = (parts.next()?, parts.next()?);
    let (resolve, revision) = (parts.next()?, parts.next()?);
    (resolve == "resolve").then_some(())?;
    Some(ModelFile {
        key: key.to_owned(),
        repository: format!("{organisation}/{name}"),
        revision: revision.to_owned(),
        path: parts.next()?.to_owned(),
    })
}

/// Whether `text` is `pattern`, in which `*` is any characters, also none and also `/`.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    // The first part is the beginning; `split` gives one at least.
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        // No star.
        return rest.is_empty();
    };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_characters() {
        for (pattern, yes, no) in [
            ("*.md", "README.md", "md"),
            ("*.md", "a/b.md", "a.mdx"),
            ("a/*", "a/b/c", "b/a/c"),
            ("*/*", "a/b", "a"),
            ("a*b*c", "a-b-b-c", "a-c-b"),
            ("model_index.json", "model_index.json", "a/model_index.json"),
            ("*aba", "ababa", "abab"),
            ("*", "", "-"),
        ] {
            assert!(matches_pattern(pattern, yes), "{pattern} {yes}");
            assert!(!matches_pattern(pattern, no) || no == "-", "{pattern} {no}");
        }
    }

    #[test]
    fn an_address_of_the_hub_has_five_parts() {
        let file = hub_file("vae", "https://hub.example/a/b/resolve/main/c/d.gguf").unwrap();
        assert_eq!(
            [&file.repository, &file.revision, &file.path],
            ["a/b", "main", "c/d.gguf"]
        );
        for other in [
            "https://hub.example/a/b/blob/main/c",
            "https://hub.example/a",
            "a",
        ] {
            assert!(hub_file("vae", other).is_none(), "{other}");
        }
    }
}
