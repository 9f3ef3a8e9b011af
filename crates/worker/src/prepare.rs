//! The first step of a run: turns a claimed task into an engine's materials. Copies the stored
//! references and the source video to this machine, decodes one task's files at a time so that
//! memory stays bounded, completes the spec, plans the clip, and states its provenance. It never
//! fetches from the network.

use std::fmt;
use std::sync::Arc;

use kinora_blobs::BlobError;
use kinora_contract::limits::WARNINGS_MAX;
use kinora_contract::{
    FailureCode, FrameSize, Size, Task, TaskId, TaskState, VideoInputs, VideoLength, VideoSpec,
    Warning, WarningCode, iso_date,
};
use kinora_engine::{
    ClipPlan, Engine, EngineDescription, EngineError, FilmEngine, JobMaterials, RgbPicture,
    SAMPLE_RATE_HZ, SCRIPT_LINKS_MAX, SourceVideo, StereoSound, VideoPlayback,
};
use kinora_media::{
    DigitalSource, FilmOpener, MediaError, ParentVideo, PlayedFilm, ProbeInfo, Provenance,
};
use kinora_media_decode::DecodeError;
use kinora_store::{Lease, StoreError};
use kinora_system::scratch::ScratchFile;
use tokio_util::sync::CancellationToken;

use crate::any_engine::AnyEngine;
use crate::error::{GatherError, PrepareError, RunEnd};
use crate::reference_check::audio_too_long;
use crate::references::{ReferenceGatherer, download};
use crate::retry::retry_unavailable;
use crate::stage_metrics::RunStage;
use crate::task_run::TaskRun;
use crate::worker::Worker;

/// The materials and the plan of a run.
pub(crate) struct PreparedTask {
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
        materials: JobMaterials,
        clip: ClipPlan,
    },
    /// Order a film with these references, and this source of an edit.
    Film {
        engine: Arc<dyn FilmEngine>,
        references: Vec<OpenedReference>,
        source: Option<ScratchFile>,
    },
}

/// A readable reference, as a local file.
pub(crate) struct OpenedReference {
    pub(crate) file: ScratchFile,
    pub(crate) media_type: &'static str,
}

impl TaskRun<'_> {
    /// Prepares the run while the lease is held. Also stores what preparation decided or found out,
    /// so that clients see it while the task runs.
    pub(crate) async fn prepare(&self) -> Result<PreparedTask, RunEnd> {
        let task = &self.claim.task;
        let stage = self.begin(RunStage::Prepare);
        let engine = self.served.engine.clone();
        let preparing = gather_materials(self.worker, task, &self.claim.lease, engine);
        // A preparation that is stopped has not failed: it drops its stage, whose span then ends
        // without an error.
        let prepared = self.unless_stopped(None, preparing).await?;
        let prepared = prepared.map_err(|error| RunEnd::Unprepared {
            failure: error.failure(&task.spec),
            error,
        });
        let prepared = stage.end(prepared, RunEnd::code)?;
        if prepared.spec != task.spec {
            self.store_spec(prepared.spec.clone()).await;
        }
        if prepared.warnings != task.warnings {
            self.store_warnings(&prepared.warnings).await;
        }
        Ok(prepared)
    }
}

