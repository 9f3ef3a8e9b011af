//! Results in S3: sent by redirect and through the service alike, and nothing is lost, doubled or left
//! behind when S3 is away or the service dies.

use kinora_test_e2e::{Client, Hold, RESULT_FILES, Reply, Server, Setup, Video, run, until};
use kinora_testkit::s3::{Fault, TestS3, get};

use crate::support::{assert_plays, quick};

fn results_in(s3: &TestS3, setup: Setup) -> Setup {
    setup
        .set(
            "KINORA_RESULTS_URL",
            format!("s3://{}/kinora", TestS3::BUCKET),
        )
        .set("KINORA_RESULTS_S3_ENDPOINT", s3.endpoint())
        .set("KINORA_RESULTS_S3_ALLOW_HTTP", true)
        .set("AWS_ACCESS_KEY_ID", TestS3::KEY_ID)
        .set("AWS_SECRET_ACCESS_KEY", TestS3::SECRET)
        .set("SWEEP_SECONDS", 1)
}

/// The objects of tasks.
fn objects(s3: &TestS3) -> Vec<String> {
    let mut keys = s3.keys();
    keys.retain(|key| !key.starts_with("kinora/stores/"));
    keys
}

fn completed(client: &Client) -> Video {
    let video = client.submit(&quick("kinora-b1"));
    client.wait_completed(video.id())
}

fn assert_no_secret_is_logged(server: &Server) {
    let log = server.log();
    for secret in [TestS3::SECRET, "X-Amz-Signature", "X-Amz-Credential"] {
        assert!(!log.contains(secret), "{secret} was logged");
    }
}

fn with(client: &Client, target: &str, name: &str, value: &str) -> Reply {
    client.request("GET", target).header(name, value).send()
}

/// The same answers for conditions and for a `HEAD` in both kinds of delivery.
fn assert_headers_and_conditions(client: &Client, url: &str, bytes: &[u8]) {
    let head = client.request("HEAD", url).send();
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.number("content-length"), Some(bytes.len() as u64));
    assert_eq!(head.header("accept-ranges"), Some("bytes"));
    let etag = head.header("etag").unwrap();
    assert_eq!(with(client, url, "if-none-match", etag).status, 304);
    assert_eq!(with(client, url, "if-match", "\"other\"").status, 412);
    let kept = with(client, url, "if-match", etag);
    assert!(kept.status == 200 && kept.body == bytes);
    assert_eq!(with(client, url, "range", "bytes=99999999-").status, 416);
    let resumed = client
        .request("GET", url)
        .header("range", "bytes=100-")
        .header("if-range", etag)
        .send();
    assert!(resumed.status == 206 && resumed.body == bytes[100..]);
}

#[test]
fn results_are_redirected_or_streamed_with_the_same_bytes() {
    let s3 = TestS3::start();
    let setup = results_in(&s3, Setup::default()).set("KINORA_RESULTS_DELIVERY", "redirect");
    let server = setup.start();
    let video = completed(&server.client());
    assert_eq!(objects(&s3).len(), RESULT_FILES, "{:?}", s3.keys());
    let key = objects(&s3)
        .into_iter()
        .find(|key| key.ends_with("video.mp4"));
    let bytes = s3.object(&key.unwrap()).unwrap();

    let (anonymous, url) = (server.anonymous(), video.text("result_url"));
    let reply = anonymous.get(url);
    assert_eq!(reply.status, 307, "{}", reply.shown());
    assert_eq!(reply.header("cache-control"), Some("private, no-store"));
    let location = reply.header("location").unwrap();
    assert!(location.contains("X-Amz-Expires=300"), "{location}");
    assert!(location.starts_with(&s3.endpoint()), "{location}");
    let whole = get(location, "");
    assert!(whole.status == 200 && whole.body == bytes);
    let name = format!("inline; filename=\"{}.mp4\"", video.id());
    for header in [
        "content-type: video/mp4",
        &format!("content-disposition: {name}"),
    ] {
        assert!(whole.head.contains(header), "{}", whole.head);
    }
    assert_eq!(with(&anonymous, url, "range", "bytes=5-9").status, 307);
    let part = get(location, "Range: bytes=5-9\r\n");
    assert!(part.status == 206 && part.body == bytes[5..10]);
    let tampered = location.replace("X-Amz-Expires=300", "X-Amz-Expires=900");
    assert_eq!(get(&tampered, "").status, 403);
    // By key, and of other files, too.
    let sheet = format!("{}?variant=spritesheet", video.content());
    assert_eq!(server.client().get(&sheet).status, 307);
    assert_headers_and_conditions(&anonymous, url, &bytes);
    assert_no_secret_is_logged(&server);
    server.terminate();
    let data = server.data().clone();
    assert!(server.wait().0.success());

    let setup = results_in(&s3, Setup::on(&data)).set("KINORA_RESULTS_DELIVERY", "stream");
    let server = setup.start();
    let (client, anonymous) = (server.client(), server.anonymous());
    let video = client.video(video.id());
    let url = video.text("result_url");
    let whole = anonymous.get(url);
    assert!(whole.status == 200 && whole.body == bytes);
    let part = with(&anonymous, url, "range", "bytes=5-9");
    assert!(part.status == 206 && part.body == bytes[5..10]);
    assert_headers_and_conditions(&anonymous, url, &bytes);
    assert_plays(&client, &video);
    client.delete(&format!("/v1/videos/{}", video.id())).ok();
    until("the objects to be removed", || {
        objects(&s3).is_empty().then_some(())
    });
    assert_no_secret_is_logged(&server);
}

