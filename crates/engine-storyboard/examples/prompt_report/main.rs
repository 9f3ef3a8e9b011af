//! Reports the share of prompts without silent loss: every content word is drawn or named in a warning. Arguments are
//! files of prompts, one a line; `--each` lists every prompt with its
//! losses and warnings.

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;

#[path = "../../tests/storyboard/account.rs"]
mod account;

use account::account;
use kinora_contract::{FrameSize, Size, VideoInputs, VideoLength, VideoSpec};

/// Number of words listed as lost most often.
const WORST: usize = 40;

fn main() -> Result<(), Box<dyn Error>> {
    let (options, files): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|one| one.starts_with("--"));
    for file in files {
        report(&file, options.iter().any(|one| one == "--each"))?;
    }
    Ok(())
}

fn report(file: &str, each: bool) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(file)?;
    let prompts: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let (mut whole, mut wronged) = (0, 0);
    let mut lost: BTreeMap<String, usize> = BTreeMap::new();
    for prompt in &prompts {
        let found = account(&spec(prompt));
        whole += usize::from(found.silent.is_empty());
        wronged += found.wronged.len();
        if each {
            println!(
                "{prompt}\n  silent {:?}, wronged {:?}, drawn {:?}, said {:?}",
                found.silent, found.wronged, found.drawn, found.said
            );
        }
        for word in found.silent {
            *lost.entry(word).or_default() += 1;
        }
    }
    let share = 100.0 * f64::from(whole as u32) / f64::from(prompts.len().max(1) as u32);
    println!(
        "{file}: {whole} of {} prompts without silent loss ({share:.1} %)",
        prompts.len()
    );
    println!("words named as not drawn although drawn: {wronged}");
    let mut worst: Vec<(usize, String)> = lost
        .into_iter()
        .map(|(word, count)| (count, word))
        .collect();
    worst.sort_by(|one, other| other.cmp(one));
    let worst: Vec<String> = worst
        .iter()
        .take(WORST)
        .map(|(count, word)| format!("{word} {count}"))
        .collect();
    println!("lost most often: {}", worst.join(", "));
    Ok(())
}

fn spec(prompt: &str) -> VideoSpec {
    VideoSpec {
        version: 1,
        model: "storyboard".to_owned(),
        prompt: prompt.to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(5),
        frame: FrameSize::Fixed(Size::new(640, 360)),
        seed: 1,
        generate_audio: false,
        inputs: VideoInputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}
