//! Turns a claimed task into an engine's materials: gets references and source, decodes one task at
//! a time so that memory stays bounded, completes the spec and plans the clip.

use std::sync::Arc;

use kinora_blobs::BlobError;
use kinora_contract::limits::WARNINGS_MAX;
use kinora_contract::{FrameSize, Inputs, Seconds, Size, Task, VideoSpec, Warning, WarningCode};
use kinora_decode::DecodeError;
use kinora_engine::{Clip, Engine, FilmEngine, Materials, Picture, SAMPLE_RATE_HZ, Sound};
use kinora_media::{Films, Provenance};
use kinora_store::Lease;
use tokio_util::sync::CancellationToken;

use crate::error::{GatherError, PrepareError};
use crate::judge::audio_too_long;
use crate::maker::Maker;
use crate::provenance::provenance;
use crate::record::Staged;
use crate::references::{References, download};
use crate::retry::retry_unavailable;
use crate::script::{self, Start};
use crate::source::{Origin, StoredVideo};
use crate::worker::Worker;

/// The materials and the plan of a run.
pub(crate) struct Prepared {
    /// Fully decided, except for the length of a film.
    pub(crate) spec: VideoSpec,
    pub(crate) work: EngineWork,
    /// The provenance that the files will state.
    pub(crate) provenance: Provenance,
    /// Parts of the request that the result will not satisfy.
    pub(crate) warnings: Vec<Warning>,
}

/// The work for an engine of either kind.
pub(crate) enum EngineWork {
    /// Record frames.
    Frames {
        engine: Arc<dyn Engine>,
        materials: Materials,
        clip: Clip,
    },
    /// Order a film with these references, and this source of an edit.
    Film {
        engine: Arc<dyn FilmEngine>,
        references: Vec<OpenedReference>,
        source: Option<Staged>,
    },
}

/// A readable reference, as a local file.
pub(crate) struct OpenedReference {
    pub(crate) file: Staged,
    pub(crate) media_type: &'static str,
}

/// Gets and opens all materials, and asks the engine for its plan.
pub(crate) async fn prepare(
    worker: &Worker,
    task: &Task,
    lease: &Lease,
    maker: Maker,
) -> Result<Prepared, PrepareError> {
    let (tasks, blobs) = (&*worker.work, &*worker.blobs);
    // Dropped when the run is stopped.
    let never = &CancellationToken::new();
    let keys = retry_unavailable(never, || References::at_hand(tasks, blobs, task)).await?;
    let (id, token) = (lease.task, lease.token);
    let mut files = Vec::with_capacity(keys.len());
    for (index, key) in keys.iter().enumerate() {
        let name = format!("{id}-{token}-input-{index}");
        let file = retry_unavailable(never, || bring(worker, key, &name)).await;
        files.push(file.map_err(or_gone(|| GatherError::Missing.into()))?);
    }
    let source = match script::start(worker, task, maker.describe()).await? {
        Start::Fresh => None,
        Start::Gone => return Err(PrepareError::SourceGone),
        Start::Source(source) => {
            let name = format!("{id}-{token}-source.mp4");
            let file = retry_unavailable(never, || bring(worker, &source.key, &name)).await;
            let file = file.map_err(or_gone(|| PrepareError::SourceGone))?;
            let script = source.script;
            Some(Origin { file, script })
        }
    };
    let script = source.as_ref().map(|source| &*source.script);
    let provenance = provenance(task, maker.describe(), script);
    // The semaphore is never closed.
    let turn = worker.references.decoding.clone().acquire_owned().await;
    let (spec, films) = (task.spec.clone(), worker.films.clone());
    let opened = worker.pools.files.run(move || {
        // Decoding continues when the run is dropped: its turn ends when it does.
        let _turn = turn;
        open(spec, files, source, maker, films, provenance)
    });
    opened.await.unwrap_or(Err(PrepareError::Panicked))
}

/// What a failed copy means; `gone` if its blob was removed a moment ago.
fn or_gone(gone: impl FnOnce() -> PrepareError) -> impl FnOnce(BlobError) -> PrepareError {
    move |error| match error {
        BlobError::NotFound(_) => gone(),
        error => error.into(),
    }
}

/// Copies a blob to a local file in the scratch folder.
async fn bring(worker: &Worker, key: &str, name: &str) -> Result<Staged, BlobError> {
    let file = Staged::new(&worker.scratch, name);
    download(&*worker.blobs, key, file.path(), &worker.pools.files).await?;
    Ok(file)
}

