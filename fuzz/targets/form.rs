//! A form, as names and texts: the parts of the input between zero bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kinora_test_fuzz::check("form", bytes));
