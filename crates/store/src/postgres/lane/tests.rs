//! The contents of one transaction.

use super::*;

/// An operation that would send this many bytes.
struct Large(usize);

impl LaneStep for Large {
    type Output = ();

    fn bytes(&self) -> usize {
        self.0
    }

    async fn apply(
        &self,
        _batch: &mut super::super::batch::LaneTransaction<'_>,
    ) -> PostgresResult<()> {
        Ok(())
    }
}

/// The number of jobs in each transaction, for jobs of these sizes in bytes.
fn batches(sizes: &[usize]) -> Vec<usize> {
    let (jobs, mut queue) = mpsc::channel(QUEUED_MAX);
    for size in sizes {
        assert!(jobs.try_send(job_for(Large(*size)).0).is_ok());
    }
    let mut taken = Vec::new();
    while let Ok(first) = queue.try_recv() {
        let mut batch = vec![first];
        take_queued(&mut batch, &mut queue);
        taken.push(batch.len());
    }
    taken
}

#[test]
fn p08_a_transaction_is_bounded_in_requests_and_in_bytes() {
    assert_eq!(batches(&[0; 1_030]), [512, 512, 6]);
    assert_eq!(batches(&[1 << 20; 40]), [16, 16, 8]);
    assert_eq!(batches(&[64 << 20, 64 << 20, 1]), [1, 1, 1]);
    assert_eq!(batches(&[1, 64 << 20, 1]), [2, 1]);
}
