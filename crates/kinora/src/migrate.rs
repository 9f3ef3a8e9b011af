//! `kinora migrate`: updates the schema of a store, forward only. An embedded store needs no such
//! command.

use crate::cli::HomeArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::output::print;
use crate::store_access;

/// Updates the schema, and prints the previous version.
pub(crate) fn run(home: &HomeArgs) -> Result<(), Failure> {
    let config = Config::load(home)?;
    let runtime = store_access::runtime()?;
    let url = config.store_url();
    let migrated = runtime.block_on(kinora_store::migrate(&url));
    let migrated =
        migrated.map_err(|error| Failure::because("The schema cannot be updated", error))?;
    print(&describe(migrated));
    Ok(())
}

/// `migrated` is the version before and after; `None` for a store that is updated when it is
/// opened.
fn describe(migrated: Option<(u32, u32)>) -> String {
    match migrated {
        None => {
            "Nothing to do: `kinora serve` updates an embedded store when it opens it.\n".to_owned()
        }
        Some((before, after)) if before == after => {
            format!("The schema is up to date, at version {after}.\n")
        }
        Some((0, after)) => format!("Created the schema, at version {after}.\n"),
        Some((before, after)) => {
            format!("Updated the schema from version {before} to version {after}.\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn what_was_done_is_said() {
        for (migrated, part) in [
            (None, "Nothing to do"),
            (Some((3, 3)), "up to date, at version 3"),
            (Some((0, 3)), "Created the schema, at version 3"),
            (Some((1, 3)), "from version 1 to version 3"),
        ] {
            assert!(describe(migrated).contains(part), "{migrated:?}");
        }
    }
}
