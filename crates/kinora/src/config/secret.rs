//! Files with secrets, which the configuration refers to but does not contain. Large files and
//! secrets in two places are refused.

use std::path::Path;

use crate::failure::Failure;

/// Larger files hold no secret.
const BYTES_MAX: u64 = 8 * 1024;

/// Reads the file that the setting `name` refers to.
pub(super) fn secret_file(name: &str, path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let unreadable = |error| Failure::because(format!("{name} {shown} cannot be read"), error);
    // The length first: a path to a wrong file, such as a log or a disk image, must not be read
    // into memory and sent somewhere as a token.
    if std::fs::metadata(path).map_err(unreadable)?.len() > BYTES_MAX {
        return Err(Failure::new(format!(
            "{name} {shown} is larger than {BYTES_MAX} bytes."
        )));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

/// Reads the token of `[section]`: the first line of a file, or the variable `name`, whichever is
/// set.
pub(super) fn token(
    section: &str,
    path: &Path,
    name: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, Failure> {
    if !name.is_empty() {
        return variable(name).map(Some).ok_or_else(|| {
            Failure::new(format!(
                "The variable {name} in {section}.token_variable is not set."
            ))
        });
    }
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let text = secret_file(&format!("{section}.token_file"), path)?;
    let first = text.lines().next().unwrap_or_default();
    Ok(Some(first.trim().to_owned()))
}

/// Refuses a token in two places.
pub(super) fn check_token(section: &str, path: &Path, name: &str) -> Result<(), Failure> {
    if !path.as_os_str().is_empty() && !name.is_empty() {
        return Err(Failure::new(format!(
            "Set {section}.token_file or {section}.token_variable, not both."
        )));
    }
    Ok(())
}
