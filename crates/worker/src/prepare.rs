//! From a claimed task to an engine's materials: references and source at hand, decoded one
//! task at a time so that memory stays bounded, the spec decided, the clip planned.

use std::sync::Arc;

use kinora_blobs::BlobError;
use kinora_contract::limits::{REFERENCE_AUDIO_SECONDS_MAX, WARNINGS_MAX};
use kinora_contract::{
    Failure, FailureCode, FrameSize, Inputs, Seconds, Size, Task, VideoSpec, Warning,
};
use kinora_decode::DecodeError;
use kinora_engine::{
    Clip, Engine, EngineError, FilmEngine, Materials, Picture, SAMPLE_RATE_HZ, Sound,
};
use kinora_media::{Films, MediaError};
use kinora_store::{Lease, StoreError};
use tokio_util::sync::CancellationToken;

use crate::Worker;
use crate::lineup::Maker;
use crate::record::Staged;
use crate::references::{GatherError, References, download, named};
use crate::script::{self, Start};
use crate::source::{Origin, StoredVideo};
use crate::tenacious::tenacious;

/// The materials and the plan of a run.
pub(crate) struct Prepared {
    /// Nothing in it is undecided, but the length of a film.
    pub(crate) spec: VideoSpec,
    pub(crate) work: Work,
    /// Parts of the spec that the engine will not or cannot do.
    pub(crate) warnings: Vec<Warning>,
}

/// The work for an engine of either kind.
pub(crate) enum Work {
    /// Frames are to be recorded.
    Frames {
        engine: Arc<dyn Engine>,
        materials: Materials,
        clip: Clip,
    },
    /// A film is to be made of these references.
    Film {
        engine: Arc<dyn FilmEngine>,
        references: Vec<OpenedReference>,
    },
}

/// A reference that can be read, as a file of this machine.
pub(crate) struct OpenedReference {
    pub(crate) file: Staged,
    pub(crate) media_type: &'static str,
}

