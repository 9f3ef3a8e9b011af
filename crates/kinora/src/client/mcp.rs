//! `kinora mcp`: the service's videos as tools of the Model Context Protocol, over standard input and output. Standard output
//! carries only protocol messages; logs and messages for people go to standard error.

mod arguments;
mod local_files;
mod progress;
mod server;
mod tool_error;
mod tools;

use std::io::{self, IsTerminal};

use rmcp::ServiceExt;
use rmcp::transport::stdio;

use self::server::VideoServer;
use super::service::ServiceClient;
use crate::failure::Failure;
use crate::logging::{self, LogFormat};
use crate::output::print_message;

/// Serves one client until it closes standard input.
pub(crate) async fn serve() -> Result<(), Failure> {
    logging::start_direct(LogFormat::Text, "warn")?;
    let service = ServiceClient::from_environment()?;
    if io::stdin().is_terminal() {
        print_message(
            "waiting for messages of the Model Context Protocol on standard input. An AI assistant starts this command; \
             `kinora mcp --help` shows how to configure one. Press Ctrl-C to leave.",
        );
    }
    let ended = |error: String| Failure::because("The assistant's connection failed", error);
    let serving = VideoServer::new(service).serve(stdio()).await;
    let serving = serving.map_err(|error| ended(error.to_string()))?;
    let served = serving.waiting().await;
    served.map(drop).map_err(|error| ended(error.to_string()))
}
