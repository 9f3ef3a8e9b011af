//! Finds the film among what a node put out. Names of keys differ from node to node (`images` of core
//! nodes, `gifs` of VideoHelperSuite), and so do declared formats: the file's ending decides.

use serde_json::Value;

/// Endings of films, the one that Kinora can check first.
const ENDINGS: [&str; 5] = ["mp4", "m4v", "mov", "webm", "mkv"];

/// A file at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilmAt {
    pub(crate) filename: String,
    pub(crate) subfolder: String,
}

/// What a job has put out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A film.
    Film(FilmAt),
    /// Other files, by name.
    Others(Vec<String>),
    /// Nothing (yet).
    Nothing,
}

/// Looks for the film of `node`. Temporary files and inputs that a server lists too do not count.
pub(crate) fn film_of(outputs: &Value, node: &str) -> Found {
    let keys = outputs.get(node).and_then(Value::as_object);
    let lists = keys
        .into_iter()
        .flatten()
        .filter_map(|(_, value)| value.as_array());
    let text = |item: &Value, name: &str| item.get(name)?.as_str().map(str::to_owned);
    let files: Vec<FilmAt> = lists
        .flatten()
        .filter(|item| item.get("type").and_then(Value::as_str) == Some("output"))
        .filter_map(|item| {
            Some(FilmAt {
                filename: text(item, "filename")?,
                subfolder: text(item, "subfolder").unwrap_or_default(),
            })
        })
        .collect();
    for ending in ENDINGS {
        let film = files.iter().find(|file| {
            let found = file.filename.rsplit_once('.');
            found.is_some_and(|(_, one)| one.eq_ignore_ascii_case(ending))
        });
        if let Some(film) = film {
            return Found::Film(film.clone());
        }
    }
    if files.is_empty() {
        Found::Nothing
    } else {
        Found::Others(files.into_iter().map(|file| file.filename).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn film(name: &str) -> Found {
        Found::Film(FilmAt {
            filename: name.to_owned(),
            subfolder: "kinora".to_owned(),
        })
    }

    fn file(name: &str, kind: &str) -> Value {
        json!({"filename": name, "subfolder": "kinora", "type": kind})
    }

    #[test]
    fn a_film_is_found_under_any_key_and_by_its_ending() {
        let core = json!({"9": {"images": [file("a.mp4", "output")], "animated": [true]}});
        assert_eq!(film_of(&core, "9"), film("a.mp4"));
        let suite = json!({"9": {"gifs": [file("a.png", "output"), file("b.MP4", "output")]}});
        assert_eq!(film_of(&suite, "9"), film("b.MP4"));
        let both = json!({"9": {"x": [file("a.webm", "output")], "y": [file("b.mp4", "output")]}});
        assert_eq!(film_of(&both, "9"), film("b.mp4"));
    }

    #[test]
    fn previews_inputs_and_other_nodes_do_not_count() {
        let outputs = json!({
            "8": {"images": [file("other.mp4", "output")]},
            "9": {"images": [file("temp.mp4", "temp"), file("in.mp4", "input")], "text": ["a"]},
        });
        assert_eq!(film_of(&outputs, "9"), Found::Nothing);
        assert_eq!(film_of(&Value::Null, "9"), Found::Nothing);
        let stills = json!({"9": {"images": [file("a.png", "output")]}});
        assert_eq!(
            film_of(&stills, "9"),
            Found::Others(vec!["a.png".to_owned()])
        );
    }
}
