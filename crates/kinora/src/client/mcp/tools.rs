//! What each tool does at the service. Results are the objects of the HTTP API.

use std::time::Duration;

use kinora_client::{NewFile, Seconds, Variant, Video};
use serde::Serialize;
use serde_json::{Value, json};

use super::arguments::{CreateVideo, DownloadVideo, ListVideos, VideoId, WaitForVideo};
use super::local_files::{OutputFile, find_reference};
use super::progress::ProgressReport;
use super::tool_error::ToolError;
use crate::cli::{GenerateArgs, Reference};
use crate::client::make::{References, build_request, model_for};
use crate::client::service::ServiceClient;

const LIST_DEFAULT: u32 = 20;
const LIST_MAX: u32 = 100;
/// Below the minute after which many clients give up a call.
const WAIT_DEFAULT_SECONDS: u64 = 45;
const WAIT_MAX_SECONDS: u64 = 3600;
/// The fields of a task in a list: without signed addresses, which are long and only good for one task.
const LISTED: [&str; 9] = [
    "id",
    "status",
    "progress",
    "model",
    "prompt",
    "size",
    "seconds",
    "created_at",
    "error",
];

pub(super) type ToolOutcome = Result<Value, ToolError>;

/// Submits a video, as `kinora generate` does.
pub(super) async fn create_video(service: &ServiceClient, wanted: CreateVideo) -> ToolOutcome {
    let args = flags(wanted)?;
    let mut addresses = Vec::new();
    for reference in References::named(&args) {
        addresses.push(match reference {
            Reference::Address(address) => address,
            Reference::File(path) => {
                service
                    .client
                    .files()
                    .upload(&NewFile::new(path))
                    .await?
                    .url
            }
        });
    }
    let model = match &args.model {
        Some(model) => model.clone(),
        None => model_for(service, &args).await?,
    };
    let request = build_request(&args, References::new(&args, addresses), model);
    to_json(&service.client.submit(&request).await?)
}

/// The same request as flags of `kinora generate`.
fn flags(wanted: CreateVideo) -> Result<GenerateArgs, ToolError> {
    let one = |param: &str, text: Option<String>| {
        text.map(|text| find_reference(param, &text)).transpose()
    };
    let all = |param: &str, texts: Vec<String>| {
        let found = texts.iter().map(|text| find_reference(param, text));
        found.collect::<Result<Vec<_>, _>>()
    };
    Ok(GenerateArgs {
        first_frame: one("first_frame", wanted.first_frame)?,
        last_frame: one("last_frame", wanted.last_frame)?,
        image: all("reference_images", wanted.reference_images)?,
        audio: all("reference_audios", wanted.reference_audios)?,
        prompt: wanted.prompt,
        model: wanted.model,
        seconds: wanted.seconds.map(Seconds::Fixed),
        size: wanted.size,
        resolution: wanted.resolution,
        aspect_ratio: wanted.aspect_ratio,
        seed: wanted.seed,
        negative_prompt: wanted.negative_prompt,
        no_sound: wanted.generate_audio == Some(false),
        ..GenerateArgs::default()
    })
}

pub(super) async fn get_video(service: &ServiceClient, video: VideoId) -> ToolOutcome {
    to_json(&service.client.get(&video.id).await?)
}

pub(super) async fn cancel_video(service: &ServiceClient, video: VideoId) -> ToolOutcome {
    to_json(&service.client.cancel(&video.id).await?)
}

/// Follows a task until it ends or the time is up, and returns its state then.
pub(super) async fn wait_for_video(
    service: &ServiceClient,
    wanted: WaitForVideo,
    mut report: ProgressReport,
) -> ToolOutcome {
    let seconds = wanted.timeout_seconds.unwrap_or(WAIT_DEFAULT_SECONDS);
    let limit = Duration::from_secs(seconds.min(WAIT_MAX_SECONDS));
    let mut watch = service.client.watch(&wanted.id);
    let mut last: Option<Video> = None;
    let followed = tokio::time::timeout(limit, async {
        while let Some(video) = watch.next().await? {
            report.update(&video).await;
            last = Some(video);
        }
        Ok::<(), ToolError>(())
    });
    if let Ok(failed) = followed.await {
        failed?;
    }
    match last {
        Some(video) => to_json(&video),
        None => get_video(service, VideoId { id: wanted.id }).await,
    }
}

pub(super) async fn list_videos(service: &ServiceClient, wanted: ListVideos) -> ToolOutcome {
    let limit = wanted.limit.unwrap_or(LIST_DEFAULT).clamp(1, LIST_MAX);
    let mut pages = service.client.list().page_size(limit);
    if let Some(id) = wanted.after {
        pages = pages.after(id);
    }
    let mut videos = Vec::new();
    while videos.len() < limit as usize
        && let Some(video) = pages.next().await?
    {
        let mut video = to_json(&video)?;
        if let Some(fields) = video.as_object_mut() {
            fields.retain(|name, _| LISTED.contains(&name.as_str()));
        }
        videos.push(video);
    }
    Ok(json!({"videos": videos}))
}

pub(super) async fn download_video(service: &ServiceClient, wanted: DownloadVideo) -> ToolOutcome {
    let file = OutputFile::reserve(&wanted.path, wanted.overwrite)?;
    let path = file.path();
    let bytes = service
        .client
        .download(&wanted.id, Variant::Video, path)
        .await?;
    let saved = json!({"id": wanted.id, "path": path.display().to_string(), "bytes": bytes});
    file.keep();
    Ok(saved)
}

pub(super) async fn list_models(service: &ServiceClient) -> ToolOutcome {
    Ok(json!({"models": to_json(&service.client.models().await?)?}))
}

fn to_json(value: &impl Serialize) -> ToolOutcome {
    serde_json::to_value(value).map_err(|error| ToolError::new("invalid_answer", error.to_string()))
}
