//! Files with secrets, which the configuration refers to but does not contain.

use std::path::Path;

use crate::failure::Failure;

/// Larger files hold no secret.
const BYTES_MAX: u64 = 8 * 1024;

/// Reads the file that the setting `name` refers to.
pub(super) fn secret_file(name: &str, path: &Path) -> Result<String, Failure> {
    text_file(name, path, BYTES_MAX)
}

/// The same of a file of up to `bytes_max`.
pub(super) fn text_file(name: &str, path: &Path, bytes_max: u64) -> Result<String, Failure> {
    let shown = path.display();
    let unreadable = |error| Failure::because(format!("{name} {shown} cannot be read"), error);
    if std::fs::metadata(path).map_err(unreadable)?.len() > bytes_max {
        return Err(Failure::new(format!(
            "{name} {shown} is larger than {bytes_max} bytes."
        )));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}
