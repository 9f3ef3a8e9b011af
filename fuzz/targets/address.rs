//! An address: what carries a private IPv4 address in any of the known ways is never public.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kinora_test_fuzz::check("address", bytes));
