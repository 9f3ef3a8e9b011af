//! `/v1/files`: lists, reads, serves and deletes uploaded files, in the shape of OpenAI's Files API. A
//! signed address opens the bytes of one file until it expires.

use axum::extract::{RawQuery, State};
use axum::http::{Extensions, HeaderMap, Method, header};
use axum::response::Response;
use kinora_blobs::sign::SignatureError;
use kinora_contract::{ErrorCode, FileDeleted, FileId, FileList, FileObject, FilePageQuery};
use kinora_store::{FilePageRequest, KeyScope, ListOrder, UploadedFile};

use crate::error::ApiError;
use crate::extract::{PathFileId, ReadKey, WriteKey};
use crate::file_content::{FileContent, SendError};
use crate::refusals::{OfDeleteFile, OfFile, OfFileContent, OfFiles};
use crate::responses::JsonResponse;
use crate::state::{Api, SharedApi};
use crate::store_file::stored_file;
use crate::{extract, file_content};

/// List files.
///
/// The project's own files, newest first. For the next page, pass `last_id` as `after`.
#[utoipa::path(
    get,
    path = "/v1/files",
    tag = "files",
    operation_id = "list_files",
    params(
        ("after" = Option<String>, Query, description = "Only files after this one."),
        ("limit" = Option<u32>, Query, description = "Files of a page, 1 to 100.", minimum = 1, maximum = 100),
        ("order" = Option<String>, Query, description = "`desc` (default, newest first) or `asc`."),
        ("purpose" = Option<String>, Query, description = "Only files with this purpose."),
    ),
    responses((status = 200, description = "A page of files.", body = FileList), OfFiles),
    security(("bearer" = []))
)]
pub(crate) async fn list(
    State(api): State<SharedApi>,
    ReadKey(key): ReadKey,
    RawQuery(query): RawQuery,
) -> Result<JsonResponse<FileList>, ApiError> {
    let query = query.unwrap_or_default();
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let asked = FilePageQuery::parse(pairs.iter().map(|(name, value)| (&**name, &**value)))?;
    let page = api.files.list_files(FilePageRequest {
        project: key.key.project.clone(),
        after: asked.after,
        limit: asked.limit,
        order: if asked.ascending {
            ListOrder::Ascending
        } else {
            ListOrder::Descending
        },
        purpose: asked.purpose,
    });
    let page = page.await?;
    let data: Vec<FileObject> = page
        .files
        .iter()
        .map(|file| api.file_object(file))
        .collect();
    Ok(JsonResponse(FileList {
        object: "list",
        first_id: data.first().map(|file| file.id.clone()),
        last_id: data.last().map(|file| file.id.clone()),
        data,
        has_more: page.has_more,
    }))
}

/// Query a file.
#[utoipa::path(
    get,
    path = "/v1/files/{id}",
    tag = "files",
    operation_id = "read_file",
    params(("id" = String, Path, description = "File identifier.")),
    responses((status = 200, description = "The file.", body = FileObject), OfFile),
    security(("bearer" = []))
)]
pub(crate) async fn read(
    State(api): State<SharedApi>,
    ReadKey(key): ReadKey,
    PathFileId(id): PathFileId,
) -> Result<JsonResponse<FileObject>, ApiError> {
    let file = api.files.file(&key.key.project, id).await?;
    let file = file.ok_or_else(ApiError::file_not_found)?;
    Ok(JsonResponse(api.file_object(&file)))
}

/// Delete a file.
///
/// Tasks that were accepted with the file keep its bytes until they end.
#[utoipa::path(
    delete,
    path = "/v1/files/{id}",
    tag = "files",
    operation_id = "delete_file",
    params(("id" = String, Path, description = "File identifier.")),
    responses((status = 200, description = "The file was deleted.", body = FileDeleted), OfDeleteFile),
    security(("bearer" = []))
)]
pub(crate) async fn delete(
    State(api): State<SharedApi>,
    WriteKey(key): WriteKey,
    PathFileId(id): PathFileId,
) -> Result<JsonResponse<FileDeleted>, ApiError> {
    if !api.files.delete_file(&key.key.project, id).await? {
        return Err(ApiError::file_not_found());
    }
    tracing::info!(file = %id, "file deleted");
    Ok(JsonResponse(FileDeleted {
        id: id.to_string(),
        object: "file",
        deleted: true,
    }))
}

