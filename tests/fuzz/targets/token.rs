#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| syscap_fuzz::token(data));
