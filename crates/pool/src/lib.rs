//! Bounded kinds of blocking work. The runtime has one set of threads for everything that blocks;
//! a [`Pool`] is the share of one kind of work, so that no kind can take the threads of another.
//! It refuses to know what the work is, and starts no threads of its own.
//!
//! The bounds hold only while the runtime may start as many threads as all pools have places
//! together: whoever builds the runtime adds up the sizes.

#![forbid(unsafe_code)]

use std::io;
use std::sync::Arc;

use tokio::sync::Semaphore;

/// A number of the runtime's blocking threads, for one kind of work. Clones share the places.
#[derive(Clone, Debug)]
pub struct Pool {
    /// None: work is done by who asks for it.
    places: Option<Arc<Semaphore>>,
}

impl Pool {
    /// A pool that uses at most `threads` threads at a time; at least one.
    pub fn new(threads: usize) -> Self {
        Self {
            places: Some(Arc::new(Semaphore::new(threads.max(1)))),
        }
    }

    /// A pool without threads: work is done at once by who asks for it, so that the order of what happens does
    /// not depend on threads. For simulations.
    pub const fn on_the_spot() -> Self {
        Self { places: None }
    }

    /// Waits for a place, runs `work` on a thread that may block, and returns its result. Places
    /// are given in the order of the calls. Work that has begun goes on when this future is
    /// dropped, and keeps its place until it is done; work that has not begun is dropped.
    ///
    /// # Errors
    /// When `work` panics, or the runtime shuts down.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let Some(places) = self.places.clone() else {
            return Ok(work());
        };
        let place = places.acquire_owned().await;
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        done.await.map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn runtime(threads: usize) -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(threads)
            .build()
            .unwrap()
    }

    #[test]
    fn work_that_hangs_takes_no_thread_of_another_pool() {
        let (stuck, free) = (Pool::new(2), Pool::new(1));
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        runtime(3).block_on(async {
            let hang = || {
                let (stuck, held) = (stuck.clone(), held.clone());
                tokio::spawn(async move { stuck.run(move || held.lock().unwrap().recv()).await })
            };
            // More than there are places, and as many as there are threads.
            let hanging = [(); 4].map(|()| hang());
            assert_eq!(free.run(|| 7).await.unwrap(), 7);
            drop(release);
            for one in hanging {
                assert!(one.await.unwrap().unwrap().is_err());
            }
        });
    }

    #[test]
    fn a_place_is_held_until_the_work_is_done_although_nobody_waits() {
        let pool = Pool::new(1);
        let (release, held) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel::<()>();
        runtime(2).block_on(async {
            let given_up = tokio::spawn({
                let pool = pool.clone();
                async move {
                    pool.run(move || {
                        begun.send(()).unwrap();
                        let _ = held.recv();
                    })
                    .await
                }
            });
            while begins.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
            given_up.abort();
            assert!(given_up.await.unwrap_err().is_cancelled());
            assert_eq!(pool.places.as_ref().unwrap().available_permits(), 0);
            drop(release);
            pool.run(|| ()).await.unwrap();
        });
    }

    #[test]
    fn a_panic_is_an_error_and_gives_the_place_back() {
        let pool = Pool::new(1);
        runtime(1).block_on(async {
            pool.run(|| panic!("on purpose")).await.unwrap_err();
            assert_eq!(pool.run(|| 7).await.unwrap(), 7);
        });
    }
}
