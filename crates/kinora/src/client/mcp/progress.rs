//! Progress of a task as notifications, for clients that sent a progress token with their call.

use kinora_client::Video;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};

/// The notifications of one call.
#[derive(Debug)]
pub(super) struct ProgressReport {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    /// Percent of the last notification.
    sent: Option<u8>,
}

impl ProgressReport {
    pub(super) fn new(context: &RequestContext<RoleServer>) -> Self {
        Self {
            peer: context.peer.clone(),
            token: context.meta.get_progress_token(),
            sent: None,
        }
    }

    /// Sends the percentage of `video`, if it has risen: the protocol wants each value larger than the previous one.
    pub(super) async fn update(&mut self, video: &Video) {
        let Some(token) = &self.token else { return };
        if self.sent.is_some_and(|sent| video.progress <= sent) {
            return;
        }
        self.sent = Some(video.progress);
        let note = ProgressNotificationParam::new(token.clone(), f64::from(video.progress))
            .with_total(100.0)
            .with_message(format!("{} {} %", video.status.name(), video.progress));
        // A client that is gone ends the process by closing standard input.
        let _ = self.peer.notify_progress(note).await;
    }
}
