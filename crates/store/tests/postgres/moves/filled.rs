//! A store with something of everything.

use kinora_contract::Priority;
use kinora_store::conformance::Site;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{
    NOW, RETENTION_MS, actor, artifact, id, renewal, task, with_images,
};
use kinora_store::conformance::uploads::{file, file_id};
use kinora_store::{
    AddFileOutcome, DeleteOutcome, IdempotencyKey, KeyScope, LeaseRenewal, NewKey, NewTask,
    ReleasedAttempt, SecretKey,
};

use super::told;

pub(super) fn keyed(number: u64, key: &str) -> NewTask {
    NewTask {
        idempotency: Some(IdempotencyKey {
            key: key.to_owned(),
            fingerprint: [7; 32],
            bound_ms: 1_000_000,
        }),
        ..task(number, "one")
    }
}

pub(super) fn key(number: u8) -> NewKey {
    NewKey {
        id: format!("key_{number:012}"),
        sha256: [number; 32],
        name: format!("Schlüssel {number}, \"\u{1f511}\""),
        project: "one".to_owned(),
        scopes: KeyScope::VIDEOS[usize::from(number % 2)..].into(),
        models: (number == 2).then(|| vec!["kinora-b1".to_owned()]),
        requests_per_minute: (number == 2).then_some(0),
        unfinished_max: (number == 2).then_some(u32::MAX),
        budget: kinora_store::Budget::default(),
        created_at_ms: NOW + u64::from(number % 3),
        expires_at_ms: (number == 3).then_some(NOW + 5),
    }
}

async fn add_keys(site: &Site) {
    let by = actor("one");
    for number in 1..=5 {
        site.keys.add_key(key(number), &by).await.unwrap();
    }
    let revoked = site.keys.revoke_key(&key(4).id, NOW + 9, &by).await;
    assert!(revoked.unwrap());
    let found = site.keys.find_key(&[1; 32], NOW + 100_000).await.unwrap();
    assert!(found.is_some());
    site.secrets
        .store_signing_key(SecretKey([9; 32]))
        .await
        .unwrap();
}

/// Tasks in every phase. 1 and 2 wait with keys, 2 is urgent, 3 has references that are wanted, 0 has them, 5 ran before, 6 runs with a
/// ticket, 7 is completed, 8 failed, 9 was cancelled while it ran, 4 has expired, 11 is a completed draft, 12 was
/// deleted while it had a ticket, and so was 13, the newest.
pub(super) async fn fill(site: &Site) {
    add_keys(site).await;
    told::add_webhooks(site).await;
    for number in [4, 7, 8, 9, 12] {
        site.submit(number, "two").await;
    }
    let [expired, done, failed, withdrawn, abandoned] = &site.claim(5).await[..] else {
        panic!("five tasks");
    };
    let ended = artifact("expired");
    site.work
        .finish(&expired.lease, Ok(ended), 10)
        .await
        .unwrap();
    site.sweep(NOW + 20).await;
    site.complete(done).await.unwrap();
    let failure = kinora_contract::FailureCode::GenerationFailed;
    let finish = site
        .work
        .finish(&failed.lease, Err(failure.into()), RETENTION_MS);
    finish.await.unwrap();
    site.cancel("two", 9, RETENTION_MS).await;
    assert!(site.check(&withdrawn.lease).await.is_err());
    let ticket = LeaseRenewal {
        ticket: Some("{\"job\": \"f\\u00fcnf\"}".to_owned()),
        ..renewal(40)
    };
    site.renew(&abandoned.lease, ticket.clone()).await.unwrap();
    let deleted = site.tasks.delete("two", id(12)).await.unwrap();
    let DeleteOutcome::Deleted { .. } = deleted else {
        panic!("{deleted:?}")
    };
    let mut draft = with_images(11, "three", 1);
    draft.spec.draft = true;
    site.submit_all([draft, with_images(0, "one", 2)]).await;
    site.fetch_all().await;
    let made = site.claim_one().await;
    assert_eq!(made.task.id, id(11));
    site.complete(&made).await.unwrap();
    for (number, attempt) in [(5, ReleasedAttempt::Counts), (6, ReleasedAttempt::Forgiven)] {
        site.submit(number, "four").await;
        let claims = site.claim(9).await;
        for claim in claims {
            let is_it = claim.task.id == id(number);
            let attempt = if is_it {
                attempt
            } else {
                ReleasedAttempt::Forgiven
            };
            match number == 6 && is_it {
                true => site.renew(&claim.lease, ticket.clone()).await.unwrap(),
                false => site.work.release(&claim.lease, attempt).await.unwrap(),
            }
        }
    }
    site.submit_all([
        told::with_callback(keyed(1, "a")),
        NewTask {
            priority: Priority::High,
            ..keyed(2, "\u{1f511} b")
        },
        with_images(3, "one", 1),
    ])
    .await;
    add_files(site).await;
    site.submit(13, "two").await;
    site.tasks.delete("two", id(13)).await.unwrap();
    told::deliver_some(site).await;
}

/// 1 is named by task 10, and shares its bytes with 2; 3 was deleted while task 10 named it.
async fn add_files(site: &Site) {
    for (number, content) in [(1, 1), (2, 1), (3, 3)] {
        let added = site.files.add_file(file(number, "one", content)).await;
        assert!(
            matches!(added, Ok(AddFileOutcome::Added { .. })),
            "{added:?}"
        );
        let confirmed = site.files.confirm_file(file_id(number)).await.unwrap();
        assert!(confirmed.is_some());
    }
    let named = NewTask {
        files: vec![file_id(1), file_id(3)],
        ..task(10, "one")
    };
    site.submit_all([named]).await;
    assert!(site.files.delete_file("one", file_id(3)).await.unwrap());
}
