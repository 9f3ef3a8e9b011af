//! The pool of I420 pictures between the caller and the encoder threads. It limits memory: when it
//! is full, the caller waits until a picture is encoded.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use kinora_media_h264::I420Planes;

/// Maximum bytes of I420 that may wait for the encoders at any time.
pub(crate) const IN_FLIGHT_BYTES_MAX: usize = 192 << 20;
/// Minimum number of pictures of any size: as many as an encoder needs to settle a quantiser.
const FRAMES_MIN: usize = 8;

/// Hands out picture buffers and takes them back when a [`PooledFrame`] is dropped.
pub(crate) struct FramePool {
    state: Mutex<PoolState>,
    freed: Condvar,
    width: usize,
    height: usize,
    frames_max: usize,
}

#[derive(Default)]
struct PoolState {
    free: Vec<Vec<u8>>,
    in_flight: usize,
    closed: bool,
}

/// One I420 picture: luma `[height][width] u8`, then both chroma planes
/// `[height / 2][width / 2] u8`, without padding.
pub(crate) struct PooledFrame {
    bytes: Vec<u8>,
    pool: Arc<FramePool>,
}

/// The size of one I420 picture in bytes.
pub(crate) fn i420_bytes(width: u32, height: u32) -> usize {
    width as usize * height as usize * 3 / 2
}

impl FramePool {
    pub(crate) fn new(width: u32, height: u32) -> Arc<Self> {
        let frames_max = (IN_FLIGHT_BYTES_MAX / i420_bytes(width, height)).max(FRAMES_MIN);
        Arc::new(Self {
            state: Mutex::default(),
            freed: Condvar::new(),
            width: width as usize,
            height: height as usize,
            frames_max,
        })
    }

    /// Waits for room and returns a buffer with arbitrary content; `None` once closed.
    pub(crate) fn acquire(self: &Arc<Self>) -> Option<PooledFrame> {
        let mut state = self.lock();
        // This wait is the back pressure on the engine: its next frame is taken once an encoder
        // has finished one.
        while state.in_flight >= self.frames_max && !state.closed {
            state = self
                .freed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return None;
        }
        state.in_flight += 1;
        let bytes = state.free.pop();
        drop(state);
        // Allocated and zeroed outside the lock.
        let bytes = bytes.unwrap_or_else(|| vec![0; self.width * self.height * 3 / 2]);
        Some(PooledFrame {
            bytes,
            pool: Arc::clone(self),
        })
    }

    /// Wakes all waiters and returns no more buffers: an encoder thread has failed.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.freed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PooledFrame {
    /// The three writable planes: luma, blue difference, red difference.
    pub(crate) fn planes_mut(&mut self) -> (&mut [u8], &mut [u8], &mut [u8]) {
        let luma = self.pool.width * self.pool.height;
        let (y, chroma) = self.bytes.split_at_mut(luma);
        let (u, v) = chroma.split_at_mut(luma / 4);
        (y, u, v)
    }

    pub(crate) fn planes(&self) -> I420Planes<'_> {
        let luma = self.pool.width * self.pool.height;
        let (y, chroma) = self.bytes.split_at(luma);
        let (u, v) = chroma.split_at(luma / 4);
        I420Planes {
            y,
            u,
            v,
            y_stride: self.pool.width,
            chroma_stride: self.pool.width / 2,
        }
    }
}

impl Drop for PooledFrame {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.in_flight -= 1;
        // After a failure the buffers are freed, not pooled: nobody will ask for them.
        if !state.closed {
            state.free.push(std::mem::take(&mut self.bytes));
        }
        drop(state);
        self.pool.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread;

    use super::{FRAMES_MIN, FramePool, IN_FLIGHT_BYTES_MAX, i420_bytes};

    #[test]
    fn pictures_in_flight_stay_within_their_bytes() {
        for (width, height) in [
            (480, 480),
            (1280, 720),
            (1920, 1080),
            (2520, 1080),
            (4096, 2304),
        ] {
            let frames_max = FramePool::new(width, height).frames_max;
            assert!(frames_max >= FRAMES_MIN);
            assert!(frames_max * i420_bytes(width, height) <= IN_FLIGHT_BYTES_MAX);
        }
    }

    #[test]
    fn one_picture_too_many_waits_until_one_returns() {
        let pool = FramePool::new(4096, 2304);
        let mut held: Vec<_> = (0..pool.frames_max).map_while(|_| pool.acquire()).collect();
        let (sender, receiver) = mpsc::channel();
        let waiting = Arc::clone(&pool);
        let thread = thread::spawn(move || sender.send(waiting.acquire().is_some()));
        assert!(receiver.try_recv().is_err());
        held.pop();
        assert_eq!(receiver.recv(), Ok(true));
        thread.join().unwrap().unwrap();
    }

    #[test]
    fn closing_wakes_whoever_waits() {
        let pool = FramePool::new(4096, 2304);
        let _held: Vec<_> = (0..pool.frames_max).map_while(|_| pool.acquire()).collect();
        let waiting = Arc::clone(&pool);
        let thread = thread::spawn(move || waiting.acquire().is_none());
        pool.close();
        assert!(thread.join().unwrap());
    }
}
