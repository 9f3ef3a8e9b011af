//! Look-ups that block, on a few threads of their own: a resolver that does not answer holds
//! these, and nothing else. Projects take turns, a project that holds threads leaves as many free
//! to others, and equal questions of one project are asked once. Nothing is remembered but, for
//! some seconds, what failed: an answer is judged and dialled by whoever asked for it.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

use crate::resolve::{Lookup, LookupError};

/// Threads that look names up.
const THREADS_MAX: usize = 8;
/// Look-ups that wait for a thread, of one project and of all.
const PROJECT_WAITING_MAX: usize = 256;
const WAITING_MAX: usize = 2_048;
/// How long a failure is remembered.
const FAILURE_KEPT: Duration = Duration::from_secs(5);
const FAILURES_MAX: usize = 1_024;

type Answer = Result<Vec<IpAddr>, LookupError>;

/// See the module; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Lookups {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    timeout: Duration,
    lookup: Arc<dyn Lookup>,
    board: Mutex<Board>,
}

/// Who asks what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    project: Arc<str>,
    host: Arc<str>,
}

/// How far a question is.
#[derive(Clone, Debug)]
enum Stage {
    Waiting,
    Asked(Instant),
    Answered(Answer),
}

/// Everything that is asked at the moment.
#[derive(Debug, Default)]
struct Board {
    stages: HashMap<Question, watch::Sender<Stage>>,
    /// Projects with waiting hosts; the first is next.
    turns: VecDeque<(Arc<str>, VecDeque<Arc<str>>)>,
    waiting: usize,
    /// Threads at work, by project. A project without any is absent.
    working: HashMap<Arc<str>, usize>,
    failures: HashMap<Arc<str>, (Instant, LookupError)>,
}

impl Lookups {
    pub(crate) fn new(timeout: Duration, lookup: Arc<dyn Lookup>) -> Self {
        let shared = Shared {
            timeout,
            lookup,
            board: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The addresses of `host`, asked for by `project`.
    ///
    /// # Errors
    /// `Busy` when there was no thread in time, `TimedOut` when there was and it gave no answer.
    pub(crate) async fn resolve(&self, project: &str, host: &str) -> Answer {
        let mut stage = self.ask(project, host)?;
        let limit = self.shared.timeout;
        let begun = stage.wait_for(|stage| !matches!(stage, Stage::Waiting));
        if timeout(limit, begun).await.is_err() {
            return Err(LookupError::Busy);
        }
        let done = stage.wait_for(|stage| matches!(stage, Stage::Answered(_)));
        match timeout(limit, done).await {
            Ok(Ok(stage)) => match &*stage {
                Stage::Answered(answer) => answer.clone(),
                _ => Err(LookupError::TimedOut),
            },
            // The thread panicked, and the question with it.
            Ok(Err(_)) | Err(_) => Err(LookupError::TimedOut),
        }
    }

    /// Puts a question on the board, or joins the same one.
    fn ask(&self, project: &str, host: &str) -> Result<watch::Receiver<Stage>, LookupError> {
        let question = Question {
            project: project.into(),
            host: host.into(),
        };
        let mut board = self.shared.board();
        if let Some(failure) = board.failure(host) {
            return Err(failure);
        }
        if let Some(same) = board.stages.get(&question) {
            if let Stage::Asked(since) = &*same.borrow()
                && since.elapsed() > self.shared.timeout
            {
                return Err(LookupError::TimedOut);
            }
            return Ok(same.subscribe());
        }
        let stage = board.add(question).ok_or(LookupError::Busy)?;
        if let Some(next) = board.next() {
            let shared = self.shared.clone();
            let named = thread::Builder::new().name("look-up".to_owned());
            let back = next.clone();
            if named.spawn(move || shared.work(next)).is_err() {
                board.settle(&back, Err(LookupError::Busy));
            }
        }
        Ok(stage)
    }
}

impl Shared {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up one name after the other, as long as it may have a next one.
    fn work(&self, first: Question) {
        let mut next = Some(first);
        while let Some(question) = next {
            let asked = std::panic::AssertUnwindSafe(|| self.lookup.look_up(&question.host));
            let answer = std::panic::catch_unwind(asked).unwrap_or(Err(LookupError::TimedOut));
            let mut board = self.board();
            board.settle(&question, answer);
            next = board.next();
        }
    }
}

impl Board {
    /// What is remembered of a failed look-up.
    fn failure(&mut self, host: &str) -> Option<LookupError> {
        let (since, failure) = self.failures.get(host)?;
        if since.elapsed() < FAILURE_KEPT {
            return Some(failure.clone());
        }
        self.failures.remove(host);
        None
    }

    /// Puts a new question behind the others of its project, unless too many wait.
    fn add(&mut self, question: Question) -> Option<watch::Receiver<Stage>> {
        let Question { project, host } = &question;
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
        let (stage, watched) = watch::channel(Stage::Waiting);
        self.stages.insert(question, stage);
        Some(watched)
    }

    /// Takes the next question for a thread: of the first project in turn that may have another
    /// one, which is last in turn then. Questions that nobody waits for any more are dropped.
    fn next(&mut self) -> Option<Question> {
        loop {
            let free = THREADS_MAX - self.working.values().sum::<usize>();
            let may = |project| free > self.working.get(project).copied().unwrap_or(0);
            let place = self.turns.iter().position(|(project, _)| may(project))?;
            let (project, mut hosts) = self.turns.remove(place)?;
            let host = hosts.pop_front();
            if !hosts.is_empty() {
                self.turns.push_back((project.clone(), hosts));
            }
            let Some(host) = host else { continue };
            self.waiting -= 1;
            let question = Question { project, host };
            match self.stages.get(&question) {
                Some(stage) if !stage.is_closed() => {
                    stage.send_replace(Stage::Asked(Instant::now()));
                    *self.working.entry(question.project.clone()).or_default() += 1;
                    return Some(question);
                }
                _ => self.stages.remove(&question),
            };
        }
    }

    /// Tells whoever waits, and gives the thread's place back.
    fn settle(&mut self, question: &Question, answer: Answer) {
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
                .retain(|_, (since, _)| since.elapsed() < FAILURE_KEPT);
            if self.failures.len() < FAILURES_MAX {
                let kept = (Instant::now(), failure.clone());
                self.failures.insert(question.host.clone(), kept);
            }
        }
        if let Some(stage) = self.stages.remove(question) {
            stage.send_replace(Stage::Answered(answer));
        }
    }
}
