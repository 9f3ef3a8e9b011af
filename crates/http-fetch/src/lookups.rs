//! Blocking look-ups on a few dedicated threads, so a resolver that hangs blocks nothing else.
//! Projects take turns, a project never takes more threads than it leaves free for others, and
//! identical queries of one project are merged. Only failures are cached, for a few seconds: an
//! answer goes only to the fetch that asked for it.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use kinora_contract::{Clock, Stopwatch};
use tokio::sync::watch;
use tokio::time::timeout;

/// Maximum number of look-up threads.
const THREADS_MAX: usize = 8;
/// Maximum number of look-ups that wait for a thread, per project and in total.
const PROJECT_WAITING_MAX: usize = 256;
const WAITING_MAX: usize = 2_048;
/// How long a failure is cached.
const FAILURE_TTL: Duration = Duration::from_secs(5);
const FAILURES_MAX: usize = 1_024;

/// Why a name has no addresses.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LookupError {
    /// The name does not exist, or has no address.
    #[error("no such name")]
    NoSuchName,
    /// The resolver could not answer.
    #[error("the resolver failed: {0}")]
    Failed(Arc<io::Error>),
    /// The resolver did not answer in time.
    #[error("the resolver did not answer in time")]
    TimedOut,
    /// Too many look-ups are waiting; this one did not start.
    #[error("too many look-ups are waiting")]
    Busy,
}

/// Looks up names on a thread that may block indefinitely.
pub trait NameLookup: Send + Sync + Debug {
    /// All addresses of `host`.
    ///
    /// # Errors
    /// [`LookupError`].
    fn look_up_blocking(&self, host: &str) -> Result<Vec<IpAddr>, LookupError>;
}

type LookupResult = Result<Vec<IpAddr>, LookupError>;

/// See the module documentation; clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct LookupPool {
    shared: Arc<LookupShared>,
}

#[derive(Debug)]
struct LookupShared {
    timeout: Duration,
    lookup: Arc<dyn NameLookup>,
    board: Mutex<LookupBoard>,
}

/// A host and the project that asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LookupQuery {
    project: Arc<str>,
    host: Arc<str>,
}

/// The progress of a query.
#[derive(Clone, Debug)]
enum LookupStage {
    Waiting,
    Asked(Stopwatch),
    Answered(LookupResult),
}

/// All current queries.
#[derive(Debug)]
struct LookupBoard {
    clock: Arc<dyn Clock>,
    stages: HashMap<LookupQuery, watch::Sender<LookupStage>>,
    /// Projects with waiting hosts; the first one is next.
    turns: VecDeque<(Arc<str>, VecDeque<Arc<str>>)>,
    waiting: usize,
    /// Busy threads per project. Idle projects have no entry.
    working: HashMap<Arc<str>, usize>,
    failures: HashMap<Arc<str>, (Stopwatch, LookupError)>,
}

