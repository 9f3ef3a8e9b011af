//! The flags of the commands that use a server: `kinora generate`, `final`, `edit`, `tasks` and `files`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use kinora_client::Seconds;

use crate::home_path::{expand_home, path};

/// Flags of `kinora generate`.
#[derive(Debug, Default, Args)]
#[command(
    after_help = "The server is KINORA_URL [default: http://127.0.0.1:8080], the key KINORA_KEY or KINORA_API_KEY. For example:\n  \
                  kinora generate \"A red balloon drifts over the sea\" -o balloon.mp4\n  \
                  kinora generate \"Day turns into night\" --seconds 4 --first-frame day.jpg\n  \
                  kinora generate \"A harbour at dawn\" --size 1920x1080 --draft -o draft.mp4\n  \
                  kinora generate \"A harbour at dusk\" --priority high\n  \
                  kinora generate \"A harbour at dawn\" --callback-url https://example.com/done --no-wait\n\n\
                  Without a server, in one command:\n  \
                  kinora generate --local \"A red balloon drifts over the sea\" -o balloon.mp4\n\n\
                  Ctrl-C cancels the task at the server; a second one leaves at once. Exit codes: 0 done, 1 the task failed, \
                  2 wrong usage, 3 the server cannot be reached, 4 the server refused, 6 the video is made but cannot be \
                  written here, 130 interrupted."
)]
pub(crate) struct GenerateArgs {
    /// Description of the video
    pub(crate) prompt: String,
    /// Model [default: the server's first one that supports the request]
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// One of the model's sizes, such as 1280x720
    #[arg(long, value_name = "WxH", conflicts_with_all = ["resolution", "aspect_ratio"])]
    pub(crate) size: Option<String>,
    /// 480p, 720p or 1080p
    #[arg(long, value_name = "LINES")]
    pub(crate) resolution: Option<String>,
    /// 16:9, 9:16, 1:1, 4:3, 3:4, 21:9, or adaptive: the shape of the first image
    #[arg(long, value_name = "RATIO")]
    pub(crate) aspect_ratio: Option<String>,
    /// Length in seconds, or auto if the model can choose
    #[arg(long, value_parser = seconds)]
    pub(crate) seconds: Option<Seconds>,
    /// Seed, to make the same video again [default: a random one]
    #[arg(long)]
    pub(crate) seed: Option<u32>,
    /// Things to avoid
    #[arg(long, value_name = "TEXT")]
    pub(crate) negative_prompt: Option<String>,
    /// Picture that the video starts with: a file, which is uploaded, or a URL
    #[arg(long, value_name = "FILE|URL", value_parser = reference)]
    pub(crate) first_frame: Option<Reference>,
    /// Picture that the video ends with
    #[arg(long, value_name = "FILE|URL", value_parser = reference, requires = "first_frame")]
    pub(crate) last_frame: Option<Reference>,
    /// Picture to show; repeat for more
    #[arg(long, value_name = "FILE|URL", value_parser = reference)]
    pub(crate) image: Vec<Reference>,
    /// Sound to hear; repeat for more
    #[arg(long, value_name = "FILE|URL", value_parser = reference)]
    pub(crate) audio: Vec<Reference>,
    /// Without a sound track
    #[arg(long)]
    pub(crate) no_sound: bool,
    /// Make a draft: quick, at 480p; `kinora final` renders it in full
    #[arg(long)]
    pub(crate) draft: bool,
    /// Priority among the project's own waiting tasks [default: normal]
    #[arg(long, value_name = "CLASS", value_parser = ["low", "normal", "high"])]
    pub(crate) priority: Option<String>,
    /// Start a server for this one video, and stop it afterwards; only the file remains
    #[arg(long, conflicts_with_all = ["no_wait", "draft", "callback_url"])]
    pub(crate) local: bool,
    /// Configuration file of the server that --local starts
    #[arg(long, value_name = "FILE", requires = "local", value_parser = path())]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Flags of `kinora final`.
#[derive(Debug, Args)]
#[command(
    after_help = "Prompt, seed, references, length and size come from the draft. For example:\n  \
                  kinora generate \"A harbour at dawn\" --size 1920x1080 --draft -o draft.mp4\n  \
                  kinora final video_01k3v8r2n8p5c1w9g7d4x6m2ta -o harbour.mp4\n  \
                  kinora final video_01k3v8r2n8p5c1w9g7d4x6m2ta --callback-url https://example.com/done --no-wait"
)]
pub(crate) struct FinalArgs {
    /// A completed draft
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Priority among the project's own waiting tasks [default: normal]
    #[arg(long, value_name = "CLASS", value_parser = ["low", "normal", "high"])]
    pub(crate) priority: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Flags of `kinora edit`.
#[derive(Debug, Args)]
#[command(after_help = "Length and size come from the source. For example:\n  \
                  kinora edit video_01k3v8r2n8p5c1w9g7d4x6m2ta \"The same in deep snow\" -o snow.mp4\n  \
                  kinora edit video_01k3v8r2n8p5c1w9g7d4x6m2ta \"At night\" \
                  --callback-url https://example.com/done --no-wait")]
