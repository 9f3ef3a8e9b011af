//! Chores: leased to one process at a time, and due until they are settled.

use std::collections::HashSet;

use super::bench::{Bench, CHORE_LEASE_MS, any_call_off, call_off, keys};
use super::fixtures::{LEASE_MS, MODELS, RETENTION_MS, id, of_model, renewal};
use super::{Harness, Site};
use crate::{Chore, ChoreKind, ChoreRequest, ChoreWork, LeaseRenewal, ReleasedAttempt};

/// The files of an attempt.
const FILES: usize = 5;

/// Leaves files to remove, of an attempt without a result.
async fn leave_files(stores: &Site, number: u64) -> [String; FILES] {
    stores.submit(number, "one").await;
    let claim = stores.claim_one().await;
    stores.cancel("one", number, RETENTION_MS).await;
    claim.lease.file_keys()
}

/// Leaves an upstream job to cancel, of a task of this model.
async fn leave_job(stores: &Site, number: u64, model: &str) {
    stores.submit_all([of_model(number, "one", model)]).await;
    let claim = stores.claim_one().await;
    let renewal = LeaseRenewal {
        ticket: Some(format!("ticket {number}")),
        ..renewal(1)
    };
    stores.renew(&claim.lease, renewal).await.unwrap();
    stores.cancel("one", number, RETENTION_MS).await;
}

async fn take_files(stores: &Site, count: usize, lease_ms: u64) -> Vec<Chore> {
    let request = ChoreRequest {
        kind: ChoreKind::RemoveFile,
        count,
        lease_ms,
    };
    stores.chores.lease_chores(request).await.unwrap()
}

async fn settle(stores: &Site, done: impl IntoIterator<Item = crate::ChoreDone>) {
    let done = done.into_iter().collect();
    stores.chores.complete_chores(done).await.unwrap();
}

/// The lease lasts to the millisecond, and the next holder gets the number of tries.
pub async fn a_chore_is_leased_to_one_until_its_lease_runs_out(harness: &impl Harness) {
    let [first, second] = harness.open_both("store").await;
    let files = leave_files(&first, 1).await;
    assert!(take_files(&second, 0, 700).await.is_empty());
    let taken = take_files(&first, 2, 700).await;
    assert_eq!(keys(&taken), files[..2], "oldest first");
    let rest = take_files(&second, 9, 5_000).await;
    assert_eq!(keys(&rest), files[2..], "no more than are free");
    first.clock.advance(699);
    for site in [&first, &second] {
        assert!(take_files(site, 9, 700).await.is_empty());
    }
    first.clock.advance(1);
    let again = take_files(&second, 9, 700).await;
    assert_eq!(keys(&again), files[..2]);
    assert!(take_files(&first, 9, 700).await.is_empty());
    let attempts = |chores: &[Chore]| chores.iter().map(|one| one.attempts).collect::<Vec<_>>();
    assert_eq!(
        (attempts(&taken), attempts(&again)),
        (vec![1; 2], vec![2; 2])
    );
    for (old, new) in taken.iter().zip(&again) {
        assert_eq!(old.number, new.number);
        assert_ne!(old.token, new.token);
    }
}

/// Many concurrent requests on both handles share all of them.
pub async fn no_chore_is_handed_out_twice(harness: &impl Harness) {
    let [first, second] = harness.open_both("store").await;
    let mut wanted = HashSet::new();
    for number in 1..=8 {
        wanted.extend(leave_files(&first, number).await);
    }
    let takers = [&first, &second].into_iter().cycle().take(12).map(|site| {
        let site = site.clone();
        tokio::spawn(async move { take_files(&site, FILES, 700).await })
    });
    let (mut taken, mut tokens) = (HashSet::new(), HashSet::new());
    for taker in takers.collect::<Vec<_>>() {
        for chore in taker.await.unwrap() {
            assert!(tokens.insert(chore.token), "a token given out twice");
            for key in keys(&[chore]) {
                assert!(taken.insert(key), "handed out twice");
            }
        }
    }
    assert_eq!(taken, wanted);
}

/// A stale answer neither completes nor postpones the chore: its holder goes on and settles it.
pub async fn a_stale_settle_changes_no_chore(harness: &impl Harness) {
    let [late, other] = harness.open_both("store").await;
    let files = leave_files(&late, 1).await;
    let stale = take_files(&late, FILES, 700).await;
    late.clock.advance(700);
    let current = take_files(&other, FILES, 700).await;
    settle(&late, stale.clone().into_iter().map(|one| one.again(0))).await;
    assert!(take_files(&late, FILES, 700).await.is_empty());
    settle(&late, stale.clone().into_iter().map(Chore::done)).await;
    late.clock.advance(699);
    assert!(take_files(&late, FILES, 700).await.is_empty());
    late.clock.advance(1);
    let third = take_files(&other, FILES, 700).await;
    assert_eq!(keys(&third), files, "still to be done");
    // Its lease has ended, but nobody else holds it: it was done after all.
    late.clock.advance(5_000);
    settle(&other, third.into_iter().map(Chore::done)).await;
    settle(
        &late,
        stale.into_iter().chain(current).map(|one| one.again(0)),
    )
    .await;
    assert!(take_files(&late, FILES, 700).await.is_empty(), "for good");
}

