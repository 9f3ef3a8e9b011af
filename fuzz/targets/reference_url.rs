//! A reference URL: whatever passes is http or https, with a host and without user information.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kinora_test_fuzz::check("reference_url", bytes));
