//! Studio in a real browser: Debian's Chromium, driven by the scenarios of `node/page`. Each gets a service of its own
//! and a project's key.

mod code;
mod driver;
mod operators;

use std::ops::Range;

use kinora_test_e2e::{Client, DataFolder, Host, Server, Setup, Video, keys, studio};
use serde_json::json;

use crate::support::{TINY, fetching, narrow, narrow_on, quick, slow, square};

/// Runs a scenario as the user of `client`; `obey` does what it asks for.
fn scenario(name: &str, client: &Client, obey: impl FnMut(&str)) {
    scenario_beside("", name, client, obey);
}

/// The same beside `host`, which has what the user's addresses lead to.
fn scenario_beside(host: &str, name: &str, client: &Client, obey: impl FnMut(&str)) {
    let (page, key) = (client.base_url(), client.key());
    driver::run(
        &json!({"scenario": name, "page": page, "key": key, "host": host}),
        obey,
    );
}

/// A client with an operator's key.
fn operator(server: &Server) -> Client {
    let create = ["create", "--name", "ops", "--project", "ops", "--operator"];
    server.client_with(keys(server.data(), &create).ok().trim())
}

fn plain(name: &str) {
    let server = Server::start();
    scenario(name, &server.newcomer(), |_| ());
}

/// A completed video, another one, and one that failed.
fn furnish(client: &Client) {
    let mut other = quick("kinora-b1");
    other["prompt"] = json!("A lighthouse at night");
    let [first, second] = [quick("kinora-a1"), other].map(|body| client.submit(&body));
    client.wait_completed(first.id());
    client.wait_completed(second.id());
    fail(client);
}

/// A task whose picture cannot be fetched.
fn fail(client: &Client) {
    let mut body = quick("kinora-a1");
    body["prompt"] = json!("A picture of nothing");
    body["first_frame"] = json!("http://127.0.0.1:1024/none.png");
    client.wait_for(client.submit(&body).id(), "failed");
}

#[test]
fn a_first_visit_leads_to_a_finished_video_by_clicks_alone() {
    plain("first_visit");
}

#[test]
fn a_first_visit_by_phone_leads_to_a_finished_video_too() {
    plain("first_visit_by_phone");
}

#[test]
fn a_draft_is_made_final_and_compared_with_it() {
    plain("draft_to_final");
}

#[test]
fn an_edit_starts_from_a_video() {
    plain("edit");
}

#[test]
fn an_edit_starts_from_a_video_by_phone_too() {
    plain("edit_by_phone");
}

#[test]
fn the_form_names_the_keys_of_the_keyboard() {
    plain("apple");
}

#[test]
fn the_age_of_a_finished_video_grows() {
    let server = Server::start();
    let client = server.newcomer();
    client.wait_completed(client.submit(&square("kinora-a1")).id());
    scenario("ages", &client, |_| ());
}

#[test]
fn a_task_that_ends_before_the_stream_is_open_is_seen_to_end() {
    let server = narrow().start();
    let client = server.newcomer();
    let mut task = None;
    scenario("missed_end", &client, |word| match word {
        "begin" => task = Some(client.wait_working(client.submit(&slow()).id())),
        _ => {
            let id = task.take().unwrap().id().to_owned();
            client.post(&format!("/v1/videos/{id}/cancel")).video();
            client.wait_for(&id, "failed");
        }
    });
}

#[test]
fn what_others_delete_goes_away() {
    let server = Server::start();
    let client = server.newcomer();
    let made = [(); 2].map(|()| client.submit(&square("kinora-a1")));
    for video in &made {
        client.wait_completed(video.id());
    }
    scenario("deleted_elsewhere", &client, |_| {
        client.delete(&format!("/v1/videos/{}", made[1].id())).ok();
    });
}

/// Two videos with sound, of other shapes.
fn furnish_two(client: &Client) {
    for body in [quick("kinora-a1"), square("kinora-a1")] {
        client.wait_completed(client.submit(&body).id());
    }
}

#[test]
fn a_viewer_remembers_the_sound_and_shows_its_facts() {
    let server = Server::start();
    let client = server.newcomer();
    furnish_two(&client);
    scenario("viewing", &client, |_| ());
}

