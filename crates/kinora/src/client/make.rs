//! `kinora generate`, `kinora final` and `kinora edit`: submit, follow, save. A task is not
//! submitted if its video could not be saved here.

use kinora_client::{Capabilities, Edit, Error, NewVideo, Seconds, Video};

use super::deliver::{cancel, check_target, deliver};
use super::service::{LocalServer, ServiceClient};
use super::upload;
use crate::cli::{EditArgs, FinalArgs, GenerateArgs, OutputArgs, Reference};
use crate::failure::{ExitKind, Failure};
use crate::output::print_message;
use crate::stop::StopSignals;

/// Makes a video from words and references.
pub(crate) async fn generate(args: &GenerateArgs) -> Result<(), Failure> {
    check_output(&args.output)?;
    // First, so that Ctrl-C never leaves one of our servers behind.
    let mut signals = StopSignals::from_process()?;
    let local = if args.local {
        Some(LocalServer::start(args.config.as_deref())?)
    } else {
        None
    };
    let service = match &local {
        Some(local) => local.service()?,
        None => ServiceClient::from_environment()?,
    };
    let named = References::named(args);
    let uploaded = upload::addresses(&service, &named, &mut signals).await?;
    let references = References::new(args, uploaded);
    let wanted = async {
        let model = match &args.model {
            Some(model) => model.clone(),
            None => model_for(&service, args).await?,
        };
        let request = build_request(args, references, model);
        service.client.submit(&request).await
    };
    let task = submit_or_cancel(&service, wanted, &mut signals).await?;
    deliver(&service, task, &args.output, &mut signals).await
}

/// Renders a draft in full.
pub(crate) async fn render_final(args: &FinalArgs) -> Result<(), Failure> {
    check_output(&args.output)?;
    let mut signals = StopSignals::from_process()?;
    let service = ServiceClient::from_environment()?;
    let wanted = async {
        let draft = service.client.get(&args.id).await?;
        let mut last = NewVideo::final_of(draft.model, draft.id);
        if let Some(priority) = &args.priority {
            last = last.priority(priority);
        }
        if let Some(url) = &args.output.callback_url {
            last = last.callback_url(url);
        }
        service.client.submit(&last).await
    };
    let task = submit_or_cancel(&service, wanted, &mut signals).await?;
    deliver(&service, task, &args.output, &mut signals).await
}

/// Edits a video.
pub(crate) async fn edit(args: &EditArgs) -> Result<(), Failure> {
    check_output(&args.output)?;
    let mut signals = StopSignals::from_process()?;
    let service = ServiceClient::from_environment()?;
    let mut edit = Edit::new(&args.id, &args.prompt);
    if let Some(model) = &args.model {
        edit = edit.model(model);
    }
    if let Some(strength) = args.strength {
        edit = edit.strength(strength);
    }
    if let Some(seed) = args.seed {
        edit = edit.seed(seed);
    }
    if let Some(text) = &args.negative_prompt {
        edit = edit.negative_prompt(text);
    }
    if let Some(priority) = &args.priority {
        edit = edit.priority(priority);
    }
    if let Some(url) = &args.output.callback_url {
        edit = edit.callback_url(url);
    }
    let images = upload::addresses(&service, &args.image, &mut signals).await?;
    edit = images.into_iter().fold(edit, Edit::reference_image);
    let task = submit_or_cancel(&service, service.client.edit(&edit), &mut signals).await?;
    deliver(&service, task, &args.output, &mut signals).await
}

fn check_output(output: &OutputArgs) -> Result<(), Failure> {
    if output.no_wait {
        Ok(())
    } else {
        check_target(output.output.as_deref())
    }
}