/// The chore is due again to the millisecond, as often as its holder asks.
pub async fn a_chore_comes_again_after_its_pause(harness: &impl Harness) {
    let [first, second] = harness.open_both("store").await;
    let files = leave_files(&first, 1).await;
    let mut taken = take_files(&first, FILES, 700).await;
    for attempts in 1..=3 {
        assert!(taken.iter().all(|chore| chore.attempts == attempts));
        assert_eq!(keys(&taken), files);
        settle(&first, taken.into_iter().map(|chore| chore.again(5_000))).await;
        first.clock.advance(4_999);
        assert!(take_files(&second, FILES, 700).await.is_empty());
        first.clock.advance(1);
        taken = take_files(&second, FILES, 700).await;
    }
    // Each according to its own outcome.
    let [one, two, three, others @ ..]: [Chore; FILES] = taken.try_into().unwrap();
    settle(&second, [one.again(2_000), two.done(), three.again(1_000)]).await;
    settle(&second, others.map(Chore::done)).await;
    first.clock.advance(2_000);
    let left = take_files(&first, FILES, 700).await;
    assert_eq!(keys(&left), [files[2].clone(), files[0].clone()]);
}

/// Others have no engine that understands the ticket.
pub async fn a_call_off_is_for_those_who_serve_its_model(harness: &impl Harness) {
    let [first, second] = harness.open_both("store").await;
    for (number, model) in [(1, MODELS[0]), (2, MODELS[1]), (3, MODELS[0])] {
        leave_job(&first, number, model).await;
    }
    let of = |models: &[&str]| ChoreKind::CallOff {
        models: models.iter().copied().map(str::to_owned).collect(),
    };
    for models in [&[][..], &["other"], &["kinora"]] {
        assert_eq!(second.take_chores(of(models)).await, [], "{models:?}");
    }
    let jobs = |chores: &[Chore]| -> Vec<_> {
        let job = |chore| {
            let job = call_off(chore);
            (job.task, job.model, job.ticket)
        };
        chores.iter().map(job).collect()
    };
    let job = |number, model: &str| (id(number), model.to_owned(), format!("ticket {number}"));
    let own = first.take_chores(of(&[MODELS[0], "other"])).await;
    assert_eq!(jobs(&own), [job(1, MODELS[0]), job(3, MODELS[0])]);
    let others = second.take_chores(any_call_off()).await;
    assert_eq!(jobs(&others), [job(2, MODELS[1])]);
    // Only the holder can settle it.
    let forged = others.iter().map(|chore| Chore {
        token: own[0].token,
        ..chore.clone()
    });
    settle(&first, forged.map(Chore::done)).await;
    settle(&first, own.into_iter().map(Chore::done)).await;
    first.clock.advance(CHORE_LEASE_MS);
    let left = second.take_chores(any_call_off()).await;
    assert_eq!(jobs(&left), [job(2, MODELS[1])]);
    settle(&second, left.into_iter().map(Chore::done)).await;
    first.clock.advance(CHORE_LEASE_MS);
    assert_eq!(first.take_chores(any_call_off()).await, []);
}

/// A new store has one, which does not depend on other chores.
pub async fn the_look_for_orphans_comes_again_and_again(harness: &impl Harness) {
    let [first, second] = harness.open_both("store").await;
    leave_files(&first, 1).await;
    let mut attempts = 0;
    for _ in 0..3 {
        let mut looks = first.take_chores(ChoreKind::LookForOrphans).await;
        assert_eq!(looks.len(), 1);
        let look = looks.remove(0);
        assert_eq!(look.work, ChoreWork::LookForOrphans);
        assert!(look.attempts > attempts);
        attempts = look.attempts;
        assert_eq!(second.take_chores(ChoreKind::LookForOrphans).await, []);
        settle(&first, [look.again(3_600_000)]).await;
        first.clock.advance(3_599_999);
        assert_eq!(second.take_chores(ChoreKind::LookForOrphans).await, []);
        first.clock.advance(1);
    }
    drop((first, second));
    let stores = harness.open("store").await;
    stores.clock.advance(5 * 3_600_000);
    let looks = stores.take_chores(ChoreKind::LookForOrphans).await;
    assert_eq!(looks.len(), 1, "after a restart");
}

/// One chore for a file to remove, and none for an existing result.
pub async fn every_file_is_one_chore(harness: &impl Harness) {
    let stores = harness.open("store").await;
    stores.submit(1, "one").await;
    let mut wanted = Vec::new();
    for _ in 0..2 {
        let claim = stores.claim_one().await;
        let release = stores.work.release(&claim.lease, ReleasedAttempt::Forgiven);
        release.await.unwrap();
        wanted.extend(claim.lease.file_keys());
    }
    let claim = stores.claim_one().await;
    stores.complete(&claim).await.unwrap();
    assert_eq!(stores.files_due().await, wanted);
    stores.tasks.delete("one", id(1)).await.unwrap();
    stores.clock.advance(LEASE_MS);
    assert_eq!(stores.remove_files().await, wanted, "the others are leased");
}