/// With one run for each task, a run that counted would fail it.
#[test]
fn s3_that_is_away_while_results_are_published_costs_no_run() {
    let s3 = TestS3::start();
    let setup = results_in(&s3, Setup::default()).set("KINORA_WORKER_ATTEMPTS_MAX", 1);
    let server = setup.start();
    let client = server.client();
    completed(&client);
    for fault in [Fault::Away, Fault::Status(503), Fault::LoseAnswer] {
        s3.fail(fault);
        let videos = [(); 3].map(|()| client.submit(&quick("kinora-b1")));
        until("the service not to be ready", || {
            let ready = server.anonymous().get("/readyz");
            (ready.status == 503).then_some(())
        });
        for video in &videos {
            assert!(!client.video(video.id()).is_finished(), "{fault:?}");
        }
        s3.recover();
        for video in &videos {
            client.wait_completed(video.id());
        }
    }
    until("nothing but results to be there", || {
        (objects(&s3).len() == 10 * RESULT_FILES).then_some(())
    });
    assert_eq!(s3.unfinished_uploads(), 0);
    assert_no_secret_is_logged(&server);
}

#[test]
fn a_kill_after_the_results_were_published_leaves_nothing_behind() {
    let s3 = TestS3::ignoring_create_only();
    let hold = Hold::at("worker.published", 1);
    let server = hold.over(results_in(&s3, Setup::default())).start();
    let video = server.client().submit(&quick("kinora-b1"));
    hold.wait();
    let first = objects(&s3);
    assert_eq!(first.len(), RESULT_FILES, "{first:?}");
    let data = server.data().clone();
    server.kill();
    let server = results_in(&s3, Setup::on(&data)).start();
    let client = server.client();
    client.wait_completed(video.id());
    until("the files of the killed run to be removed", || {
        let left = objects(&s3);
        let is_new = |key: &String| !first.contains(key);
        (left.len() == RESULT_FILES && left.iter().all(is_new)).then_some(())
    });
    assert_plays(&client, &client.video(video.id()));
}

#[test]
fn commands_work_beside_results_in_s3_or_say_what_to_do() {
    let s3 = TestS3::start();
    let server = results_in(&s3, Setup::default()).start();
    completed(&server.client());
    let data = server.data().clone();
    let command = |words: &[&str]| {
        let mut command = results_in(&s3, Setup::on(&data)).command();
        let environment: Vec<_> = command
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect();
        command = kinora_test_e2e::kinora();
        command.args(words).arg("--data").arg(data.path());
        command.envs(environment);
        run(command)
    };
    s3.put("kinora/videos/stray", "x".into());
    let orphans = command(&["orphans"]).ok();
    assert!(orphans.contains("Every file has"), "{orphans}");
    let doctor = command(&["doctor", "--listen", "127.0.0.1:0"]).stdout;
    let found = "s3://films/kinora: put, read and removed";
    assert!(doctor.contains(found), "{doctor}");
    assert!(
        doctor.contains("all 5 files of completed tasks"),
        "{doctor}"
    );
    assert!(!doctor.contains(TestS3::SECRET), "{doctor}");

    let to = data.beside("backup").display().to_string();
    let refused = command(&["backup", &to]);
    assert!(!refused.status.success());
    assert!(
        refused.stderr.contains("--results reference"),
        "{}",
        refused.stderr
    );
    command(&["backup", &to, "--results", "reference"]).ok();
    let other = kinora_test_e2e::DataFolder::to_restore(&data);
    let mut restore = kinora_test_e2e::kinora();
    restore.args(["restore", &to, "--data"]).arg(other.path());
    let said = run(restore).ok();
    assert!(
        said.contains("name s3://films/kinora as results.url"),
        "{said}"
    );
}
