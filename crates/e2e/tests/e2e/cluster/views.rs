//! What only a client who talks to one API after another can see: each shows the work of all.

use kinora_e2e::until;

use super::Cluster;
use crate::support::preview;
use crate::support::{narrow_on, slow};

#[test]
fn a_preview_and_a_place_in_the_queue_are_shown_by_an_api_that_did_not_take_the_task() {
    let cluster = Cluster::new();
    let apis = [cluster.api(), cluster.api()];
    let client = apis[0].client();
    let other = client.at(&apis[1].base_url());
    // Nobody serves yet, so that all places are known.
    let ids = [(); 3].map(|()| client.submit(&slow()).id().to_owned());
    let places = || {
        let videos = ids.each_ref().map(|id| other.video(id));
        videos.map(|video| video["queue_position"].as_u64())
    };
    until("the places of all", || {
        (places() == [Some(0), Some(1), Some(2)]).then_some(())
    });
    let worker = narrow_on(&cluster.machine()).as_worker();
    let _worker = cluster.process(worker).start();
    other.wait_working(&ids[0]);
    until("the others to move up", || {
        (places() == [None, Some(0), Some(1)]).then_some(())
    });
    let first = preview(&other, &ids[0], &[]);
    assert_eq!(first.status, 200, "{}", first.shown());
    assert_eq!(first.header("content-type"), Some("image/webp"));
    // It changes there, too.
    let second = preview(&other, &ids[0], &first.body);
    assert_eq!(second.status, 200, "{}", second.shown());
}
