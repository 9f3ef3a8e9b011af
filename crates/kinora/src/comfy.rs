//! `kinora comfy`: proposes the configuration of an exported workflow. It prints the proposal and
//! the open questions; it changes no file.

use std::fs;
use std::path::Path;

use kinora_engine_upstreams::comfyui::{Workflow, propose};
use serde_json::Value;

use crate::cli::ComfyImportArgs;
use crate::failure::Failure;
use crate::output::{print, print_message};

/// Prints the configuration of an exported workflow.
pub(crate) fn import(args: &ComfyImportArgs) -> Result<(), Failure> {
    let path = args.workflow.display();
    let bytes = fs::read(&args.workflow).map_err(|error| Failure::because(&path, error))?;
    let workflow = Workflow::read(&bytes).map_err(|error| Failure::because(&path, error))?;
    // A service starts in another folder.
    let whole = fs::canonicalize(&args.workflow).map_err(|error| Failure::because(&path, error))?;
    let proposal = propose(&workflow);
    let name = name_of(&args.workflow);
    print(&format!(
        "[[engines]]\nname = {engine}\nkind = \"comfyui\"\nbase_urls = [{server}]\nworkflow = {file}\n\n{tables}\n\
         [[models]]\nid = {engine}\nengine = {engine}\n# What the model makes: resolutions = [\"480p\"], seconds_max = 5\n",
        engine = quoted(&name),
        server = quoted(&args.server),
        file = quoted(&whole.to_string_lossy()),
        tables = proposal.tables
    ));
    for question in &proposal.questions {
        print_message(question);
    }
    Ok(())
}

/// The text as a string of TOML.
fn quoted(text: &str) -> String {
    // A JSON string is a valid TOML basic string, escapes included, so the JSON writer quotes names
    // and paths for the configuration.
    Value::String(text.to_owned()).to_string()
}

/// A name for the engine: the file's, in the letters of names.
fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name: String = stem
        .chars()
        .map(|one| {
            if one.is_ascii_alphanumeric() {
                one.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect();
    match name.trim_matches('-') {
        "" => "comfyui".to_owned(),
        name => name.to_owned(),
    }
}
