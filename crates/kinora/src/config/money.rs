//! `[money]`: the currency of all prices, and what the tasks of projects may cost.

use std::collections::{BTreeMap, BTreeSet};

use kinora_api::ProjectBudgets;
use kinora_contract::{Amount, Currency};
use kinora_store::Budget;
use serde::Deserialize;

use crate::failure::Failure;

/// `[money]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoneySettings {
    pub(crate) currency: Currency,
    project_budget_per_day: Amount,
    project_budget_per_month: Amount,
    #[serde(default)]
    projects: Vec<ProjectBudget>,
}

/// `[[money.projects]]`: a project with a budget of its own. 0: no bound.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectBudget {
    name: String,
    #[serde(default)]
    budget_per_day: Amount,
    #[serde(default)]
    budget_per_month: Amount,
}

impl MoneySettings {
    /// Refuses two budgets of one project.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let mut seen = BTreeSet::new();
        match self.projects.iter().find(|one| !seen.insert(&one.name)) {
            Some(twice) => Err(Failure::new(format!(
                "[[money.projects]] names the project '{}' twice.",
                twice.name.escape_debug()
            ))),
            None => Ok(()),
        }
    }

    /// The budgets of all projects.
    pub(crate) fn budgets(&self) -> ProjectBudgets {
        let named: BTreeMap<String, Budget> = self
            .projects
            .iter()
            .map(|one| {
                (
                    one.name.clone(),
                    budget(one.budget_per_day, one.budget_per_month),
                )
            })
            .collect();
        ProjectBudgets {
            default: budget(self.project_budget_per_day, self.project_budget_per_month),
            named,
        }
    }
}

fn budget(per_day: Amount, per_month: Amount) -> Budget {
    let bound = |amount| Some(amount).filter(|amount| *amount > Amount::ZERO);
    Budget {
        per_day: bound(per_day),
        per_month: bound(per_month),
    }
}
