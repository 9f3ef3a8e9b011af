//! Broken bodies over HTTP: each is refused with a 4xx in the envelope, or was
//! still a right request; never anything else, and the service is as well as before.

use std::thread;

use kinora_test_e2e::{Client, Form, keys};

use crate::cases::{ACCEPTED, load};
use crate::dice::Dice;
use crate::support::{busy, quick};

/// `./soak malformed` has five times as many.
const BODIES: usize = 20_000;
const THREADS: usize = 4;

/// Pieces that parsers trip over.
const PIECES: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"null",
    b"1e999",
    b"-0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\x00",
    b"\r\n",
    b"--kinora-e2e-boundary",
    b"--",
    b"Content-Disposition:",
    b"; name=\"",
    b"; filename=\"a\"",
    b"[]",
    b"[image_url]",
    b"\xe2\x80\xae",
    b"99999999999999999999",
    b",\"model\":\"kinora-a1\"",
    b"http://[::1",
    b"%00",
];

fn broken(body: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut body = body.to_vec();
    for _ in 0..=dice.index(4) {
        let at = dice.index(body.len() + 1);
        match dice.index(6) {
            0 => body.truncate(at),
            1 if at < body.len() => body[at] ^= 1 << dice.index(8),
            2 if at < body.len() => {
                body.remove(at);
            }
            3 => {
                let end = at + dice.index(body.len() - at + 1);
                let again = body[at..end].to_vec();
                body.splice(at..at, again);
            }
            4 => {
                let end = at + dice.index((body.len() - at).min(40) + 1);
                body.drain(at..end);
            }
            _ => {
                let piece = PIECES[dice.index(PIECES.len())];
                body.splice(at..at, piece.iter().copied());
            }
        }
    }
    body
}

/// Bodies that are right, by media type.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let json = |body: Vec<u8>| ("application/json".to_owned(), body);
    let form = |parts: Vec<(String, String)>| {
        let form = Form::of(parts.iter().map(|(name, text)| (&**name, &**text)));
        (Form::media_type(), form.bytes())
    };
    load(ACCEPTED)
        .into_iter()
        .flat_map(|case| {
            let by_json = case.json.map(json);
            by_json.into_iter().chain(case.parts.map(form))
        })
        .filter(|(_, body)| body.len() < 4_000)
        .collect()
}

/// What became of bodies that were broken.
#[derive(Clone, Copy, Default)]
struct Tally {
    /// Right all the same, and made a task.
    accepted: usize,
    /// Right all the same, while the project had all the tasks that it may.
    turned_away: usize,
}

/// Sends `count` broken bodies.
fn send(client: &Client, count: usize, seed: u64) -> Tally {
    let (seeds, mut dice, mut tally) = (seeds(), Dice(seed), Tally::default());
    for number in 0..count {
        let (media_type, body) = &seeds[dice.index(seeds.len())];
        let body = broken(body, &mut dice);
        let reply = client
            .request("POST", "/v1/videos")
            .body(media_type, body.clone())
            .send();
        let shown = || {
            format!(
                "seed {seed}, number {number}: {:?}",
                body.escape_ascii().to_string()
            )
        };
        match reply.status {
            200 => {
                tally.accepted += 1;
                continue;
            }
            429 => tally.turned_away += 1,
            _ => {}
        }
        assert!(
            (400..500).contains(&reply.status),
            "{}\n{}",
            shown(),
            reply.shown()
        );
        reply.assert_envelope();
    }
    tally
}

#[test]
fn p08_thousands_of_broken_bodies_are_refused_in_the_envelope() {
    let asked = std::env::var("KINORA_MALFORMED").ok();
    let bodies = asked.map_or(BODIES, |text| text.parse().unwrap());
    // Whatever is right after all waits behind a long task, and only one of it.
    let (server, blocker) = busy();
    let create = [
        "create",
        "--name",
        "malformed",
        "--project",
        "m",
        "--unfinished-max",
        "1",
    ];
    let key = keys(server.data(), &create).ok();
    let client = server.client_with(key.trim()).forgetful();
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let client = &client;
                scope.spawn(move || send(client, bodies / THREADS, 0x5eed_0001 + number as u64))
            })
            .collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let accepted: usize = tallies.iter().map(|tally| tally.accepted).sum();
    let turned_away: usize = tallies.iter().map(|tally| tally.turned_away).sum();
    println!("{bodies} bodies, right all the same: {accepted} accepted, {turned_away} turned away");
    assert!(
        accepted + turned_away < bodies / 2,
        "most were not broken at all"
    );
    // Nothing but the accepted ones became a task.
    assert_eq!(removed(&client), accepted);
    server
        .client()
        .delete(&format!("/v1/videos/{}", blocker.id()))
        .ok();
    let after = server.client().submit(&quick("kinora-b1"));
    server.client().wait_completed(after.id());
}

/// Removes all tasks of a project, and returns how many there were.
fn removed(client: &Client) -> usize {
    let mut count = 0;
    loop {
        let (_, videos) = client.get("/v1/videos?limit=100").list();
        if videos.is_empty() {
            return count;
        }
        for video in videos {
            client.delete(&format!("/v1/videos/{}", video.id())).ok();
            count += 1;
        }
    }
}