#[test]
fn a_comparison_shows_both_in_their_shapes() {
    let server = Server::start();
    let client = server.newcomer();
    furnish_two(&client);
    scenario("comparing", &client, |_| ());
}

#[test]
fn a_picture_grows_into_the_viewer_unless_motion_is_unwanted() {
    let server = Server::start();
    let client = server.newcomer();
    furnish_two(&client);
    scenario("motion", &client, |_| ());
}

#[test]
fn filters_and_the_search_show_what_they_say() {
    let server = Server::start();
    let client = server.newcomer();
    furnish(&client);
    scenario("filters", &client, |_| ());
}

#[test]
fn single_keys_lead_through_the_page_and_can_be_turned_off() {
    let server = Server::start();
    let client = server.newcomer();
    furnish(&client);
    scenario("keys", &client, |_| ());
}

#[test]
fn a_failure_says_why() {
    let server = Server::start();
    let client = server.newcomer();
    scenario("failures", &client, |_| fail(&client));
}

#[test]
fn pictures_and_sounds_are_shown_judged_and_used() {
    let host = Host::start();
    host.serve("photo.png", studio::landscape("photo.png", (640, 480)));
    host.serve("small.png", studio::flat("small.png", (200, 200)));
    host.serve("tone.wav", studio::tone("tone.wav", 440, 3.0));
    let client = fetching().newcomer();
    let address = host.url("");
    scenario_beside(address.trim_end_matches('/'), "references", &client, |_| ());
}

/// Runs a scenario with pictures and a sound for its user to upload.
fn with_files(name: &str) {
    let host = Host::start();
    host.serve("photo.png", studio::landscape("photo.png", (640, 480)));
    host.serve("large.png", studio::landscape("large.png", (2400, 1800)));
    host.serve("other.jpg", studio::landscape("other.jpg", (800, 450)));
    host.serve("tone.wav", studio::tone("tone.wav", 440, 3.0));
    let server = Server::start();
    let address = host.url("");
    let client = server.newcomer();
    scenario_beside(address.trim_end_matches('/'), name, &client, |_| ());
}

#[test]
fn files_of_ones_own_are_uploaded_judged_used_and_used_again() {
    with_files("own_files");
}

#[test]
fn a_picture_is_uploaded_by_phone_too() {
    with_files("own_files_by_phone");
}

#[test]
fn four_variations_are_four_tasks_and_refused_ones_are_told() {
    plain("variations");
}

#[test]
fn a_video_and_its_page_can_be_linked_to() {
    let server = Server::start();
    let client = server.newcomer();
    furnish(&client);
    scenario("links", &client, |_| ());
}

#[test]
fn the_end_of_a_video_begins_the_next() {
    plain("going_on");
}

#[test]
fn several_videos_are_saved_as_one_archive() {
    let server = Server::start();
    let client = server.newcomer();
    furnish(&client);
    scenario("archive", &client, |_| ());
}

#[test]
fn several_videos_are_deleted_by_phone() {
    let server = Server::start();
    let client = server.newcomer();
    furnish(&client);
    scenario("delete_many", &client, |_| ());
}

#[test]
fn favourites_last_until_the_sign_out() {
    let server = Server::start();
    let client = server.newcomer();
    furnish(&client);
    scenario("favourites", &client, |_| ());
}

#[test]
fn words_and_last_prompts_go_into_the_prompt() {
    plain("words");
}

#[test]
fn what_was_typed_is_kept_and_nothing_right_looks_wrong() {
    plain("form_kept");
}

#[test]
fn who_stays_signed_in_is_so_in_other_tabs_until_the_sign_out() {
    plain("stays");
}

#[test]
fn a_link_signs_in_once_and_then_says_what_to_do() {
    let server = Setup::default().opening().start();
    let (page, link, file) = (server.base_url(), server.sign_in_link(), server.opened());
    driver::run(
        &json!({"scenario": "by_link", "page": page, "key": "", "host": "", "link": link, "file": file}),
        |_| (),
    );
}

