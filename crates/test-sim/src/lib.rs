//! A seeded simulation of the service: see `tests/sim`. There is nothing to use here.

#![forbid(unsafe_code)]
