//! A reference image: refused, or pixels of the size that was promised.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kinora_test_fuzz::check("image", bytes));