impl LookupPool {
    pub(crate) fn new(
        timeout: Duration,
        lookup: Arc<dyn NameLookup>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let shared = LookupShared {
            timeout,
            lookup,
            board: Mutex::new(LookupBoard::new(clock)),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The addresses of `host`, looked up for `project`.
    ///
    /// # Errors
    /// `Busy` if no thread became free in time, `TimedOut` if one did but got no answer.
    pub(crate) async fn resolve(&self, project: &str, host: &str) -> LookupResult {
        let mut stage = self.ask(project, host)?;
        let limit = self.shared.timeout;
        let begun = stage.wait_for(|stage| !matches!(stage, LookupStage::Waiting));
        if timeout(limit, begun).await.is_err() {
            return Err(LookupError::Busy);
        }
        let done = stage.wait_for(|stage| matches!(stage, LookupStage::Answered(_)));
        match timeout(limit, done).await {
            Ok(Ok(stage)) => match &*stage {
                LookupStage::Answered(answer) => answer.clone(),
                _ => Err(LookupError::TimedOut),
            },
            // The thread panicked and dropped the query.
            Ok(Err(_)) | Err(_) => Err(LookupError::TimedOut),
        }
    }

    /// Adds a query, or joins an identical one.
    fn ask(&self, project: &str, host: &str) -> Result<watch::Receiver<LookupStage>, LookupError> {
        let question = LookupQuery {
            project: project.into(),
            host: host.into(),
        };
        let mut board = self.shared.board();
        if let Some(failure) = board.failure(host) {
            return Err(failure);
        }
        if let Some(same) = board.stages.get(&question) {
            if let LookupStage::Asked(since) = &*same.borrow()
                && since.elapsed() > self.shared.timeout
            {
                return Err(LookupError::TimedOut);
            }
            return Ok(same.subscribe());
        }
        let stage = board.add(question).ok_or(LookupError::Busy)?;
        self.shared.start(&mut board);
        Ok(stage)
    }
}

impl LookupShared {
    fn board(&self) -> MutexGuard<'_, LookupBoard> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread for each query that may run now.
    fn start(self: &Arc<Self>, board: &mut LookupBoard) {
        while let Some(question) = board.next() {
            let (shared, first) = (self.clone(), question.clone());
            let named = thread::Builder::new().name("look-up".to_owned());
            if named.spawn(move || shared.work(first)).is_err() {
                board.complete(&question, Err(LookupError::Busy));
                return;
            }
        }
    }

    /// Looks up one name after another until there is no next one for this thread.
    fn work(self: &Arc<Self>, first: LookupQuery) {
        let mut next = Some(first);
        while let Some(question) = next {
            let asked =
                std::panic::AssertUnwindSafe(|| self.lookup.look_up_blocking(&question.host));
            let answer = std::panic::catch_unwind(asked).unwrap_or(Err(LookupError::TimedOut));
            let mut board = self.board();
            board.complete(&question, answer);
            next = board.next();
            // If the thread moves to another project, this one may start another look-up.
            self.start(&mut board);
        }
    }
}

impl LookupBoard {
    fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            stages: HashMap::new(),
            turns: VecDeque::new(),
            waiting: 0,
            working: HashMap::new(),
            failures: HashMap::new(),
        }
    }

    /// The cached failure of a host.
    fn failure(&mut self, host: &str) -> Option<LookupError> {
        let (since, failure) = self.failures.get(host)?;
        if since.elapsed() < FAILURE_TTL {
            return Some(failure.clone());
        }
        self.failures.remove(host);
        None
    }

    /// Appends a query to those of its project, unless too many are waiting.
    fn add(&mut self, question: LookupQuery) -> Option<watch::Receiver<LookupStage>> {
        // While no thread becomes free, only this removes abandoned queries.
        if self.waiting >= PROJECT_WAITING_MAX {
            self.forget_abandoned();
        }
        let LookupQuery { project, host } = &question;
        if self.waiting >= WAITING_MAX {
            return None;
        }
        let lane = self.turns.iter_mut().find(|(of, _)| of == project);
        match lane {
            Some((_, hosts)) if hosts.len() >= PROJECT_WAITING_MAX => return None,
            Some((_, hosts)) => hosts.push_back(host.clone()),
            None => {
                let hosts = VecDeque::from([host.clone()]);
                self.turns.push_back((project.clone(), hosts));
            }
        }
        self.waiting += 1;
        let (stage, watched) = watch::channel(LookupStage::Waiting);
        self.stages.insert(question, stage);
        Some(watched)
    }

    /// Removes waiting queries that nobody waits for any more.
    fn forget_abandoned(&mut self) {
        let Self {
            stages,
            turns,
            waiting,
            ..
        } = self;
        turns.retain_mut(|(project, hosts)| {
            hosts.retain(|host| {
                let question = LookupQuery {
                    project: project.clone(),
                    host: host.clone(),
                };
                let is_wanted = stages.get(&question).is_some_and(|one| !one.is_closed());
                if !is_wanted {
                    stages.remove(&question);
                    *waiting -= 1;
                }
                is_wanted
            });
            !hosts.is_empty()
        });
    }

