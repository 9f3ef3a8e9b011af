//! The query of a signed address: nothing opens but what was signed.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kinora_test_fuzz::check("signature", bytes));
