//! Metrics of requests, by route. Unknown paths share one label, so clients cannot create new ones.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use kinora_contract::Clock;
use metrics::{Counter, Histogram, counter, histogram};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

/// Wraps the routes so that their answers are counted, and timed until the headers are ready.
pub fn with_metrics(router: Router, clock: Arc<dyn Clock>) -> Router {
    router.layer(MetricsLayer { clock })
}

/// Wraps each route in a service of its own, which looks its metrics up only once: a look-up by name in the recorder
/// costs as much as answering a poll.
#[derive(Clone)]
struct MetricsLayer {
    clock: Arc<dyn Clock>,
}

impl<S> Layer<S> for MetricsLayer {
    type Service = MetricsService<S>;

    fn layer(&self, inner: S) -> MetricsService<S> {
        MetricsService {
            inner,
            clock: self.clock.clone(),
            route: Arc::default(),
        }
    }
}

#[derive(Clone)]
struct MetricsService<S> {
    inner: S,
    clock: Arc<dyn Clock>,
    /// Set by the first request.
    route: Arc<OnceLock<Arc<RouteMetrics>>>,
}

impl<S> Service<Request> for MetricsService<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answering<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // One service per route, so the path of its first request is that of all. The fallback for
        // unknown paths has none.
        let path = request.extensions().get::<MatchedPath>();
        let route = self.route.get_or_init(|| {
            Arc::new(RouteMetrics::new(
                path.map_or("other", MatchedPath::as_str),
                self.clock.clone(),
            ))
        });
        Answering {
            route: route.clone(),
            method: method(request.method()),
            begun: self.clock.steady(),
            answered: self.inner.call(request),
        }
    }
}

pin_project! {
    /// A request, until the headers of its answer are ready. Not boxed: the allocation would be a
    /// large part of the cost of the metrics.
    struct Answering<F> {
        route: Arc<RouteMetrics>,
        method: &'static str,
        begun: Duration,
        #[pin]
        answered: F,
    }
}

impl<F: Future<Output = Result<Response, Infallible>>> Future for Answering<F> {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = this.answered.poll(context);
        if let Poll::Ready(Ok(response)) = &answer {
            this.route
                .record(this.method, response.status(), *this.begun);
        }
        answer
    }
}

/// More pairs of method and status than any route answers with.
const COUNTERS: usize = 16;

/// The metrics of a route, shared by all of its requests without locks.
struct RouteMetrics {
    clock: Arc<dyn Clock>,
    name: Arc<str>,
    seconds: Histogram,
    /// Counters by method and status, in the order of their first answers.
    requests: [OnceLock<(&'static str, StatusCode, Counter)>; COUNTERS],
}

impl RouteMetrics {
    fn new(name: &str, clock: Arc<dyn Clock>) -> Self {
        let name: Arc<str> = name.into();
        Self {
            clock,
            seconds: histogram!("kinora_http_request_seconds", "route" => name.clone()),
            requests: Default::default(),
            name,
        }
    }

    /// Counts an answer to a request that began at this steady time.
    fn record(&self, method: &'static str, status: StatusCode, begun: Duration) {
        self.seconds
            .record(self.clock.steady().saturating_sub(begun));
        for place in &self.requests {
            // A counter once found stays in its place, so a request finds it without a lock and
            // without building its labels. Two requests that fill a place at once agree on one of
            // them; the other goes on to the next place.
            let known = place.get_or_init(|| (method, status, self.counter(method, status)));
            if (known.0, known.1) == (method, status) {
                return known.2.increment(1);
            }
        }
        self.counter(method, status).increment(1);
    }

    fn counter(&self, method: &'static str, status: StatusCode) -> Counter {
        counter!(
            "kinora_http_requests_total",
            "route" => self.name.clone(),
            "method" => method,
            "status" => status.as_str().to_owned()
        )
    }
}

/// The method's label. Unknown methods share one.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
