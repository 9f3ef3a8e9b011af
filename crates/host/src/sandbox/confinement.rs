//! The purpose of a child process, and its permissions.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The purpose of a confined process, which decides its system calls and devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Native code that generates frames: threads, system libraries, accelerators.
    Engine,
    /// Decodes one film on one thread, with access to nothing else.
    Decoder,
    /// A command of the operator, which starts programs of its own: its files are limited, its system calls are not.
    Command,
}

/// What a process may access. Everything else is closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The purpose of the process.
    pub role: Role,
    /// Files, and folders with all their contents, that it may read.
    pub read: Vec<PathBuf>,
    /// A folder that it may read and write. Created when the process starts, accessible only to its
    /// owner.
    pub scratch: Option<PathBuf>,
    /// Further files and folders that it may read and write.
    pub write: Vec<PathBuf>,
}

impl Confinement {
    /// A confinement without any files.
    pub fn of(role: Role) -> Self {
        Self {
            role,
            read: Vec::new(),
            scratch: None,
            write: Vec::new(),
        }
    }
}
