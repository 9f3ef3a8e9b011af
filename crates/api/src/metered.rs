//! Metrics of requests, by route. Unknown paths share one label, so clients cannot create new ones.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use kinora_contract::{Clock, Stopwatch};
use metrics::{Counter, Histogram, counter, histogram};

/// Wraps the routes so that their answers are counted, and timed until the headers are ready.
pub fn metered(router: Router, clock: Arc<dyn Clock>) -> Router {
    let routes = Arc::new(Routes::default());
    router.layer(middleware::from_fn_with_state((clock, routes), measured))
}

async fn measured(
    State((clock, routes)): State<(Arc<dyn Clock>, Arc<Routes>)>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.extensions().get::<MatchedPath>().cloned();
    let method = method(request.method());
    let watch = Stopwatch::start(&clock);
    let response = next.run(request).await;
    let route = routes.of(path.as_ref().map_or("other", MatchedPath::as_str));
    route.requests(method, response.status()).increment(1);
    route.seconds.record(watch.elapsed());
    response
}

/// The metrics of each route, looked up by name only once: a lookup in the recorder costs as much
/// as answering a poll.
#[derive(Default)]
struct Routes(RwLock<HashMap<Arc<str>, Arc<Route>>>);

impl Routes {
    fn of(&self, name: &str) -> Arc<Route> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(route) = known.get(name) {
            return route.clone();
        }
        drop(known);
        let name: Arc<str> = name.into();
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let route = known.entry(name.clone());
        route.or_insert_with(|| Arc::new(Route::new(name))).clone()
    }
}

struct Route {
    name: Arc<str>,
    seconds: Histogram,
    requests: RwLock<BTreeMap<(&'static str, StatusCode), Counter>>,
}

impl Route {
    fn new(name: Arc<str>) -> Self {
        Self {
            seconds: histogram!("kinora_http_request_seconds", "route" => name.clone()),
            requests: RwLock::default(),
            name,
        }
    }

    fn requests(&self, method: &'static str, status: StatusCode) -> Counter {
        let known = self.requests.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = known.get(&(method, status)) {
            return counter.clone();
        }
        drop(known);
        let counter = counter!(
            "kinora_http_requests_total",
            "route" => self.name.clone(),
            "method" => method,
            "status" => status.as_str().to_owned()
        );
        let mut known = self
            .requests
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        known.insert((method, status), counter.clone());
        counter
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
