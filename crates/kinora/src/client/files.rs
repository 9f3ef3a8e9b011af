//! `kinora files`: the uploaded files of the key's project, as a list; for people, or as JSON.

use kinora_client::File;
use serde_json::json;

use super::service::ServiceClient;
use super::tasks::{collect, line, pretty};
use crate::cli::FilesCommand;
use crate::failure::Failure;
use crate::output::{date, print, printable, table};

/// Runs one of the commands.
pub(crate) async fn run(command: &FilesCommand) -> Result<(), Failure> {
    let service = ServiceClient::from_environment()?;
    match command {
        FilesCommand::List { limit, json } => list(&service, *limit, *json).await,
        FilesCommand::Delete { ids, json } => delete(&service, ids, *json).await,
    }
}

async fn list(service: &ServiceClient, limit: u32, as_json: bool) -> Result<(), Failure> {
    let mut pages = service.client.files().list();
    let files = collect(service, limit, async || pages.next().await).await?;
    print(&if as_json {
        pretty(&files)?
    } else {
        listing(&files)
    });
    Ok(())
}

async fn delete(service: &ServiceClient, ids: &[String], as_json: bool) -> Result<(), Failure> {
    for id in ids {
        let deleted = service.client.files().delete(id).await;
        deleted.map_err(|error| {
            let failure = service.failure(&error);
            failure.with_prefix(&format!("{}: ", id.escape_debug()))
        })?;
        print(&if as_json {
            line(&json!({"id": id, "deleted": true}))?
        } else {
            format!("{id}\n")
        });
    }
    Ok(())
}

fn listing(files: &[File]) -> String {
    if files.is_empty() {
        return "No files. `kinora generate --first-frame FILE` uploads one.\n".to_owned();
    }
    let heads = ["ID", "BYTES", "CREATED", "EXPIRES", "PURPOSE", "NAME"];
    let rows = files.iter().map(|file| {
        [
            printable(&file.id),
            file.bytes.to_string(),
            date(file.created_at * 1000),
            date(file.expires_at * 1000),
            printable(&file.purpose),
            printable(&file.filename),
        ]
    });
    table(heads, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_line_that_cannot_write_to_the_terminal() {
        let file: File = serde_json::from_value(json!({
            "id": "file_x", "bytes": 12, "created_at": 1_700_000_000, "expires_at": 1_700_086_400,
            "filename": "a\u{1b}[2J.png", "purpose": "vision", "url": "http://x/",
        }))
        .unwrap();
        let text = listing(&[file]);
        assert_eq!(text.lines().count(), 2, "{text}");
        for cell in ["file_x", "12", "2023-11-14 22:13", "a\\u{1b}[2J.png"] {
            assert!(text.contains(cell), "{cell}: {text}");
        }
        assert!(listing(&[]).contains("kinora generate"));
    }
}
