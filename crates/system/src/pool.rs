//! Limits blocking work by kind. The runtime has one set of threads for everything that blocks; a
//! [`BlockingPool`] reserves a share for one kind of work, so no kind can use up the threads of another. It
//! knows nothing about the work, and starts no threads of its own. Log lines of the work carry the
//! caller's span.
//!
//! The limits hold only if the runtime may start as many threads as all pools together: add up
//! their sizes where you build the runtime.

use std::io;
use std::sync::Arc;

use tokio::sync::Semaphore;

/// A share of the runtime's blocking threads, for one kind of work. Clones share it.
#[derive(Clone, Debug)]
pub struct BlockingPool {
    /// `None`: callers do the work themselves.
    places: Option<Arc<Semaphore>>,
}

impl BlockingPool {
    /// A pool of at most `threads` concurrent threads, and at least one.
    pub fn new(threads: usize) -> Self {
        Self {
            places: Some(Arc::new(Semaphore::new(threads.max(1)))),
        }
    }

    /// A pool without threads: callers do the work immediately, so the order of events does not
    /// depend on threads. For simulations.
    pub const fn on_the_spot() -> Self {
        Self { places: None }
    }

    /// Waits for a thread, runs `work` on it, and returns the result. Calls get threads in order.
    /// If this future is dropped, work that has begun continues and keeps its thread until it is
    /// done; other work is dropped.
    ///
    /// # Errors
    /// If `work` panics or the runtime shuts down.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let Some(places) = self.places.clone() else {
            return Ok(work());
        };
        // The permit moves into the blocking closure: if this future is dropped, the thread is
        // still busy, and so is its place.
        let place = places.acquire_owned().await;
        let span = tracing::Span::current();
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            // Spans belong to threads: without this, the work's log lines would lose their task.
            span.in_scope(work)
        });
        done.await.map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};
    use std::thread::{self, ThreadId};

    use tracing::Subscriber;
    use tracing::span::Id;
    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::{Context, SubscriberExt};

    use super::*;

    fn runtime(threads: usize) -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(threads)
            .build()
            .unwrap()
    }

    #[test]
    fn work_that_hangs_takes_no_thread_of_another_pool() {
        let (stuck, free) = (BlockingPool::new(2), BlockingPool::new(1));
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        runtime(3).block_on(async {
            let hang = || {
                let (stuck, held) = (stuck.clone(), held.clone());
                tokio::spawn(async move { stuck.run(move || held.lock().unwrap().recv()).await })
            };
            // More jobs than the pool allows, and as many as there are threads.
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
        let pool = BlockingPool::new(1);
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

    /// Notes the threads on which spans are entered.
    #[derive(Clone, Default)]
    struct Entered(Arc<Mutex<Vec<ThreadId>>>);

    impl<S: Subscriber> Layer<S> for Entered {
        fn on_enter(&self, _: &Id, _: Context<'_, S>) {
            self.0.lock().unwrap().push(thread::current().id());
        }
    }

    #[test]
    fn the_work_is_in_the_span_of_its_caller() {
        let entered = Entered::default();
        let log = tracing_subscriber::registry().with(entered.clone());
        let of_work = tracing::subscriber::with_default(log, || {
            let _task = tracing::info_span!("task").entered();
            let pool = BlockingPool::new(1);
            let work = pool.run(|| thread::current().id());
            runtime(1).block_on(work).unwrap()
        });
        assert_eq!(
            *entered.0.lock().unwrap(),
            [thread::current().id(), of_work]
        );
    }

    #[test]
    fn a_panic_is_an_error_and_gives_the_place_back() {
        let pool = BlockingPool::new(1);
        runtime(1).block_on(async {
            pool.run(|| panic!("on purpose")).await.unwrap_err();
            assert_eq!(pool.run(|| 7).await.unwrap(), 7);
        });
    }
}
