//! Limits on uploads in progress, and the judge of the files that have arrived: that of references, with
//! the same words. It knows no store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kinora_blobs::measure_file;
use kinora_contract::limits::{UPLOAD_TURN_SECONDS, UPLOADS_MAX, UPLOADS_PER_PROJECT_MAX};
use kinora_contract::{ErrorCode, FileId, RequestRefusal};
use kinora_media_decode::{DecodeError, JudgedFile, UploadRefusal, judge_upload};
use kinora_system::scratch::{ScratchFile, ScratchFolder};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::error::ApiError;
use crate::request_turns::{ActiveTurn, RequestTurns};

/// How soon a client should retry an upload for which there was no turn.
const RETRY_SECONDS: u64 = 5;

/// The uploads of a process. Clones share its limits.
#[derive(Clone, Debug)]
pub struct Uploads {
    turns: RequestTurns,
    /// Only one uploaded file is judged at a time.
    arrivals: Arc<Semaphore>,
    /// The whole process decodes one file at a time.
    decoding: Arc<Semaphore>,
    scratch: Arc<ScratchFolder>,
}

impl Uploads {
    /// Uploads that arrive in `scratch` and are decoded with a permit of `decoding`.
    pub fn new(scratch: Arc<ScratchFolder>, decoding: Arc<Semaphore>) -> Self {
        Self {
            turns: RequestTurns::new(UPLOADS_MAX, UPLOADS_PER_PROJECT_MAX),
            arrivals: Arc::new(Semaphore::new(1)),
            decoding,
            scratch,
        }
    }

    /// Waits for the turn of an upload of `project`, before its body is read.
    pub(crate) async fn begin(&self, project: &str) -> Result<ActiveTurn, ApiError> {
        self.turns.acquire(project).await.map_err(|_| busy())
    }

    /// The place of an arriving file.
    pub(crate) fn stage(&self, id: FileId) -> Result<ScratchFile, ApiError> {
        let restored = self.scratch.restore();
        restored.map_err(ApiError::storage)?;
        Ok(ScratchFile::new(&self.scratch, &format!("upload-{id}")))
    }

    /// Decodes and measures the file at `path`, sent as `param`.
    pub(crate) async fn judge(&self, path: &Path, param: &str) -> Result<MeasuredFile, ApiError> {
        let turns = async {
            // As for arriving references: runs that decode their files wait for at most one upload.
            let arrival = self.arrivals.clone().acquire_owned().await;
            (arrival, self.decoding.clone().acquire_owned().await)
        };
        let turns = timeout(Duration::from_secs(UPLOAD_TURN_SECONDS), turns).await;
        let turns = turns.map_err(|_| busy())?;
        let path = path.to_owned();
        let judged = spawn_blocking(move || {
            // Decoding continues when the request is dropped: its turn ends when it does.
            let _turns = turns;
            let judged = judge_upload(&path)?;
            let (bytes, sha256) = measure_file(&path).map_err(DecodeError::Io)?;
            Ok(MeasuredFile {
                judged,
                bytes,
                sha256,
            })
        });
        let judged = judged.await.map_err(ApiError::internal)?;
        judged.map_err(|refusal| refuse(param, &refusal))
    }
}

/// A file that can be a reference.
pub(crate) struct MeasuredFile {
    pub(crate) judged: JudgedFile,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// A file that has arrived.
#[derive(Debug)]
pub(crate) struct ReceivedFile {
    /// The id that it gets if it is stored.
    pub(crate) id: FileId,
    pub(crate) filename: String,
    pub(crate) staged: ScratchFile,
}

/// The refusal of a file of more than `bytes_max` bytes.
pub(crate) fn too_large(param: &str, bytes_max: u64) -> ApiError {
    let message = format!("{param}: the file is larger than {bytes_max} bytes.");
    ApiError::for_param(ErrorCode::RequestTooLarge, param, message)
}

fn busy() -> ApiError {
    let message = "Too many uploads are in progress; send the file again soon.";
    ApiError::new(ErrorCode::RateLimitExceeded, message).retry_after(RETRY_SECONDS)
}

/// The refusal of a file sent as `param`, in the words of a task that fails for its reference.
fn refuse(param: &str, refusal: &UploadRefusal) -> ApiError {
    let (code, message) = match refusal {
        UploadRefusal::Neither(message) => (ErrorCode::UnsupportedFile, message.clone()),
        UploadRefusal::Decode(DecodeError::Io(error)) => return ApiError::storage(error),
        UploadRefusal::Decode(DecodeError::FileTooLarge { bytes_max }) => {
            return too_large(param, *bytes_max);
        }
        UploadRefusal::Decode(error) => {
            let failure = error.failure();
            // Each failure of a file has a code of the same name.
            let code = ErrorCode::from_code(&failure.code);
            (code.unwrap_or(ErrorCode::UnsupportedFile), failure.message)
        }
    };
    RequestRefusal::for_param(code, param, format!("{param}: {message}")).into()
}
