//! Consequences of a worker's death for the tasks that it ran. A death counts against a task while
//! it has another attempt. The last attempt is used up only by a death during which the task ran
//! alone, so that an innocent task does not fail because of a neighbour that kills the process. The
//! claims ensure that such a task runs alone ([`runs_alone`]), and that it does so only in a
//! process that has lived for a while: a crash loop has other causes. Pure: every store uses this.

/// The verdict on a task whose worker died or hung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeathVerdict {
    /// The task waits again, and the attempt counts.
    Again,
    /// The task waits again, and the attempt does not count: another running task may be the cause.
    Spared,
    /// It was the last attempt: the task fails with `worker_lost`.
    Lost,
}

/// Judges a death in attempt number `attempt` of at most `attempts_max`; `alone` is whether the
/// worker ran nothing else.
pub const fn evaluate_death(attempt: u32, attempts_max: u32, alone: bool) -> DeathVerdict {
    // Example with 3 attempts: tasks A and B run in one worker, and A kills it each time. After two deaths
    // both have one attempt left, so each runs alone from now on. A dies again and fails; B completes.
    // If they shared the third run too, B could not be told from A, so both are spared.
    match (attempt < attempts_max, alone) {
        (true, _) => DeathVerdict::Again,
        (false, false) => DeathVerdict::Spared,
        (false, true) => DeathVerdict::Lost,
    }
}

/// Whether the task's next attempt must be the worker's only run: it is the last attempt of a task
/// whose worker has died before.
pub const fn runs_alone(deaths: u32, attempts: u32, attempts_max: u32) -> bool {
    deaths > 0 && attempts.saturating_add(1) >= attempts_max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_death_alone_uses_up_the_last_attempt() {
        use DeathVerdict::{Again, Lost, Spared};
        for (attempt, attempts_max, beside_others, alone) in [
            (1, 3, Again, Again),
            (2, 3, Again, Again),
            (3, 3, Spared, Lost),
            // Of a time when more were allowed.
            (4, 3, Spared, Lost),
            (1, 1, Spared, Lost),
            (1, 2, Again, Again),
            (2, 2, Spared, Lost),
        ] {
            let judged = [false, true].map(|alone| evaluate_death(attempt, attempts_max, alone));
            assert_eq!(
                judged,
                [beside_others, alone],
                "{attempt} of {attempts_max}"
            );
        }
    }

    #[test]
    fn the_last_attempt_after_a_death_is_made_alone() {
        for (deaths, attempts, attempts_max, alone) in [
            (0, 0, 3, false),
            (1, 1, 3, false),
            (2, 2, 3, true),
            // One attempt was lost with an engine's own process, one with the worker.
            (1, 2, 3, true),
            (0, 2, 3, false),
            (0, 0, 1, false),
            (1, 0, 1, true),
            (5, 5, 10_000, false),
        ] {
            let judged = runs_alone(deaths, attempts, attempts_max);
            assert_eq!(judged, alone, "{deaths}, {attempts} of {attempts_max}");
        }
    }

    /// Whatever runs beside it, a task that kills its process fails, and no other task does.
    #[test]
    fn a_poison_task_ends_and_its_neighbours_do_not() {
        for attempts_max in 1..6 {
            let (mut attempts, mut deaths) = (0, 0);
            let lives = (1..).find(|_| {
                let alone = runs_alone(deaths, attempts, attempts_max);
                attempts += 1;
                deaths += 1;
                match evaluate_death(attempts, attempts_max, alone) {
                    DeathVerdict::Again => false,
                    DeathVerdict::Spared => {
                        attempts -= 1;
                        false
                    }
                    DeathVerdict::Lost => true,
                }
            });
            assert_eq!(lives, Some(attempts_max.max(2)));
        }
    }
}
