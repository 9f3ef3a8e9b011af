//! Places at the readers, at most half of which one project gets: on a slow disk one project's
//! reads wait for each other and leave places to the rest.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use kinora_pool::Pool;
use tokio::sync::Semaphore;

use crate::SqliteOptions;

/// With more projects than this, idle ones are removed.
const FORGET_FROM: usize = 256;

/// A pool of threads and the projects' shares of it.
#[derive(Debug)]
pub(super) struct Shares {
    threads: Pool,
    each: usize,
    of_projects: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
    /// Reads that belong to no project.
    others: Arc<Semaphore>,
}

/// The threads for reads.
pub(super) fn pool(threads: usize, options: &SqliteOptions) -> Pool {
    if options.on_the_spot {
        Pool::on_the_spot()
    } else {
        Pool::new(threads)
    }
}

impl Shares {
    /// Shares of a pool with this many places.
    pub(super) fn of(pool: Pool, places: usize) -> Self {
        let each = places.div_ceil(2);
        Self {
            threads: pool,
            each,
            of_projects: Mutex::default(),
            others: Arc::new(Semaphore::new(each)),
        }
    }

    /// Waits for a place of `project`, and runs `read` there. The read keeps its place until it
    /// ends, even if the caller has gone: hanging up gains a client nothing.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        project: Option<&str>,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let share = project.map_or_else(|| self.others.clone(), |project| self.share(project));
        let own = share.acquire_owned().await.map_err(io::Error::other)?;
        let read = move || {
            let _own = own;
            read()
        };
        self.threads.run(read).await
    }

    fn share(&self, project: &str) -> Arc<Semaphore> {
        let shares = self.of_projects.lock();
        let mut shares = shares.unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(project) {
            return share.clone();
        }
        if shares.len() >= FORGET_FROM {
            shares.retain(|_, share| Arc::strong_count(share) > 1);
        }
        let share = Arc::new(Semaphore::new(self.each));
        shares.insert(project.into(), share.clone());
        share
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn p15_a_project_whose_reads_hang_leaves_places_to_others() {
        let shares = Arc::new(Shares::of(Pool::new(4), 4));
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let greedy: Vec<_> = (0..10)
            .map(|_| {
                let (shares, held) = (shares.clone(), held.clone());
                tokio::spawn(async move {
                    let hang = move || held.lock().unwrap().recv().unwrap_err();
                    shares.run(Some("greedy"), hang).await
                })
            })
            .collect();
        // They have come first.
        tokio::task::yield_now().await;
        for project in [Some("polite"), None] {
            assert_eq!(shares.run(project, || 7).await.unwrap(), 7);
        }
        drop(release);
        for one in greedy {
            one.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn p08_projects_that_read_nothing_are_forgotten() {
        let shares = Shares::of(Pool::new(4), 4);
        for number in 0..10 * FORGET_FROM {
            shares
                .run(Some(&format!("project {number}")), || ())
                .await
                .unwrap();
            assert!(shares.of_projects.lock().unwrap().len() <= FORGET_FROM);
        }
    }
}
