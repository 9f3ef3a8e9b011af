//! `GET /v1/usage`: what the tasks of the key's project added up to, by day and model, and the budgets of the key and the
//! project.

use axum::extract::{RawQuery, State};
use kinora_contract::limits::USAGE_DAYS_MAX;
use kinora_contract::page::UsageQuery;
use kinora_contract::{Amount, Currency, iso_day};
use kinora_store::{Budget, BudgetPeriod, Spending, Spent, TallyRequest, TallyRow};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::extract::ReadKey;
use crate::refusals::OfUsage;
use crate::responses::JsonResponse;
use crate::state::SharedApi;

/// The usage of a project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Usage {
    /// Always `usage`.
    #[schema(example = "usage")]
    object: &'static str,
    /// The key's project.
    #[schema(example = "default")]
    project: String,
    /// The currency of all amounts, by its code of ISO 4217.
    #[schema(value_type = String, example = "USD")]
    currency: Currency,
    /// The first day of `data`.
    #[schema(example = "2026-11-01")]
    since: String,
    /// The last day of `data`.
    #[schema(example = "2026-11-29")]
    until: String,
    /// The sums over tasks that ended, sorted by day and model; days and models without any are left out.
    data: Vec<DayUsage>,
    /// The budgets.
    budgets: Budgets,
}

/// The sums over the tasks of one model that ended on one day.
#[derive(Debug, Serialize, ToSchema)]
struct DayUsage {
    /// The day (UTC).
    #[schema(example = "2026-11-29")]
    day: String,
    /// The model.
    #[schema(example = "kinora-a1")]
    model: String,
    /// Tasks that completed.
    completed: u64,
    /// Tasks that failed, without cancelled ones.
    failed: u64,
    /// Tasks that were cancelled.
    cancelled: u64,
    /// Length of the videos.
    video_seconds: f64,
    /// Time from the start of each task to its end.
    engine_seconds: f64,
    /// What the tasks cost.
    #[schema(value_type = f64)]
    cost: Amount,
}

/// The budgets of the key and of its project. A task must fit into both.
#[derive(Debug, Serialize, ToSchema)]
struct Budgets {
    /// The key's own.
    key: BudgetUse,
    /// The project's, for all of its keys together.
    project: BudgetUse,
    /// End of the present day of the budgets, in Unix seconds.
    day_renews_at: u64,
    /// End of the present month of the budgets, in Unix seconds.
    month_renews_at: u64,
}

/// A budget, and what tasks have used of it: unfinished ones with their estimates.
#[derive(Debug, Serialize, ToSchema)]
struct BudgetUse {
    /// Budget per day; `null`: no bound.
    #[schema(value_type = Option<f64>)]
    per_day: Option<Amount>,
    /// Used today.
    #[schema(value_type = f64)]
    spent_today: Amount,
    /// Budget per month; `null`: no bound.
    #[schema(value_type = Option<f64>)]
    per_month: Option<Amount>,
    /// Used this month.
    #[schema(value_type = f64)]
    spent_this_month: Amount,
}

impl BudgetUse {
    const fn new(budget: Budget, spent: Spent) -> Self {
        Self {
            per_day: budget.per_day,
            spent_today: spent.day,
            per_month: budget.per_month,
            spent_this_month: spent.month,
        }
    }
}

impl From<TallyRow> for DayUsage {
    fn from(row: TallyRow) -> Self {
        let tally = row.tally;
        Self {
            day: iso_day(row.day),
            model: row.model,
            completed: tally.completed,
            failed: tally.failed,
            cancelled: tally.cancelled,
            video_seconds: tally.video_ms as f64 / 1000.0,
            engine_seconds: tally.engine_ms as f64 / 1000.0,
            cost: Amount::from_micros(tally.cost_micros),
        }
    }
}

/// See usage and budgets.
///
/// The sums over the project's tasks by day and model, and what the key and the project have used of their budgets. Sums
/// stay when tasks are deleted or expire.
#[utoipa::path(
    get,
    operation_id = "read_usage",
    path = "/v1/usage",
    tag = "usage",
    params(
        ("since" = Option<String>, Query, description = "First day (UTC), such as `2026-11-01`; default: 29 days before the last one."),
        ("until" = Option<String>, Query, description = "Last day (UTC); default: today. At most 366 days in all."),
    ),
    responses((status = 200, description = "The project's usage.", body = Usage), OfUsage),
    security(("bearer" = []))
)]
pub(crate) async fn read(
    State(api): State<SharedApi>,
    ReadKey(key): ReadKey,
    RawQuery(query): RawQuery,
) -> Result<JsonResponse<Usage>, ApiError> {
    let key = &key.key;
    let query = query.unwrap_or_default();
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let asked = UsageQuery::parse(pairs.iter().map(|(name, value)| (&**name, &**value)))?;
    let spending = api.tasks.spending(&key.project, &key.id).await?;
    let days = asked.days(spending.today, USAGE_DAYS_MAX)?;
    let request = TallyRequest {
        since: Some(*days.start()),
        until: Some(*days.end()),
        project: Some(key.project.clone()),
        model: None,
    };
    let rows = api.operations.tallies(&request).await?;
    let limits = api.budgets(key);
    Ok(JsonResponse(Usage {
        object: "usage",
        project: key.project.clone(),
        currency: api.catalog.currency(),
        since: iso_day(*days.start()),
        until: iso_day(*days.end()),
        data: rows.into_iter().map(DayUsage::from).collect(),
        budgets: budgets(limits.of_key, limits.of_project, &spending),
    }))
}

const fn budgets(of_key: Budget, of_project: Budget, spending: &Spending) -> Budgets {
    Budgets {
        key: BudgetUse::new(of_key, spending.key),
        project: BudgetUse::new(of_project, spending.project),
        day_renews_at: spending.renews_at_ms(BudgetPeriod::Day) / 1000,
        month_renews_at: spending.renews_at_ms(BudgetPeriod::Month) / 1000,
    }
}
