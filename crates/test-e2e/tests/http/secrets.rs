//! Secrets stay secret: no key but the right one opens, no signature but the right one either, and
//! neither is ever written anywhere. (That no log holds a key or a signature is checked at the end
//! of every service that any test starts.)

use crate::support::{quick, shared};

const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Every text that differs from `text` in one character of `alphabet`, or lacks or doubles one.
fn neighbours(text: &str, alphabet: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    for at in 0..text.len() {
        let (before, rest) = text.split_at(at);
        let after = &rest[1..];
        all.push(format!("{before}{after}"));
        all.push(format!("{before}{0}{0}{after}", &rest[..1]));
        let others = alphabet.iter().map(|byte| char::from(*byte));
        all.extend(
            others
                .filter(|other| !rest.starts_with(*other))
                .map(|other| format!("{before}{other}{after}")),
        );
    }
    // Doubling or dropping one of two equal neighbours gives the same text twice; the text
    // itself never comes of it.
    all.sort();
    all.dedup();
    all
}

#[test]
fn p14_no_key_but_the_right_one_opens() {
    let client = shared().newcomer();
    client.get("/v1/videos").ok();
    let wrong = neighbours(client.key(), BASE62);
    assert!(wrong.len() > 2_600, "{}", wrong.len());
    for key in wrong {
        let reply = shared().client_with(&key).get("/v1/videos");
        reply.refused(401, "invalid_api_key");
    }
}

#[test]
fn p14_no_signature_but_the_right_one_opens() {
    let client = shared().newcomer();
    let video = client.submit(&quick("kinora-b1"));
    let video = client.wait_completed(video.id());
    let anonymous = shared().anonymous();
    let url = video.text("result_url");
    assert_eq!(anonymous.request("HEAD", url).send().status, 200);
    let (path, query) = url.split_once('?').unwrap();
    let (expires, signature) = query.split_once("&signature=").unwrap();
    let opens = |query: &str| {
        let reply = anonymous.get(&format!("{path}?{query}"));
        reply.refused(401, "invalid_api_key");
    };
    // One digit changed is at least every single bit flipped.
    for wrong in neighbours(signature, b"0123456789abcdefABCDEF") {
        opens(&format!("{expires}&signature={wrong}"));
    }
    let until: u64 = expires.strip_prefix("expires=").unwrap().parse().unwrap();
    for wrong in [until - 1, until + 1, until + 31_536_000, 0, u64::MAX] {
        opens(&format!("expires={wrong}&signature={signature}"));
    }
    opens(&format!("variant=thumbnail&{query}"));
    opens(&format!("{query}&{query}"));
    let other = client.submit(&quick("kinora-b1"));
    let other = client.wait_completed(other.id());
    let reply = anonymous.get(&format!("{}?{query}", other.content()));
    reply.refused(401, "invalid_api_key");
}
