//! `kinora usage`: the sums of made videos, by day, project and model, as the store keeps them.
//! They count tasks that have expired or been deleted since.

use kinora_contract::{Amount, TaskTally, iso_day};
use kinora_store::{TallyRequest, TallyRow};
use serde_json::{Value, json};

use crate::cli::UsageArgs;
use crate::failure::Failure;
use crate::output::{print, printable, table};
use crate::store_access;

const HEADS: [&str; 9] = [
    "DAY",
    "PROJECT",
    "MODEL",
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "VIDEO SECONDS",
    "ENGINE SECONDS",
    "COST",
];

/// Shows the requested sums.
pub(crate) fn run(args: &UsageArgs) -> Result<(), Failure> {
    let request = TallyRequest {
        since: args.since,
        until: args.until,
        project: args.project.clone(),
        model: args.model.clone(),
    };
    let rows = store_access::runtime()?.block_on(async {
        let operations = store_access::open_operations(&args.home, "usage").await?;
        Ok::<_, Failure>(operations.tallies(&request).await?)
    })?;
    print(&if args.json {
        as_json(&rows)
    } else if args.csv {
        as_csv(&rows)
    } else {
        as_table(&rows)
    });
    Ok(())
}

/// One line per sum, with a total at the end.
fn as_table(rows: &[TallyRow]) -> String {
    if rows.is_empty() {
        return "No task has ended in this time.\n".to_owned();
    }
    let mut lines = Vec::new();
    let mut total = TaskTally::default();
    for row in rows {
        let (project, model) = (printable(&row.project), printable(&row.model));
        lines.push(table_row(iso_day(row.day), project, model, &row.tally));
        total.add(row.tally);
    }
    if rows.len() > 1 {
        let (project, model) = (String::new(), String::new());
        lines.push(table_row("total".to_owned(), project, model, &total));
    }
    table(HEADS, lines)
}

fn table_row(
    day: String,
    project: String,
    model: String,
    tally: &TaskTally,
) -> [String; HEADS.len()] {
    let [video, engine] = [tally.video_ms, tally.engine_ms].map(seconds);
    let [completed, failed, cancelled] =
        [tally.completed, tally.failed, tally.cancelled].map(|count| count.to_string());
    [
        day,
        project,
        model,
        completed,
        failed,
        cancelled,
        video,
        engine,
        cost(tally).to_string(),
    ]
}

/// Formats the sums as CSV (RFC 4180), with LF line endings.
fn as_csv(rows: &[TallyRow]) -> String {
    let names = "day,project,model,completed,failed,cancelled,video_seconds,engine_seconds,cost\n";
    // Times as decimal seconds, as in the table: spreadsheets then add them up without a
    // conversion.
    let lines: String = rows
        .iter()
        .map(|row| {
            let tally = &row.tally;
            format!(
                "{},{},{},{},{},{},{},{},{}\n",
                iso_day(row.day),
                quoted(&row.project),
                quoted(&row.model),
                tally.completed,
                tally.failed,
                tally.cancelled,
                seconds(tally.video_ms),
                seconds(tally.engine_ms),
                cost(tally)
            )
        })
        .collect();
    format!("{names}{lines}")
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Formats seconds with milliseconds, so that they add up.
fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

/// What the tasks cost, in the currency of the service.
const fn cost(tally: &TaskTally) -> Amount {
    Amount::from_micros(tally.cost_micros)
}

/// A JSON array with one object for each sum.
fn as_json(rows: &[TallyRow]) -> String {
    let all: Value = rows
        .iter()
        .map(|row| {
            let tally = &row.tally;
            json!({
                "day": iso_day(row.day),
                "project": row.project,
                "model": row.model,
                "completed": tally.completed,
                "failed": tally.failed,
                "cancelled": tally.cancelled,
                "video_seconds": tally.video_ms as f64 / 1000.0,
                "engine_seconds": tally.engine_ms as f64 / 1000.0,
                "cost": cost(tally),
            })
        })
        .collect();
    format!("{all:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<TallyRow> {
        let tally = |completed, video_ms| TaskTally {
            completed,
            failed: 1,
            cancelled: 0,
            video_ms,
            engine_ms: 2_500,
            cost_micros: 525_000,
        };
        let row = |day, project: &str, tally| TallyRow {
            day,
            project: project.to_owned(),
            model: "kinora-a1".to_owned(),
            tally,
        };
        vec![
            row(20_370, "shop", tally(2, 10_040)),
            row(20_371, "a, \"b\"\u{1b}[2J", tally(1, 5)),
        ]
    }

    #[test]
    fn a_table_ends_with_the_total() {
        let text = as_table(&rows());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        for (line, head, cell) in [
            (1, "DAY", "2025-10-09"),
            (1, "PROJECT", "shop "),
            (1, "VIDEO SECONDS", "10.040"),
            (2, "COMPLETED", "1 "),
            (2, "ENGINE SECONDS", "2.500"),
            (3, "DAY", "total"),
            (3, "FAILED", "2 "),
            (3, "VIDEO SECONDS", "10.045"),
            (3, "COST", "1.05"),
        ] {
            let at = lines[0].find(head).unwrap();
            let column = |line: &str| line.chars().skip(at).collect::<String>();
            assert!(column(lines[line]).starts_with(cell), "{head}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(as_table(&[]).contains("No task"));
        assert_eq!(as_table(&rows()[..1]).lines().count(), 2);
    }

    #[test]
    fn programs_get_values_that_they_can_split() {
        let text = as_csv(&rows());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1],
            "2025-10-09,shop,kinora-a1,2,1,0,10.040,2.500,0.525"
        );
        assert!(lines[2].starts_with("2025-10-10,\"a, \"\"b\"\""), "{text}");
        let value: Value = serde_json::from_str(&as_json(&rows())).unwrap();
        assert_eq!(value[0]["day"], "2025-10-09");
        assert_eq!(value[0]["video_seconds"], 10.04);
        assert_eq!(value[0]["cost"], 0.525);
        assert_eq!(value[1]["completed"], 1);
    }
}
