//! The uploaded files that a submit names as references, by their signed addresses or by their ids. They
//! are found before the task is stored, so that a file that is gone, or of another project, or of the wrong
//! kind, is refused at once. Nothing is read over the network.

use kinora_blobs::sign::SignatureError;
use kinora_contract::uploaded::{self, FileAddress};
use kinora_contract::{ErrorCode, FileId, FileKind, SubmitIntent, SubmitRequest, VideoSpec};

use crate::error::ApiError;
use crate::state::Api;

/// The files that a request names.
#[derive(Debug, Default)]
pub(crate) struct NamedFiles(Vec<NamedFile>);

#[derive(Debug)]
struct NamedFile {
    id: FileId,
    /// The field of the request.
    param: String,
    /// The reference as sent.
    sent: String,
    /// The reference in a spec.
    stored: String,
    /// Its signed address.
    address: String,
}

impl NamedFiles {
    /// Finds the files of `project` that `request` names. Its fields are valid.
    pub(crate) async fn find(
        api: &Api,
        project: &str,
        request: &SubmitRequest,
    ) -> Result<Self, ApiError> {
        let mut files = Vec::new();
        for (param, url) in request.urls().filter(|(param, _)| param != "callback_url") {
            let Some(id) = named_id(api, &param, url)? else {
                continue;
            };
            let found = api.files.file(project, id).await?;
            let file = found.ok_or_else(|| gone(&param))?;
            check_kind(&param, file.kind)?;
            files.push(NamedFile {
                id,
                param,
                sent: url.to_owned(),
                stored: uploaded::reference_by_key(&file.blob_key),
                address: api.file_address(&file),
            });
        }
        Ok(Self(files))
    }

    /// Whether `url` of the request names one of them.
    pub(crate) fn contains(&self, url: &str) -> bool {
        self.0.iter().any(|file| file.sent == url)
    }

    /// Their ids.
    pub(crate) fn ids(&self) -> Vec<FileId> {
        let mut ids: Vec<FileId> = self.0.iter().map(|file| file.id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Makes the references to these files those of a spec.
    pub(crate) fn resolve(&self, intent: &mut SubmitIntent) {
        let resolve = |url: &mut String| {
            if let Some(file) = self.0.iter().find(|file| file.sent == *url) {
                url.clone_from(&file.stored);
            }
        };
        match intent {
            SubmitIntent::New(spec) => spec.inputs.change_urls(resolve),
            SubmitIntent::EditOf(edit) => edit.reference_images.iter_mut().for_each(resolve),
            SubmitIntent::FinalOf { .. } => {}
        }
    }

    /// `spec` with addresses that others than this service can read; `None` if it has no other.
    pub(crate) fn readable(&self, spec: &VideoSpec) -> Option<VideoSpec> {
        if self.0.is_empty() {
            return None;
        }
        let mut spec = spec.clone();
        spec.inputs.change_urls(|url| {
            if let Some(file) = self.0.iter().find(|file| file.stored == *url) {
                url.clone_from(&file.address);
            }
        });
        Some(spec)
    }

    /// The refusal when the file with this id went while the task was being stored.
    pub(crate) fn gone(&self, id: FileId) -> ApiError {
        let file = self.0.iter().find(|file| file.id == id);
        gone(file.map_or("file_id", |file| &file.param))
    }
}

/// The file that `url` names, sent as `param`; `None` for a URL that is fetched.
fn named_id(api: &Api, param: &str, url: &str) -> Result<Option<FileId>, ApiError> {
    if let Some(id) = uploaded::named_id(url) {
        return Ok(id.parse().ok());
    }
    let Some(address) = FileAddress::parse(url) else {
        return Ok(None);
    };
    let now_s = api.clock.now_ms() / 1000;
    match api.signer.verify_file(address.id, &address.query, now_s) {
        Ok(()) => Ok(Some(address.id)),
        // Signed by this service: nobody else has the file, whatever the host.
        Err(SignatureError::Expired) => Err(gone(param)),
        Err(_) if address.is_at(&api.settings.base_url) => {
            let message = format!(
                "'{param}' is an address of this service without its valid signature; pass the file's `url` as it \
                 is, with its whole query."
            );
            Err(ApiError::for_param(ErrorCode::InvalidUrl, param, message))
        }
        Err(_) => Ok(None),
    }
}

fn gone(param: &str) -> ApiError {
    let message = format!(
        "The file of '{param}' does not exist in this project; it may have been deleted or have expired. Upload it \
         again, then pass its `url`."
    );
    ApiError::for_param(ErrorCode::InvalidUrl, param, message)
}

fn check_kind(param: &str, kind: FileKind) -> Result<(), ApiError> {
    let wants_sound = param.starts_with("reference_audios");
    let (code, message) = match (kind, wants_sound) {
        (FileKind::Image, true) => (
            ErrorCode::UnsupportedAudio,
            "the file is a picture; send WAV, MP3, M4A, FLAC, Ogg or WebM.",
        ),
        (FileKind::Audio, false) => (
            ErrorCode::UnsupportedImage,
            "the file is sound; send JPEG, PNG, WebP or GIF.",
        ),
        _ => return Ok(()),
    };
    Err(ApiError::for_param(
        code,
        param,
        format!("{param}: {message}"),
    ))
}
