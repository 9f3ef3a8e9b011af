//! What an engine shows of its work, as clients get it. Nothing depends on it: one that cannot be
//! encoded is left out, and nobody waits for one.

#![expect(
    clippy::disallowed_methods,
    reason = "patience in real time; the worker's clock tells leases"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use kinora_engine::{Picture, Preview};
use kinora_pool::Pool;
use tokio::sync::oneshot;

/// More often, nobody would see the difference, and each costs a renewal.
const EVERY: Duration = Duration::from_secs(1);

/// The previews of one run, a second apart.
#[derive(Debug)]
pub(crate) struct Previews {
    threads: Pool,
    last: Option<Instant>,
    encoding: Option<oneshot::Receiver<Arc<[u8]>>>,
}

impl Previews {
    /// Previews that `threads` encode.
    pub(crate) const fn new(threads: Pool) -> Self {
        Self {
            threads,
            last: None,
            encoding: None,
        }
    }

    /// The next one as WebP, once it is encoded. Has one encoded where it is time for it. It never
    /// waits: the lease is renewed with a preview or without, however busy the threads are.
    pub(crate) fn next(&mut self, preview: &Preview) -> Option<Arc<[u8]>> {
        if let Some(encoding) = &mut self.encoding {
            let encoded = encoding.try_recv();
            if !matches!(encoded, Err(oneshot::error::TryRecvError::Empty)) {
                self.encoding = None;
            }
            return encoded.ok();
        }
        if self.last.is_none_or(|last| last.elapsed() >= EVERY)
            && let Some(picture) = preview.take()
        {
            self.last = Some(Instant::now());
            self.encoding = Some(self.encode(picture));
        }
        None
    }

    fn encode(&self, picture: Picture) -> oneshot::Receiver<Arc<[u8]>> {
        let (answer, answered) = oneshot::channel();
        let threads = self.threads.clone();
        let encode = move || {
            let size = picture.size;
            kinora_media::preview(size.width, size.height, &picture.rgb)
        };
        tokio::spawn(async move {
            match threads.run(encode).await {
                // Nobody listens when the run has ended meanwhile.
                Ok(Ok(webp)) => drop(answer.send(webp.into())),
                Ok(Err(error)) => tracing::debug!(%error, "a preview could not be encoded"),
                Err(error) => tracing::debug!(%error, "encoding a preview stopped"),
            }
        });
        answered
    }
}
