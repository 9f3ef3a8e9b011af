//! The crate `kinora-client` against the real service.

use std::sync::{Arc, Mutex};

use kinora_client::{Client, Edit, NewFile, NewVideo, Seconds, Status, Variant};
use kinora_test_e2e::{client_example, media, studio};

use crate::cli::bare;
use crate::support::{narrow, shared, slow};

/// Fields that repeat others, for clients of other services.
const OTHER_NAMES: [&str; 6] = [
    "fail_reason",
    "object",
    "polling_url",
    "remixed_from_video_id",
    "unsigned_urls",
    "url",
];

fn client() -> Client {
    let user = shared().newcomer();
    Client::new(user.base_url(), user.key()).unwrap()
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

fn boat() -> NewVideo {
    NewVideo::new("kinora-a1", "A paper boat")
        .size("480x480")
        .seconds(2)
        .seed(7)
}

#[test]
fn a_task_is_submitted_once_watched_and_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.mp4");
    run(async {
        let client = client();
        let wanted = boat().idempotency_key("order-1").metadata("order", "1");
        let task = client.submit(&wanted).await.unwrap();
        let again = client.submit(&wanted).await.unwrap();
        assert_eq!(task.id, again.id);
        let mut watch = client.watch(&task.id);
        let mut progress = Vec::new();
        let mut last = None;
        while let Some(video) = watch.next().await.unwrap() {
            progress.push(video.progress);
            last = Some(video);
        }
        let done = last.unwrap();
        assert_eq!((done.status, done.progress), (Status::Completed, 100));
        assert!(progress.is_sorted(), "{progress:?}");
        assert_eq!(done.metadata["order"], "1");
        let is_unknown = |name: &&String| !OTHER_NAMES.contains(&name.as_str());
        let unknown: Vec<&String> = done.other.keys().filter(is_unknown).collect();
        assert_eq!(unknown, [""; 0], "the client has no field for it");
        let length = client
            .download(&done.id, Variant::Video, &path)
            .await
            .unwrap();
        assert_eq!(length, std::fs::metadata(&path).unwrap().len());
        assert!(
            client
                .preview(&done.id)
                .await
                .unwrap()
                .unwrap()
                .starts_with(b"RIFF")
        );
    });
    media::assert_decodes(&path);
}

#[test]
fn finals_edits_lists_cancels_and_deletes() {
    let server = narrow().start();
    let user = server.newcomer();
    run(async {
        let client = Client::new(user.base_url(), user.key()).unwrap();
        let draft = client
            .submit(&boat().size("720x720").draft(true))
            .await
            .unwrap();
        client.wait(&draft.id).await.unwrap();
        let last = client.final_of(&draft.id).await.unwrap();
        assert_eq!(last.draft_task_id.as_deref(), Some(draft.id.as_str()));
        let last = client.wait(&last.id).await.unwrap();
        assert_eq!(last.size, "720x720");
        // The edit waits until it is cancelled.
        let blocker = server.client().submit(&slow());
        server.client().wait_working(blocker.id());
        let edit = client
            .edit(&Edit::new(&last.id, "At night").seed(3))
            .await
            .unwrap();
        assert_eq!(
            client.cancel(&edit.id).await.unwrap().error.unwrap().code,
            "cancelled"
        );
        assert!(
            client.cancel(&edit.id).await.unwrap().is_cancelled(),
            "a second time"
        );
        let error = client.cancel(&last.id).await.unwrap_err();
        assert_eq!(error.code(), Some("not_cancellable"));

        let mut pages = client.list().page_size(1);
        let mut ids = Vec::new();
        while let Some(task) = pages.next().await.unwrap() {
            ids.push(task.id);
        }
        assert_eq!(ids, [&edit.id, &last.id, &draft.id].map(Clone::clone));
        client.delete(&edit.id).await.unwrap();
        assert_eq!(
            client.get(&edit.id).await.unwrap_err().code(),
            Some("video_not_found")
        );
    });
}

