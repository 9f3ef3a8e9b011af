//! What the operator's settings of every engine of other servers have: their addresses and a key.

use std::collections::BTreeSet;
use std::path::Path;

use crate::key::KeySource;

/// Why settings cannot be meant, in words for the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Two places of a key.
    #[error("set key_file or key_variable, not both")]
    TwoKeys,
    /// The same address again.
    #[error("base_urls names a server twice")]
    SameServer,
}

/// The place of the key that `key_file` and `key_variable` name; empty ones name none.
///
/// # Errors
/// [`SettingsError::TwoKeys`] if both do.
pub fn key_source(file: &Path, variable: &str) -> Result<KeySource, SettingsError> {
    match (file.as_os_str().is_empty(), variable.is_empty()) {
        (true, true) => Ok(KeySource::None),
        (false, true) => Ok(KeySource::File(file.to_owned())),
        (true, false) => Ok(KeySource::Variable(variable.to_owned())),
        (false, false) => Err(SettingsError::TwoKeys),
    }
}

/// Checks that `base_urls` has no server twice: one would be taken for two, and get twice its share.
///
/// # Errors
/// [`SettingsError::SameServer`] if it has.
pub fn check_each_once(base_urls: &[String]) -> Result<(), SettingsError> {
    let mut seen = BTreeSet::new();
    let each_once = base_urls
        .iter()
        .all(|url| seen.insert(url.trim_end_matches('/')));
    each_once.then_some(()).ok_or(SettingsError::SameServer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_place() {
        let place = |file: &str, variable| key_source(Path::new(file), variable);
        assert_eq!(place("", ""), Ok(KeySource::None));
        assert_eq!(place("k", ""), Ok(KeySource::File("k".into())));
        assert_eq!(place("", "K"), Ok(KeySource::Variable("K".into())));
        assert_eq!(place("k", "K"), Err(SettingsError::TwoKeys));
    }

    #[test]
    fn a_server_is_named_once() {
        let check = |urls: &[&str]| {
            let urls: Vec<String> = urls.iter().map(|&url| url.to_owned()).collect();
            check_each_once(&urls)
        };
        assert_eq!(check(&["http://a", "http://b"]), Ok(()));
        assert_eq!(
            check(&["http://a", "http://a"]),
            Err(SettingsError::SameServer)
        );
        assert_eq!(
            check(&["http://a", "http://a/"]),
            Err(SettingsError::SameServer)
        );
    }
}
