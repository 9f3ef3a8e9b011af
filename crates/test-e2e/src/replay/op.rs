//! What the service did to its data folder, one operation at a time.

use std::sync::Arc;

/// An operation on the data folder. Paths are relative to it; "" is the folder itself.
#[derive(Clone, Debug)]
pub enum Op {
    /// A descriptor was opened.
    Open {
        /// The descriptor.
        fd: u32,
        /// Of what.
        path: String,
        /// The flags, as `open(2)` names them.
        flags: String,
    },
    /// A descriptor was closed.
    Close {
        /// The descriptor.
        fd: u32,
    },
    /// The position of a descriptor was set.
    Seek {
        /// The descriptor.
        fd: u32,
        /// The new position.
        to: usize,
    },
    /// Bytes were written.
    Write {
        /// The descriptor.
        fd: u32,
        /// Where; at the descriptor's position where it is not said.
        at: Option<usize>,
        /// What.
        bytes: Arc<[u8]>,
        /// When the kernel was done with it.
        ended: usize,
    },
    /// Bytes of one file were written to another, each at its descriptor's position.
    Copy {
        /// The descriptor that they were read from.
        from: u32,
        /// The one that they were written to.
        to: u32,
        /// How many.
        length: usize,
        /// When the kernel was done with it.
        ended: usize,
    },
    /// A file was cut off or made longer.
    SetLength {
        /// The descriptor.
        fd: u32,
        /// The new length.
        length: usize,
        /// When the kernel was done with it.
        ended: usize,
    },
    /// A sync of a file or folder ended well.
    Sync {
        /// The descriptor.
        fd: u32,
        /// The path under which it was opened.
        path: String,
        /// When it began.
        began: usize,
    },
    /// A file got another name.
    Link {
        /// A name that it had.
        from: String,
        /// The new one.
        to: String,
    },
    /// A file or folder got another name in place of its own.
    Rename {
        /// The name that it had.
        from: String,
        /// The new one.
        to: String,
    },
    /// A name of a file went.
    Unlink {
        /// The name.
        path: String,
    },
    /// A folder was made.
    MakeFolder {
        /// Its name.
        path: String,
    },
    /// An empty folder was removed.
    RemoveFolder {
        /// Its name.
        path: String,
    },
}