#[test]
fn a_long_prompt_leaves_its_actions_in_sight() {
    let server = Server::start();
    let client = server.newcomer();
    for prompt in [
        format!("A long story {}", "of a kite over a beach, ".repeat(166)),
        "A short one".to_owned(),
    ] {
        let mut body = quick("kinora-b1");
        body["prompt"] = json!(prompt.trim());
        client.wait_completed(client.submit(&body).id());
    }
    scenario("long_prompt", &client, |_| ());
}

#[test]
fn many_waiting_tasks_are_one_strip() {
    // The first one is worked on all the time.
    let server = narrow().set("LONG_CLIP_FRAME_MS", 1_000).start();
    let client = server.newcomer();
    let mut body = slow();
    client.wait_working(client.submit(&body).id());
    for number in 1..=6 {
        body["prompt"] = json!(format!("Number {number}"));
        client.submit(&body);
    }
    scenario("queue", &client, |_| ());
}

#[test]
fn forced_colours_show_what_is_chosen() {
    let server = Server::start();
    let client = server.newcomer();
    furnish(&client);
    scenario("forced_colours", &client, |_| ());
}

#[test]
fn a_running_video_shows_its_progress_and_can_be_cancelled() {
    // The whole scenario happens during one clip.
    let server = narrow().set("LONG_CLIP_FRAME_MS", 150).start();
    scenario("cancel", &server.newcomer(), |_| ());
}

#[test]
fn a_restart_in_the_middle_loses_nothing() {
    let server = narrow().start();
    let (client, data, address) = (server.newcomer(), server.data().clone(), server.address());
    let mut server = Some(server);
    scenario("restart", &client, |word| match word {
        "kill" => server.take().unwrap().kill(),
        _ => server = Some(narrow_on(&data).at(address).start()),
    });
}

#[test]
fn a_request_whose_answer_was_lost_is_accepted_once() {
    plain("lost_answer");
}

#[test]
fn a_request_is_used_again_and_a_deleted_video_is_gone() {
    plain("reuse_and_delete");
}

#[test]
fn a_first_load_is_small_and_nothing_moves() {
    let server = Server::start();
    let client = server.newcomer();
    furnish(&client);
    scenario("load", &client, |_| ());
}

#[test]
fn axe_finds_nothing_serious() {
    let server = Setup::default().config(operators::SHARED).start();
    let client = operator(&server);
    furnish(&client);
    let loaded = client.submit(&operators::of_model(quick("kinora-a1"), "sketches"));
    client.wait_completed(loaded.id());
    scenario("accessible", &client, |_| ());
}

/// As many as the scenario expects.
const TASKS: usize = 500;

/// So many are painted; the others have one colour, and cost nearly nothing.
const PAINTED: usize = 8;

/// Makes one video for each number.
fn make_many(client: &Client, numbers: Range<usize>) {
    let submit = |number: usize| {
        let prompt = format!("A kite number {number}.");
        client.submit(&json!({"model": "tiny", "prompt": prompt, "seconds": 2}))
    };
    let videos: Vec<Video> = numbers.map(submit).collect();
    for video in videos {
        client.wait_completed(video.id());
    }
}

#[test]
fn five_hundred_videos_with_their_posters_scroll_without_long_frames() {
    let data = DataFolder::default();
    let tiny = || Setup::on(&data).config(TINY);
    let server = tiny().painted().start();
    let (client, address) = (server.newcomer(), server.address());
    make_many(&client, 0..PAINTED);
    server.kill();
    let _server = tiny().at(address).start();
    make_many(&client, PAINTED..TASKS);
    scenario("many", &client, |_| ());
}

#[test]
fn a_service_without_the_studio_has_no_page() {
    let with = Server::start();
    let without = Setup::default()
        .set("KINORA_STUDIO_ENABLED", "false")
        .start();
    let ask = |server: &Server| {
        let client = server.anonymous();
        let request = client
            .request("GET", "/")
            .header("accept", "text/html,*/*;q=0.8");
        request.send()
    };
    let page = ask(&with);
    assert_eq!(page.status, 200, "{}", page.shown());
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let opener = page.header("cross-origin-opener-policy");
    assert_eq!(opener, Some("same-origin"));
    ask(&without).refused(404, "not_found");
}
