//! The MCP server: the list of tools, and the call of each. Errors of the service are results of a tool, which a model reads;
//! only an unknown tool is an error of the protocol.

use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::schemars::JsonSchema;
use rmcp::service::{RequestContext, RoleServer};
use serde::de::DeserializeOwned;

use super::arguments::{
    CreateVideo, DownloadVideo, ListModels, ListVideos, VideoId, WaitForVideo, parse,
};
use super::progress::ProgressReport;
use super::tool_error::ToolError;
use super::tools::{self, ToolOutcome};
use crate::client::service::ServiceClient;

const INSTRUCTIONS: &str = "Kinora makes videos from text, pictures and sounds. create_video returns at once with a task; call \
    wait_for_video until its status is completed or failed, then download_video to save the MP4, or give the user its result_url. \
    list_models says what each model can do. A tool error has a code, a message and often the argument at fault.";

/// Serves one client.
#[derive(Debug)]
pub(super) struct VideoServer {
    service: ServiceClient,
}

impl VideoServer {
    pub(super) const fn new(service: ServiceClient) -> Self {
        Self { service }
    }

    /// Calls the tool `name`; `None` if there is none.
    async fn call(
        &self,
        name: &str,
        arguments: Option<JsonObject>,
        context: &RequestContext<RoleServer>,
    ) -> Option<ToolOutcome> {
        let service = &self.service;
        let given = &arguments.unwrap_or_default();
        Some(match name {
            // Not interruptible: the service may have accepted the task already, and nobody would know it.
            "create_video" => with(given, |wanted| tools::create_video(service, wanted)).await,
            "get_video" => with(given, |video| tools::get_video(service, video)).await,
            "wait_for_video" => {
                let report = ProgressReport::new(context);
                let waiting = with(given, |wanted| {
                    tools::wait_for_video(service, wanted, report)
                });
                unless_cancelled(context, waiting).await
            }
            "list_videos" => with(given, |wanted| tools::list_videos(service, wanted)).await,
            "cancel_video" => with(given, |video| tools::cancel_video(service, video)).await,
            "download_video" => {
                let saving = with(given, |wanted| tools::download_video(service, wanted));
                unless_cancelled(context, saving).await
            }
            "list_models" => with(given, |ListModels {}| tools::list_models(service)).await,
            _ => return None,
        })
    }
}

impl ServerHandler for VideoServer {
    fn get_info(&self) -> ServerConfig {
        let own = Implementation::new("kinora", env!("CARGO_PKG_VERSION")).with_title("Kinora");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(own)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(all_tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let called = self.call(&request.name, request.arguments, &context).await;
        Ok(match called {
            Some(Ok(value)) => CallToolResult::structured(value).into(),
            Some(Err(error)) => error.result().into(),
            None => {
                let unknown = format!("There is no tool {:?}; list the tools.", request.name);
                return Err(ErrorData::invalid_params(unknown, None));
            }
        })
    }
}

/// Calls a tool with arguments of its own type. Wrong ones are a tool error, which a model can correct.
async fn with<A: DeserializeOwned, F: Future<Output = ToolOutcome>>(
    given: &JsonObject,
    call: impl FnOnce(A) -> F,
) -> ToolOutcome {
    match parse(given) {
        Ok(arguments) => call(arguments).await,
        Err(error) => Err(error),
    }
}

/// Ends a long call when the client cancels it.
async fn unless_cancelled(
    context: &RequestContext<RoleServer>,
    call: impl Future<Output = ToolOutcome>,
) -> ToolOutcome {
    tokio::select! {
        outcome = call => outcome,
        () = context.ct.cancelled() => Err(ToolError::new("cancelled", "The client cancelled this call.")),
    }
}

fn all_tools() -> Vec<Tool> {
    let reads = || ToolAnnotations::new().read_only(true);
    let adds = || ToolAnnotations::new().read_only(false).destructive(false);
    let destroys = || ToolAnnotations::new().read_only(false).destructive(true);
    vec![
        tool::<CreateVideo>(
            "create_video",
            "Create a video",
            "Submits a video and returns its task at once; making it takes seconds to minutes. Pictures and sounds of the user's machine \
             are uploaded first.",
            adds(),
        ),
        tool::<VideoId>(
            "get_video",
            "Get a video",
            "Returns the task of a video: status (queued, in_progress, completed or failed), progress in percent, error of a failed one, \
             and result_url of a completed one, which opens in a browser without a key until expires_at.",
            reads(),
        ),
        tool::<WaitForVideo>(
            "wait_for_video",
            "Wait for a video",
            "Waits until a video is completed or failed, and returns its task as get_video does. If the time is over first, it returns \
             the unfinished task: call it again.",
            reads(),
        ),
        tool::<ListVideos>(
            "list_videos",
            "List videos",
            "Lists the videos of this key's project, newest first, without their URLs.",
            reads(),
        ),
        tool::<VideoId>(
            "cancel_video",
            "Cancel a video",
            "Cancels a queued or running video: it becomes failed with the error code cancelled. A finished one is refused.",
            destroys().idempotent(true),
        ),
        tool::<DownloadVideo>(
            "download_video",
            "Download a video",
            "Saves the MP4 of a completed video on the user's machine, and returns its path and length in bytes.",
            destroys(),
        ),
        tool::<ListModels>(
            "list_models",
            "List models",
            "Lists the models with their capabilities: sizes, lengths, and which arguments of create_video each supports. available is \
             false for a model that no worker serves at the moment: its videos wait.",
            reads(),
        ),
    ]
}

fn tool<A: JsonSchema + 'static>(
    name: &'static str,
    title: &str,
    description: &'static str,
    hints: ToolAnnotations,
) -> Tool {
    Tool::new(name, description, JsonObject::new())
        .with_input_schema::<A>()
        .with_title(title)
        .with_annotations(hints)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_schemas_describe_each_argument() {
        for tool in all_tools() {
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            assert_eq!(
                tool.input_schema["additionalProperties"], false,
                "{}",
                tool.name
            );
            let properties = tool.input_schema.get("properties");
            for (name, schema) in properties.and_then(Value::as_object).into_iter().flatten() {
                let text = schema["description"].as_str().unwrap_or_default();
                assert!(!text.is_empty(), "{}: {name} has no description", tool.name);
            }
        }
        let create = &all_tools()[0].input_schema;
        assert_eq!(create["required"], serde_json::json!(["prompt"]));
    }
}
