//! Identifiers, keys and the cursors of lists: one spelling for each value.

use kinora_contract::{KeyText, PageQuery, TaskId};

pub(crate) fn check(text: &str) {
    if let Ok(id) = text.parse::<TaskId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Some(key) = KeyText::parse(text) {
        assert_eq!(key.reveal(), text);
    }
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    if let Ok(page) = PageQuery::parse(pairs) {
        assert!((1..=100).contains(&page.limit));
    }
}
