//! Escapes a prompt so that the library takes it literally, without commands: weights, and syntax
//! that aborts the process.

/// Escapes `prompt` so that the library's prompt parser (`parse_prompt_attention`), which all
/// families use, returns its words unweighted.
///
/// In the parser's grammar, `(word)` and `[word]` change weights, `(word:1.3)` sets one, `BREAK`
/// weighs minus one, and `\(` is the only escape that is removed again. An invalid weight, as in
/// `(well :.)`, throws an exception that nobody catches. So this escapes opening brackets, which
/// makes closing ones literal, and respells the other commands: `[` as `(`, `\` as `/`, `16:9)` as
/// `16:9 )`.
pub(crate) fn literal(prompt: &str) -> String {
    let mut text = String::with_capacity(prompt.len() + 16);
    let mut after_colon = false;
    for c in prompt.chars() {
        match c {
            // It would end a C string.
            '\0' => text.push(' '),
            '(' | '[' => text.push_str("\\("),
            ')' | ']' if after_colon => text.push_str(" )"),
            ']' => text.push(')'),
            '\\' => text.push('/'),
            _ => text.push(c),
        }
        after_colon = match c {
            ':' => true,
            '+' | '-' | '.' | '0'..='9' => after_colon,
            _ => false,
        };
    }
    text.replace("BREAK", "break")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_words_stay_as_they_are() {
        for words in [
            "A fox in the snow, at dawn: quiet.",
            "雪の中の狐",
            "at 16:9, really) yes",
        ] {
            assert_eq!(literal(words), words);
        }
    }

    #[test]
    fn what_the_parser_would_obey_is_respelt() {
        assert_eq!(literal("a (red) hat"), "a \\(red) hat");
        assert_eq!(literal("a [red] hat"), "a \\(red) hat");
        assert_eq!(literal("(16:9)"), "\\(16:9 )");
        assert_eq!(literal("(well :.)"), "\\(well :. )");
        assert_eq!(literal("BREAK BREAK"), "break break");
        assert_eq!(literal("a\\(b\0c"), "a/\\(b c");
    }

    proptest::proptest! {
        /// The parser's grammar, as far as a literal text can contain it.
        #[test]
        fn no_command_is_left(prompt in "[ a():\\[\\]\\\\.0-9BREAK-]{0,40}") {
            let text = literal(&prompt);
            let unescaped = text.replace("\\(", "");
            proptest::prop_assert!(!unescaped.contains(['(', '[', ']', '\\']));
            proptest::prop_assert!(!text.contains("BREAK"));
            for (colon, _) in text.match_indices(':') {
                let number = text[colon + 1..].trim_start_matches(
                    |c: char| "+-.".contains(c) || c.is_ascii_digit(),
                );
                let length = text.len() - colon - 1 - number.len();
                proptest::prop_assert!(length == 0 || !number.starts_with(')'));
            }
        }
    }
}
