//! The binary, with its allocator. Everything else is in the library of this crate, so that tests
//! can use it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Requests are many small allocations on many threads; frames are few large ones. Both are
/// cheaper here than with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kinora::main()
}
