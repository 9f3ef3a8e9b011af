//! Budgets: what the tasks of a key or of a project may cost per day and per month (UTC). The estimate of a task is
//! reserved in the transaction of its submit, and corrected in the transaction that ends it, so the sums are exact at
//! every moment, over any number of processes.
//!
//! The day of all budgets is one stored value, which only a sweep that trusts the clock moves: a step of the clock
//! neither renews a budget early nor locks one.

use kinora_contract::lifecycle::SpendingChange;
use kinora_contract::{
    Amount, CostReservation, TaskCost, UnixMs, day_begins_ms, day_of, month_of, next_month,
};

/// How long after midnight a budget is renewed at the latest, if the clock is trusted: two sweeps.
const RENEWAL_MS: u64 = 10_000;
/// Pause before the next attempt while the renewal is overdue, since the clock is not trusted yet.
const OVERDUE_MS: u64 = 60_000;
/// The longest period, a month, in milliseconds.
const PERIOD_MS_MAX: u64 = 31 * 24 * 60 * 60 * 1000;

/// What the tasks of one owner may cost. `None`: no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Per day.
    pub per_day: Option<Amount>,
    /// Per month.
    pub per_month: Option<Amount>,
}

/// The budgets that a new task counts against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubmitBudgets {
    /// Id of the key that submits it.
    pub key: String,
    /// The budget of the key.
    pub of_key: Budget,
    /// The budget of its project, for all keys together.
    pub of_project: Budget,
}

/// The owner of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetOwner {
    /// An API key.
    Key,
    /// A project.
    Project,
}

/// The period of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetPeriod {
    /// A day, UTC.
    Day,
    /// A month, UTC.
    Month,
}

/// The budget that a task would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceededBudget {
    /// Its owner.
    pub owner: BudgetOwner,
    /// Its period.
    pub period: BudgetPeriod,
    /// The whole budget.
    pub limit: Amount,
    /// What is left of it.
    pub left: Amount,
    /// The estimated cost of the task.
    pub cost: Amount,
    /// Beginning of the next period.
    pub renews_at_ms: UnixMs,
    /// Milliseconds from now until the budget is renewed for certain, at least 1.
    pub retry_ms: u64,
}

impl ExceededBudget {
    /// Whether waiting does not help, since the task costs more than the whole budget.
    #[must_use]
    pub fn is_too_small(&self) -> bool {
        self.cost > self.limit
    }
}

/// What the tasks of one owner have cost in the present periods, unfinished ones by their estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Today.
    pub day: Amount,
    /// This month.
    pub month: Amount,
}

/// The spending of a key and of its project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// The day of all budgets, in days since 1970 (UTC).
    pub today: u64,
    /// Of the key.
    pub key: Spent,
    /// Of the project.
    pub project: Spent,
}

impl Spending {
    /// Whose budget a task that costs `cost` would exceed; `None` if it fits. Of several, one that no renewal helps comes
    /// first, then the one that is renewed last: who waits for that need not ask again before.
    pub(crate) fn refusal(
        &self,
        budgets: &SubmitBudgets,
        cost: Amount,
        now_ms: UnixMs,
    ) -> Option<ExceededBudget> {
        let (key, project) = (BudgetOwner::Key, BudgetOwner::Project);
        let (day, month) = (BudgetPeriod::Day, BudgetPeriod::Month);
        let all = [
            (key, month, budgets.of_key.per_month, self.key.month),
            (
                project,
                month,
                budgets.of_project.per_month,
                self.project.month,
            ),
            (key, day, budgets.of_key.per_day, self.key.day),
            (project, day, budgets.of_project.per_day, self.project.day),
        ];
        let exceeded = all.into_iter().filter_map(|(owner, period, limit, spent)| {
            let limit = limit?;
            let left = limit.minus(spent);
            (cost > left).then(|| self.exceeded(owner, period, (limit, left, cost), now_ms))
        });
        let mut exceeded: Vec<ExceededBudget> = exceeded.collect();
        // A stable sort: equal ones keep the order above.
        exceeded.sort_by_key(|one| (!one.is_too_small(), u64::MAX - one.renews_at_ms));
        exceeded.first().copied()
    }

    fn exceeded(
        &self,
        owner: BudgetOwner,
        period: BudgetPeriod,
        (limit, left, cost): (Amount, Amount, Amount),
        now_ms: UnixMs,
    ) -> ExceededBudget {
        let renews_at_ms = self.renews_at_ms(period);
        let retry_ms = match renews_at_ms.checked_sub(now_ms) {
            // Bounded, because the clock may be far behind for a moment.
            Some(ms) if ms > 0 => ms.min(PERIOD_MS_MAX).saturating_add(RENEWAL_MS),
            _ => OVERDUE_MS,
        };
        ExceededBudget {
            owner,
            period,
            limit,
            left,
            cost,
            renews_at_ms,
            retry_ms,
        }
    }

    /// The end of the present period.
    #[must_use]
    pub const fn renews_at_ms(&self, period: BudgetPeriod) -> UnixMs {
        day_begins_ms(match period {
            BudgetPeriod::Day => self.today.saturating_add(1),
            BudgetPeriod::Month => next_month(self.today),
        })
    }
}

