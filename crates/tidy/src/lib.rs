//! The style rules as tests: see `tests/tidy`. There is nothing to use here; what the compiler
//! and clippy already refuse is not repeated.

#![forbid(unsafe_code)]
