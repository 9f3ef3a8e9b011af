//! Uploads the files of this machine that a command names as references, with a bar; addresses stay as they
//! are.

use kinora_client::NewFile;

use super::service::ServiceClient;
use crate::cli::Reference;
use crate::failure::{ExitKind, Failure};
use crate::output::printable;
use crate::progress::{StatusLine, bar_cells};
use crate::stop::StopSignals;

/// The addresses of `references`, in order. Ctrl-C ends the uploads: there is no task yet.
pub(super) async fn addresses(
    service: &ServiceClient,
    references: &[Reference],
    signals: &mut StopSignals,
) -> Result<Vec<String>, Failure> {
    let line = StatusLine::new();
    let uploading = async {
        let mut addresses = Vec::with_capacity(references.len());
        for reference in references {
            addresses.push(address(service, reference, line).await?);
        }
        Ok(addresses)
    };
    let uploaded = tokio::select! {
        uploaded = uploading => uploaded,
        () = signals.next() => {
            Err(Failure::new("Nothing was submitted.").exit(ExitKind::Interrupted))
        }
    };
    line.clear();
    uploaded
}

async fn address(
    service: &ServiceClient,
    reference: &Reference,
    line: StatusLine,
) -> Result<String, Failure> {
    let path = match reference {
        Reference::Address(address) => return Ok(address.clone()),
        Reference::File(path) => path,
    };
    let name = printable(&path.display().to_string());
    let shown = name.clone();
    let file = NewFile::new(path).on_progress(move |sent, all| {
        let percent = u8::try_from(sent * 100 / all.max(1)).unwrap_or(100);
        line.show(&format!(
            "uploading {shown}  {} {percent:3} %",
            bar_cells(percent)
        ));
    });
    let uploaded = service.client.files().upload(&file).await;
    let file = uploaded.map_err(|error| match error {
        kinora_client::Error::Unreadable { .. } => service.failure(&error),
        _ => service.failure(&error).with_prefix(&format!("{name}: ")),
    })?;
    Ok(file.url)
}
