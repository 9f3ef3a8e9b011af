//! Shell scripts: no result depends on who is quicker.

use crate::files::texts;
use crate::style::assert_none;

/// A reader that leaves before the end of its input kills its writer by SIGPIPE, if that still writes. Under `pipefail`
/// the pipe then fails although the reader found what it looked for: now and then, on a busy machine.
#[test]
fn no_script_reads_a_pipe_and_leaves_early() {
    let mut wrong = Vec::new();
    for file in texts() {
        let opening = file.text.lines().next().unwrap_or_default();
        if !opening.starts_with("#!") || !opening.ends_with("sh") {
            continue;
        }
        for (number, line) in whole_lines(&file.text) {
            if let Some(reader) = leaves_early(&line) {
                wrong.push(format!("{}:{number}: `{reader}` behind a pipe", file.path));
            }
        }
    }
    assert_none(&wrong);
}

/// The lines of a script, each with its number, and with those that a pipe or a backslash at their end continues.
fn whole_lines(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut begun) = (Vec::new(), None::<(usize, String)>);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let (number, whole) = begun.take().unwrap_or((index + 1, String::new()));
        let whole = format!("{whole} {}", line.trim_end_matches('\\'));
        if line.ends_with('\\') || line.ends_with('|') {
            begun = Some((number, whole));
        } else if !line.starts_with('#') {
            found.push((number, whole));
        }
    }
    found
}

/// A command behind a pipe of this line that may not read to the end.
fn leaves_early(line: &str) -> Option<String> {
    let line = line.replace("||", ";");
    let readers = line.split('|').skip(1);
    let early = readers.map(str::trim).find(|reader| {
        let command = reader.split([';', '&', ')']).next().unwrap_or_default();
        let mut words = command.split_whitespace();
        let name = words.next().unwrap_or_default();
        let has_short = |letters: [char; 2]| {
            let mut options = command.split_whitespace().skip(1);
            options.any(|word| {
                word.starts_with('-') && !word.starts_with("--") && word.contains(letters)
            })
        };
        match name {
            "grep" | "egrep" | "fgrep" => {
                has_short(['q', 'm'])
                    || command.contains("--quiet")
                    || command.contains("--max-count")
            }
            "head" | "read" => true,
            "sed" => command
                .split_whitespace()
                .any(|word| word.trim_matches(['\'', '}', ';']).ends_with('q')),
            "awk" => reader
                .split('\'')
                .nth(1)
                .unwrap_or_default()
                .contains("exit"),
            _ => false,
        }
    });
    early.map(str::to_owned)
}

#[test]
fn early_readers_are_found() {
    for line in [
        "cat a | grep -qx b",
        "if ! cat a b | grep --quiet c; then",
        "printf x | sort | head -n 1",
        "made | grep -om1 x",
        "made | sed 5q",
        "made | awk '/x/ { print; exit }'",
    ] {
        assert!(leaves_early(line).is_some(), "{line}");
    }
    for line in [
        "grep -q a b || head -n 1 c",
        "head -c 8 a | tail -c 4",
        "made | grep -o x | sed -n 's/a/b/p'",
        "made | awk '{ print $1 }' || exit 1",
    ] {
        assert!(leaves_early(line).is_none(), "{line}");
    }
}
