//! Previews of an engine's work, encoded for clients. Nothing depends on them: the worker drops one
//! that it cannot encode, and never waits for one.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock, Stopwatch};
use kinora_engine::{Picture, Preview};
use kinora_pool::Pool;
use tokio::task::JoinSet;
use tracing::Instrument;

/// A shorter interval would not be visible, and each preview costs a write.
const EVERY: Duration = Duration::from_secs(1);

/// The previews of one run, a second apart.
#[derive(Debug)]
pub(crate) struct Previews {
    threads: Pool,
    clock: Arc<dyn Clock>,
    /// Time since the last one.
    last: Option<Stopwatch>,
    /// The preview being encoded; dropped with this value.
    encoding: JoinSet<Option<Arc<[u8]>>>,
}

impl Previews {
    /// Previews encoded by `threads`, a second apart by `clock`.
    pub(crate) fn new(threads: Pool, clock: Arc<dyn Clock>) -> Self {
        Self {
            threads,
            clock,
            last: None,
            encoding: JoinSet::new(),
        }
    }

    /// The next encoded preview as WebP, if it is ready. Starts an encoding if one is due. Never
    /// waits: the lease is renewed with or without a preview, however busy the threads are.
    pub(crate) fn next(&mut self, preview: &Preview) -> Option<Arc<[u8]>> {
        if !self.encoding.is_empty() {
            let encoded = self.encoding.try_join_next()?;
            return encoded.ok().flatten();
        }
        if self
            .last
            .as_ref()
            .is_none_or(|last| last.elapsed() >= EVERY)
            && let Some(picture) = preview.take()
        {
            self.last = Some(Stopwatch::start(&self.clock));
            self.encode(picture);
        }
        None
    }

    fn encode(&mut self, picture: Picture) {
        let threads = self.threads.clone();
        let encoding = async move {
            let encoded = threads
                .run(move || {
                    let size = picture.size;
                    kinora_media::preview(size.width, size.height, &picture.rgb)
                })
                .await;
            let webp =
                encoded.inspect_err(|error| tracing::debug!(%error, "encoding a preview stopped"));
            let webp = webp.ok()?;
            let webp =
                webp.inspect_err(|error| tracing::debug!(%error, "a preview could not be encoded"));
            Some(webp.ok()?.into())
        };
        self.encoding.spawn(encoding.in_current_span());
    }
}
