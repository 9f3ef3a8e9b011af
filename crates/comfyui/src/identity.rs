//! The identifier of a task's job at every server: a UUID that follows from the task's key, so that any
//! process finds the job again, even if the answer to its submit was lost.

use sha2::{Digest, Sha256};

/// A UUID of version 8 (RFC 9562, 5.8) in lower case, as ComfyUI demands.
pub(crate) fn prompt_id(key: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(b"kinora comfyui job\0");
    hash.update(key.as_bytes());
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut id = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        id.push_str(&format!("{byte:02x}"));
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_identifier_and_no_other_key_has_it() {
        let id = prompt_id("video_0001");
        assert_eq!(id, prompt_id("video_0001"));
        assert_ne!(id, prompt_id("video_0002"));
        assert_eq!((id.len(), &id[14..15]), (36, "8"));
        assert!("89ab".contains(&id[19..20]) && id == id.to_lowercase());
    }
}
