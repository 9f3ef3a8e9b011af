//! Nothing is left out in silence: of the prompts that people write, almost all have each content word drawn or named.

use super::account::account;
use super::support::*;

const SAMPLE: &str = include_str!("../prompts/vbench-sample.txt");

/// Least share of prompts without silent loss, percent.
const WHOLE_MIN: usize = 97;

#[test]
fn few_prompts_lose_a_word_in_silence() {
    let prompts: Vec<&str> = SAMPLE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    for chinese in [false, true] {
        let ours = prompts.iter().filter(|one| one.is_ascii() != chinese);
        let found: Vec<_> = ours
            .map(|prompt| (prompt, account(&spec(prompt, SMALL, 5, 1))))
            .collect();
        let lost: Vec<String> = found
            .iter()
            .filter(|(_, account)| !account.silent.is_empty())
            .map(|(prompt, account)| {
                format!("{prompt}: {:?}, drawn {:?}", account.silent, account.drawn)
            })
            .collect();
        let whole = found.len() - lost.len();
        assert!(
            whole * 100 >= found.len() * WHOLE_MIN,
            "{whole} of {}\n{}",
            found.len(),
            lost.join("\n")
        );
        let wronged = found.iter().filter(|(_, one)| !one.wronged.is_empty());
        let wronged: Vec<_> = wronged
            .map(|(prompt, one)| (prompt, &one.wronged, &one.said))
            .collect();
        assert!(wronged.is_empty(), "{wronged:?}");
    }
}
