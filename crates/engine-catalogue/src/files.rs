//! Which files of the model hub a choice needs: patterns of names in repositories, and for stable-diffusion.cpp the
//! addresses in its card.

use toml::Table;
use url::Url;

use crate::choice::Choice;
use crate::entry::{ModelRecipe, RepositoryFiles, engine_table};

impl RepositoryFiles {
    /// Whether the file at `path` is needed. Hidden ones, such as `.gitattributes`, never are.
    pub(crate) fn takes(&self, path: &str) -> bool {
        let is_hidden = path.split('/').any(|name| name.starts_with('.'));
        let mut patterns = self.include.iter();
        !is_hidden && patterns.any(|pattern| matches_pattern(pattern, path))
    }
}

/// The files of a choice, by repository.
pub(crate) fn repositories(choice: &Choice) -> Vec<RepositoryFiles> {
    if let ModelRecipe::Diffusers(recipe) = choice.recipe {
        return recipe.repositories.clone();
    }
    // The files of a repository together, so that all are of one commit.
    let mut repositories: Vec<RepositoryFiles> = Vec::new();
    for (_, file) in model_files(choice) {
        let mut known = repositories.iter_mut();
        match known.find(|one| one.id == file.id && one.revision == file.revision) {
            Some(one) => one.include.extend(file.include),
            None => repositories.push(file),
        }
    }
    repositories
}

/// The files of the card by their keys of `[engines.model]`, each with its repository; those of the chosen quantisation in place
/// of its own.
pub(crate) fn model_files(choice: &Choice) -> Vec<(String, RepositoryFiles)> {
    let card = choice.recipe.card();
    let own = |path: &str| {
        let files = engine_table(&card)?.get("files")?.as_array()?;
        let mut files = files.iter().filter_map(toml::Value::as_table);
        let file = files.find(|file| text(file, "path") == Some(path))?;
        text(file, "url")
    };
    let model = engine_table(&card).and_then(|engine| engine.get("model")?.as_table());
    let files = model.into_iter().flatten().filter_map(|(key, value)| {
        let replaced = choice.variant.and_then(|variant| variant.files.get(key));
        let address = replaced
            .map(String::as_str)
            .or_else(|| own(value.as_str()?));
        Some((key.clone(), hub_file(address?)?))
    });
    files.collect()
}

fn text<'t>(table: &'t Table, key: &str) -> Option<&'t str> {
    table.get(key)?.as_str()
}

/// Takes `https://HUB/ORGANISATION/NAME/resolve/REVISION/PATH` apart.
fn hub_file(address: &str) -> Option<RepositoryFiles> {
    let url = Url::parse(address).ok()?;
    let parts: Vec<&str> = url.path().trim_start_matches('/').splitn(5, '/').collect();
    let [organisation, name, "resolve", revision, path] = parts[..] else {
        return None;
    };
    Some(RepositoryFiles {
        id: format!("{organisation}/{name}"),
        revision: revision.to_owned(),
        include: vec![path.to_owned()],
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
        let file = hub_file("https://hub.example/a/b/resolve/main/c/d.gguf").unwrap();
        assert_eq!(
            [&file.id, &file.revision, &file.include[0]],
            ["a/b", "main", "c/d.gguf"]
        );
        for other in [
            "https://hub.example/a/b/blob/main/c",
            "https://hub.example/a",
            "a",
        ] {
            assert!(hub_file(other).is_none(), "{other}");
        }
    }
}
