//! Why a tool failed, with the code and message of the service, so that a model can correct its next call or tell the user.

use kinora_client::Error;
use rmcp::model::CallToolResult;
use serde::Serialize;
use serde_json::json;

/// A failed call of a tool.
#[derive(Debug, Serialize)]
pub(super) struct ToolError {
    /// A code of the service, or of this file.
    code: String,
    message: String,
    /// The argument at fault, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<String>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

impl ToolError {
    pub(super) fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            param: None,
            advice: None,
            request_id: None,
        }
    }

    /// Names the argument at fault.
    pub(super) fn with_param(self, param: &str) -> Self {
        Self {
            param: Some(param.to_owned()),
            ..self
        }
    }

    /// As the result of the call.
    pub(super) fn result(&self) -> CallToolResult {
        CallToolResult::structured_error(json!({"error": self}))
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        let advice = advice(&error);
        let mut failed = Self::new(local_code(&error), error.to_string());
        failed.advice = advice;
        if let Error::Refused(refusal) = error {
            failed.code = match refusal.code.as_str() {
                "" => format!("http_{}", refusal.status),
                code => code.to_owned(),
            };
            failed.message = refusal.message;
            failed.param = refusal.param;
            failed.request_id = refusal.request_id;
        }
        failed
    }
}

fn local_code(error: &Error) -> &'static str {
    match error {
        Error::Options(_) => "invalid_arguments",
        Error::Connect { .. } => "service_unreachable",
        Error::Broken(_) => "connection_broken",
        Error::Timeout(_) => "timeout",
        Error::Answer(_) => "invalid_answer",
        Error::Unreadable { .. } => "file_unreadable",
        Error::File { .. } => "file_unwritable",
        _ => "failed",
    }
}

/// Unlike a person at a terminal, a model cannot change the command's environment, and calls tools instead of endpoints.
fn advice(error: &Error) -> Option<&'static str> {
    match error.code() {
        Some("invalid_api_key") => {
            Some("Ask the user to set KINORA_KEY in the configuration of this MCP server.")
        }
        Some("model_not_found") => Some("Call list_models."),
        Some("video_not_ready") => Some("Call wait_for_video."),
        _ if matches!(error, Error::Connect { .. }) => Some(
            "Ask the user to start the service, or to set KINORA_URL in the configuration of this MCP server.",
        ),
        _ => error.advice(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_fault_is_a_tool_error_with_a_code_and_advice() {
        let result = ToolError::from(Error::Connect {
            origin: "http://127.0.0.1:1".to_owned(),
            source: "refused".into(),
        })
        .result();
        assert_eq!(result.is_error, Some(true));
        let error = &result.structured_content.unwrap()["error"];
        assert_eq!(error["code"], "service_unreachable");
        assert_eq!(
            error["message"],
            "cannot connect to http://127.0.0.1:1: refused"
        );
        assert!(error["advice"].as_str().unwrap().contains("KINORA_URL"));
        assert!(error.get("param").is_none());
    }
}
