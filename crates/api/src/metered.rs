//! Metrics of requests, by route. Unknown paths share one label, so clients cannot create new ones.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use kinora_contract::{Clock, Stopwatch};
use metrics::{Counter, Histogram, counter, histogram};
use tower_layer::Layer;
use tower_service::Service;

/// Wraps the routes so that their answers are counted, and timed until the headers are ready.
pub fn metered(router: Router, clock: Arc<dyn Clock>) -> Router {
    router.layer(Metering { clock })
}

/// Wraps each route in a service of its own, which looks its metrics up only once: a look-up by name in the recorder
/// costs as much as answering a poll.
#[derive(Clone)]
struct Metering {
    clock: Arc<dyn Clock>,
}

impl<S> Layer<S> for Metering {
    type Service = Metered<S>;

    fn layer(&self, inner: S) -> Metered<S> {
        Metered {
            inner,
            clock: self.clock.clone(),
            route: Arc::default(),
        }
    }
}

#[derive(Clone)]
struct Metered<S> {
    inner: S,
    clock: Arc<dyn Clock>,
    /// Known since the first request.
    route: Arc<OnceLock<Arc<Route>>>,
}

impl<S> Service<Request> for Metered<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let path = request.extensions().get::<MatchedPath>();
        let name = || path.map_or("other", MatchedPath::as_str);
        let route = self
            .route
            .get_or_init(|| Arc::new(Route::new(name())))
            .clone();
        let method = method(request.method());
        let watch = Stopwatch::start(&self.clock);
        let answered = self.inner.call(request);
        Box::pin(async move {
            let response = answered.await?;
            route.count(method, response.status());
            route.seconds.record(watch.elapsed());
            Ok(response)
        })
    }
}

struct Route {
    name: Arc<str>,
    seconds: Histogram,
    /// By method and status: a handful.
    requests: RwLock<Vec<(&'static str, StatusCode, Counter)>>,
}

impl Route {
    fn new(name: &str) -> Self {
        let name: Arc<str> = name.into();
        Self {
            seconds: histogram!("kinora_http_request_seconds", "route" => name.clone()),
            requests: RwLock::default(),
            name,
        }
    }

    fn count(&self, method: &'static str, status: StatusCode) {
        let is_it =
            |known: &&(&'static str, StatusCode, Counter)| (known.0, known.1) == (method, status);
        let known = self.requests.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, counter)) = known.iter().find(is_it) {
            return counter.increment(1);
        }
        drop(known);
        let counter = counter!(
            "kinora_http_requests_total",
            "route" => self.name.clone(),
            "method" => method,
            "status" => status.as_str().to_owned()
        );
        counter.increment(1);
        let mut known = self
            .requests
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // Another request may have added it meanwhile.
        if known.iter().find(is_it).is_none() {
            known.push((method, status, counter));
        }
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
