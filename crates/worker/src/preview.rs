//! What an engine shows of its work, as clients get it. Nothing depends on it: one that cannot be
//! encoded is left out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kinora_engine::Preview;

/// More often, nobody would see the difference, and each costs a renewal.
const EVERY: Duration = Duration::from_secs(1);

/// The previews of one run, a second apart.
#[derive(Debug, Default)]
pub(crate) struct Previews {
    last: Option<Instant>,
}

impl Previews {
    /// The next one as WebP, where there is one and it is time.
    pub(crate) async fn next(&mut self, preview: &Preview) -> Option<Arc<[u8]>> {
        if self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return None;
        }
        let picture = preview.take()?;
        self.last = Some(Instant::now());
        let encode = move || {
            let size = picture.size;
            kinora_media::preview(size.width, size.height, &picture.rgb)
        };
        match tokio::task::spawn_blocking(encode).await.ok()? {
            Ok(webp) => Some(webp.into()),
            Err(error) => {
                tracing::debug!(%error, "a preview could not be encoded");
                None
            }
        }
    }
}
