//! Calls that take no simulated time. The service's own threads (the store's writer, the pools) work in real time
//! while everything that is simulated stands still, so that nothing depends on how fast they are.

use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::unconstrained;

/// Where that work is done which calls leave to their runtime: lives have none of their own for it.
static OUTSIDE: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    runtime.expect("a runtime beside the lives")
});

/// A call that lets others go first wakes nobody while the life stands still: it is asked again.
const ASK_AGAIN: Duration = Duration::from_micros(100);

/// Does `call` while the life stands still.
pub(crate) fn at_one_moment<T>(call: impl Future<Output = T>) -> T {
    let _outside = OUTSIDE.enter();
    let mut call = pin!(unconstrained(call));
    let waker = Waker::from(Arc::new(Asked(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(done) = call.as_mut().poll(&mut context) {
            return done;
        }
        thread::park_timeout(ASK_AGAIN);
    }
}

struct Asked(Thread);

impl Wake for Asked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