/// Download a file.
///
/// The bytes as uploaded. Supports `Range`, `If-Range`, `If-Match` and `If-None-Match`. Without a key,
/// only the signed `url` of the file works. With files in S3, the answer to `GET` may be a 307 to a
/// signed S3 URL that is valid for five minutes.
#[utoipa::path(
    get,
    path = "/v1/files/{id}/content",
    tag = "files",
    operation_id = "file_content",
    params(
        ("id" = String, Path, description = "File identifier."),
        ("expires" = Option<u64>, Query, description = "Part of a signed URL."),
        ("signature" = Option<String>, Query, description = "Part of a signed URL."),
    ),
    responses(
        (status = 200, description = "The bytes.", content((Vec<u8> = "application/octet-stream"))),
        (status = 206, description = "The requested range of the bytes."),
        (status = 307, description = "Redirect to the URL of the bytes, which is valid for a few minutes."),
        (status = 304, description = "The client already has these bytes."),
        OfFileContent,
    ),
    security(("bearer" = []), ())
)]
pub(crate) async fn content(
    State(api): State<SharedApi>,
    PathFileId(id): PathFileId,
    RawQuery(query): RawQuery,
    method: Method,
    headers: HeaderMap,
    extensions: Extensions,
) -> Result<Response, ApiError> {
    let query = query.unwrap_or_default();
    check_parameters(&query)?;
    let found = find(&api, id, &query, &headers, &extensions).await?;
    let file = found.ok_or_else(ApiError::file_not_found)?;
    let content = FileContent {
        file: &stored_file(&file),
        media_type: &file.media_type,
        // Not the client's own name, which a header may not be able to carry.
        disposition: &format!("inline; filename=\"{id}\""),
        expires_at_ms: file.expires_at_ms,
    };
    match file_content::send(&api, content, &method, &headers).await {
        Ok(response) => Ok(response),
        Err(SendError::Refused(error)) => Err(error),
        Err(SendError::Lost(found)) => Err(lost(&api, &file, found).await),
    }
}

/// Refuses parameters that are not part of a signature.
fn check_parameters(query: &str) -> Result<(), ApiError> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    match pairs.find(|(name, _)| !matches!(&**name, "expires" | "signature")) {
        None => Ok(()),
        Some((name, _)) => Err(ApiError::unknown_parameter(&name)),
    }
}

/// Finds the file by the signature in the URL, or by the request's key.
async fn find(
    api: &Api,
    id: FileId,
    query: &str,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Option<UploadedFile>, ApiError> {
    if query.contains("signature=") {
        let now_s = api.clock.now_ms() / 1000;
        match api.signer.verify_file(id, query, now_s) {
            // A valid signed URL needs no key; a key that comes with it is ignored.
            Ok(()) => return Ok(api.files.any_file(id).await?),
            // A file expires with its address.
            Err(SignatureError::Expired) => return Ok(None),
            Err(_) if !headers.contains_key(header::AUTHORIZATION) => {
                let message = "Invalid file address; query the file for the current one.";
                return Err(ApiError::new(ErrorCode::InvalidApiKey, message));
            }
            Err(_) => {}
        }
    }
    let key = extract::authorize(api, headers, extensions, KeyScope::Read).await?;
    Ok(api.files.file(&key.key.project, id).await?)
}

/// The answer for a file whose bytes are missing or have the length `found`. It may have been deleted or
/// have expired meanwhile.
async fn lost(api: &Api, file: &UploadedFile, found: Option<u64>) -> ApiError {
    match api.files.any_file(file.id).await {
        Ok(Some(_)) => {
            let (id, key) = (file.id, &file.blob_key);
            tracing::error!(file = %id, key, bytes = file.bytes, found, "uploaded file lost: missing or truncated");
            let message = "This file was lost on the server; upload it again.";
            ApiError::new(ErrorCode::ContentLost, message).final_answer()
        }
        Ok(None) => ApiError::file_not_found(),
        Err(error) => error.into(),
    }
}
