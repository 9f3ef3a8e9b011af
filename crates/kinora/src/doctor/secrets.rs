//! Checks the service's user, and other users' access to its secrets: the first key, the key of the
//! certificate, and what travels unencrypted. It never reads a secret.

use std::path::Path;

use super::report::Finding;
use crate::config::Config;
use crate::{compose, folder};

/// Access of users who are neither the owner nor in the file's group: some distributions give a
/// group the keys of certificates.
const EVERYBODY: u32 = 0o007;

pub(super) fn user() -> Finding {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return Finding::Note(
            "root: a fault would affect the whole machine; run the service as a dedicated user"
                .to_owned(),
        );
    }
    Finding::Good(format!("not root (user id {})", user.as_raw()))
}

/// Whether the first key is still in its file.
pub(super) fn first_key(data: &Path) -> Option<Finding> {
    let file = folder::first_key_path(data);
    let shown = file.display();
    file.exists().then(|| {
        Finding::Note(format!(
            "still in {shown}: store it with your other secrets, then delete the file"
        ))
    })
}

/// Whether requests can be read in transit, and the certificate's key on this machine.
pub(super) fn https(config: &Config) -> Finding {
    if let Err(failure) = compose::guards(config) {
        return failure.into();
    }
    if config.http.is_tls() {
        return key_file(&config.http.tls_key);
    }
    if config.base_url.starts_with("https://") {
        return Finding::Good("provided by a proxy, according to base_url".to_owned());
    }
    match config.listen.resolve() {
        Ok(address) if !address.ip().is_loopback() => Finding::Note(
            "not spoken: keys and prompts can be read on their way; set http.tls_certificate and \
             http.tls_key, or put a proxy in front"
                .to_owned(),
        ),
        _ => Finding::Good("not needed: only this machine can connect".to_owned()),
    }
}

fn key_file(key: &Path) -> Finding {
    key_exposure(key).unwrap_or_else(|| {
        Finding::Good("enabled, with a key that other users cannot read".to_owned())
    })
}

/// A finding if other users can read the file of a key.
fn key_exposure(key: &Path) -> Option<Finding> {
    let shown = key.display();
    match folder::foreign_access_mode(key) {
        Ok(Some(mode)) if mode & EVERYBODY != 0 => Some(Finding::Bad(format!(
            "every user can read the key {shown} (mode {mode:o}): run `chmod 600 {shown}`"
        ))),
        Ok(_) => None,
        Err(error) => Some(Finding::Bad(format!("{shown} cannot be examined: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_that_everybody_reads_is_bad() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key.pem");
        fs::write(&key, "").unwrap();
        for (mode, bad) in [(0o600, false), (0o640, false), (0o644, true)] {
            fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();
            let found = key_file(&key);
            assert_eq!(matches!(found, Finding::Bad(_)), bad, "{mode:o}: {found:?}");
        }
        assert!(matches!(
            key_file(&folder.path().join("none")),
            Finding::Bad(_)
        ));
    }

    #[test]
    fn plain_http_beyond_this_machine_is_noted() {
        let mut config = Config::defaults();
        assert!(matches!(https(&config), Finding::Good(_)));
        config.listen = "0.0.0.0:8080".parse().unwrap();
        assert!(matches!(https(&config), Finding::Note(_)));
        config.base_url = "https://video.example.com".to_owned();
        assert!(matches!(https(&config), Finding::Good(_)));
    }

    #[test]
    fn a_first_key_that_was_left_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(first_key(folder.path()), None);
        folder::write_first_key(folder.path(), "kinora_x").unwrap();
        let found = first_key(folder.path());
        assert!(matches!(found, Some(Finding::Note(_))), "{found:?}");
    }
}
