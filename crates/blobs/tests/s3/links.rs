//! Addresses by which clients get objects from the server itself.

use std::time::Duration;

use kinora_blobs::DirectLink;
use kinora_testkit::s3::{TestS3, get};

use super::{pattern, store};

fn link(ttl: Duration) -> DirectLink<'static> {
    DirectLink {
        ttl,
        media_type: "video/mp4",
        disposition: "inline; filename=\"a.mp4\"",
        cache_control: "private, max-age=300",
    }
}

#[tokio::test]
async fn direct_addresses_open_one_object_for_a_while() {
    let server = TestS3::start();
    let store = store(&server);
    let body = pattern(5000);
    store.put_bytes("a/b", body.clone()).await.unwrap();
    let blobs = &store;
    let sign = |ttl| async move {
        let url = blobs.direct_url("a/b", &link(ttl)).await.unwrap();
        url.unwrap().to_string()
    };
    let url = sign(Duration::from_secs(300)).await;
    assert!(!url.contains(TestS3::SECRET));
    let whole = get(&url, "");
    assert_eq!((whole.status, &*whole.body), (200, &*body), "{whole:?}");
    for header in [
        "content-type: video/mp4",
        "content-disposition: inline; filename=\"a.mp4\"",
        "cache-control: private, max-age=300",
    ] {
        assert!(whole.head.contains(header), "{}", whole.head);
    }
    let part = get(&url, "Range: bytes=1000-1999\r\n");
    assert_eq!((part.status, &*part.body), (206, &body[1000..2000]));

    for (from, to) in [
        ("/a/b?", "/a/c?"),
        ("X-Amz-Expires=300", "X-Amz-Expires=301"),
        ("video%2Fmp4", "text%2Fhtml"),
    ] {
        assert!(url.contains(from), "{url}");
        assert_eq!(get(&url.replace(from, to), "").status, 403, "{to}");
    }
    assert_eq!(get(url.split('?').next().unwrap(), "").status, 403);

    let short = sign(Duration::from_secs(1)).await;
    let expires = async {
        loop {
            match get(&short, "").status {
                200 => tokio::time::sleep(Duration::from_millis(50)).await,
                status => break status,
            }
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), expires).await;
    assert_eq!(ended, Ok(403));
}