pub(crate) struct EditArgs {
    /// A completed task
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The change to make
    pub(crate) prompt: String,
    /// Model [default: the server's first one that supports edits]
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// How far the result may depart from its source, 0.0 to 1.0 [default: 0.6]
    #[arg(long)]
    pub(crate) strength: Option<f64>,
    /// Seed [default: a random one]
    #[arg(long)]
    pub(crate) seed: Option<u32>,
    /// Things to avoid
    #[arg(long, value_name = "TEXT")]
    pub(crate) negative_prompt: Option<String>,
    /// Picture to show: a file, which is uploaded, or a URL; repeat for more
    #[arg(long, value_name = "FILE|URL", value_parser = reference)]
    pub(crate) image: Vec<Reference>,
    /// Priority among the project's own waiting tasks [default: normal]
    #[arg(long, value_name = "CLASS", value_parser = ["low", "normal", "high"])]
    pub(crate) priority: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Flags for the result and its notification.
#[derive(Debug, Default, Args)]
pub(crate) struct OutputArgs {
    /// File for the video, replaced if it exists [default: ID.mp4 in this folder]
    #[arg(short, long, value_name = "FILE", conflicts_with = "no_wait", value_parser = path())]
    pub(crate) output: Option<PathBuf>,
    /// Only submit, and print the id; use `kinora tasks watch` and `kinora tasks download` later
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// URL to which the server posts a signed event when the task ends; see `kinora webhooks add`
    #[arg(long, value_name = "URL", value_parser = web_address)]
    pub(crate) callback_url: Option<String>,
    /// Print the task as JSON instead of the file's path
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<Seconds, String> {
    match text {
        "auto" => Ok(Seconds::Auto),
        number => number
            .parse()
            .map(Seconds::Fixed)
            .map_err(|_| "a whole number, or auto".to_owned()),
    }
}

/// The server checks the rest of it.
fn web_address(text: &str) -> Result<String, String> {
    let lower = text.to_ascii_lowercase();
    if lower.starts_with("http://") || lower.starts_with("https://") {
        return Ok(text.to_owned());
    }
    Err("an address that begins with http:// or https://".to_owned())
}

/// A picture or sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// An http or https address, which the server reads.
    Address(String),
    /// A file of this machine, which is uploaded.
    File(PathBuf),
}

/// An address, or a file that exists: a missing one is found before anything is sent.
pub(crate) fn reference(text: &str) -> Result<Reference, String> {
    if let Ok(address) = web_address(text) {
        return Ok(Reference::Address(address));
    }
    let path = expand_home(text).map_err(|failure| failure.to_string())?;
    match fs::metadata(&path) {
        Ok(found) if found.is_dir() => Err("this is a folder; name a file in it".to_owned()),
        Ok(_) => Ok(Reference::File(path)),
        Err(error) => Err(format!(
            "{error}; give a file of this machine, or an address that begins with http:// or https://"
        )),
    }
}

/// The commands of `kinora tasks`.
#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// List the project's tasks, newest first.
    #[command(after_help = "For example:\n  kinora tasks list --limit 100\n  \
                      kinora tasks list --json | jq -r '.[] | select(.status == \"failed\") | .id'")]
    List {
        /// Maximum number of tasks
        #[arg(long, value_name = "TASKS", default_value_t = 20)]
        limit: u32,
        /// Print JSON, as the API returns it
        #[arg(long)]
        json: bool,
    },
    /// Show everything about a task.
    #[command(after_help = "For example:\n  kinora tasks show video_01k3v8r2n8p5c1w9g7d4x6m2ta")]
    Show {
        /// The task
        #[arg(value_name = "ID")]
        id: String,
        /// Print JSON, as the API returns it
        #[arg(long)]
        json: bool,
    },
    /// Follow a task until it ends, and print its final state.
    #[command(
        after_help = "Ctrl-C stops watching; the task goes on. With --json each change is a line. For example:\n  \
                      kinora tasks watch video_01k3v8r2n8p5c1w9g7d4x6m2ta"
    )]
    Watch {
        /// The task
        #[arg(value_name = "ID")]
        id: String,
        /// Print each change as one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Save the video of a task, once it is completed.
    #[command(
        after_help = "Waits for the task first. A download that broke off goes on where it was. For example:\n  \
                      kinora tasks download video_01k3v8r2n8p5c1w9g7d4x6m2ta -o out.mp4"
    )]
    Download {
        /// The task
        #[arg(value_name = "ID")]
        id: String,
        /// File for the video, replaced if it exists [default: ID.mp4 in this folder]
        #[arg(short, long, value_name = "FILE", value_parser = path())]
        output: Option<PathBuf>,
        /// Print the task as JSON instead of the file's path
        #[arg(long)]
        json: bool,
    },
    /// Cancel unfinished tasks: those named, or all that wait.
    #[command(
        after_help = "For example, one task, and all tasks of the key's project that wait for their first run:\n  \
                      kinora tasks cancel video_01k3v8r2n8p5c1w9g7d4x6m2ta\n  \
                      kinora tasks cancel --waiting\n  \
                      kinora tasks cancel --waiting --model kinora-a1"
    )]
    Cancel(CancelArgs),
    /// Delete tasks and their videos; unfinished ones are cancelled first.
    #[command(after_help = "For example:\n  kinora tasks delete video_01k3v8r2n8p5c1w9g7d4x6m2ta")]
    Delete(IdsArgs),
}

