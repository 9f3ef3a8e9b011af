//! Command lines to paste: the program as it was started, with the flags for the same store.

use std::ffi::{OsStr, OsString};

use kinora_store::OpenError;

use crate::cli::PlaceArgs;
use crate::failure::Failure;

/// The flags `--data` and `--config` as given, or as variables set them: the shell that runs the
/// pasted line may lack these variables.
fn place_flags(place: &PlaceArgs) -> String {
    flags(place, |name| std::env::var_os(name))
}

/// The command line for `words` on the store that `place` names.
pub(crate) fn command(words: &str, place: &PlaceArgs) -> String {
    format!("{} {words}{}", program(), place_flags(place))
}

/// The program as it was started.
pub(crate) fn program() -> String {
    let program = std::env::args_os().next();
    program.map_or_else(|| "kinora".to_owned(), |name| quoted(&name))
}

/// Why a command beside the service cannot open its store; `words` is the command, with other flags
/// as the remedy.
pub(crate) fn not_opened(error: OpenError, words: &str, place: &PlaceArgs) -> Failure {
    match error {
        OpenError::Missing(path) => Failure::new(format!(
            "There is no store at {}. Name the data folder of your service with --data, or its configuration file \
             with --config, as in `{}`.",
            path.display(),
            command(words, place)
        )),
        error => Failure::because("The store cannot be opened", error),
    }
}

fn flags(place: &PlaceArgs, variable: impl Fn(&str) -> Option<OsString>) -> String {
    let given = [
        ("--data", &place.data, "KINORA_DATA"),
        ("--config", &place.config, "KINORA_CONFIG"),
    ];
    given
        .into_iter()
        .filter_map(|(flag, path, name)| {
            let path = path.clone().map(OsString::from).or_else(|| variable(name));
            path.map(|path| format!(" {flag} {}", quoted(&path)))
        })
        .collect()
}

/// One word of a POSIX shell that means `text`.
pub(crate) fn quoted(text: &OsStr) -> String {
    let text = text.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(data: Option<&str>, config: Option<&str>) -> PlaceArgs {
        PlaceArgs {
            data: data.map(Into::into),
            config: config.map(Into::into),
        }
    }

    #[test]
    fn flags_are_repeated_as_given_and_quoted() {
        let none = |_: &str| None;
        assert_eq!(flags(&place(None, None), none), "");
        assert_eq!(
            flags(&place(Some("./my data"), Some("it's.toml")), none),
            r" --data './my data' --config 'it'\''s.toml'"
        );
        let data = |name: &str| (name == "KINORA_DATA").then(|| "/srv/kinora".into());
        assert_eq!(flags(&place(None, None), data), " --data /srv/kinora");
        assert_eq!(flags(&place(Some("here"), None), data), " --data here");
    }

    #[test]
    fn a_shell_reads_a_quoted_word_as_it_was() {
        for text in [
            "a b", "$HOME", "`id`", "it's", "", "a\nb", "*", "~", "a&b;c",
        ] {
            let script = format!("printf %s {}", quoted(OsStr::new(text)));
            let done = std::process::Command::new("sh")
                .args(["-c", &script])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(done.stdout).unwrap(), text);
        }
    }
}