/// Gets and opens all materials, and asks the engine for its plan.
async fn gather_materials(
    worker: &Worker,
    task: &Task,
    lease: &Lease,
    maker: AnyEngine,
) -> Result<PreparedTask, PrepareError> {
    let (tasks, blobs) = (&*worker.work, &*worker.blobs);
    // Dropped when the run is stopped.
    let never = &CancellationToken::new();
    let keys = retry_unavailable(never, || ReferenceGatherer::at_hand(tasks, blobs, task)).await?;
    let (id, token) = (lease.task, lease.token);
    let mut files = Vec::with_capacity(keys.len());
    for (index, key) in keys.iter().enumerate() {
        let name = format!("{id}-{token}-input-{index}");
        let file = retry_unavailable(never, || copy_to_scratch(worker, key, &name)).await;
        files.push(file.map_err(or_gone(|| GatherError::Missing.into()))?);
    }
    let source = match find_source(worker, task, maker.describe()).await? {
        SourceLookup::Fresh => None,
        SourceLookup::Gone => return Err(PrepareError::SourceGone),
        SourceLookup::Source(source) => {
            let name = format!("{id}-{token}-source.mp4");
            let file =
                retry_unavailable(never, || copy_to_scratch(worker, &source.key, &name)).await;
            let file = file.map_err(or_gone(|| PrepareError::SourceGone))?;
            let script = source.script;
            Some(LocalSource { file, script })
        }
    };
    let script = source.as_ref().map(|source| &*source.script);
    let provenance = provenance(task, maker.describe(), script);
    // A large picture takes 150 MB while it is decoded. One turn for the whole process bounds that,
    // however many slots there are. The semaphore is never closed.
    let turn = worker.references.decoding.clone().acquire_owned().await;
    let (spec, films) = (task.spec.clone(), worker.films.clone());
    let opened = worker.pools.files.run(move || {
        // Decoding continues when the run is dropped: its turn ends when it does.
        let _turn = turn;
        open(spec, files, source, maker, films, provenance)
    });
    opened.await.unwrap_or(Err(PrepareError::Panicked))
}

/// Maps the error of a failed copy; `gone` if its blob was removed a moment ago.
fn or_gone(gone: impl FnOnce() -> PrepareError) -> impl FnOnce(BlobError) -> PrepareError {
    move |error| match error {
        BlobError::NotFound(_) => gone(),
        error => error.into(),
    }
}

/// Copies a blob to a local file in the scratch folder.
async fn copy_to_scratch(worker: &Worker, key: &str, name: &str) -> Result<ScratchFile, BlobError> {
    let file = ScratchFile::new(&worker.scratch, name);
    download(&*worker.blobs, key, file.path(), &worker.pools.files).await?;
    Ok(file)
}

/// Decodes, decides and plans; blocks.
fn open(
    mut spec: VideoSpec,
    files: Vec<ScratchFile>,
    source: Option<LocalSource>,
    maker: AnyEngine,
    films: Arc<dyn FilmOpener>,
    provenance: Provenance,
) -> Result<PreparedTask, PrepareError> {
    kinora_system::crash::point("worker.opening");
    if let (FrameSize::Adaptive(resolution), Some(first)) = (spec.frame, files.first()) {
        // Before anything is decoded: pictures are decoded to the size of the frame.
        let (width, height) = kinora_media_decode::image_size(first.path()).map_err(at(0))?;
        spec.frame = FrameSize::Fixed(resolution.nearest(width, height));
    }
    let (mut materials, warning) = decode(&spec, &files)?;
    let mut source_file = None;
    match (source, &maker) {
        (Some(LocalSource { file, script }), AnyEngine::Frames(_)) => {
            materials.source = Some(Arc::new(StoredVideo::open(file, films)?));
            materials.script = script;
        }
        // Its server decodes it.
        (Some(LocalSource { file, .. }), AnyEngine::Film(_)) => source_file = Some(file),
        (None, _) => {}
    }
    let mut warnings = Vec::from_iter(warning);
    warnings.extend(match &maker {
        AnyEngine::Frames(engine) => engine.warnings(&spec, &materials),
        AnyEngine::Film(engine) => engine.warnings(&spec),
    });
    warnings.truncate(WARNINGS_MAX);
    let work = match maker {
        AnyEngine::Frames(engine) => {
            let clip = engine.plan(&spec, &materials)?;
            if spec.seconds == VideoLength::Auto && !engine.decides_length(&spec) {
                spec.seconds = VideoLength::Fixed(clip.frames.div_ceil(clip.fps.max(1)));
            }
            EngineWork::Frames {
                engine,
                materials,
                clip,
            }
        }
        // The decoding above was only a check: the engine gets the files.
        AnyEngine::Film(engine) => EngineWork::Film {
            engine,
            references: typed(files)?,
            source: source_file,
        },
    };
    Ok(PreparedTask {
        spec,
        work,
        provenance,
        warnings,
    })
}

