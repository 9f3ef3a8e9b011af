//! Splits a text into words, and into characters in scripts without spaces. It knows no meanings.

/// One word of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    /// In lower case.
    pub(super) text: String,
    /// As it was written.
    pub(super) written: String,
    /// Whether it is a character of a script without spaces.
    pub(super) unspaced: bool,
}

/// The token for a sign that ends a clause.
pub(super) const STOP: &str = ",";

/// Chinese, Japanese and Korean.
pub(in super::super) fn is_cjk(c: char) -> bool {
    matches!(u32::from(c), 0x2e80..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

/// Scripts that write words without spaces between them. Korean has spaces.
fn is_unspaced(c: char) -> bool {
    is_cjk(c) && !matches!(u32::from(c), 0xac00..=0xd7af)
}

fn is_part(c: char) -> bool {
    // Unicode does not count Devanagari's joining signs as letters.
    c.is_alphanumeric() || matches!(c, '\'' | '’' | '-') || matches!(u32::from(c), 0x0900..=0x0963)
}

pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut word = String::new();
    let flush = |word: &mut String, tokens: &mut Vec<Token>| {
        let written = std::mem::take(word);
        let written = written.trim_matches(['-', '\'', '’']);
        if !written.is_empty() {
            tokens.push(Token {
                text: written.to_lowercase().replace('’', "'"),
                written: written.to_owned(),
                unspaced: false,
            });
        }
    };
    for c in text.chars() {
        let stop = matches!(
            c,
            '.' | '!'
                | '?'
                | ';'
                | ','
                | ':'
                | '。'
                | '，'
                | '、'
                | '！'
                | '？'
                | '；'
                | '：'
                | '،'
                | '؛'
                | '؟'
                | '।'
        );
        if stop || c == '\n' {
            flush(&mut word, &mut tokens);
            tokens.push(Token {
                text: STOP.to_owned(),
                written: String::new(),
                unspaced: false,
            });
        } else if is_unspaced(c) && c.is_alphanumeric() {
            flush(&mut word, &mut tokens);
            tokens.push(Token {
                text: c.to_string(),
                written: c.to_string(),
                unspaced: true,
            });
        } else if is_part(c) {
            word.push(c);
        } else {
            flush(&mut word, &mut tokens);
        }
    }
    flush(&mut word, &mut tokens);
    tokens
}
