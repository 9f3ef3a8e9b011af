//! Hours of use in front of the real binary, as `./soak` runs them: many clients that wait, and
//! many short tasks. What grows is a failure. The binary is named by `KINORA_E2E_BINARY`.

mod footprint;
mod idle;
mod metered;
mod short;
mod streams;

pub(crate) use idle::idle;
pub(crate) use metered::metered;
pub(crate) use short::short;
pub(crate) use streams::streams;

/// A request without a body.
fn request(method: &str, path: &str, key: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: soak\r\nauthorization: Bearer {key}\r\n\
         content-length: 0\r\n\r\n"
    )
    .into_bytes()
}

/// A submit of the shortest and smallest clip, from a first frame or from text alone.
fn submit(seed: usize, first_frame: Option<&str>, key: &str) -> Vec<u8> {
    let body = serde_json::json!({
        "model": "kinora-b1", "prompt": "A paper boat crosses a pond", "seconds": 2,
        "resolution": "480p", "seed": seed, "first_frame": first_frame,
    })
    .to_string();
    format!(
        "POST /v1/videos HTTP/1.1\r\nhost: soak\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
