//! OpenAI's routes that this service does not offer: a clear error instead of a bare 404.

use kinora_contract::ErrorCode;

use crate::auth::Writer;
use crate::error::ApiError;

/// Answers `unsupported_operation`.
pub(crate) async fn operation(Writer(_): Writer) -> ApiError {
    ApiError::new(
        ErrorCode::UnsupportedOperation,
        "None of the served models supports this operation.",
    )
}
