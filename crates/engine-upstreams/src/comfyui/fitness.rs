//! Whether a server answers, is new enough, and has what the workflow needs: each finding says what to do.
//! Costs no generation. The server's own check at a submit has the last word.

use std::collections::{BTreeMap, BTreeSet};

use kinora_engine::ServerReport;
use serde_json::Value;

use super::card::{WorkflowCard, bound, node_name};
use super::shared::{ComfyServers, ComfyShared};
use super::workflow::{InputRole, WorkflowNode, link};
use crate::servers::{UpstreamError, chain, shown};

/// Longer lists of choices are cut.
const CHOICES_SHOWN_MAX: usize = 12;

/// Where a class has its inputs.
const SECTIONS: [&str; 2] = ["required", "optional"];

/// What a server says of classes; `None` for one that it does not have.
type NodeClasses = BTreeMap<String, Option<Value>>;

/// Everything that keeps a server from running the workflow.
fn find_problems(card: &WorkflowCard, known: &NodeClasses) -> Vec<String> {
    let mut problems = Vec::new();
    for (id, node) in &card.workflow.nodes {
        let named = node_name((id, node));
        match known.get(&node.class).and_then(Option::as_ref) {
            Some(info) => problems.extend(of_node(card, &named, (id, node), info)),
            None => problems.push(format!(
                "node {named}: the server has no class {}; install the custom nodes that bring it, or update ComfyUI",
                node.class
            )),
        }
    }
    problems.extend(of_output(card, known));
    problems.extend(of_optional(card, known));
    problems
}

fn of_node(
    card: &WorkflowCard,
    named: &str,
    (id, node): (&String, &WorkflowNode),
    info: &Value,
) -> Vec<String> {
    let mut problems = Vec::new();
    let bound = bound(&card.bindings);
    for name in inputs(info, "required") {
        let is_there = node.inputs.contains_key(name);
        if !is_there && !is_dynamic(info, name) {
            problems.push(format!(
                "node {named}: the server's version needs an input '{name}', which the workflow lacks; export the workflow again from this server"
            ));
        }
    }
    for (binding, target) in bound.iter().filter(|(_, target)| target.node == *id) {
        let mut names = SECTIONS
            .into_iter()
            .flat_map(|section| inputs(info, section));
        // Names with a full stop belong to inputs that grow others.
        if !target.input.contains('.') && !names.any(|name| name == target.input) {
            problems.push(format!(
                "bindings.{binding} = \"{target}\": the server's class {} has no such input; export the workflow again from this server",
                node.class
            ));
        }
    }
    for (name, value) in &node.inputs {
        let is_bound = bound
            .iter()
            .any(|(_, one)| one.node == *id && one.input == *name);
        if is_bound || link(value).is_some() {
            continue;
        }
        let choices = choices(info, name);
        if let Some(choices) = choices.filter(|choices| !choices.contains(value)) {
            problems.push(format!(
                "node {named}: '{name}' is {value}, which the server does not have; put the file into its models folder, or export the workflow with one of: {}",
                listed(choices)
            ));
        }
    }
    problems
}

/// Names of a class's inputs in one section.
fn inputs<'a>(info: &'a Value, section: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let found = info["input"][section].as_object();
    found.into_iter().flatten().map(|(name, _)| name.as_str())
}

/// Whether a required input takes a form of its own, under other names.
fn is_dynamic(info: &Value, name: &str) -> bool {
    let kind = info["input"]["required"][name][0].as_str();
    kind.is_some_and(|kind| kind.starts_with("COMFY_"))
}

/// The values that an input may have: a list in place of its type, or options beside `COMBO`.
fn choices<'a>(info: &'a Value, name: &str) -> Option<&'a Vec<Value>> {
    let mut sections = SECTIONS.into_iter();
    let spec = sections.find_map(|section| info["input"][section].get(name))?;
    match &spec[0] {
        Value::Array(choices) => Some(choices),
        Value::String(kind) if kind == "COMBO" => spec[1]["options"].as_array(),
        _ => None,
    }
}

