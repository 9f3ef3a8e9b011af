//! What `kinora engine check` finds: a stand-in by Python's standard library keeps to the protocol, or breaks it in one
//! way, which the check names in words for its author.

use std::process::Output;

use kinora_test_e2e::kinora;

const STAND_IN: &str = include_str!("engine_checks/stand_in.py");

/// Checks the stand-in with this fault.
fn check(fault: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stand_in.py");
    std::fs::write(&file, STAND_IN).unwrap();
    let mut command = kinora();
    command.args(["engine", "check"]);
    if !arguments.contains(&"--size") {
        command.args(["--size", "64x64"]);
    }
    command.args(arguments).args(["--", "python3"]);
    command.arg(&file).arg(fault);
    command.output().unwrap()
}

fn told(checked: &Output) -> String {
    let [told, failure] =
        [&checked.stdout, &checked.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{told}{failure}")
}

#[test]
fn an_engine_that_keeps_to_the_protocol_passes() {
    let checked = check("none", &[]);
    let told = told(&checked);
    assert!(checked.status.success(), "{told}");
    assert!(told.contains("keeps to the protocol"), "{told}");
    for what in [
        "text: after a cancel in a step",
        "text: unknown messages and keys",
        "text: the end of its input",
        "a last frame: another last frame",
        "a first frame: another first frame",
        "references: another first image",
        "references: another second image",
        "references: another reference sound",
        "a negative prompt: what it sends",
        "the final of a draft: what it sends",
        "an edit: another source",
    ] {
        assert!(told.contains(&format!("  ok        {what}\n")), "{told}");
    }
}

/// Asserts that the check names this fault, and returns all that it says.
fn assert_found(fault: &str, what: &str, words: &str) -> String {
    let checked = check(fault, &[]);
    let told = told(&checked);
    assert_eq!(checked.status.code(), Some(1), "{fault}: {told}");
    let broken = format!("  BROKEN    {what}\n");
    let (_, after) = told
        .split_once(&broken)
        .unwrap_or_else(|| panic!("{fault} was not found: {told}"));
    let line = after.lines().next().unwrap_or_default();
    assert!(line.contains(words), "{fault}: {told}");
    told
}

#[test]
fn a_preset_is_checked_if_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("preset.json");
    std::fs::write(&file, "{\"steps\": 4}").unwrap();
    for preset in ["{\"steps\": 4}", file.to_str().unwrap()] {
        let told = told(&check("none", &["--preset", preset]));
        assert!(told.contains("  ok        text: a preset\n"), "{told}");
    }
    let said = told(&check("none", &[]));
    assert!(!said.contains("a preset"), "{said}");
    for (fault, broken) in [
        ("ignores its preset", "another preset gives another clip"),
        ("keeps its preset", "a preset leaves nothing behind"),
    ] {
        let checked = check(fault, &["--preset", "{\"steps\": 4}"]);
        let told = told(&checked);
        assert_eq!(checked.status.code(), Some(1), "{fault}: {told}");
        assert!(told.contains(broken), "{fault}: {told}");
    }
    let checked = check("none", &["--preset", "{"]);
    assert!(told(&checked).contains("The preset is no JSON object"));
}

#[test]
fn an_engine_that_ignores_cancels_is_found() {
    let words = "no end of the job within 1.5 s of a cancel";
    assert_found("ignores cancels", "text: a cancel", words);
}

#[test]
fn an_engine_that_ignores_an_input_is_found() {
    for (fault, what) in [
        (
            "ignores the first frame",
            "a first frame: another first frame",
        ),
        ("ignores the last frame", "a last frame: another last frame"),
        ("ignores the image 2", "references: another second image"),
        ("ignores the sound", "references: another reference sound"),
        ("ignores the source", "an edit: another source"),
    ] {
        let told = assert_found(fault, what, "gives another clip");
        assert_eq!(told.matches("BROKEN").count(), 1, "{fault}: {told}");
    }
}

#[test]
fn progress_is_judged_as_it_is_sent() {
    for (fault, words) in [
        ("lets its progress fall", "progress never falls"),
        ("reports percent", "progress lies in 0.0 to 1.0"),
    ] {
        assert_found(fault, "text: what it sends", words);
    }
}

#[test]
fn an_engine_that_is_done_before_a_cancel_reaches_it_gets_longer_clips() {
    let words = "no end of the job within 1.5 s of a cancel";
    let told = assert_found("never looks for a cancel", "text: a cancel", words);
    assert!(told.contains("note: with a clip of"), "{told}");
}

#[test]
fn what_was_not_tested_is_not_ok() {
    let untested = "  untested  text: after a cancel in a step\n";
    for (fault, why) in [
        (
            "has no time for a cancel",
            "done before the cancel took effect",
        ),
        (
            "reports no progress",
            "no progress above 0 before its last frame",
        ),
    ] {
        let checked = check(fault, &["--size", "16x16"]);
        let told = told(&checked);
        assert_eq!(checked.status.code(), Some(5), "{fault}: {told}");
        assert!(told.contains(untested) && told.contains(why), "{told}");
        // How many depends on how fast the machine is.
        assert!(told.contains(" tested nothing"), "{told}");
        assert!(!told.contains("keeps to the protocol"), "{told}");
    }
}

#[test]
fn what_a_step_leaves_behind_is_found_by_a_cancel_between_steps() {
    let told = assert_found(
        "leaves a step behind",
        "text: after a cancel in a step",
        "leaves no trace in the next one",
    );
    assert!(
        told.contains("  ok        text: after a cancel\n"),
        "{told}"
    );
}

#[test]
fn an_engine_that_dies_of_what_it_does_not_know_is_found() {
    let what = "text: unknown messages and keys";
    assert_found("dies of unknown messages", what, "generation failed");
}

#[test]
fn a_child_that_outlives_the_service_is_found() {
    let words = "all that it started, ends at once";
    assert_found("leaves a child", "text: the end of its input", words);
}

#[test]
fn a_feature_that_the_engine_has_not_is_found() {
    for (fault, what) in [
        (
            "refuses negative prompts",
            "a negative prompt: what it sends",
        ),
        ("refuses finals", "the final of a draft: what it sends"),
    ] {
        assert_found(fault, what, "generation failed");
    }
}

#[test]
fn an_engine_that_hangs_does_not_hang_the_check() {
    let checked = check("hangs", &["--silence-seconds", "1"]);
    let told = told(&checked);
    assert_eq!(checked.status.code(), Some(1), "{told}");
    assert!(
        told.contains("no progress for 1 s: the job was ended"),
        "{told}"
    );
    assert!(
        told.contains("1 check failed") && told.contains("were not tried"),
        "{told}"
    );
}
