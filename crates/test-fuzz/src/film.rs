//! A film of another server: left as it is, refused, or rewritten with one index that is not much larger than its fragments.

use std::io::Write;

/// The index of the longest film has fewer bytes for each of the fragments.
const GROWTH_MAX: u64 = 64;

pub(crate) fn check(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new_in("/dev/shm").expect("a place for a file");
    file.write_all(bytes).expect("room for a file");
    if kinora_media::defragment(file.path()).is_ok_and(|was_fragmented| was_fragmented) {
        let written = std::fs::metadata(file.path()).expect("the file").len();
        assert!(
            written <= 1024 + GROWTH_MAX * bytes.len() as u64,
            "{written} bytes"
        );
        let again = kinora_media::defragment(file.path());
        assert!(again.is_ok_and(|is_fragmented| !is_fragmented));
    }
    let _ = kinora_media::probe(file.path());
}
