//! Servers of the dialects `sglang` and `vllm-omni`, and ComfyUI.

use std::sync::OnceLock;

use kinora_test_e2e::media::without_provenance;
use kinora_test_e2e::{Server, Setup, Video, until};
use kinora_testkit::comfyui::{TestComfy, Works, workflow};
use serde_json::json;

use super::upstream::{Fares, Upstream};
use super::{assert_all_complete, body, ended, place, wait_until_back};
use crate::support::{Download, TINY};

/// How one server of two fares.
const KINDS: [Fares; 8] = [
    Fares::FailsTasks,
    Fares::FailsTasksLate,
    Fares::EmptyResults,
    Fares::WrongResults,
    Fares::CutResults,
    Fares::CompressedResults,
    Fares::RefusesSubmits,
    Fares::WrongPolls,
];

/// A film of the size and length that the tests ask for.
fn film() -> &'static [u8] {
    static FILM: OnceLock<Vec<u8>> = OnceLock::new();
    FILM.get_or_init(|| {
        let server = Setup::default().config(TINY).start();
        let client = server.client();
        let request = json!({"model": "tiny", "prompt": "A boat"});
        let video = client.wait_completed(client.submit(&request).id());
        let film = Download::of(&client, &video.content()).bytes;
        without_provenance(&film).to_vec()
    })
}

fn front(dialect: &str, upstreams: &[&Upstream], more: &str) -> Server {
    let urls: Vec<String> = upstreams.iter().map(|one| one.base_url()).collect();
    let config = format!(
        "[worker]\n\
         slots = 4\n\
         [[engines]]\n\
         name = \"studio\"\n\
         kind = \"remote\"\n\
         dialect = \"{dialect}\"\n\
         base_urls = {}\n\
         poll_milliseconds = 50\n\
         silence_seconds = 8\n\
         {more}\n\
         [[models]]\n\
         id = \"wan\"\n\
         engine = \"studio\"\n\
         sizes = [\"256x256\"]\n\
         seconds = [2]\n",
        json!(urls)
    );
    Setup::default().config(&config).start()
}

#[test]
fn p18_no_task_fails_that_the_other_of_two_servers_completes() {
    for dialect in ["sglang", "vllm-omni"] {
        for fares in KINDS {
            let sick = Upstream::start(film(), fares);
            let well = Upstream::start(film(), Fares::Well);
            let front = front(dialect, &[&sick, &well], "");
            let client = front.client();
            for video in ended(&client, 8) {
                assert_eq!(
                    video.status(),
                    "completed",
                    "{dialect} {fares:?}: {video:#?}"
                );
            }
            sick.set(Fares::Well);
            wait_until_back(&front, &client, &sick.base_url());
        }
    }
}

#[test]
fn p18_one_unreadable_result_closes_its_server_to_nobody() {
    let server = Upstream::start(film(), Fares::EmptyResultOf("Ghost"));
    let front = front("vllm-omni", &[&server], "");
    let client = front.client();
    let bad = client.submit(&body("Ghost"));
    until("its result to be read in vain", || {
        front.log().contains("the result is empty").then_some(())
    });
    assert_all_complete(&client, 12);
    let bad = until("the bad one to end", || {
        Some(client.video(bad.id())).filter(Video::is_finished)
    });
    assert_eq!(bad["error"]["code"], "generation_failed");
    let place = place(&front, &server.base_url());
    assert_eq!(place["state"], "available", "{place:#?}");
    assert_eq!(place["quarantined_seconds"], 0, "{place:#?}");
}

#[test]
fn a_provider_that_bills_gets_no_second_submit_unless_its_card_allows_it() {
    for (more, submits) in [("", [1, 0]), ("retry_failed_jobs = true", [1, 1])] {
        let first = Upstream::start(film(), Fares::FailsTasks);
        let second = Upstream::start(film(), Fares::FailsTasks);
        let front = front("openai", &[&first, &second], more);
        let video = ended(&front.client(), 1).remove(0);
        assert_eq!(video["error"]["code"], "generation_failed");
        assert_eq!([first.submits(), second.submits()], submits);
    }
}

/// A ComfyUI, and a well one beside it.
#[test]
fn p18_no_task_fails_that_the_other_of_two_comfyuis_completes() {
    let servers = [TestComfy::start(), TestComfy::start()];
    for server in &servers {
        server.set(|behaviour| behaviour.film = film().to_vec());
    }
    let setup = Setup::default();
    let file = setup.data_path().with_extension("json");
    std::fs::write(&file, workflow().to_string()).unwrap();
    let urls: Vec<String> = servers.iter().map(TestComfy::base_url).collect();
    let front = setup
        .config(&format!(
            "[worker]\n\
             slots = 4\n\
             [[engines]]\n\
             name = \"wan\"\n\
             kind = \"comfyui\"\n\
             base_urls = {}\n\
             workflow = \"{}\"\n\
             poll_milliseconds = 50\n\
             [engines.bindings]\n\
             prompt = \"6.text\"\n\
             first_frame = \"10.image\"\n\
             output = \"9\"\n\
             optional = [\"first_frame\"]\n\
             [engines.describe]\n\
             fps = 16\n\
             [[models]]\n\
             id = \"wan\"\n\
             engine = \"wan\"\n\
             sizes = [\"256x256\"]\n\
             seconds = [2]\n",
            json!(urls),
            file.display()
        ))
        .start();
    let client = front.client();
    let sick = &servers[0];
    sick.set(|behaviour| behaviour.works = Works::Badly("RuntimeError"));
    assert_all_complete(&client, 12);
    sick.set(|behaviour| behaviour.works = Works::Well);
    wait_until_back(&front, &client, &sick.base_url());
    // It serves pages in place of films.
    sick.set(|behaviour| behaviour.film = b"<html>Bad gateway</html>".to_vec());
    assert_all_complete(&client, 12);
    sick.set(|behaviour| behaviour.film = film().to_vec());
    wait_until_back(&front, &client, &sick.base_url());
}
