//! Follows a job to its film. Only the server's answers count; events of the websocket bring progress, and
//! the next look sooner.

use std::sync::Arc;

use kinora_engine::places::Visit;
use kinora_upstream::Cause;
use tokio::time::timeout;

use crate::answer::{Seen, State};
use crate::attempt::Attempt;
use crate::enter::MISSING_MAX;
use crate::error::ComfyError;
use crate::feed::Feed;
use crate::output::{FilmAt, Found, film_of};

/// What a job at work has done at least: it has left the queue.
const BEGUN: f64 = 0.01;

impl Attempt<'_> {
    /// Waits for the job at its server and saves its film; returns its length in bytes.
    pub(crate) async fn follow(&mut self, visit: &Visit) -> Result<u64, ComfyError> {
        let cancel = self.job.cancel;
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ComfyError::Cancelled),
            ended = self.poll_and_fetch(visit.index) => ended,
        }
    }

    async fn poll_and_fetch(&mut self, index: usize) -> Result<u64, ComfyError> {
        let server = self.server(index);
        let mut feed = Feed::open(Arc::clone(self.shared), index, &self.id);
        let (mut failures, mut missing) = (0, 0);
        loop {
            self.patience.check_end()?;
            match server.look(&self.id).await {
                Ok(Some(seen)) => {
                    (failures, missing) = (0, 0);
                    match seen.state {
                        State::Completed => {
                            self.hear(1.0);
                            let film = self.film_at(index, seen).await?;
                            return self.fetch(index, &film).await;
                        }
                        State::Failed { code, text } => {
                            return Err(ComfyError::Failed { code, text });
                        }
                        State::Pending => self.hear(0.0),
                        State::Running => self.hear(BEGUN),
                        State::Unknown(word) => {
                            self.patience.wait_left(Cause::Word(word)).map(drop)?;
                        }
                    }
                    self.pass(&mut feed).await?;
                }
                Ok(None) => {
                    missing += 1;
                    if missing >= MISSING_MAX {
                        let name = server.upstream().name.clone();
                        return Err(ComfyError::Forgotten(name));
                    }
                    self.patience.sleep(self.shared.options.poll_every).await?;
                }
                Err(ComfyError::Busy { after, cause }) => {
                    self.patience.rest(after, cause, failures).await?;
                    failures += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Shows events until the next look is due, or the job says that it has ended.
    async fn pass(&mut self, feed: &mut Feed) -> Result<(), ComfyError> {
        let slept = self.patience.sleep(self.shared.options.poll_every);
        tokio::pin!(slept);
        loop {
            tokio::select! {
                biased;
                event = feed.next() => {
                    if self.view.show(event, self.shared).await {
                        return Ok(());
                    }
                }
                slept = &mut slept => {
                    slept?;
                    return Ok(());
                }
            }
        }
    }

    /// Finds the film of a completed job. Its outputs may come a moment later than its state.
    async fn film_at(&self, index: usize, seen: Seen) -> Result<FilmAt, ComfyError> {
        let (server, output) = (self.server(index), &self.shared.card.bindings().output);
        let mut outputs = seen.outputs;
        let (mut polls, mut failures) = (0, 0);
        loop {
            match film_of(&outputs, output) {
                Found::Film(film) => return Ok(film),
                Found::Others(names) => {
                    let names = names.join(", ");
                    return Err(ComfyError::NoFilm(format!(
                        "node {output} made {names}; let it save an MP4 with H.264"
                    )));
                }
                Found::Nothing if polls == self.shared.options.lag_polls_max => {
                    return Err(ComfyError::NoFilm(format!(
                        "node {output} put out no file; is it the node that saves the film?"
                    )));
                }
                Found::Nothing => {}
            }
            if polls > 0 {
                self.patience.sleep(self.shared.options.poll_every).await?;
            }
            match server.history(&self.id).await {
                Ok(seen) => {
                    outputs = seen.map(|seen| seen.outputs).unwrap_or_default();
                    polls += 1;
                    failures = 0;
                }
                Err(ComfyError::Busy { after, cause }) => {
                    self.patience.rest(after, cause, failures).await?;
                    failures += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn fetch(&mut self, index: usize, film: &FilmAt) -> Result<u64, ComfyError> {
        let server = self.server(index);
        let mut attempt = 0;
        loop {
            let (view, patience) = (&mut self.view, &self.patience);
            let mut on_bytes = |_| {
                // One that takes too long in all is soon taken for one that stands still.
                if patience.check_end().is_ok() {
                    view.alive(view.fraction);
                }
            };
            let fetched = server.film(film, self.job.to, &mut on_bytes);
            // The same limit as for polls, in real time like the limits of sockets.
            let fetched = timeout(patience.time_left(), fetched).await;
            let fetched = fetched.unwrap_or_else(|_| Err(patience.overdue().into()));
            let Err(ComfyError::Busy { after, cause }) = fetched else {
                return fetched;
            };
            attempt += 1;
            if attempt == self.shared.options.film_attempts_max {
                return Err(ComfyError::Unread(cause));
            }
            // Completion is a sign of life, and so are received bytes; attempts are counted separately.
            self.patience.hear();
            self.patience.rest(after, cause, attempt).await?;
        }
    }

    fn hear(&mut self, fraction: f64) {
        self.patience.hear();
        self.view.alive(fraction);
    }
}
