//! A preview of an unfinished clip. Only the latest counts: a new one replaces one that was not
//! taken, and nothing blocks.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Picture;

/// The slot where an engine puts previews and its caller takes them.
#[derive(Clone, Default)]
pub struct Preview(Arc<Mutex<Option<Picture>>>);

impl Preview {
    /// Stores a preview, replacing one that was not taken.
    pub fn show(&self, picture: Picture) {
        *self.slot() = Some(picture);
    }

    /// Whether the last preview was taken: only then is an expensive one worth making.
    pub fn is_wanted(&self) -> bool {
        self.slot().is_none()
    }

    /// Takes the latest preview.
    pub fn take(&self) -> Option<Picture> {
        self.slot().take()
    }

    fn slot(&self) -> MutexGuard<'_, Option<Picture>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Preview").field(&*self.slot()).finish()
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::Size;

    use super::*;

    #[test]
    fn the_latest_preview_is_taken_once() {
        let preview = Preview::default();
        let picture = |grey: u8| Picture {
            size: Size::new(1, 1),
            rgb: vec![grey; 3],
        };
        assert!(preview.is_wanted());
        preview.show(picture(1));
        preview.clone().show(picture(2));
        assert!(!preview.is_wanted());
        assert_eq!(preview.take(), Some(picture(2)));
        assert_eq!(preview.take(), None);
    }
}
