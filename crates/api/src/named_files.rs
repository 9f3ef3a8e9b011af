//! The files of this service that a submit names as references: uploaded ones, by their signed addresses or
//! by their ids, and pictures of results, by their signed addresses. They are found before the task is
//! stored, so that a file that is gone, or of another project, or of the wrong kind, is refused at once.
//! Nothing is read over the network.

use kinora_blobs::sign::SignatureError;
use kinora_contract::uploaded::{self, AddressedContent, ContentAddress};
use kinora_contract::{
    ErrorCode, FileId, FileKind, SubmitIntent, SubmitRequest, TaskId, TaskState, VideoSpec,
};

use crate::error::ApiError;
use crate::result_files::ResultVariant;
use crate::state::Api;

/// The files that a request names.
#[derive(Debug, Default)]
pub(crate) struct NamedFiles(Vec<NamedFile>);

#[derive(Debug)]
struct NamedFile {
    /// The id of an uploaded file. A result's picture has none: the reference is stored when its task is
    /// prepared, and fails it if the result was deleted before.
    upload: Option<FileId>,
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
            let (upload, blob_key, address) = match named_content(api, &param, url)? {
                None => continue,
                Some(NamedContent::Upload(id)) => {
                    let found = api.files.file(project, id).await?;
                    let file = found.ok_or_else(|| gone(&param))?;
                    check_kind(&param, file.kind)?;
                    let address = api.file_address(&file);
                    (Some(id), file.blob_key, address)
                }
                Some(NamedContent::Picture(task, variant)) => {
                    check_kind(&param, FileKind::Image)?;
                    let key = picture_key(api, project, task, variant).await?;
                    let key = key.ok_or_else(|| picture_gone(&param))?;
                    (None, key, url.to_owned())
                }
            };
            files.push(NamedFile {
                upload,
                param,
                sent: url.to_owned(),
                stored: uploaded::reference_by_key(&blob_key),
                address,
            });
        }
        Ok(Self(files))
    }

    /// Whether `url` of the request names one of them.
    pub(crate) fn contains(&self, url: &str) -> bool {
        self.0.iter().any(|file| file.sent == url)
    }

    /// The ids of the uploaded ones.
    pub(crate) fn ids(&self) -> Vec<FileId> {
        let mut ids: Vec<FileId> = self.0.iter().filter_map(|file| file.upload).collect();
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
        let file = self.0.iter().find(|file| file.upload == Some(id));
        gone(file.map_or("file_id", |file| &file.param))
    }
}

/// A file of this service.
enum NamedContent {
    Upload(FileId),
    Picture(TaskId, ResultVariant),
}

/// The file that `url` names, sent as `param`; `None` for a URL that is fetched.
fn named_content(api: &Api, param: &str, url: &str) -> Result<Option<NamedContent>, ApiError> {
    if let Some(id) = uploaded::named_id(url) {
        return Ok(id.parse().ok().map(NamedContent::Upload));
    }
    let Some(address) = ContentAddress::parse(url) else {
        return Ok(None);
    };
    let now_s = api.clock.now_ms() / 1000;
    let verified = match address.content {
        AddressedContent::File(id) => {
            let verified = api.signer.verify_file(id, &address.query, now_s);
            verified.map(|()| NamedContent::Upload(id))
        }
        AddressedContent::Result(task) => {
            let variant = ResultVariant::from_query(&address.query);
            let name = variant.name();
            let verified = api.signer.verify(task, name, &address.query, now_s);
            verified.map(|()| NamedContent::Picture(task, variant))
        }
    };
    match verified {
        Ok(NamedContent::Picture(_, ResultVariant::Video)) => Err(is_a_video(param)),
        Ok(content) => Ok(Some(content)),
        // Signed by this service: nobody else has the file, whatever the host.
        Err(SignatureError::Expired) => Err(match address.content {
            AddressedContent::File(_) => gone(param),
            AddressedContent::Result(_) => picture_gone(param),
        }),
        Err(_) if address.is_at(&api.settings.base_url) => {
            let message = format!(
                "'{param}' is an address of this service without its valid signature; pass the address as the service \
                 gave it, with its whole query."
            );
            Err(ApiError::for_param(ErrorCode::InvalidUrl, param, message))
        }
        Err(_) => Ok(None),
    }
}

/// The key of a picture of a completed task of `project`, if there is one.
async fn picture_key(
    api: &Api,
    project: &str,
    task: TaskId,
    variant: ResultVariant,
) -> Result<Option<String>, ApiError> {
    let task = api.tasks.get(project, task).await?;
    Ok(task.and_then(|task| match &task.state {
        TaskState::Completed(artifact) => Some(variant.file_in(artifact)?.key.clone()),
        _ => None,
    }))
}

fn is_a_video(param: &str) -> ApiError {
    let message = format!(
        "'{param}' is a video; pass a picture of it, its `first_frame_url` or `last_frame_url`."
    );
    ApiError::for_param(ErrorCode::UnsupportedImage, param, message)
}

fn picture_gone(param: &str) -> ApiError {
    let message = format!(
        "The picture of '{param}' does not exist in this project; its video may have been deleted or have expired."
    );
    ApiError::for_param(ErrorCode::InvalidUrl, param, message)
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
    let message = format!("{param}: {message}");
    Err(ApiError::for_param(code, param, message))
}
