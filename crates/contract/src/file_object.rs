//! An uploaded file as clients see it, in the shape of OpenAI's Files API.

use serde::Serialize;

/// An uploaded file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = File))]
pub struct FileObject {
    /// Identifier.
    #[cfg_attr(
        feature = "openapi",
        schema(example = "file_01k3v8r2n8p5c1w9g7d4x6m2ta")
    )]
    pub id: String,
    /// Always `file`.
    #[cfg_attr(feature = "openapi", schema(example = "file"))]
    pub object: &'static str,
    /// Length in bytes.
    pub bytes: u64,
    /// Time of the upload, in Unix seconds.
    pub created_at: u64,
    /// Time when the file expires, in Unix seconds.
    pub expires_at: u64,
    /// The name that the client gave it.
    #[cfg_attr(feature = "openapi", schema(example = "day.jpg"))]
    pub filename: String,
    /// The purpose that the client named, unchanged.
    #[cfg_attr(feature = "openapi", schema(example = "user_data"))]
    pub purpose: String,
    /// Always `processed`: the file was checked before this answer.
    #[cfg_attr(feature = "openapi", schema(example = "processed"))]
    pub status: &'static str,
    /// Signed address of the bytes, which opens without a key until the file expires. Tasks of the
    /// project take it as a reference.
    #[cfg_attr(feature = "openapi", schema(format = "uri"))]
    pub url: String,
}

/// A page of a project's files.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileList {
    /// Always `list`.
    #[cfg_attr(feature = "openapi", schema(example = "list"))]
    pub object: &'static str,
    /// The files.
    pub data: Vec<FileObject>,
    /// Identifier of the first one.
    pub first_id: Option<String>,
    /// Identifier of the last one: `after` of the next page.
    pub last_id: Option<String>,
    /// Whether there are more files.
    pub has_more: bool,
}

/// The answer to a delete.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileDeleted {
    /// Identifier of the deleted file.
    pub id: String,
    /// Always `file`.
    #[cfg_attr(feature = "openapi", schema(example = "file"))]
    pub object: &'static str,
    /// Always `true`.
    pub deleted: bool,
}