/// Flags of `kinora tasks cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The tasks
    #[arg(value_name = "ID", required_unless_present = "waiting")]
    pub(crate) ids: Vec<String>,
    /// All tasks of the project that wait for their first run, instead of some; running ones go on
    #[arg(long, conflicts_with = "ids")]
    pub(crate) waiting: bool,
    /// Of these, only tasks of this model
    // Not only `requires`: clap takes that back where `waiting` would conflict with what is given.
    #[arg(long, requires = "waiting", conflicts_with = "ids")]
    pub(crate) model: Option<String>,
    /// Print JSON, one line per task; with --waiting, one with the number of tasks
    #[arg(long)]
    pub(crate) json: bool,
}

/// One or more tasks.
#[derive(Debug, Args)]
pub(crate) struct IdsArgs {
    /// The tasks
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
    /// Print JSON, one line per task
    #[arg(long)]
    pub(crate) json: bool,
}

/// The commands of `kinora files`.
#[derive(Debug, Subcommand)]
pub(crate) enum FilesCommand {
    /// List the project's uploaded files, newest first.
    #[command(after_help = "For example:\n  kinora files list --limit 100\n  \
                      kinora files list --json | jq -r '.[].id'")]
    List {
        /// Maximum number of files
        #[arg(long, value_name = "FILES", default_value_t = 20)]
        limit: u32,
        /// Print JSON, as the API returns it
        #[arg(long)]
        json: bool,
    },
    /// Delete uploaded files; tasks that were accepted with them are not affected.
    #[command(after_help = "For example:\n  kinora files delete file_01k3v8r2n8p5c1w9g7d4x6m2ta")]
    Delete {
        /// The files
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// Print JSON, one line per file
        #[arg(long)]
        json: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_an_address_or_a_file_that_exists() {
        let address = "HTTPS://example.com/a.png";
        assert_eq!(
            reference(address),
            Ok(Reference::Address(address.to_owned()))
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(reference(path), Ok(Reference::File(path.into())));
        assert!(reference("/").unwrap_err().contains("folder"));
        for missing in ["example.com/a.png", "file:///tmp/a.png"] {
            let refused = reference(missing).unwrap_err();
            assert!(refused.contains("No such file"), "{refused}");
            assert!(refused.contains("http://"), "{refused}");
        }
    }

    #[test]
    fn a_length_is_a_number_or_auto() {
        assert_eq!(seconds("5"), Ok(Seconds::Fixed(5)));
        assert_eq!(seconds("auto"), Ok(Seconds::Auto));
        assert!(seconds("soon").is_err());
    }
}