/// Decodes, decides and plans; blocks.
fn open(
    mut spec: VideoSpec,
    files: Vec<Staged>,
    source: Option<Origin>,
    maker: Maker,
    films: Arc<dyn Films>,
    provenance: Provenance,
) -> Result<Prepared, PrepareError> {
    kinora_crash::point("worker.opening");
    if let (FrameSize::Adaptive(resolution), Some(first)) = (spec.frame, files.first()) {
        let (width, height) = kinora_decode::image_size(first.path()).map_err(at(0))?;
        spec.frame = FrameSize::Fixed(resolution.nearest(width, height));
    }
    let (mut materials, warning) = decode(&spec, &files)?;
    let mut source_file = None;
    match (source, &maker) {
        (Some(Origin { file, script }), Maker::Frames(_)) => {
            materials.source = Some(Arc::new(StoredVideo::open(file, films)?));
            materials.script = script;
        }
        // Its server decodes it.
        (Some(Origin { file, .. }), Maker::Film(_)) => source_file = Some(file),
        (None, _) => {}
    }
    let mut warnings = Vec::from_iter(warning);
    warnings.extend(match &maker {
        Maker::Frames(engine) => engine.warnings(&spec, &materials),
        Maker::Film(engine) => engine.warnings(&spec),
    });
    warnings.truncate(WARNINGS_MAX);
    let work = match maker {
        Maker::Frames(engine) => {
            let clip = engine.plan(&spec, &materials)?;
            if spec.seconds == Seconds::Auto && !engine.decides_length(&spec) {
                spec.seconds = Seconds::Fixed(clip.frames.div_ceil(clip.fps.max(1)));
            }
            EngineWork::Frames {
                engine,
                materials,
                clip,
            }
        }
        // The decoding above was only a check: the engine gets the files.
        Maker::Film(engine) => EngineWork::Film {
            engine,
            references: typed(files)?,
            source: source_file,
        },
    };
    Ok(Prepared {
        spec,
        work,
        provenance,
        warnings,
    })
}

fn typed(files: Vec<Staged>) -> Result<Vec<OpenedReference>, PrepareError> {
    let typed = files.into_iter().map(|file| {
        let media_type = kinora_decode::media_type(file.path()).map_err(BlobError::from)?;
        Ok(OpenedReference {
            file,
            media_type: media_type.unwrap_or("application/octet-stream"),
        })
    });
    typed.collect()
}

/// The materials, and a warning if the colours of a picture are not what they should be.
fn decode(
    spec: &VideoSpec,
    files: &[Staged],
) -> Result<(Materials, Option<Warning>), PrepareError> {
    let cover = spec.render_size().unwrap_or(Size::new(1, 1));
    let mut ignored = Vec::new();
    let mut picture = |index: usize| {
        let (picture, profile_ignored) = picture(files, index, cover)?;
        ignored.extend(spec.inputs.param(index).filter(|_| profile_ignored));
        Ok::<_, PrepareError>(picture)
    };
    let mut materials = Materials::default();
    match &spec.inputs {
        Inputs::Text => {}
        Inputs::Frames { last, .. } => {
            materials.first_frame = Some(picture(0)?);
            materials.last_frame = last.as_ref().map(|_| picture(1)).transpose()?;
        }
        Inputs::References { images, audios } => {
            materials.images = (0..images.len()).map(picture).collect::<Result<_, _>>()?;
            let sounds = images.len()..images.len() + audios.len();
            materials.audios = sounds
                .map(|index| sound(files, index))
                .collect::<Result<_, _>>()?;
            check_together(&materials.audios)?;
        }
    }
    Ok((materials, profile_warning(&ignored)))
}

/// Names the references whose colour profile was ignored.
fn profile_warning(params: &[String]) -> Option<Warning> {
    let code = WarningCode::ColourProfileIgnored;
    let message = format!("{} Of: {}.", code.sentence(), params.join(", "));
    (!params.is_empty()).then(|| Warning::new(code, message))
}

/// The picture, and whether its colour profile was ignored.
fn picture(files: &[Staged], index: usize, cover: Size) -> Result<(Picture, bool), PrepareError> {
    let image = kinora_decode::image(files[index].path(), (cover.width, cover.height));
    let image = image.map_err(at(index))?;
    let picture = Picture {
        size: Size::new(image.width, image.height),
        rgb: image.rgb,
    };
    Ok((picture, image.profile_ignored))
}

fn sound(files: &[Staged], index: usize) -> Result<Sound, PrepareError> {
    let sound = kinora_decode::sound(files[index].path()).map_err(at(index))?;
    Ok(Sound { pcm: sound.pcm })
}

fn check_together(sounds: &[Sound]) -> Result<(), PrepareError> {
    let samples: usize = sounds.iter().map(|sound| sound.pcm.len() / 2).sum();
    let seconds = samples as f64 / f64::from(SAMPLE_RATE_HZ);
    if audio_too_long(seconds) {
        return Err(PrepareError::AudioTooLong(seconds));
    }
    Ok(())
}

fn at(index: usize) -> impl Fn(DecodeError) -> PrepareError {
    move |error| PrepareError::Decode { index, error }
}
