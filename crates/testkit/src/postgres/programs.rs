//! Where PostgreSQL's programs are, and who runs them.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Their folder.
#[derive(Debug)]
pub(crate) struct Programs(PathBuf);

impl Programs {
    /// Those of the newest version that is installed.
    pub(crate) fn find() -> Self {
        let mut folders: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
            .map(|found| found.flatten().map(|one| one.path().join("bin")).collect())
            .unwrap_or_default();
        folders.sort_by_key(|folder| {
            let version = folder.parent().and_then(Path::file_name);
            version.and_then(|name| name.to_str()?.parse::<u32>().ok())
        });
        folders.reverse();
        let path = std::env::var_os("PATH").unwrap_or_default();
        folders.extend(std::env::split_paths(&path));
        folders.push("/usr/local/bin".into());
        let is_whole = |folder: &PathBuf| {
            let needed = ["postgres", "initdb", "psql", "pg_isready"];
            needed.iter().all(|name| folder.join(name).is_file())
        };
        let found = folders.into_iter().find(is_whole);
        Self(found.expect(
            "no PostgreSQL server is installed (postgres, initdb, psql and pg_isready in one folder of PATH or of \
             /usr/lib/postgresql): on Debian, `apt-get install postgresql`",
        ))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The program, run by a user who may run a server: not by root.
    pub(crate) fn command(&self, name: &str, folder: &Path) -> Command {
        let program = match name {
            "sh" => PathBuf::from("sh"),
            name => self.path(name),
        };
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
                command.arg(program);
                command
            }
            false => Command::new(program),
        };
        command.current_dir(folder);
        command
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Gives the folder to the user who runs the server.
pub(crate) fn own(folder: &Path) {
    if is_root() {
        let given = Command::new("chown")
            .arg("nobody:nogroup")
            .arg(folder)
            .status();
        assert!(given.is_ok_and(|status| status.success()), "chown works");
    }
}
