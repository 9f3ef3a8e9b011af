//! What a server lacks for a workflow, by what it says of its node classes: each finding says what to do.
//! The server's own check at a submit has the last word.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::bindings::Role;
use crate::card::{Card, bound, shown};
use crate::workflow::{Node, link};

/// Longer lists of choices are cut.
const CHOICES_SHOWN_MAX: usize = 12;

/// What a server says of classes; `None` for one that it does not have.
pub(crate) type Known = BTreeMap<String, Option<Value>>;

/// The classes of a workflow, each once.
pub(crate) fn classes(card: &Card) -> BTreeSet<&str> {
    card.workflow()
        .nodes()
        .map(|(_, node)| &*node.class)
        .collect()
}

/// Everything that keeps a server from running the workflow.
pub(crate) fn problems(card: &Card, known: &Known) -> Vec<String> {
    let mut problems = Vec::new();
    for (id, node) in card.workflow().nodes() {
        let named = shown((id, node));
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

fn of_node(card: &Card, named: &str, (id, node): (&String, &Node), info: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let bound: Vec<_> = bound(card.bindings());
    for name in inputs(info, "required") {
        let is_there = node.inputs.contains_key(name);
        if !is_there && !is_dynamic(info, "required", name) {
            problems.push(format!(
                "node {named}: the server's version needs an input '{name}', which the workflow lacks; export the workflow again from this server"
            ));
        }
    }
    for (binding, target) in bound.iter().filter(|(_, target)| target.node == *id) {
        let sections = ["required", "optional"];
        let mut names = sections
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
                listed(&choices)
            ));
        }
    }
    problems
}

/// Names of a class's inputs in one section.
fn inputs<'a>(info: &'a Value, section: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let found = info.get("input").and_then(|input| input.get(section));
    let found = found.and_then(Value::as_object);
    found.into_iter().flatten().map(|(name, _)| name.as_str())
}

/// Whether an input takes a form of its own, under other names.
fn is_dynamic(info: &Value, section: &str, name: &str) -> bool {
    let kind = info
        .get("input")
        .and_then(|input| input.get(section)?.get(name)?.get(0)?.as_str());
    kind.is_some_and(|kind| kind.starts_with("COMFY_"))
}

/// The values that an input may have: a list in place of its type, or options beside `COMBO`.
fn choices(info: &Value, name: &str) -> Option<Vec<Value>> {
    let mut sections = ["required", "optional"].into_iter();
    let spec = sections.find_map(|section| info.get("input")?.get(section)?.get(name))?;
    match spec.get(0)? {
        Value::Array(choices) => Some(choices.clone()),
        Value::String(kind) if kind == "COMBO" => spec.get(1)?.get("options")?.as_array().cloned(),
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
fn of_output(card: &Card, known: &Known) -> Option<String> {
    let output = &card.bindings().output;
    let node = card.workflow().node(output)?;
    let info = known.get(&node.class)?.as_ref()?;
    let is_output = info.get("output_node").and_then(Value::as_bool);
    (is_output == Some(false)).then(|| {
        format!(
            "bindings.output: node {} saves nothing; name a node such as SaveVideo",
            shown((output, node))
        )
    })
}

/// Nodes of files that a request may lack must feed only inputs that may be empty.
fn of_optional(card: &Card, known: &Known) -> Vec<String> {
    let bindings = card.bindings();
    let roles = Role::ALL
        .into_iter()
        .filter(|role| bindings.is_optional(*role));
    let slots = roles.flat_map(|role| bindings.slots(role).iter().map(move |slot| (role, slot)));
    let mut problems = Vec::new();
    for (role, slot) in slots {
        for (consumer, input) in card.workflow().fed_by(&slot.node) {
            let node = card.workflow().node(consumer);
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
