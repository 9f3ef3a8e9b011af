//! Removes what was made for added models and is no longer used: folders of weights, and programs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kinora_engine_catalogue::{Places, environments, remove_environment};

use super::added;
use super::used::UsedPaths;
use crate::config::Config;
use crate::config::models_folder;
use crate::failure::Failure;
use crate::folder;
use crate::output::print;

/// Hexadecimal digits in the name of a commit's folder.
const COMMIT_DIGITS: usize = 12;

/// What the engines of the configuration use, those of removed models whose files stay, and those that a running
/// service has from before a change.
pub(super) fn in_use(config: &Config) -> Result<UsedPaths, Failure> {
    if !folder::is_served(&config.data) {
        models_folder::forget_served(&config.data);
    }
    let mut used = UsedPaths::of(config);
    for file in models_folder::read_former(&config.data)? {
        used.add(&file.table()?.into());
    }
    Ok(used)
}

/// Removes the folders that `add` made and nothing uses, and prints each; with `former` only those that it has. The models must
/// be locked.
pub(super) fn sweep(config: &Config, former: Option<&UsedPaths>) -> Result<(), Failure> {
    let places = added::places(config)?;
    let used = in_use(config)?;
    let is_unused = |path: &Path, root: &Path| {
        !used.has(path, root) && former.is_none_or(|former| former.has(path, root))
    };
    for path in commits(&places) {
        if is_unused(&path, &places.weights) {
            report(&path, fs::remove_dir_all(&path))?;
            added::remove_empty_folders(&path, &places.weights);
        }
    }
    for path in environments(&places.engines) {
        if is_unused(&path, &places.engines) {
            report(&path, remove_environment(&path))?;
        }
    }
    Ok(())
}

fn report(path: &Path, removed: io::Result<()>) -> Result<(), Failure> {
    let shown = path.display();
    removed.map_err(|error| Failure::because(format!("{shown} cannot be removed"), error))?;
    print(&format!("{shown}: removed, nothing uses it\n"));
    Ok(())
}

/// The folders `ORGANISATION/NAME/COMMIT` of weights.
fn commits(places: &Places) -> Vec<PathBuf> {
    let repositories = folders(&places.weights).flat_map(|organisation| folders(&organisation));
    let commits = repositories.flat_map(|repository| folders(&repository));
    commits.filter(|path| is_commit(path)).collect()
}

fn is_commit(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| {
        name.len() == COMMIT_DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// The folders directly in `folder`, without links to folders.
fn folders(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGINE: &str = "[[engines]]\nname = \"NAME\"\nkind = \"process\"\ncommand = [\"DATA/engines/ENV/bin/x\"]\n\
                          settings = { model = \"DATA/weights/o/r/COMMIT\" }\n\
                          describe = { fps = 16, features = { text_to_video = true } }\n";
    const OLD: &str = "weights/o/r/0123456789ab";
    const NEW: &str = "weights/o/r/ba9876543210";

    struct SweptFolder(tempfile::TempDir);

    impl SweptFolder {
        fn new() -> Self {
            let data = Self(tempfile::tempdir().unwrap());
            let own = ["weights/o/mine", "weights/o/r/mine", "engines/mine"];
            for folder in [
                OLD,
                NEW,
                "weights/p/q/cccccccccccc",
                "engines/old",
                "engines/new",
            ]
            .into_iter()
            .chain(own)
            {
                fs::create_dir_all(data.path(folder)).unwrap();
                fs::write(data.path(folder).join("file"), "").unwrap();
            }
            for lock in ["engines/.old.lock", "engines/.new.lock"] {
                fs::write(data.path(lock), "").unwrap();
            }
            fs::create_dir(data.path("models.d")).unwrap();
            data
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn has(&self, name: &str) -> bool {
            self.path(name).exists()
        }

        fn engine(&self, commit: &str, environment: &str) -> String {
            let data = self.0.path().to_str().unwrap();
            let (_, commit) = commit.rsplit_once('/').unwrap();
            let text = ENGINE.replace("DATA", data).replace("COMMIT", commit);
            text.replace("ENV", environment)
                .replace("NAME", environment)
        }

        fn config(&self, engines: &str) -> Config {
            let path = self.path("kinora.toml");
            fs::write(&path, format!("data = {:?}\n{engines}", self.0.path())).unwrap();
            Config::read(Some(&path), &[]).unwrap()
        }
    }

    #[test]
    fn only_folders_that_were_made_for_models_and_that_nothing_names_are_removed() {
        let data = SweptFolder::new();
        let config = data.config(&data.engine(NEW, "new"));
        let old = data.config(&data.engine(OLD, "old"));
        sweep(&config, Some(&UsedPaths::of(&old))).unwrap();
        assert!(!data.has(OLD) && !data.has("engines/old"));
        assert!(
            data.has("weights/p/q/cccccccccccc"),
            "it was not of the old version"
        );
        sweep(&config, None).unwrap();
        assert!(!data.has("weights/p"));
        for kept in [
            NEW,
            "engines/new",
            "weights/o/mine",
            "weights/o/r/mine",
            "engines/mine",
        ] {
            assert!(data.has(kept), "{kept}");
        }
    }

    #[test]
    fn a_service_that_runs_keeps_what_it_has_until_it_has_started_again() {
        let data = SweptFolder::new();
        let config = data.config(&data.engine(NEW, "new"));
        let service = folder::mark_served(data.0.path());
        let served = data.path("models.d/.wan.toml.served");
        fs::write(&served, data.engine(OLD, "old")).unwrap();
        sweep(&config, None).unwrap();
        assert!(data.has(OLD) && data.has("engines/old"));
        drop(service);
        let _service = folder::mark_served(data.0.path());
        assert!(!served.exists());
        sweep(&config, None).unwrap();
        assert!(!data.has(OLD) && !data.has("engines/old"));
    }

    #[test]
    fn an_engine_that_this_process_cannot_read_uses_its_files() {
        let data = SweptFolder::new();
        let odd = data.engine(OLD, "old").replace("process", "odd");
        let config = data.config(&format!("{odd}[worker]\nenabled = false\n"));
        sweep(&config, None).unwrap();
        assert!(data.has(OLD) && data.has("engines/old") && !data.has(NEW));
    }
}
