//! Benchmarks that anyone can run
