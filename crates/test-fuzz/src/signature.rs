//! The query of a signed address: nothing opens but what was signed.

use kinora_blobs::sign::{SigningSecret, UrlSigner};
use kinora_contract::TaskId;

const EXPIRES_AT_S: u64 = 1_800_000_000;

pub(crate) fn check(query: &str) {
    let signer = UrlSigner::new(SigningSecret::new([7; 32]), None);
    let task = TaskId::from_parts(1, [2; 10]);
    let right = signer.sign(task, "video", EXPIRES_AT_S);
    assert!(
        signer
            .verify(task, "video", &right, EXPIRES_AT_S - 1)
            .is_ok()
    );
    // What is put in front, behind, or in place of it.
    let half = right.len() / 2;
    for tried in [
        query.to_owned(),
        format!("{query}{right}"),
        format!("{right}{query}"),
        format!("{}{query}{}", &right[..half], &right[half..]),
    ] {
        let same = tried == right || tried == format!("variant=video&{right}");
        let opens = signer
            .verify(task, "video", &tried, EXPIRES_AT_S - 1)
            .is_ok();
        assert_eq!(opens, same, "{tried:?}");
    }
}
