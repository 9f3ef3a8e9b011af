//! Command lines to paste: the program as it was started, with the flags for the same store. Words
//! are quoted for a POSIX shell.

use std::ffi::{OsStr, OsString};

use kinora_store::OpenError;

use crate::cli::HomeArgs;
use crate::failure::Failure;

/// The flags `--data` and `--config` as they were given, and as variables say where they were not:
/// the shell where the line is pasted may not have the same variables.
fn home_flags(home: &HomeArgs) -> String {
    flags(home, |name| std::env::var_os(name))
}

/// The command `words` of this program, on the store that `home` names.
pub(crate) fn command(words: &str, home: &HomeArgs) -> String {
    format!("{} {words}{}", program(), home_flags(home))
}

/// The program as it was started.
pub(crate) fn program() -> String {
    let program = std::env::args_os().next();
    program.map_or_else(|| "kinora".to_owned(), |name| shell_quoted(&name))
}

/// Failure of a command that cannot open the store; `words` is a command on another store, as an
/// example.
pub(crate) fn open_failure(error: OpenError, words: &str, home: &HomeArgs) -> Failure {
    match error {
        OpenError::Missing(path) => Failure::new(format!(
            "There is no store at {}. Name the data folder of your service with --data, or its configuration file \
             with --config, as in `{}`.",
            path.display(),
            command(words, home)
        )),
        error => Failure::because("The store cannot be opened", error),
    }
}

fn flags(home: &HomeArgs, variable: impl Fn(&str) -> Option<OsString>) -> String {
    let given = [
        ("--data", &home.data, "KINORA_DATA"),
        ("--config", &home.config, "KINORA_CONFIG"),
    ];
    given
        .into_iter()
        .filter_map(|(flag, path, name)| {
            // A flag of this command line wins over a variable, as in the configuration itself.
            let path = path.clone().map(OsString::from).or_else(|| variable(name));
            path.map(|path| format!(" {flag} {}", shell_quoted(&path)))
        })
        .collect()
}

/// One word of a POSIX shell that means `text`.
pub(crate) fn shell_quoted(text: &OsStr) -> String {
    let text = text.to_string_lossy();
    if !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c))
    {
        return text.into_owned();
    }
    // Single quotes keep everything as it is except themselves: `it's` becomes `'it'\''s'`.
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(data: Option<&str>, config: Option<&str>) -> HomeArgs {
        HomeArgs {
            data: data.map(Into::into),
            config: config.map(Into::into),
        }
    }

    #[test]
    fn flags_are_repeated_as_given_and_quoted() {
        let none = |_: &str| None;
        assert_eq!(flags(&home(None, None), none), "");
        assert_eq!(
            flags(&home(Some("./my data"), Some("it's.toml")), none),
            r" --data './my data' --config 'it'\''s.toml'"
        );
        let data = |name: &str| (name == "KINORA_DATA").then(|| "/srv/kinora".into());
        assert_eq!(flags(&home(None, None), data), " --data /srv/kinora");
        assert_eq!(flags(&home(Some("here"), None), data), " --data here");
    }

    #[test]
    fn a_shell_reads_a_quoted_word_as_it_was() {
        for text in [
            "a b", "$HOME", "`id`", "it's", "", "a\nb", "*", "~", "a&b;c",
        ] {
            let script = format!("printf %s {}", shell_quoted(OsStr::new(text)));
            let done = std::process::Command::new("sh")
                .args(["-c", &script])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(done.stdout).unwrap(), text);
        }
    }
}
