//! A picture of a clip that is not done yet, for people who wait. Only the latest counts: one that
//! nobody took in time is replaced, and nothing waits for anybody.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Picture;

/// Where an engine leaves previews and its caller takes them.
#[derive(Clone, Default)]
pub struct Preview(Arc<Mutex<Option<Picture>>>);

impl Preview {
    /// Leaves a picture in the place of one that was not taken.
    pub fn show(&self, picture: Picture) {
        *self.slot() = Some(picture);
    }

    /// Whether the last one was taken: a picture that costs something to make is made then.
    pub fn is_wanted(&self) -> bool {
        self.slot().is_none()
    }

    /// The latest one, once.
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
