//! A JSON body: it is refused with a code, or becomes a spec that survives being stored.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kinora_test_fuzz::check("json", bytes));
