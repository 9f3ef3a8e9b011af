//! Shows each exchange with a server, and what its dialect understood of the answer.

use kinora_engine_upstreams::dialects::{
    ExchangeWatcher, ServerDialect, WatchedAnswer, WatchedExchange, describe_answer,
};
use serde_json::Value;

use crate::output::{print, printable};

/// Prints exchanges as they end.
#[derive(Debug)]
pub(super) struct ShownExchanges {
    pub(super) dialect: ServerDialect,
}

impl ExchangeWatcher for ShownExchanges {
    fn exchanged(&self, exchange: &WatchedExchange) {
        print(&text(exchange, &self.dialect));
    }
}

fn text(exchange: &WatchedExchange, dialect: &ServerDialect) -> String {
    let mut lines = vec![
        String::new(),
        format!("> {} {}", exchange.method, exchange.url),
    ];
    lines.extend(headers("> ", &exchange.headers));
    lines.extend(indented(&exchange.body));
    match &exchange.answer {
        Ok(answer) => lines.extend(answer_lines(answer, dialect)),
        Err(error) => lines.push(format!("< no answer: {error}")),
    }
    let lines = lines.iter().map(|line| format!("{}\n", printable(line)));
    lines.collect()
}

fn answer_lines(answer: &WatchedAnswer, dialect: &ServerDialect) -> Vec<String> {
    let mut lines = vec![format!("< {}", answer.status)];
    lines.extend(headers("< ", &answer.headers));
    // The bytes of a film are not shown.
    if !answer.body.is_empty() {
        lines.extend(indented(&answer.body));
        lines.push(format!("= {}", describe_answer(&answer.body, dialect)));
    }
    lines
}

fn headers(mark: &str, headers: &[(String, String)]) -> Vec<String> {
    let lines = headers.iter();
    lines
        .map(|(name, value)| format!("{mark}{name}: {value}"))
        .collect()
}

/// A body, as indented JSON if it is JSON.
fn indented(body: &str) -> Vec<String> {
    let pretty = serde_json::from_str::<Value>(body)
        .ok()
        .and_then(|value| serde_json::to_string_pretty(&value).ok());
    let text = pretty.as_deref().unwrap_or(body);
    text.lines().map(|line| format!("  {line}")).collect()
}
