//! Reads a form with files as it arrives: texts into memory, files into the scratch folder. At most one
//! piece of a file is in memory, and a client that sends too slowly is refused.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::Extensions;
use bytes::Bytes;
use futures_util::Stream;
use kinora_contract::limits::{
    BODY_BYTES_MAX, REFERENCE_IMAGE_BYTES_MAX, REFERENCE_RATE_BYTES_MIN,
    REFERENCE_RATE_WINDOW_SECONDS,
};
use kinora_contract::upload_fields::file_name;
use kinora_contract::{FileId, Stopwatch};
use kinora_store::NewKey;
use multer::{Field, Multipart};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::body;
use crate::error::{ApiError, shown};
use crate::memory::BodyMemory;
use crate::request_turns::ActiveTurn;
use crate::state::Api;
use crate::uploads::{ReceivedFile, too_large};

/// A part of a form.
pub(crate) enum FormPart {
    Text { name: String, text: String },
    File { name: String, file: ReceivedFile },
}

/// A form in transit.
pub(crate) struct FormStream<'a> {
    api: &'a Api,
    key: &'a NewKey,
    parts: Multipart<'static>,
    /// The turn of an upload, from the first file on.
    turn: Option<ActiveTurn>,
    memory: Option<Arc<BodyMemory>>,
    pace: BodyPace,
    count: usize,
    text_bytes: usize,
}

impl<'a> FormStream<'a> {
    /// The form with parts separated by `boundary` in the body of a request with `key` and these
    /// `extensions`.
    pub(crate) fn new(
        api: &'a Api,
        key: &'a NewKey,
        boundary: String,
        body: Body,
        extensions: &Extensions,
    ) -> Self {
        let pieces = PieceStream {
            inner: body.into_data_stream(),
            yields: false,
        };
        Self {
            api,
            key,
            turn: None,
            parts: Multipart::new(pieces, boundary),
            memory: extensions.get::<Arc<BodyMemory>>().cloned(),
            pace: BodyPace::new(api),
            count: 0,
            text_bytes: 0,
        }
    }

    /// The next part. A file is on disk by then; `check_file` may refuse it by its name before.
    pub(crate) async fn next(
        &mut self,
        check_file: impl Fn(&str) -> Result<(), ApiError>,
    ) -> Result<Option<FormPart>, ApiError> {
        let Some(mut part) = self.pace.limit(self.parts.next_field()).await? else {
            return Ok(None);
        };
        body::count_part(&mut self.count)?;
        let name = part.name().ok_or_else(body::malformed)?.to_owned();
        let shown = shown(&name);
        if body::is_file(part.headers()) {
            check_file(&name)?;
            let file = self.receive(&mut part, &shown).await?;
            return Ok(Some(FormPart::File { name, file }));
        }
        body::check_part(part.headers(), &shown)?;
        let text = body::utf8(self.text(&mut part).await?, &shown)?;
        Ok(Some(FormPart::Text { name, text }))
    }

    async fn text(&mut self, part: &mut Field<'static>) -> Result<Vec<u8>, ApiError> {
        let mut text = Vec::new();
        while let Some(piece) = self.pace.next(part).await? {
            self.text_bytes += piece.len();
            if self.text_bytes > BODY_BYTES_MAX {
                return Err(body::too_large());
            }
            text.extend_from_slice(&piece);
        }
        Ok(text)
    }

    async fn receive(
        &mut self,
        part: &mut Field<'static>,
        param: &str,
    ) -> Result<ReceivedFile, ApiError> {
        self.api.check_accepts()?;
        if self.turn.is_none() {
            self.turn = Some(self.api.uploads.begin(&self.key.project).await?);
            self.pace.restart();
        }
        let id = FileId::from_parts(self.api.clock.now_ms(), self.api.random()?);
        let staged = self.api.uploads.stage(id)?;
        let filename = file_name(part.file_name().unwrap_or_default());
        let file = File::create_new(staged.path()).await;
        let mut file = file.map_err(ApiError::storage)?;
        let (mut bytes, mut failure) = (0, None);
        while let Some(piece) = self.pace.next(part).await? {
            bytes += piece.len() as u64;
            if bytes > REFERENCE_IMAGE_BYTES_MAX {
                return Err(too_large(param, REFERENCE_IMAGE_BYTES_MAX));
            }
            // On a full disk the rest is read and thrown away: a client that is still sending when the connection
            // closes does not see the refusal.
            if failure.is_none() {
                failure = file.write_all(&piece).await.err();
            }
            if let Some(memory) = &self.memory {
                memory.release();
            }
        }
        if let Some(error) = failure.or(file.flush().await.err()) {
            return Err(ApiError::storage(error));
        }
        Ok(ReceivedFile {
            id,
            filename,
            staged,
        })
    }
}

/// Refuses a client that sends less than the minimum rate.
struct BodyPace {
    watch: Stopwatch,
    bytes: u64,
}

const WINDOW: Duration = Duration::from_secs(REFERENCE_RATE_WINDOW_SECONDS);

impl BodyPace {
    fn new(api: &Api) -> Self {
        Self {
            watch: Stopwatch::start(&api.clock),
            bytes: 0,
        }
    }

    fn restart(&mut self) {
        self.watch.restart();
        self.bytes = 0;
    }

    /// The next piece of a part.
    async fn next(&mut self, part: &mut Field<'static>) -> Result<Option<Bytes>, ApiError> {
        let piece = self.limit(part.chunk()).await?;
        self.bytes += piece.as_ref().map_or(0, Bytes::len) as u64;
        // The time of a window ends early when its bytes are there: so a body of many windows takes
        // at least the minimum rate in each.
        if self.bytes >= REFERENCE_RATE_BYTES_MIN {
            self.restart();
        }
        Ok(piece)
    }

    /// The result of `reading`, within the current window.
    async fn limit<T>(
        &self,
        reading: impl Future<Output = multer::Result<T>>,
    ) -> Result<T, ApiError> {
        let left = WINDOW.saturating_sub(self.watch.elapsed());
        let read = timeout(left, reading).await;
        let read = read.map_err(|_| ApiError::too_slow())?;
        read.map_err(|error| body::transfer_error(&error).unwrap_or_else(body::malformed))
    }
}

pin_project_lite::pin_project! {
    /// The pieces of a body, one at each turn of its reader.
    ///
    /// multer reads on while its stream is ready, into a buffer without a bound; a fast client would fill
    /// it with the whole file.
    struct PieceStream {
        #[pin]
        inner: BodyDataStream,
        yields: bool,
    }
}

impl Stream for PieceStream {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        if std::mem::take(this.yields) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let piece = ready!(this.inner.poll_next(cx));
        *this.yields = piece.is_some();
        Poll::Ready(piece)
    }
}
