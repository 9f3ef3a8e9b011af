//! Splits a text into words, and into characters in scripts without spaces, where a dictionary says which characters
//! end a word. It knows no meanings.

use icu_segmenter::WordSegmenter;
use icu_segmenter::options::WordBreakInvariantOptions;

/// One word of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    /// In lower case.
    pub(super) text: String,
    /// As it was written.
    pub(super) written: String,
    /// Whether it is a character of a script without spaces.
    pub(super) unspaced: bool,
    /// Whether a word ends with it: false for a character within one.
    pub(super) ends: bool,
}

impl Token {
    fn of(written: &str) -> Self {
        Self {
            text: written.to_lowercase().replace('’', "'"),
            written: written.to_owned(),
            unspaced: false,
            ends: true,
        }
    }
}

/// The token for a sign that ends a clause.
pub(super) const STOP: &str = ",";

/// Chinese, Japanese and Korean.
pub(crate) fn is_cjk(c: char) -> bool {
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
            tokens.push(Token::of(written));
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
                ..Token::of("")
            });
        } else if is_unspaced(c) && c.is_alphanumeric() || c == '·' {
            flush(&mut word, &mut tokens);
            tokens.push(Token {
                unspaced: true,
                ..Token::of(&c.to_string())
            });
        } else if is_part(c) {
            word.push(c);
        } else {
            flush(&mut word, &mut tokens);
        }
    }
    flush(&mut word, &mut tokens);
    end_words(&mut tokens);
    tokens
}

/// Finds the ends of words in each run of characters without spaces.
fn end_words(tokens: &mut [Token]) {
    let segmenter = WordSegmenter::new_auto(WordBreakInvariantOptions::default());
    for run in tokens.chunk_by_mut(|one, next| one.unspaced && next.unspaced) {
        let text: String = run.iter().map(|token| token.text.as_str()).collect();
        let ends: Vec<usize> = segmenter.segment_str(&text).collect();
        let mut at = 0;
        for token in run.iter_mut().filter(|token| token.unspaced) {
            at += token.text.len();
            token.ends = ends.binary_search(&at).is_ok();
        }
    }
}
