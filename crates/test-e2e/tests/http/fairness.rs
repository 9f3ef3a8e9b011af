//! Workers share the engines fairly among projects: however much one has waiting, another's only
//! task is the next to be started.

use kinora_test_e2e::until;

use crate::support::{cancel, narrow, quick, slow, started};

/// Tasks that the busy project has waiting.
const QUEUED: usize = 1_000;

#[test]
fn p12_a_project_with_a_thousand_waiting_tasks_does_not_starve_one_with_a_single_task() {
    // The first clip lasts for six minutes, however long the submits take.
    let server = narrow()
        .set("KINORA_QUEUE_PROJECT_UNFINISHED_MAX", QUEUED + 100)
        .set("LONG_CLIP_FRAME_MS", 1_000)
        .start();
    let (busy, other) = (server.client(), server.newcomer());
    let first = busy.submit(&slow());
    busy.wait_working(first.id());
    for _ in 0..QUEUED {
        busy.submit(&quick("kinora-b1"));
    }
    // Of the same model, so that it waits in the same line.
    let single = other.submit(&quick("kinora-b1"));
    assert_eq!(started(&server.log()), [first.id()]);
    cancel(&busy, first.id());
    let order = until("the next start", || {
        let order = started(&server.log());
        (order.len() > 1).then_some(order)
    });
    assert_eq!(order[1], single.id(), "the busy project was served again");
    other.wait_completed(single.id());
}

#[test]
fn positions_in_the_queue_foretell_the_order_of_starts() {
    let server = narrow().start();
    let clients = [server.client(), server.newcomer(), server.newcomer()];
    let blocker = clients[0].submit(&slow());
    clients[0].wait_working(blocker.id());
    let mut videos = Vec::new();
    for (number, (project, model)) in [(0, "a"), (0, "b"), (0, "a"), (1, "a"), (1, "b"), (2, "b")]
        .into_iter()
        .enumerate()
    {
        let mut body = quick(&format!("kinora-{model}1"));
        body["prompt"] = format!("Boat number {number}").into();
        videos.push((project, clients[project].submit(&body)));
    }
    let mut foretold: Vec<(u64, &str)> = Vec::new();
    for (project, video) in &videos {
        let position = &clients[*project].video(video.id())["queue_position"];
        foretold.push((position.as_u64().unwrap(), video.id()));
    }
    foretold.sort_unstable();
    let positions: Vec<u64> = foretold.iter().map(|(position, _)| *position).collect();
    assert_eq!(positions, [0, 1, 2, 3, 4, 5]);
    // The projects that have had nothing come first, whatever the model.
    assert_eq!(foretold[0].1, videos[3].1.id());
    assert_eq!(foretold[1].1, videos[5].1.id());
    cancel(&clients[0], blocker.id());
    let order = until("the starts", || {
        let order = started(&server.log());
        (order.len() == 1 + videos.len()).then_some(order)
    });
    let wanted: Vec<&str> = foretold.iter().map(|(_, id)| *id).collect();
    assert_eq!(order[1..], wanted);
}