fn listed(choices: &[Value]) -> String {
    if choices.is_empty() {
        return "(it has none)".to_owned();
    }
    let shown = choices.iter().take(CHOICES_SHOWN_MAX);
    let names: Vec<String> = shown
        .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
        .collect();
    let more = choices.len().saturating_sub(CHOICES_SHOWN_MAX);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// A node that is no output is not run by itself.
fn of_output(card: &WorkflowCard, known: &NodeClasses) -> Option<String> {
    let output = &card.bindings.output;
    let node = card.workflow.nodes.get(output)?;
    let info = known.get(&node.class)?.as_ref()?;
    let is_output = info.get("output_node").and_then(Value::as_bool);
    (is_output == Some(false)).then(|| {
        format!(
            "bindings.output: node {} saves nothing; name a node such as SaveVideo",
            node_name((output, node))
        )
    })
}

/// Nodes of files that a request may lack must feed only inputs that may be empty.
fn of_optional(card: &WorkflowCard, known: &NodeClasses) -> Vec<String> {
    let bindings = &card.bindings;
    let roles = InputRole::ALL
        .into_iter()
        .filter(|role| bindings.is_optional(*role));
    let slots = roles.flat_map(|role| bindings.slots(role).iter().map(move |slot| (role, slot)));
    let mut problems = Vec::new();
    for (role, slot) in slots {
        for (consumer, input) in card.workflow.fed_by(&slot.node) {
            let node = card.workflow.nodes.get(consumer);
            let info = node.and_then(|node| known.get(&node.class)?.as_ref());
            if let (Some(node), Some(info)) = (node, info)
                && inputs(info, "required").any(|name| name == input)
            {
                problems.push(format!(
                    "bindings.optional has {}, but node {consumer} ({}) needs its input '{input}' from node {}; take the role out, or use a node whose input may be empty",
                    role.name(),
                    node.class,
                    slot.node
                ));
            }
        }
    }
    problems
}

/// The first version that tells the state of a job that waits or runs. Names for jobs of ours are older (0.3.45), and so
/// is an interrupt of one job (0.3.57).
const VERSION_MIN: (u32, u32) = (0, 6);

/// Why an old server is of no use.
const OLD: &str = "it does not tell the state of its jobs; update it to 0.6.0 or later";

impl ComfyServers {
    /// Asks each server whether it can run the workflow: its version, classes, inputs and model files.
    pub async fn ask_all(&self) -> Vec<ServerReport> {
        let mut asked = Vec::new();
        for (index, upstream) in self.0.pool.servers.iter().enumerate() {
            let refusal = match self.0.problems(index).await {
                Ok(problems) => (!problems.is_empty()).then(|| problems.join("\n")),
                Err(error) => Some(chain(&error)),
            };
            asked.push(ServerReport {
                server: upstream.name.clone(),
                refusal,
            });
        }
        asked
    }
}

impl ComfyShared {
    /// Checks whether an excluded server is available again.
    pub(crate) async fn probe(&self, index: usize) {
        let name = &self.pool.servers[index].name;
        // What it has may have changed while it was away.
        self.set_fit(index, false);
        match self.version(index).await {
            Ok(_) => {
                tracing::info!(server = name, "server available again");
                self.pool.places.record_recovery(index);
            }
            Err(error) => {
                // Without an answer the call itself has recorded it.
                if let UpstreamError::Refused(cause) = &error {
                    self.pool.record_outage(index, cause);
                }
                tracing::debug!(
                    server = name,
                    error = chain(&error),
                    "server still excluded"
                );
            }
        }
    }

    /// The classes of the workflow, each once.
    fn classes(&self) -> BTreeSet<&str> {
        let nodes = self.card.workflow.nodes.values();
        nodes.map(|node| &*node.class).collect()
    }

    async fn version(&self, index: usize) -> Result<String, UpstreamError> {
        let stats = self.server(index).status(&["system_stats"]).await?;
        let version = stats
            .pointer("/system/comfyui_version")
            .and_then(Value::as_str);
        Ok(shown(version.unwrap_or("unknown").as_bytes()))
    }

    /// What a server lacks for the workflow, once asked; `None` if it has everything.
    pub(crate) async fn missing(&self, index: usize) -> Result<Option<String>, UpstreamError> {
        if self.is_fit(index) {
            return Ok(None);
        }
        if !self.server(index).tells_jobs().await? {
            return Ok(Some(OLD.to_owned()));
        }
        for class in self.classes() {
            if self.server(index).class(class).await?.is_none() {
                return Ok(Some(format!("it has no node class {class}")));
            }
        }
        self.set_fit(index, true);
        Ok(None)
    }

    /// Everything that keeps a server from running the workflow, for an operator.
    async fn problems(&self, index: usize) -> Result<Vec<String>, UpstreamError> {
        let version = self.version(index).await?;
        let mut problems = Vec::new();
        if is_old(&version) {
            problems.push(format!("it is ComfyUI {version}: {OLD}"));
        }
        let mut known = NodeClasses::new();
        for class in self.classes() {
            let info = self.server(index).class(class).await?;
            known.insert(class.to_owned(), info);
        }
        problems.extend(find_problems(&self.card, &known));
        Ok(problems)
    }
}

/// Whether a version is below the first that serves us. One that says no numbers may be anything.
fn is_old(version: &str) -> bool {
    let mut parts = version
        .trim_start_matches('v')
        .split('.')
        .map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < VERSION_MIN,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(is_old("0.5.1") && is_old("v0.3.64"));
        assert!(!is_old("0.6.0") && !is_old("0.33.0") && !is_old("1.0") && !is_old("unknown"));
    }
}
