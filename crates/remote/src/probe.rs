//! Checks whether an upstream answers: it lists its tasks, or at least sends no server error and no
//! authentication error. Probes are free.

use hyper::Method;
use kinora_upstream::{Call, Cause, Reply, chain, retry_after};

use crate::remote::Remote;

impl Remote {
    /// Probes every upstream in turn; returns each name with the result.
    pub async fn ask_all(&self) -> Vec<(String, Result<(), Cause>)> {
        let mut asked = Vec::new();
        for (index, upstream) in self.0.upstreams.iter().enumerate() {
            let answer = match self.ask(index).await {
                Ok(reply) if is_welcoming(&reply) || reply.status == 429 => Ok(()),
                Ok(reply) => Err(reply.refusal()),
                Err(cause) => Err(cause),
            };
            asked.push((upstream.name.clone(), answer));
        }
        asked
    }

    /// Checks whether an excluded upstream is available again.
    pub(crate) async fn probe(&self, index: usize) {
        let (places, upstream) = (&self.0.places, &self.0.upstreams[index]);
        let replied = self.ask(index).await;
        let cause = match replied {
            Ok(reply) if reply.status == 429 => {
                return places.hold(index, retry_after(&reply.headers));
            }
            Ok(reply) if is_welcoming(&reply) => {
                tracing::info!(upstream = upstream.name, "upstream available again");
                return places.is_back(index);
            }
            Ok(reply) => reply.refusal(),
            Err(cause) => cause,
        };
        tracing::debug!(
            upstream = upstream.name,
            error = chain(&cause),
            "upstream still excluded"
        );
        places.outage(index, &chain(&cause));
    }

    async fn ask(&self, index: usize) -> Result<Reply, Cause> {
        let upstream = &self.0.upstreams[index];
        let mut url = upstream.url(&["videos"]);
        url.set_query(Some("limit=1"));
        let call = Call {
            method: Method::GET,
            url,
            body: None,
            headers: &[],
            limit: self.0.options.probe_timeout,
        };
        upstream.call(&call).await
    }
}

fn is_welcoming(reply: &Reply) -> bool {
    reply.status < 500 && !matches!(reply.status, 401..=403 | 429)
}