/// Submits the request. Ctrl-C during the submit waits for the answer, since the task may already
/// be accepted, and then cancels the task.
async fn submit_or_cancel(
    service: &ServiceClient,
    wanted: impl Future<Output = Result<Video, Error>>,
    signals: &mut StopSignals,
) -> Result<Video, Failure> {
    tokio::pin!(wanted);
    // Dropping the request would not undo it: the server may have accepted the task, which would
    // then run unobserved. So Ctrl-C waits for the answer, which has the id to cancel.
    let answer = tokio::select! {
        answer = &mut wanted => return answer.map_err(|error| service.failure(&error)),
        () = signals.next() => {
            print_message("waiting for the server's answer, to cancel the task; press Ctrl-C again to exit immediately");
            tokio::select! {
                answer = wanted => answer,
                () = signals.next() => {
                    let text = "Exited before the server answered; it may have accepted the task.";
                    return Err(Failure::new(text).exit(ExitKind::Interrupted));
                }
            }
        }
    };
    match answer {
        Ok(task) => cancel(service, &task.id, signals).await,
        Err(_) => Err(Failure::new("Nothing was submitted.").exit(ExitKind::Interrupted)),
    }
}

/// The first model that supports the request, preferably one that a worker serves.
pub(super) async fn model_for(
    service: &ServiceClient,
    args: &GenerateArgs,
) -> Result<String, Error> {
    let models = service.client.models().await?;
    let able: Vec<_> = models
        .iter()
        .filter(|model| supports_request(&model.capabilities, args))
        .collect();
    // A model without a worker accepts tasks too, and they would wait for one.
    let served = able.iter().find(|model| model.available).or(able.first());
    // If none does, the service's refusal explains why.
    let model = served.copied().or(models.first());
    Ok(model.map_or_else(String::new, |model| model.id.clone()))
}

fn supports_request(model: &Capabilities, args: &GenerateArgs) -> bool {
    let from_text = args.image.is_empty() && args.first_frame.is_none();
    (!args.draft || model.draft)
        && (args.seconds != Some(Seconds::Auto) || model.auto_duration)
        && args.image.len() <= model.reference_images_max as usize
        && args.audio.len() <= model.reference_audios_max as usize
        && (args.first_frame.is_none() || model.first_frame)
        && (args.last_frame.is_none() || model.last_frame)
        && (args.negative_prompt.is_none() || model.negative_prompt)
        && (!from_text || model.text_to_video)
}

/// Sets a text field of a request.
type TextSetter = fn(NewVideo, String) -> NewVideo;

/// The references of a request, by address.
pub(super) struct References {
    first_frame: Option<String>,
    last_frame: Option<String>,
    images: Vec<String>,
    audios: Vec<String>,
}

impl References {
    /// Those that `args` name, in the order of [`References::new`].
    pub(super) fn named(args: &GenerateArgs) -> Vec<Reference> {
        let frames = args.first_frame.iter().chain(&args.last_frame);
        let all = frames.chain(&args.image).chain(&args.audio);
        all.cloned().collect()
    }

    /// Those that `args` name, at `addresses`.
    pub(super) fn new(args: &GenerateArgs, addresses: Vec<String>) -> Self {
        let mut addresses = addresses.into_iter();
        Self {
            first_frame: args.first_frame.as_ref().and_then(|_| addresses.next()),
            last_frame: args.last_frame.as_ref().and_then(|_| addresses.next()),
            images: addresses.by_ref().take(args.image.len()).collect(),
            audios: addresses.collect(),
        }
    }
}

pub(super) fn build_request(
    args: &GenerateArgs,
    references: References,
    model: String,
) -> NewVideo {
    let mut video = NewVideo::new(model, &args.prompt).draft(args.draft);
    let texts: [(&Option<String>, TextSetter); 8] = [
        (&args.size, NewVideo::size),
        (&args.resolution, NewVideo::resolution),
        (&args.aspect_ratio, NewVideo::aspect_ratio),
        (&args.negative_prompt, NewVideo::negative_prompt),
        (&references.first_frame, NewVideo::first_frame),
        (&references.last_frame, NewVideo::last_frame),
        (&args.priority, NewVideo::priority),
        (&args.output.callback_url, NewVideo::callback_url),
    ];
    for (text, set) in texts {
        if let Some(text) = text {
            video = set(video, text.clone());
        }
    }
    if let Some(seconds) = args.seconds {
        video = video.seconds(seconds);
    }
    if let Some(seed) = args.seed {
        video = video.seed(seed);
    }
    if args.no_sound {
        video = video.generate_audio(false);
    }
    let images = references.images.into_iter();
    video = images.fold(video, NewVideo::reference_image);
    let audios = references.audios.into_iter();
    audios.fold(video, NewVideo::reference_audio)
}
