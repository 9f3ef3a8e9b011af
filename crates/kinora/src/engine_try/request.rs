//! What `kinora engine try` asks for: a request as a client would send it, checked against the model's card, and the
//! files of its references.

use std::path::Path;
use std::sync::Arc;

use kinora_contract::limits::{REFERENCE_AUDIO_BYTES_MAX, REFERENCE_IMAGE_BYTES_MAX};
use kinora_contract::{
    ModelCard, ModelCatalog, RequestRefusal, SubmitIntent, SubmitRequest, VideoSpec, uploaded,
    validate,
};
use kinora_engine::ReferenceFile;
use kinora_http_fetch::ReferenceRequest;
use kinora_media_decode::judge_upload;
use kinora_system::scratch::{ScratchFile, ScratchFolder};
use serde_json::{Map, Value, json};

use crate::cli::{EngineTryArgs, Reference};
use crate::compose;
use crate::config::Config;
use crate::failure::{ExitKind, Failure};
use crate::output::printable;
use crate::system;

/// The request of the arguments, checked as the service checks it.
pub(super) fn spec(args: &EngineTryArgs, card: ModelCard) -> Result<VideoSpec, Failure> {
    let refused = |refusal: RequestRefusal| Failure::new(refusal.message).exit(ExitKind::Usage);
    let request = SubmitRequest::from_fields(fields(args, &card.id)).map_err(refused)?;
    let catalog = ModelCatalog::new(vec![card])
        .map_err(|error| Failure::because("The model's card is invalid", error))?;
    let seed = u32::from_le_bytes(system::random()?);
    let validated = validate(&request, &catalog, seed).map_err(refused)?;
    let SubmitIntent::New(mut spec) = validated.intent else {
        return Err(Failure::new("Only new videos can be tried."));
    };
    // As in the service: a file without a public address is named by a key, and its bytes are sent.
    let mut references = references(args).into_iter();
    spec.inputs.change_urls(|url| {
        if let Some(Reference::File(_)) = references.next() {
            *url = uploaded::reference_by_key(url);
        }
    });
    Ok(*spec)
}

/// The request's fields, as JSON; a value that is `null` counts as absent.
fn fields(args: &EngineTryArgs, model: &str) -> Map<String, Value> {
    let address = |reference: &Reference| match reference {
        Reference::Address(address) => address.clone(),
        // Only until the request is checked, which refuses everything but addresses.
        Reference::File(_) => "https://file.invalid/".to_owned(),
    };
    let list = |items: &[Reference]| -> Option<Vec<String>> {
        (!items.is_empty()).then(|| items.iter().map(address).collect())
    };
    let fields = [
        ("model", json!(model)),
        ("prompt", json!(args.prompt)),
        ("negative_prompt", json!(args.negative_prompt)),
        ("size", json!(args.size)),
        ("seconds", json!(args.seconds)),
        ("seed", json!(args.seed)),
        ("generate_audio", json!(args.no_sound.then_some(false))),
        ("first_frame", json!(args.first_frame.as_ref().map(address))),
        ("last_frame", json!(args.last_frame.as_ref().map(address))),
        ("reference_images", json!(list(&args.image))),
        ("reference_audios", json!(list(&args.audio))),
    ];
    let fields = fields.into_iter();
    fields
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The references in the order of a spec.
fn references(args: &EngineTryArgs) -> Vec<&Reference> {
    let frames = args.first_frame.iter().chain(&args.last_frame);
    frames.chain(&args.image).chain(&args.audio).collect()
}

/// The files of the references; those of addresses are removed when this is dropped.
pub(super) struct ReferenceFiles {
    pub(super) files: Vec<ReferenceFile>,
    _fetched: Vec<ScratchFile>,
}

impl ReferenceFiles {
    /// Fetches the references that are addresses, as the service would, and looks at all.
    pub(super) async fn read(config: &Config, args: &EngineTryArgs) -> Result<Self, Failure> {
        let (mut files, mut fetched) = (Vec::new(), Vec::new());
        for (index, reference) in references(args).into_iter().enumerate() {
            match reference {
                Reference::File(path) => files.push(typed(path)?),
                Reference::Address(address) => {
                    let file = fetch(config, address, index).await?;
                    files.push(typed(file.path())?);
                    fetched.push(file);
                }
            }
        }
        Ok(Self {
            files,
            _fetched: fetched,
        })
    }
}

/// The file as a reference, if it can be one.
fn typed(path: &Path) -> Result<ReferenceFile, Failure> {
    let shown = printable(&path.display().to_string());
    let judged = judge_upload(path).map_err(|error| Failure::because(shown, error))?;
    Ok(ReferenceFile {
        path: path.to_owned(),
        media_type: judged.media_type.to_owned(),
    })
}

async fn fetch(config: &Config, address: &str, index: usize) -> Result<ScratchFile, Failure> {
    let unusable = |error: &dyn std::fmt::Display| Failure::because(printable(address), error);
    let folder = std::env::temp_dir().join("kinora-try");
    let scratch = ScratchFolder::create(&folder).map_err(|error| unusable(&error))?;
    let file = ScratchFile::new(&Arc::new(scratch), &format!("reference-{index}"));
    let request = ReferenceRequest {
        project: "try",
        url: address,
        to: file.path(),
        bytes_max: REFERENCE_IMAGE_BYTES_MAX.max(REFERENCE_AUDIO_BYTES_MAX),
        is_plain: kinora_media_decode::is_reference,
    };
    let fetched = compose::fetcher(config)?.fetch(&request).await;
    fetched.map_err(|error| unusable(&error))?;
    Ok(file)
}
