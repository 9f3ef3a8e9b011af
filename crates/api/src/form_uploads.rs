//! Files in the form of a submit, where the operator allows them: each is uploaded, and the field that has
//! it refers to it, in one step. Everywhere else a file in a form is refused.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{Extensions, HeaderMap};
use kinora_blobs::measure_file;
use kinora_contract::limits::REFERENCES_MAX;
use kinora_contract::{ErrorCode, FormFields, SubmitRequest, UploadRequest, validate};
use kinora_store::NewKey;
use tokio::task::spawn_blocking;

use crate::error::{ApiError, shown};
use crate::form_stream::{FormPart, FormStream};
use crate::state::Api;
use crate::uploads::ReceivedFile;
use crate::{body, store_file};

/// The fields that may be files.
const FIELDS: [&str; 5] = [
    "input_reference",
    "first_frame",
    "last_frame",
    "reference_images",
    "reference_audios",
];

/// A submit as sent.
#[derive(Debug)]
pub(crate) struct ReadSubmit {
    /// With placeholders for the files, which have the form of a URL and are equal for equal bytes: so
    /// the request can be validated and recognised before a file is stored.
    pub(crate) request: SubmitRequest,
    files: Vec<FormFile>,
}

#[derive(Debug)]
struct FormFile {
    param: String,
    placeholder: String,
    received: ReceivedFile,
}

impl From<SubmitRequest> for ReadSubmit {
    fn from(request: SubmitRequest) -> Self {
        let files = Vec::new();
        Self { request, files }
    }
}

/// Reads the submit in a request with `key`.
pub(crate) async fn read(
    api: &Api,
    key: &NewKey,
    headers: &HeaderMap,
    extensions: &Extensions,
    body: Body,
) -> Result<ReadSubmit, ApiError> {
    if api.settings.form_uploads
        && let Some(boundary) = body::form_boundary(headers)?
    {
        let form = FormStream::new(api, key, boundary, body, extensions);
        return read_form(form).await;
    }
    let fields = body::fields(headers, body).await?;
    Ok(SubmitRequest::from_fields(fields)?.into())
}

async fn read_form(mut form: FormStream<'_>) -> Result<ReadSubmit, ApiError> {
    let (mut fields, mut files) = (FormFields::default(), Vec::new());
    while let Some(part) = form.next(check_file).await? {
        match part {
            FormPart::Text { name, text } => fields.push(&name, text)?,
            FormPart::File { name, file } => {
                if files.len() == REFERENCES_MAX {
                    let message =
                        format!("At most {REFERENCES_MAX} reference items are allowed in all.");
                    return Err(ApiError::new(ErrorCode::UnsupportedCombination, message));
                }
                let path = file.staged.path().to_owned();
                let measured = spawn_blocking(move || measure_file(&path)).await;
                let (_, sha256) = measured
                    .map_err(ApiError::internal)?
                    .map_err(ApiError::storage)?;
                // RFC 2606 reserves `.invalid`: no such host exists.
                let placeholder = format!("https://form.invalid/{sha256}");
                fields.push(&name, placeholder.clone())?;
                files.push(FormFile {
                    param: field(&name).to_owned(),
                    placeholder,
                    received: file,
                });
            }
        }
    }
    let request = fields.into_request()?;
    Ok(ReadSubmit { request, files })
}

/// The field of the part `name`, which may be one of a list.
fn field(name: &str) -> &str {
    name.strip_suffix("[]").unwrap_or(name)
}

fn check_file(name: &str) -> Result<(), ApiError> {
    if FIELDS.contains(&field(name)) {
        return Ok(());
    }
    let shown = shown(name);
    let message = format!("'{shown}' is a file; only fields for references may be files.");
    let code = ErrorCode::FileUploadUnsupported;
    Err(ApiError::for_param(code, &shown, message))
}

impl ReadSubmit {
    /// Whether it has files.
    pub(crate) const fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Stores the files as uploads of `project`, and returns the request with their addresses.
    pub(crate) async fn store_files(
        &self,
        api: &Api,
        project: &str,
    ) -> Result<Cow<'_, SubmitRequest>, ApiError> {
        if self.files.is_empty() {
            return Ok(Cow::Borrowed(&self.request));
        }
        // An invalid request leaves no files behind.
        validate(&self.request, &api.catalog, 0)?;
        let (mut request, upload) = (self.request.clone(), UploadRequest::default());
        for file in &self.files {
            let stored =
                store_file::store(api, project, &file.param, &file.received, &upload, None).await?;
            let address = api.file_address(&stored.file);
            request.change_references(|url| {
                if *url == file.placeholder {
                    url.clone_from(&address);
                }
            });
        }
        Ok(Cow::Owned(request))
    }
}
