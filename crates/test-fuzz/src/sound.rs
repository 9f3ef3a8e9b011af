//! A reference sound: refused, or 1 to 15 seconds of finite samples.

use std::io::Write;

pub(crate) fn check(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new_in("/dev/shm").expect("a place for a file");
    file.write_all(bytes).expect("room for a file");
    if let Ok(sound) = kinora_media_decode::sound(file.path()) {
        assert!(
            (0.9..=15.5).contains(&sound.seconds()),
            "{} s",
            sound.seconds()
        );
        assert!(
            sound
                .pcm
                .iter()
                .all(|sample| sample.is_finite() && sample.abs() <= 1.0)
        );
    }
}
