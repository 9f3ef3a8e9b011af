//! The same against a real ComfyUI, with nodes that need no models. Each test waits for the one before: a server has
//! one queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use kinora_contract::{EditSpec, FailureCode, FrameSize, Size, TaskId, VideoInputs, VideoLength};
use kinora_engine::{EngineError, FilmEngine, ReferenceFile};
use kinora_engine_upstreams::comfyui::ComfyEngine;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;

use crate::raw::{call, call_json};
use crate::support::{Task, card, first_frame, patient};

/// A film of one colour. Nothing in it draws a prompt; the output's name takes it, and is replaced.
const COLOUR: &str = "prompt = \"9.filename_prefix\"\nseed = \"1.color\"\nwidth = \"1.width\"\n\
                      height = \"1.height\"\nframes = \"1.batch_size\"\nfps = \"2.fps\"\noutput = \"9\"";
/// Number of nodes that make a film take a while.
const BLURS: u32 = 8;
/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(300);

static TURN: Mutex<()> = Mutex::const_new(());

/// A real server, for one test at a time.
struct Real {
    url: String,
    _turn: MutexGuard<'static, ()>,
}

impl Real {
    /// `None` where no server is named.
    async fn open() -> Option<Self> {
        let Ok(url) = std::env::var("KINORA_COMFYUI_URL") else {
            eprintln!("left out: KINORA_COMFYUI_URL names no ComfyUI");
            return None;
        };
        let _turn = TURN.lock().await;
        Some(Self { url, _turn })
    }

    fn engine(&self, graph: &Value, bindings: &str) -> Arc<ComfyEngine> {
        Arc::new(patient(card(graph, bindings), self.url.clone(), &[]))
    }

    /// An engine of films of one colour.
    fn colour(&self) -> Arc<ComfyEngine> {
        self.engine(&colour(), COLOUR)
    }

    /// An engine of films that take a while.
    fn slow(&self) -> Arc<ComfyEngine> {
        self.engine(&blurred(), COLOUR)
    }

    /// The status of a job; `None` if the server does not know it.
    async fn status(&self, id: &str) -> Option<String> {
        let (status, job) = call_json(&self.url, "GET", &format!("/api/jobs/{id}"), &[]).await;
        (status == 200).then(|| job["status"].as_str().unwrap().to_owned())
    }

