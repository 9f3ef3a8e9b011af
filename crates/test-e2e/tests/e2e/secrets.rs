//! Secrets stay secret: no key but the right one opens, no signature but the right one either, and
//! neither is ever written anywhere. (That no log holds a key or a signature is checked at the end
//! of every service that any test starts.)

use kinora_test_e2e::{DataFolder, Setup};

use crate::support::quick;

#[test]
fn p14_no_file_holds_a_key_in_clear() {
    let data = DataFolder::default();
    let server = Setup::on(&data).start();
    let client = server.client();
    let key = client.key().to_owned();
    let video = client.submit(&quick("kinora-b1"));
    client.wait_completed(video.id());
    server.kill();
    let files = data.files("");
    assert!(files.len() > 4, "{files:?}");
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let found = bytes
            .windows(key.len())
            .any(|window| window == key.as_bytes());
        assert!(!found, "{} holds a key", path.display());
    }
}
