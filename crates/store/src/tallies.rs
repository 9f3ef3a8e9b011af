//! Sums over ended tasks by day, project and model: updates and queries.

use std::collections::BTreeMap;

use kinora_contract::Tally;
use kinora_contract::lifecycle::Ending;
use serde::{Deserialize, Serialize};

/// A query for sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TallyRequest {
    /// From this day on, in days since 1970 (UTC).
    pub since: Option<u64>,
    /// Up to and including this day.
    pub until: Option<u64>,
    /// Only this project.
    pub project: Option<String>,
    /// Only this model.
    pub model: Option<String>,
}

/// The sums over the tasks of one model of one project that ended on one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TallyRow {
    /// The day, in days since 1970 (UTC).
    pub day: u64,
    /// The project that owned the tasks.
    pub project: String,
    /// Canonical identifier of their model.
    pub model: String,
    /// The sums.
    pub tally: Tally,
}

/// Sums in memory, sorted by day, project and model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tallies(BTreeMap<(u64, String, String), Tally>);

impl Tallies {
    pub(crate) fn add(&mut self, ending: &Ending) {
        let place = (ending.day, ending.project.clone(), ending.model.clone());
        self.0.entry(place).or_default().add(ending.tally);
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = TallyRow> {
        let row = |((day, project, model), tally): (&(u64, String, String), &Tally)| TallyRow {
            day: *day,
            project: project.clone(),
            model: model.clone(),
            tally: *tally,
        };
        self.0.iter().map(row)
    }
}

impl<'a> FromIterator<&'a Ending> for Tallies {
    fn from_iter<I: IntoIterator<Item = &'a Ending>>(endings: I) -> Self {
        let mut tallies = Self::default();
        endings.into_iter().for_each(|ending| tallies.add(ending));
        tallies
    }
}