/// Why there is nothing to record.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    #[error(transparent)]
    Gather(#[from] GatherError),
    #[error("reference {index}: {error}")]
    Decode {
        index: usize,
        #[source]
        error: DecodeError,
    },
    #[error("the reference sounds are {0:.1} s long together")]
    AudioTooLong(f64),
    #[error("the source of the edit is gone")]
    SourceGone,
    #[error("the source of the edit: {0}")]
    Source(#[from] MediaError),
    #[error("files could not be brought here: {0}")]
    Blobs(#[from] BlobError),
    #[error("the source could not be looked up: {0}")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Plan(#[from] EngineError),
    #[error("preparing panicked")]
    Panicked,
}

impl PrepareError {
    /// Whether references that were at hand are gone: the fetch stage brings them again.
    pub(crate) const fn is_missing(&self) -> bool {
        matches!(self, Self::Gather(GatherError::Missing))
    }

    /// Whether the process that read the source came to its end: another attempt may fare better.
    pub(crate) const fn is_lost(&self) -> bool {
        matches!(self, Self::Source(MediaError::Lost(_)))
    }

    /// Logs it as an error, or as information where the client's input is at fault.
    pub(crate) fn log(&self) {
        match self {
            Self::Decode { .. } | Self::AudioTooLong(_) | Self::SourceGone => {
                tracing::info!(error = %self, "the run could not be prepared");
            }
            _ => tracing::error!(error = %self, "the run could not be prepared"),
        }
    }

    /// The failure for the client of the task with this `spec`; it names the field.
    pub(crate) fn failure(&self, spec: &VideoSpec) -> Failure {
        match self {
            Self::Gather(error) => error.failure(spec),
            Self::Decode { index, error } => named(error.failure(), spec, *index),
            Self::AudioTooLong(seconds) => audio_too_long_failure(*seconds),
            Self::SourceGone => Failure::new(
                FailureCode::GenerationFailed,
                "the video that this one starts from was deleted or has expired.",
            )
            .of(match spec.edit {
                Some(_) => "edit_task_id",
                None => "draft_task_id",
            }),
            Self::Blobs(_) | Self::Store(_) => FailureCode::StorageFailed.into(),
            Self::Plan(EngineError::OutOfMemory(_)) => FailureCode::OutOfMemory.into(),
            Self::Source(_) | Self::Plan(_) | Self::Panicked => {
                FailureCode::GenerationFailed.into()
            }
        }
    }
}

/// Brings everything here, opens it, and asks the engine for its plan.
pub(crate) async fn prepare(
    worker: &Worker,
    task: &Task,
    lease: &Lease,
    maker: Maker,
) -> Result<Prepared, PrepareError> {
    let (tasks, blobs) = (&*worker.work, &*worker.blobs);
    // Dropped when the run is stopped.
    let never = &CancellationToken::new();
    let keys = tenacious(never, || References::at_hand(tasks, blobs, task)).await?;
    let (id, token) = (lease.task, lease.token);
    let mut files = Vec::with_capacity(keys.len());
    for (index, key) in keys.iter().enumerate() {
        let name = format!("{id}-{token}-input-{index}");
        files.push(tenacious(never, || bring(worker, key, &name)).await?);
    }
    let source = match script::start(worker, task, maker.describe()).await? {
        Start::Fresh => None,
        Start::Gone => return Err(PrepareError::SourceGone),
        Start::Source(source) => {
            let name = format!("{id}-{token}-source.mp4");
            let file = tenacious(never, || bring(worker, &source.key, &name)).await?;
            let script = source.script;
            Some(Origin { file, script })
        }
    };
    // The semaphore is never closed.
    let turn = worker.references.decoding.clone().acquire_owned().await;
    let (spec, films) = (task.spec.clone(), worker.films.clone());
    let opened = worker.pools.files.run(move || {
        // Decoding goes on when the run is dropped: its turn is over when it is.
        let _turn = turn;
        open(spec, files, source, maker, films)
    });
    opened.await.unwrap_or(Err(PrepareError::Panicked))
}

/// A blob as a file of this machine, in the scratch folder.
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
) -> Result<Prepared, PrepareError> {
    kinora_crash::point("worker.opening");
    if let (FrameSize::Adaptive(resolution), Some(first)) = (spec.frame, files.first()) {
        let (width, height) = kinora_decode::image_size(first.path()).map_err(at(0))?;
        spec.frame = FrameSize::Fixed(resolution.nearest(width, height));
    }
    let mut materials = decode(&spec, &files)?;
    if let Some(Origin { file, script }) = source {
        materials.source = Some(Arc::new(StoredVideo::open(file, films)?));
        materials.script = script;
    }
    let mut warnings = match &maker {
        Maker::Frames(engine) => engine.warnings(&spec, &materials),
        Maker::Film(engine) => engine.warnings(&spec),
    };
    warnings.truncate(WARNINGS_MAX);
    let work = match maker {
        Maker::Frames(engine) => {
            let clip = engine.plan(&spec, &materials)?;
            if spec.seconds == Seconds::Auto {
                spec.seconds = Seconds::Fixed(clip.frames.div_ceil(clip.fps.max(1)));
            }
            Work::Frames {
                engine,
                materials,
                clip,
            }
        }
        // It was decoded to be judged: what is passed on are the files.
        Maker::Film(engine) => Work::Film {
            engine,
            references: typed(files)?,
        },
    };
    Ok(Prepared {
        spec,
        work,
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

fn decode(spec: &VideoSpec, files: &[Staged]) -> Result<Materials, PrepareError> {
    let cover = spec.render_size().unwrap_or(Size::new(1, 1));
    let picture = |index: usize| picture(files, index, cover);
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
    Ok(materials)
}

fn picture(files: &[Staged], index: usize, cover: Size) -> Result<Picture, PrepareError> {
    let image = kinora_decode::image(files[index].path(), (cover.width, cover.height));
    let image = image.map_err(at(index))?;
    Ok(Picture {
        size: Size::new(image.width, image.height),
        rgb: image.rgb,
    })
}

fn sound(files: &[Staged], index: usize) -> Result<Sound, PrepareError> {
    let sound = kinora_decode::sound(files[index].path()).map_err(at(index))?;
    Ok(Sound { pcm: sound.pcm })
}

/// A lossy codec's padding must not make three sounds of 5 s too long.
const PADDING_SECONDS: f64 = 0.25;

/// Whether sounds of so many seconds are too long together.
pub(crate) fn audio_too_long(seconds: f64) -> bool {
    seconds > REFERENCE_AUDIO_SECONDS_MAX + PADDING_SECONDS
}

/// The failure of a task whose sounds are too long together.
pub(crate) fn audio_too_long_failure(seconds: f64) -> Failure {
    let message = format!(
        "the sounds last {seconds:.1} s together; at most {REFERENCE_AUDIO_SECONDS_MAX} s are taken."
    );
    Failure::new(FailureCode::AudioTooLong, message).of("reference_audios")
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