    /// Waits until a job has one of these states; `None`: the server does not know it.
    async fn until(&self, id: &str, wanted: &[Option<&str>]) {
        let begun = Instant::now();
        loop {
            let status = self.status(id).await;
            if wanted.contains(&status.as_deref()) {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{id} is {status:?}, not one of {wanted:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A film of one colour that takes a while: at each of several nodes the server looks whether to stop.
fn blurred() -> Value {
    let mut graph = colour();
    for node in 0..BLURS {
        let from = if node == 0 { 1 } else { 20 + node - 1 };
        graph[(20 + node).to_string()] = json!({"class_type": "ImageBlur", "inputs":
            {"image": [from.to_string(), 0], "blur_radius": 15, "sigma": 1.0}});
    }
    graph["2"]["inputs"]["images"] = json!([(20 + BLURS - 1).to_string(), 0]);
    graph
}

fn colour() -> Value {
    json!({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 320, "height": 192, "batch_size": 17, "color": 255}},
        "2": {"class_type": "CreateVideo", "inputs": {"images": ["1", 0], "fps": 16.0}},
        "9": {"class_type": "SaveVideo", "inputs": {"video": ["2", 0], "filename_prefix": "x",
            "format": "mp4", "codec": "h264"}},
    })
}

/// A task that no run of these tests has had before, of a small film.
fn task() -> Task {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut task = Task::default();
    task.key = format!("video_{since}_{count}");
    // A colour of its own: a server does not run again what it has in its cache.
    task.spec.seed = (since / 1_000 % 16_000_000) as u32;
    task.spec.frame = FrameSize::Fixed(Size::new(256, 256));
    task.spec.seconds = VideoLength::Fixed(2);
    task
}

/// The name of the job of a task at work, from its ticket.
async fn job_of(task: &Task) -> String {
    let begun = Instant::now();
    loop {
        if let Some((ticket, _)) = task.shelf.tickets.lock().unwrap().last() {
            let ticket: Value = serde_json::from_str(ticket).unwrap();
            return ticket["prompt_id"].as_str().unwrap().to_owned();
        }
        assert!(begun.elapsed() < PATIENCE, "no ticket");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

type Making = JoinHandle<Result<(), EngineError>>;

/// Starts a task; returns it with its work.
fn start(engine: &Arc<ComfyEngine>, task: Task) -> (Arc<Task>, Making) {
    let (engine, task) = (engine.clone(), Arc::new(task));
    let making = {
        let task = task.clone();
        tokio::spawn(async move { task.film(&*engine).await })
    };
    (task, making)
}

fn assert_is_film(task: &Task) {
    let film = std::fs::read(task.to()).unwrap();
    assert_eq!(&film[4..8], b"ftyp");
}

async fn told(task: &Task, engine: &ComfyEngine) -> (FailureCode, String) {
    match task.film(engine).await {
        Err(EngineError::CodedFailure { code, cause }) => (code, cause),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_server_makes_a_film_and_tells_its_progress() {
    let Some(real) = Real::open().await else {
        return;
    };
    let slow = real.slow();
    assert_eq!(slow.ask_servers().await.remove(0).refusal, None);
    let (task, making) = start(&slow, task());
    let mut seen = Vec::new();
    while !making.is_finished() {
        seen.push(task.control.progress.fraction());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    making.await.unwrap().unwrap();
    assert_is_film(&task);
    // Between the first sign of work and the end there is only what the websocket tells.
    let is_between = |fraction: &&f64| (0.02..0.99).contains(*fraction);
    assert!(
        seen.iter().any(|fraction| is_between(&fraction)),
        "{seen:?}"
    );
    assert!(seen.is_sorted(), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_server_stops_jobs_that_run_and_jobs_that_wait() {
    let Some(real) = Real::open().await else {
        return;
    };
    let (slow, engine) = (real.slow(), real.colour());
    let (running, first) = start(&slow, task());
    let running_id = job_of(&running).await;
    real.until(&running_id, &[Some("in_progress")]).await;
    let (waiting, second) = start(&engine, task());
    let waiting_id = job_of(&waiting).await;
    real.until(&waiting_id, &[Some("pending")]).await;
    waiting.cancel.cancel();
    assert!(matches!(second.await.unwrap(), Err(EngineError::Cancelled)));
    assert_eq!(real.status(&waiting_id).await, None);
    running.cancel.cancel();
    assert!(matches!(first.await.unwrap(), Err(EngineError::Cancelled)));
    real.until(&running_id, &[Some("cancelled"), Some("failed")])
        .await;
    // What has ended, and what never was, counts as stopped.
    for id in [running_id, waiting_id] {
        let ticket = json!({"comfyui": real.url, "prompt_id": id}).to_string();
        engine.call_off(&ticket).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_server_is_followed_by_ticket_and_by_name() {
    let Some(real) = Real::open().await else {
        return;
    };
    let slow = real.slow();
    let (died, making) = start(&slow, task());
    let id = job_of(&died).await;
    real.until(&id, &[Some("in_progress")]).await;
    making.abort();
    let _ = making.await;
    let mut resumed = task();
    resumed.key.clone_from(&died.key);
    resumed.ticket = Some(died.shelf.tickets.lock().unwrap()[0].0.clone());
    resumed.must_film(&*slow).await;
    // The ticket was lost: the job is found by its name, and does not run again.
    let mut found = task();
    found.key.clone_from(&died.key);
    found.must_film(&*slow).await;
    let view = format!("/view?subfolder=kinora&type=output&filename={id}_00002_.mp4");
    assert_eq!(call(&real.url, "GET", &view, &[]).await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_server_that_forgot_a_job_gets_it_again() {
    let Some(real) = Real::open().await else {
        return;
    };
    let (slow, engine) = (real.slow(), real.colour());
    let (running, first) = start(&slow, task());
    real.until(&job_of(&running).await, &[Some("in_progress")])
        .await;
    let (forgotten, second) = start(&engine, task());
    let id = job_of(&forgotten).await;
    real.until(&id, &[Some("pending")]).await;
    let order = json!({"delete": [id]}).to_string();
    let (status, _) = call(&real.url, "POST", "/queue", order.as_bytes()).await;
    assert_eq!(status, 200);
    second.await.unwrap().unwrap();
    assert_is_film(&forgotten);
    assert_eq!(forgotten.shelf.tickets.lock().unwrap().len(), 2);
    first.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_server_takes_images_sounds_and_videos() {
    let Some(real) = Real::open().await else {
        return;
    };
    let mut edit = task();
    edit.source = Some(ReferenceFile {
        media_type: "video/mp4".to_owned(),
        path: {
            let source = task();
            let film = source.must_film(&*real.colour()).await;
            let file = edit.file("source.mp4", "video/mp4");
            std::fs::write(&file.path, film).unwrap();
            file.path
        },
    });
    edit.spec.edit = Some(EditSpec {
        task_id: TaskId::from_parts(0, [7; 10]),
        strength: 1.0,
    });
    let graph = json!({
        "14": {"class_type": "LoadVideo", "inputs": {"file": "example.mp4"}},
        "13": {"class_type": "GetVideoComponents", "inputs": {"video": ["14", 0]}},
        "2": {"class_type": "CreateVideo", "inputs": {"images": ["13", 0], "fps": 16.0}},
        "9": {"class_type": "SaveVideo", "inputs": {"video": ["2", 0], "filename_prefix": "x",
            "format": "mp4", "codec": "h264"}},
    });
    let bindings = "prompt = \"9.filename_prefix\"\nsource_video = \"14.file\"\noutput = \"9\"";
    edit.must_film(&*real.engine(&graph, bindings)).await;

    let mut first = task();
    first.spec.inputs = first_frame();
    let picture = first.file("a.png", "image/png");
    std::fs::write(&picture.path, crate::live::grey((64, 64))).unwrap();
    first.references = vec![picture];
    first.must_film(&*real.engine(&still(), STILL)).await;

    let mut sounding = task();
    sounding.spec.inputs = VideoInputs::References {
        images: vec!["https://host/a.png".to_owned()],
        audios: vec!["https://host/a.wav".to_owned()],
    };
    let (picture, sound) = (
        sounding.file("a.png", "image/png"),
        sounding.file("a.wav", "audio/wav"),
    );
    std::fs::write(&picture.path, crate::live::grey((64, 64))).unwrap();
    std::fs::write(&sound.path, silence(2)).unwrap();
    sounding.references = vec![picture, sound];
    let bindings = STILL.replace(
        "first_frame = \"10.image\"",
        "reference_images = [\"10.image\"]",
    ) + "\nreference_audios = [\"15.audio\"]\noptional = [\"reference_audios\"]";
    let mut graph = still();
    graph["15"] = json!({"class_type": "LoadAudio", "inputs": {"audio": "example.wav"}});
    graph["2"]["inputs"]["audio"] = json!(["15", 0]);
    let engine = real.engine(&graph, &bindings);
    let film = sounding.must_film(&*engine).await;
    assert!(film.windows(4).any(|four| four == b"mp4a"), "it has sound");
    // The loader of the sound may be left out, with the link to it.
    assert_eq!(engine.ask_servers().await.remove(0).refusal, None);
}

/// A picture that stands still.
fn still() -> Value {
    json!({
        "10": {"class_type": "LoadImage", "inputs": {"image": "example.png"}},
        "12": {"class_type": "RepeatImageBatch", "inputs": {"image": ["10", 0], "amount": 17}},
        "2": {"class_type": "CreateVideo", "inputs": {"images": ["12", 0], "fps": 16.0}},
        "9": {"class_type": "SaveVideo", "inputs": {"video": ["2", 0], "filename_prefix": "x",
            "format": "mp4", "codec": "h264"}},
    })
}

const STILL: &str = "prompt = \"9.filename_prefix\"\nframes = \"12.amount\"\nfirst_frame = \"10.image\"\n\
                     output = \"9\"";

/// A WAV file of `seconds` without a sound.
fn silence(seconds: u32) -> Vec<u8> {
    let (rate, bytes) = (8_000_u32, 16_000 * seconds);
    let mut file = b"RIFF".to_vec();
    file.extend((36 + bytes).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(rate.to_le_bytes());
    file.extend((2 * rate).to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend(bytes.to_le_bytes());
    file.resize(file.len() + bytes as usize, 0);
    file
}

#[tokio::test]
async fn a_real_server_s_errors_are_read() {
    let Some(real) = Real::open().await else {
        return;
    };
    // Nothing decodes an upload before its node runs.
    let mut broken = task();
    broken.spec.inputs = first_frame();
    broken.references = vec![broken.file("a.png", "image/png")];
    let (code, cause) = told(&broken, &real.engine(&still(), STILL)).await;
    assert_eq!(code, FailureCode::GenerationFailed);
    assert!(cause.contains("10 (LoadImage)"), "{cause}");

    let mut unknown = colour();
    unknown["2"]["class_type"] = json!("NoSuchClass");
    let engine = real.engine(&unknown, COLOUR);
    let (_, cause) = told(&task(), &engine).await;
    assert!(cause.contains("no node class NoSuchClass"), "{cause}");
    let problems = engine.ask_servers().await.remove(0).refusal.unwrap();
    assert!(problems.contains("no class NoSuchClass"), "{problems}");

    let mut modelless = colour();
    modelless["1"] =
        json!({"class_type": "VAEDecode", "inputs": {"samples": ["3", 0], "vae": ["4", 0]}});
    modelless["3"] = json!({"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 64, "batch_size": 1}});
    modelless["4"] =
        json!({"class_type": "VAELoader", "inputs": {"vae_name": "no-such.safetensors"}});
    let bindings = "prompt = \"9.filename_prefix\"\noutput = \"9\"";
    let engine = real.engine(&modelless, bindings);
    let (_, cause) = told(&task(), &engine).await;
    assert!(
        cause.contains("no-such.safetensors") && cause.contains(&real.url),
        "{cause}"
    );
    let problems = engine.ask_servers().await.remove(0).refusal.unwrap();
    assert!(
        problems.contains("'vae_name' is \"no-such.safetensors\""),
        "{problems}"
    );

    let mut invalid = colour();
    invalid["2"]["inputs"]["fps"] = json!(500.0);
    let bindings = COLOUR.replace("fps = \"2.fps\"\n", "");
    let (_, cause) = told(&task(), &real.engine(&invalid, &bindings)).await;
    assert!(cause.contains("refused the request"), "{cause}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_server_is_told_to_free_its_memory() {
    let Some(real) = Real::open().await else {
        return;
    };
    let begun = Instant::now();
    real.colour().unload().await;
    // A server without a GPU does not say what it holds, and is not waited for.
    eprintln!("freed after {:?}", begun.elapsed());
    task().must_film(&*real.colour()).await;
}
