//! From a caller's words to words that the library takes literally. It refuses to pass on what
//! the library would read as commands: weights, and syntax that ends the process.

/// The words of `prompt` such that the library's prompt parser (`parse_prompt_attention`), through
/// which the words of every family go, gives them back unweighted.
///
/// In its grammar `(word)` and `[word]` change weights, `(word:1.3)` sets one, `BREAK` weighs
/// minus one, and of the escapes only `\(` is taken off again. A weight that is no number, as in
/// `(well :.)`, throws where nobody catches. So opening brackets are escaped, which leaves closing
/// ones literal, and the other commands are respelt: `[` as `(`, `\` as `/`, `16:9)` as `16:9 )`.
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
        /// The grammar of the parser, as far as a literal text may touch it.
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
