//! An S3 server that is away, fails, is slow, loses its answers or changes bytes, under the whole cluster: no task is
//! lost or published twice, and nobody gets a changed file that looks whole.

use std::time::Duration;

use kinora_test_e2e::{Client, Setup, raw, until};
use kinora_testkit::s3::{Fault, TestS3};

use super::{Cluster, Server, assert_made_once};
use crate::support::{Download, square};

/// Requests that meet a fault before it is over.
const MET_MIN: u64 = 6;

const FAULTS: [Fault; 5] = [
    Fault::Away,
    Fault::Status(500),
    Fault::Slow(Duration::from_millis(300)),
    Fault::LoseAnswer,
    Fault::CorruptRequest,
];

/// With one run for each task: a run that counted would fail it.
fn worker(cluster: &Cluster) -> Server {
    let setup = cluster.process(Setup::on(&cluster.machine()).as_worker());
    let setup = setup.set("KINORA_WORKER_ATTEMPTS_MAX", 1);
    setup.start()
}

fn video_key(s3: &TestS3, id: &str) -> String {
    let is_video = |key: &String| key.contains(id) && key.ends_with("/video.mp4");
    s3.keys().into_iter().find(is_video).unwrap()
}

#[test]
fn a_bucket_in_trouble_costs_no_task_and_no_run_and_publishes_nothing_twice() {
    let cluster = Cluster::new();
    let api = cluster.api();
    let workers = [worker(&cluster), worker(&cluster)];
    let client = api.client();
    let mut accepted: Vec<String> = Vec::new();
    for fault in FAULTS {
        println!("{fault:?}");
        let before = cluster.s3.faults_met();
        cluster.s3.fail(fault);
        let videos = [(); 4].map(|()| client.submit(&square("kinora-b1")));
        until("requests to meet the fault", || {
            (cluster.s3.faults_met() >= before + MET_MIN).then_some(())
        });
        let is_slow = matches!(fault, Fault::Slow(_));
        for video in &videos {
            // A task whose results could not be stored has not ended.
            assert!(is_slow || !client.video(video.id()).is_finished());
        }
        cluster.s3.recover();
        for video in &videos {
            client.wait_completed(video.id());
            accepted.push(video.id().to_owned());
        }
    }
    assert_made_once(&cluster, &workers, &accepted);
    assert_eq!(cluster.s3.unfinished_uploads(), 0);
    for id in &accepted {
        let file = Download::of(&client, &client.video(id).content());
        let kept = cluster.s3.object(&video_key(&cluster.s3, id)).unwrap();
        assert!(file.bytes == kept, "another file than was published");
    }
    cluster.assert_no_secret_is_logged(&[&api, &workers[0], &workers[1]]);
}

/// The file, where its answer is whole.
fn whole_file(api: &Server, client: &Client, target: &str) -> Option<Vec<u8>> {
    let head = format!(
        "GET {target} HTTP/1.1\r\nHost: kinora.test\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        client.key()
    );
    let reply = raw::try_exchange(api.address(), head.as_bytes())?;
    (reply.status == 200).then_some(reply.body)
}

#[test]
fn a_file_whose_bytes_are_changed_on_their_way_or_in_the_bucket_never_looks_whole() {
    let cluster = Cluster::new();
    let (api, worker) = (cluster.api(), worker(&cluster));
    let client = api.client();
    let id = client.submit(&square("kinora-b1")).id().to_owned();
    let target = client.wait_completed(&id).content();
    let right = whole_file(&api, &client, &target).unwrap();

    cluster.s3.fail(Fault::CorruptAnswer);
    assert!(whole_file(&api, &client, &target).is_none());
    cluster.s3.recover();
    assert!(whole_file(&api, &client, &target).unwrap() == right);

    let key = video_key(&cluster.s3, &id);
    cluster.s3.damage(&key);
    assert!(whole_file(&api, &client, &target).is_none());
    // The same once more: as it was.
    cluster.s3.damage(&key);
    assert!(whole_file(&api, &client, &target).unwrap() == right);
    drop(worker);
}
