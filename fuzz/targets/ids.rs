//! Identifiers, keys and the cursors of lists: one spelling for each value.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kinora_test_fuzz::check("ids", bytes));