fn typed(files: Vec<ScratchFile>) -> Result<Vec<OpenedReference>, PrepareError> {
    let typed = files.into_iter().map(|file| {
        let media_type = kinora_media_decode::media_type(file.path()).map_err(BlobError::from)?;
        Ok(OpenedReference {
            file,
            media_type: media_type.unwrap_or("application/octet-stream"),
        })
    });
    typed.collect()
}

/// The materials, and a warning if a picture may have the wrong colours.
fn decode(
    spec: &VideoSpec,
    files: &[ScratchFile],
) -> Result<(JobMaterials, Option<Warning>), PrepareError> {
    let cover = spec.render_size().unwrap_or(Size::new(1, 1));
    let mut ignored = Vec::new();
    let mut picture = |index: usize| {
        let (picture, profile_ignored) = picture(files, index, cover)?;
        ignored.extend(spec.inputs.param(index).filter(|_| profile_ignored));
        Ok::<_, PrepareError>(picture)
    };
    let mut materials = JobMaterials::default();
    match &spec.inputs {
        VideoInputs::Text => {}
        VideoInputs::Frames { last, .. } => {
            materials.first_frame = Some(picture(0)?);
            materials.last_frame = last.as_ref().map(|_| picture(1)).transpose()?;
        }
        VideoInputs::References { images, audios } => {
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
fn picture(
    files: &[ScratchFile],
    index: usize,
    cover: Size,
) -> Result<(RgbPicture, bool), PrepareError> {
    let image = kinora_media_decode::image(files[index].path(), (cover.width, cover.height));
    let image = image.map_err(at(index))?;
    let picture = RgbPicture {
        size: Size::new(image.width, image.height),
        rgb: image.rgb,
    };
    Ok((picture, image.profile_ignored))
}

fn sound(files: &[ScratchFile], index: usize) -> Result<StereoSound, PrepareError> {
    let sound = kinora_media_decode::sound(files[index].path()).map_err(at(index))?;
    Ok(StereoSound { pcm: sound.pcm })
}

fn check_together(sounds: &[StereoSound]) -> Result<(), PrepareError> {
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

/// The starting point of a task.
enum SourceLookup {
    /// Nothing earlier.
    Fresh,
    /// A video that was deleted or has expired.
    Gone,
    Source(StoredSource),
}

/// An earlier video, as stored.
struct StoredSource {
    /// The key of its MP4.
    key: String,
    /// See [`kinora_engine::JobMaterials::script`].
    script: Vec<Arc<VideoSpec>>,
}

/// The stored video that an edit starts from, or the draft's video if `engine` makes the final from
/// it.
async fn find_source(
    worker: &Worker,
    task: &Task,
    engine: &EngineDescription,
) -> Result<SourceLookup, StoreError> {
    let edited = task.spec.edit.as_ref().map(|edit| edit.task_id);
    let draft = task.spec.final_of.filter(|_| engine.final_from_video);
    let Some(id) = edited.or(draft) else {
        return Ok(SourceLookup::Fresh);
    };
    let Some(source) = find_task(worker, &task.project, id).await? else {
        return Ok(SourceLookup::Gone);
    };
    let TaskState::Completed(artifact) = &source.state else {
        return Ok(SourceLookup::Gone);
    };
    let key = artifact.video.key.clone();
    let script = script(worker, source, &engine.full_name()).await?;
    Ok(SourceLookup::Source(StoredSource { key, script }))
}

async fn find_task(
    worker: &Worker,
    project: &str,
    id: TaskId,
) -> Result<Option<Arc<Task>>, StoreError> {
    let never = &CancellationToken::new();
    let found = retry_unavailable(never, || worker.work.task(id)).await?;
    Ok(found.filter(|task| task.project == project))
}

/// The specs that led to the video of `last`, oldest first. Empty if one is unknown or has expired, was rendered
/// by another engine than `engine` (its full name), or there are too many.
async fn script(
    worker: &Worker,
    last: Arc<Task>,
    engine: &str,
) -> Result<Vec<Arc<VideoSpec>>, StoreError> {
    let mut links = Vec::new();
    let mut link = Some(last);
    while let Some(task) = link {
        // An expired task has lost its words.
        let is_whole = matches!(task.state, TaskState::Completed(_));
        // Another engine, or another version of it, may draw the same spec differently: remaking
        // its video would not give the video that the client has seen.
        let is_own = task.engine.as_deref() == Some(engine);
        if !is_whole || !is_own || links.len() == SCRIPT_LINKS_MAX {
            return Ok(Vec::new());
        }
        let before = task.spec.edit.as_ref().map(|edit| edit.task_id);
        // Engines see no URLs of other tasks.
        let mut spec = task.spec.clone();
        spec.inputs.clear_urls();
        links.push(Arc::new(spec));
        let Some(id) = before else {
            links.reverse();
            return Ok(links);
        };
        link = find_task(worker, &task.project, id).await?;
    }
    Ok(Vec::new())
}

/// A local copy of an earlier video.
struct LocalSource {
    file: ScratchFile,
    /// See [`kinora_engine::JobMaterials::script`].
    script: Vec<Arc<VideoSpec>>,
}

/// A stored video; its file is removed with it.
struct StoredVideo {
    file: ScratchFile,
    info: ProbeInfo,
    films: Arc<dyn FilmOpener>,
}

impl StoredVideo {
    fn open(file: ScratchFile, films: Arc<dyn FilmOpener>) -> Result<Self, MediaError> {
        let info = films.look(file.path())?;
        Ok(Self { file, info, films })
    }
}

impl fmt::Debug for StoredVideo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredVideo({:?})", self.info)
    }
}

impl SourceVideo for StoredVideo {
    fn size(&self) -> Size {
        Size::new(self.info.width, self.info.height)
    }

    fn fps(&self) -> u32 {
        self.info.fps.round() as u32
    }

    fn frames(&self) -> u32 {
        self.info.frames
    }

    fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError> {
        let film = self.films.play(self.file.path(), &self.info);
        Ok(Box::new(SourceReader(
            film.map_err(|error| unreadable(&error))?,
        )))
    }
}

struct SourceReader(Box<dyn PlayedFilm>);

impl VideoPlayback for SourceReader {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        self.0.next_frame().map_err(|error| unreadable(&error))
    }
}

fn unreadable(error: &MediaError) -> EngineError {
    let cause = format!("the source video: {error}");
    match error {
        MediaError::Lost(_) => EngineError::Crashed {
            code: FailureCode::GenerationFailed,
            cause,
        },
        // The file is local: a system error is no fault of the video.
        MediaError::Io(error) if error.raw_os_error().is_some() => EngineError::CodedFailure {
            code: FailureCode::StorageFailed,
            cause,
        },
        _ => EngineError::Failed(cause),
    }
}

/// The name of the program in files.
const TOOL: &str = concat!("Kinora ", env!("CARGO_PKG_VERSION"));

/// The provenance of the task's result by `engine`. `script` is that of the source video, if there
/// is one ([`kinora_engine::JobMaterials::script`]).
fn provenance(
    task: &Task,
    engine: &EngineDescription,
    script: Option<&[Arc<VideoSpec>]>,
) -> Provenance {
    let spec = &task.spec;
    let edited = spec.edit.as_ref().map(|edit| edit.task_id);
    let origin = edited.map(|id| ParentVideo::Edited(id.to_string()));
    Provenance {
        source: digital_source(engine, edited.is_some().then(|| script.unwrap_or_default())),
        tool: TOOL.to_owned(),
        // The start of the first attempt.
        created: iso_date(task.started_at_ms.unwrap_or(task.created_at_ms)),
        model: spec.model.clone(),
        engine: engine.full_name(),
        id: task.id.to_string(),
        derived_from: origin.or_else(|| spec.final_of.map(|id| ParentVideo::Draft(id.to_string()))),
    }
}

/// `edited` is the script of the edited video.
fn digital_source(engine: &EngineDescription, edited: Option<&[Arc<VideoSpec>]>) -> DigitalSource {
    match edited {
        None if engine.is_trained => DigitalSource::TrainedAlgorithmicMedia,
        None => DigitalSource::AlgorithmicMedia,
        // The script shows that an untrained engine made every version of it.
        Some([_, ..]) if !engine.is_trained => DigitalSource::AlgorithmicMedia,
        // The engine is trained, or the source may involve a trained one.
        Some(_) => DigitalSource::CompositeWithTrainedAlgorithmicMedia,
    }
}

#[cfg(test)]
mod provenance_tests {
    use kinora_contract::{
        EditSpec, FrameSize, SPEC_VERSION, Size, TaskId, TaskState, VideoInputs, VideoLength,
    };
    use kinora_engine::Features;

    use super::*;

    fn engine(is_trained: bool) -> EngineDescription {
        EngineDescription {
            name: "house".to_owned(),
            version: "7".to_owned(),
            features: Features::ALL,
            is_trained,
            final_from_video: false,
        }
    }

    fn task() -> Task {
        Task {
            id: TaskId::from_parts(1, [7; 10]),
            project: "p".to_owned(),
            spec: VideoSpec {
                version: SPEC_VERSION,
                model: "house-1".to_owned(),
                prompt: "a secret".to_owned(),
                negative_prompt: None,
                seconds: VideoLength::Fixed(2),
                frame: FrameSize::Fixed(Size::new(480, 480)),
                seed: 1,
                generate_audio: false,
                inputs: VideoInputs::Text,
                draft: false,
                final_of: None,
                edit: None,
            },
            metadata: [("note".to_owned(), "a secret".to_owned())].into(),
            priority: kinora_contract::Priority::Normal,
            state: TaskState::Running,
            progress: 0,
            created_at_ms: 1_795_319_101_000,
            started_at_ms: Some(1_795_319_102_000),
            finished_at_ms: None,
            expires_at_ms: None,
            attempt: 2,
            engine: None,
            warnings: Vec::new(),
            trace: None,
            cost: None,
        }
    }

    #[test]
    fn the_source_is_that_of_the_engine_and_of_what_it_edits() {
        use DigitalSource::{
            AlgorithmicMedia, CompositeWithTrainedAlgorithmicMedia, TrainedAlgorithmicMedia,
        };
        let known = [Arc::new(task().spec)];
        for (is_trained, edited, expected) in [
            (true, None, TrainedAlgorithmicMedia),
            (false, None, AlgorithmicMedia),
            (true, Some(&known[..]), CompositeWithTrainedAlgorithmicMedia),
            (true, Some(&[][..]), CompositeWithTrainedAlgorithmicMedia),
            (false, Some(&known[..]), AlgorithmicMedia),
            (false, Some(&[][..]), CompositeWithTrainedAlgorithmicMedia),
        ] {
            assert_eq!(digital_source(&engine(is_trained), edited), expected);
        }
    }

    #[test]
    fn every_attempt_states_the_same_and_nothing_of_the_request() {
        let first = provenance(&task(), &engine(true), None);
        assert_eq!(first.created, "2026-11-22T03:45:02Z");
        let again = Task {
            attempt: 3,
            ..task()
        };
        assert_eq!(provenance(&again, &engine(true), None), first);
        assert!(!first.packet().contains("secret"));
    }

    #[test]
    fn finals_and_edits_name_their_source() {
        let id = TaskId::from_parts(0, [3; 10]);
        let mut task = task();
        assert_eq!(provenance(&task, &engine(true), None).derived_from, None);
        task.spec.final_of = Some(id);
        let of_draft = provenance(&task, &engine(true), None);
        assert_eq!(
            of_draft.derived_from,
            Some(ParentVideo::Draft(id.to_string()))
        );
        assert_eq!(of_draft.source, DigitalSource::TrainedAlgorithmicMedia);
        task.spec.final_of = None;
        task.spec.edit = Some(EditSpec {
            task_id: id,
            strength: 0.5,
        });
        let edited = provenance(&task, &engine(true), Some(&[]));
        assert_eq!(
            edited.derived_from,
            Some(ParentVideo::Edited(id.to_string()))
        );
        let composite = DigitalSource::CompositeWithTrainedAlgorithmicMedia;
        assert_eq!(edited.source, composite);
    }
}
