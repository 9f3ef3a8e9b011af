//! The list of fixed prompts, a table with tabs whose first line names the columns. It judges
//! nothing: what must be seen is for the eye that reads the sheets.

use std::error::Error;

/// One prompt of the list.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) number: u32,
    /// As in BCP 47: `en`.
    pub(crate) language: String,
    pub(crate) prompt: String,
    /// The negative prompt; may be empty.
    pub(crate) avoid: String,
    /// The number of the row whose clip this one edits.
    pub(crate) edit_of: Option<u32>,
    /// The prompt in English.
    pub(crate) english: String,
    /// What has to be in the picture.
    pub(crate) seen: String,
}

/// The rows of `text`.
pub(crate) fn rows(text: &str) -> Result<Vec<Row>, Box<dyn Error>> {
    text.lines().skip(1).map(row).collect()
}

fn row(line: &str) -> Result<Row, Box<dyn Error>> {
    let cells: Vec<&str> = line.split('\t').collect();
    let [number, language, prompt, avoid, edit_of, english, seen] = cells[..] else {
        return Err(format!("not seven columns: {line}").into());
    };
    let edit_of = (!edit_of.is_empty()).then(|| edit_of.parse()).transpose()?;
    Ok(Row {
        number: number.parse()?,
        language: language.to_owned(),
        prompt: prompt.to_owned(),
        avoid: avoid.to_owned(),
        edit_of,
        english: english.to_owned(),
        seen: seen.to_owned(),
    })
}