    /// Takes the next query for a thread: from the first project in turn that may use another
    /// thread, which then moves to the end. Drops abandoned queries.
    fn next(&mut self) -> Option<LookupQuery> {
        loop {
            let free = THREADS_MAX - self.working.values().sum::<usize>();
            let place = self
                .turns
                .iter()
                .position(|(project, _)| free > self.working.get(project).copied().unwrap_or(0))?;
            let (project, mut hosts) = self.turns.remove(place)?;
            let host = hosts.pop_front();
            if !hosts.is_empty() {
                self.turns.push_back((project.clone(), hosts));
            }
            let Some(host) = host else { continue };
            self.waiting -= 1;
            let question = LookupQuery { project, host };
            match self.stages.get(&question) {
                Some(stage) if !stage.is_closed() => {
                    stage.send_replace(LookupStage::Asked(Stopwatch::start(&self.clock)));
                    *self.working.entry(question.project.clone()).or_default() += 1;
                    return Some(question);
                }
                _ => self.stages.remove(&question),
            };
        }
    }

    /// Delivers the answer and frees the thread's slot.
    fn complete(&mut self, question: &LookupQuery, answer: LookupResult) {
        if let Some(working) = self.working.get_mut(&question.project) {
            *working -= 1;
            if *working == 0 {
                self.working.remove(&question.project);
            }
        }
        if let Err(failure) = &answer
            && !matches!(failure, LookupError::Busy)
        {
            self.failures
                .retain(|_, (since, _)| since.elapsed() < FAILURE_TTL);
            if self.failures.len() < FAILURES_MAX {
                let kept = (Stopwatch::start(&self.clock), failure.clone());
                self.failures.insert(question.host.clone(), kept);
            }
        }
        if let Some(stage) = self.stages.remove(question) {
            stage.send_replace(LookupStage::Answered(answer));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;

    use kinora_contract::ManualClock;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn questions_that_were_given_up_make_room_for_others() {
        let mut board = LookupBoard::new(Arc::new(ManualClock::default()));
        let add = |board: &mut LookupBoard, number: usize| {
            let project = format!("project {}", number / PROJECT_WAITING_MAX);
            board.add(LookupQuery {
                project: project.into(),
                host: number.to_string().into(),
            })
        };
        let waiting: Vec<_> = (0..WAITING_MAX)
            .map(|number| add(&mut board, number))
            .collect();
        assert!(waiting.iter().all(Option::is_some));
        assert!(add(&mut board, WAITING_MAX).is_none());
        drop(waiting);
        let next = add(&mut board, WAITING_MAX);
        assert!(next.is_some());
        assert_eq!((board.waiting, board.stages.len()), (1, 1));
    }

    /// Every look-up hangs until the test releases it.
    #[derive(Debug, Default)]
    struct Hanging {
        hosts: Mutex<Hosts>,
        changed: Condvar,
    }

    #[derive(Debug, Default)]
    struct Hosts {
        asked: Vec<String>,
        released: Vec<String>,
    }

    impl Hanging {
        fn release(&self, host: &str) {
            self.hosts.lock().unwrap().released.push(host.to_owned());
            self.changed.notify_all();
        }

        fn until_asked(&self, host: &str) {
            let hosts = self.hosts.lock().unwrap();
            let is_missing = |hosts: &mut Hosts| !hosts.asked.iter().any(|one| one == host);
            let waited = self.changed.wait_timeout_while(hosts, LONG, is_missing);
            assert!(!waited.unwrap().1.timed_out(), "{host} is not looked up");
        }
    }

    impl NameLookup for Hanging {
        fn look_up_blocking(&self, host: &str) -> LookupResult {
            let mut hosts = self.hosts.lock().unwrap();
            hosts.asked.push(host.to_owned());
            self.changed.notify_all();
            let is_held = |hosts: &mut Hosts| !hosts.released.iter().any(|one| one == host);
            drop(self.changed.wait_while(hosts, is_held).unwrap());
            Ok(Vec::new())
        }
    }

    #[test]
    fn a_thread_that_comes_free_is_used_by_all_who_may_have_one_more() {
        let names = Arc::new(Hanging::default());
        let lookups = LookupPool::new(LONG, names.clone(), Arc::new(ManualClock::default()));
        let hosts = ["a1", "a2", "b1", "b2", "c1", "c2", "a3", "b3"];
        // Each has two threads, and leaves the last two to others.
        let _asked = hosts.map(|host| lookups.ask(&host[..1], host).unwrap());
        assert_eq!(lookups.shared.board().waiting, 2);
        // The free thread goes to a, and b may start another instead of its own.
        names.release("b1");
        names.until_asked("a3");
        names.until_asked("b3");
        for host in hosts {
            names.release(host);
        }
    }
}
