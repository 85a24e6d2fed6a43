#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cxi_fuzz::sequence::run(data));