#[test]
fn the_examples_do_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let user = shared().newcomer();
    let said = |name: &str, arguments: &[&str]| {
        let mut example = bare(client_example(name).to_str().unwrap());
        example
            .args(arguments)
            .current_dir(folder.path())
            .env("KINORA_URL", user.base_url())
            .env("KINORA_API_KEY", user.key());
        kinora_test_e2e::run(example).ok()
    };
    let submit = said("submit", &["A paper boat", "boat.mp4"]);
    assert!(submit.contains("completed 100 %"), "{submit}");
    let boat = folder.path().join("boat.mp4");
    let bytes = std::fs::metadata(&boat).unwrap().len();
    assert!(
        submit.ends_with(&format!("boat.mp4: {bytes} bytes\n")),
        "{submit}"
    );
    media::assert_decodes(&boat);

    let draft = said("draft", &[]);
    assert!(draft.ends_with("final.mp4, 1920x1080\n"), "{draft}");
    let size = |name: &str| media::picture_size(&folder.path().join(name));
    assert_eq!(size("final.mp4"), (1920, 1080));
    assert!(size("draft.mp4").0 < 1920, "a draft is smaller");

    let running = user.submit(&slow());
    let tasks = said("tasks", &[]);
    for wanted in ["kinora-a1: 2 to 15 s, drafts: true", running.id()] {
        assert!(tasks.contains(wanted), "{wanted}: {tasks}");
    }
    assert_eq!(tasks.matches("video_").count(), 1, "the others have ended");
    user.post(&format!("/v1/videos/{}/cancel", running.id()))
        .ok();
}

#[test]
fn models_and_refusals_are_typed() {
    run(async {
        let client = client();
        let models = client.models().await.unwrap();
        let can = |id: &str| {
            &models
                .iter()
                .find(|model| model.id == id)
                .unwrap()
                .capabilities
        };
        assert!(can("kinora-a1").draft && !can("kinora-a1").edit);
        assert_eq!(can("kinora-b1").reference_images_max, 4);
        let wrong = boat().seconds(Seconds::Auto);
        let error = client.submit(&wrong).await.unwrap_err();
        let refusal = error.refusal().unwrap();
        assert_eq!(
            (refusal.status, refusal.code.as_str()),
            (400, "unsupported_value")
        );
        assert_eq!(refusal.param.as_deref(), Some("seconds"));
        assert!(refusal.request_id.is_some());
    });
}

#[test]
fn a_file_is_uploaded_with_progress_and_is_a_reference() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("day \"1\".png");
    let picture = studio::picture("day.png", (300, 300), "red");
    std::fs::write(&path, &picture).unwrap();
    run(async {
        let client = client();
        let files = client.files();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let seen = reports.clone();
        let wanted = NewFile::new(&path)
            .purpose("vision")
            .expires_after(3_600)
            .on_progress(move |sent, all| seen.lock().unwrap().push((sent, all)));
        let file = files.upload(&wanted).await.unwrap();
        let reports = reports.lock().unwrap().clone();
        let (sent, all) = *reports.last().unwrap();
        assert!(
            reports.is_sorted() && reports[0].0 == 0 && sent == all,
            "{reports:?}"
        );
        assert_eq!(file.bytes, picture.len() as u64);
        assert_eq!(
            (&*file.filename, &*file.purpose),
            ("day %221%22.png", "vision")
        );
        assert_eq!(file.expires_at, file.created_at + 3_600);
        assert_eq!(files.get(&file.id).await.unwrap(), file);
        assert_eq!(files.list().next().await.unwrap(), Some(file.clone()));

        let task = client.submit(&boat().first_frame(&file.url)).await.unwrap();
        files.delete(&file.id).await.unwrap();
        let gone = files.get(&file.id).await.unwrap_err();
        assert_eq!(gone.code(), Some("file_not_found"));
        let done = client.wait(&task.id).await.unwrap();
        assert_eq!(done.status, Status::Completed);
        let missing = NewFile::new(folder.path().join("none.png"));
        let error = files.upload(&missing).await.unwrap_err().to_string();
        assert!(
            error.ends_with("none.png cannot be read: No such file or directory (os error 2)"),
            "{error}"
        );
    });
}