/// The stored sums of an owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpendingRow {
    pub(crate) day: u64,
    pub(crate) day_micros: u64,
    pub(crate) month: u64,
    pub(crate) month_micros: u64,
}

impl SpendingRow {
    /// The sums of the periods of `today`; those of earlier periods have ended.
    pub(crate) fn spent(&self, today: u64) -> Spent {
        let of =
            |is_current: bool, micros| Amount::from_micros(if is_current { micros } else { 0 });
        Spent {
            day: of(self.day == today, self.day_micros),
            month: of(self.month == month_of(today), self.month_micros),
        }
    }
}

/// The day of the budgets: the stored one. While no sweep has stored any, the present one, but not before the last day of
/// the owners' sums, so that a clock that is behind overwrites none of them.
pub(crate) fn today(stored: u64, last_day: Option<u64>, now_ms: UnixMs) -> u64 {
    match stored {
        0 => day_of(now_ms).max(last_day.unwrap_or(0)),
        day => day,
    }
}

/// The reservation of a task's cost in the budget of a key with this id, for a submit on this day.
pub(crate) fn reserve(cost: &TaskCost, budget: &str, today: u64) -> TaskCost {
    TaskCost {
        reserved: Some(CostReservation {
            key: budget.to_owned(),
            day: today,
        }),
        ..cost.clone()
    }
}

/// A change of a stored sum.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ScopeChange {
    /// The owner ([`key_scope`], [`project_scope`]).
    pub(crate) scope: String,
    /// The day on which the amount was reserved.
    pub(crate) day: u64,
    pub(crate) micros: i64,
}

/// The owner in the table.
pub(crate) fn key_scope(id: &str) -> String {
    format!("key:{id}")
}

/// The owner in the table.
pub(crate) fn project_scope(name: &str) -> String {
    format!("project:{name}")
}

/// The changes of the sums of a project and a key by the end of a task.
pub(crate) fn scope_changes(project: &str, change: &SpendingChange) -> [ScopeChange; 2] {
    [project_scope(project), key_scope(&change.reserved.key)].map(|scope| ScopeChange {
        scope,
        day: change.reserved.day,
        micros: change.micros,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 20_786;

    fn amount(units: f64) -> Amount {
        Amount::from_units(units).unwrap()
    }

    fn budget(per_day: f64, per_month: f64) -> Budget {
        Budget {
            per_day: Some(amount(per_day)),
            per_month: Some(amount(per_month)),
        }
    }

    fn spent(day: f64, month: f64) -> Spent {
        Spent {
            day: amount(day),
            month: amount(month),
        }
    }

    #[test]
    fn the_budget_that_holds_longest_is_named() {
        let spending = Spending {
            today: DAY,
            key: spent(9.0, 150.0),
            project: spent(20.0, 999.5),
        };
        let now_ms = day_begins_ms(DAY) + 1_000;
        let refusal = |of_key, of_project, cost: f64| {
            let budgets = SubmitBudgets {
                key: "key_a".to_owned(),
                of_key,
                of_project,
            };
            let refusal = spending.refusal(&budgets, amount(cost), now_ms)?;
            Some((refusal.owner, refusal.period, refusal.left.to_string()))
        };
        let none = Budget::default();
        let (key, project) = (BudgetOwner::Key, BudgetOwner::Project);
        let (day, month) = (BudgetPeriod::Day, BudgetPeriod::Month);
        let left = |text: &str| text.to_owned();
        assert_eq!(refusal(none, none, 1e9), None);
        let ten = budget(10.0, 200.0);
        assert_eq!(refusal(ten, none, 1.0), None);
        assert_eq!(refusal(ten, none, 1.01), Some((key, day, left("1.00"))));
        let shared = budget(20.0, 1000.0);
        assert_eq!(
            refusal(none, shared, 0.1),
            Some((project, day, left("0.00")))
        );
        assert_eq!(
            refusal(ten, shared, 1.01),
            Some((project, month, left("0.50")))
        );
        // More than the whole budget of a day: no wait helps.
        assert_eq!(refusal(ten, shared, 10.01), Some((key, day, left("1.00"))));
        // A budget of 0 refuses all that costs anything, and nothing else.
        assert_eq!(refusal(budget(0.0, 0.0), none, 0.0), None);
        assert!(refusal(budget(0.0, 0.0), none, 0.1).is_some());
    }

    #[test]
    fn a_renewal_is_told_with_the_lag_of_the_sweep() {
        let spending = Spending {
            today: DAY,
            ..Spending::default()
        };
        let budgets = SubmitBudgets {
            of_key: budget(0.5, 500.0),
            ..SubmitBudgets::default()
        };
        let retry = |now_ms| {
            spending
                .refusal(&budgets, amount(1.0), now_ms)
                .unwrap()
                .retry_ms
        };
        let midnight = day_begins_ms(DAY + 1);
        assert_eq!(retry(midnight - 3_000), 13_000);
        assert_eq!(retry(midnight), OVERDUE_MS);
        assert_eq!(retry(midnight + 99_000), OVERDUE_MS);
        assert_eq!(retry(0), PERIOD_MS_MAX + RENEWAL_MS);
        let refusal = spending.refusal(&budgets, amount(1.0), midnight);
        assert!(refusal.unwrap().is_too_small());
    }
}
