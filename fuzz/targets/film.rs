//! A reference film: refused, or 1 to 15 seconds of finite samples.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kinora_test_fuzz::check("film", bytes));
