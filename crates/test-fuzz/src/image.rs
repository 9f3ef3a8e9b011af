//! A reference image: refused, or pixels of the size that was promised.

use std::io::Write;

pub(crate) fn check(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new_in("/dev/shm").expect("a place for a file");
    file.write_all(bytes).expect("room for a file");
    let size = kinora_media_decode::image_size(file.path());
    if let Ok(image) = kinora_media_decode::image(file.path(), (480, 480)) {
        let (width, height) = (image.width as usize, image.height as usize);
        assert_eq!(image.rgb.len(), width * height * 3);
        assert!(size.is_ok());
    }
}
