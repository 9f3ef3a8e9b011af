//! Lists, a page at a time, in both directions, and what a list query may not be.

use kinora_test_e2e::{Client, Video, until};

use crate::support::{busy, quick, shared};
use kinora_test_e2e::routes::NO_TASK;

fn ids(videos: &[Video]) -> Vec<String> {
    videos.iter().map(|video| video.id().to_owned()).collect()
}

/// All pages of a list, as a client walks them.
fn walk(client: &Client, limit: usize, order: &str) -> Vec<Vec<String>> {
    let mut pages: Vec<Vec<String>> = Vec::new();
    let mut after = String::new();
    loop {
        let (list, videos) = client
            .get(&format!("/v1/videos?limit={limit}&order={order}{after}"))
            .list();
        pages.push(ids(&videos));
        if list["has_more"] == false {
            return pages;
        }
        after = format!("&after={}", list["last_id"].as_str().unwrap());
    }
}

#[test]
fn pages_hold_every_task_once_in_order() {
    let (server, blocker) = busy();
    let client = server.newcomer();
    let submitted: Vec<Video> = (0..7).map(|_| client.submit(&quick("kinora-b1"))).collect();
    let oldest_first = ids(&submitted);
    let newest_first: Vec<String> = oldest_first.iter().rev().cloned().collect();
    for limit in [1, 2, 3, 7, 100] {
        for (order, expected) in [("desc", &newest_first), ("asc", &oldest_first)] {
            let pages = walk(&client, limit, order);
            let sizes: Vec<&[String]> = expected.chunks(limit).collect();
            assert_eq!(pages, sizes, "{order} by {limit}");
        }
    }
    let (list, videos) = client.get("/v1/videos").list();
    assert_eq!(
        (ids(&videos), &list["has_more"]),
        (newest_first, &false.into())
    );
    // A place may be a second old.
    until("the places of all", || {
        let (_, videos) = client.get("/v1/videos?order=asc").list();
        let places = videos.iter().map(|video| video["queue_position"].as_u64());
        places.eq((0..7).map(Some)).then_some(())
    });

    let after_last = client
        .get(&format!("/v1/videos?after={}", oldest_first[0]))
        .list();
    assert_eq!(
        (after_last.1.len(), &after_last.0["has_more"]),
        (0, &false.into())
    );
    let (first, rest) = oldest_first.split_first().unwrap();
    client.delete(&format!("/v1/videos/{first}")).ok();
    assert_eq!(walk(&client, 100, "asc"), [rest]);
    assert_eq!(
        server.client().get("/v1/videos").list().1[0].id(),
        blocker.id()
    );
}

#[test]
fn an_empty_list_has_no_ends() {
    let (list, videos) = shared().newcomer().get("/v1/videos").list();
    assert!(videos.is_empty());
    assert!(
        list["first_id"].is_null() && list["last_id"].is_null(),
        "{list}"
    );
    assert_eq!(list["has_more"], false);
}

#[test]
fn a_wrong_query_is_refused_by_name() {
    let client = shared().newcomer();
    for (query, code, param) in [
        ("limit=0", "invalid_value", "limit"),
        ("limit=101", "invalid_value", "limit"),
        ("limit=-1", "invalid_value", "limit"),
        ("limit=ten", "invalid_value", "limit"),
        ("limit=", "invalid_value", "limit"),
        ("limit=99999999999999999999", "invalid_value", "limit"),
        ("limit=5&limit=5", "invalid_value", "limit"),
        ("order=up", "invalid_value", "order"),
        ("order=DESC", "invalid_value", "order"),
        ("after=x", "invalid_value", "after"),
        ("after=%ff", "invalid_value", "after"),
        ("page=2", "unknown_parameter", "page"),
    ] {
        let reply = client.get(&format!("/v1/videos?{query}"));
        assert_eq!(reply.status, 400, "{query}: {}", reply.shown());
        reply.refused_for(400, code, Some(param));
    }
    for fine in [
        "limit=1",
        "limit=100",
        "order=asc",
        "",
        &format!("after={NO_TASK}"),
    ] {
        client.get(&format!("/v1/videos?{fine}")).list();
    }
}
