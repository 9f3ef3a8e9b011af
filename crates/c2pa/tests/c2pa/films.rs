//! Films to be signed, and what others say of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use kinora_media::{ClipFormat, DigitalSource, Origin, Provenance, Recorder, RecorderOptions};
use serde_json::Value;

/// Where a film comes from that starts from this one.
pub(crate) fn provenance(derived_from: Option<Origin>) -> Provenance {
    Provenance {
        source: DigitalSource::TrainedAlgorithmicMedia,
        tool: "Kinora 1.2.3".to_owned(),
        created: "2026-11-22T03:45:01Z".to_owned(),
        model: "house \"1\" ü漢🎬\u{0}".to_owned(),
        engine: "house/7".to_owned(),
        id: "video_1".to_owned(),
        derived_from,
    }
}

/// A labelled film of one second.
pub(crate) fn film(folder: &Path) -> PathBuf {
    let format = ClipFormat {
        width: 64,
        height: 48,
        fps: 24,
        frames: 24,
        audio: None,
    };
    let path = folder.join("film.mp4");
    let recorder = Recorder::create(&path, format, RecorderOptions::default()).unwrap();
    let mut recorder = recorder.with_provenance(provenance(None));
    for index in 0..format.frames {
        let frame: Vec<u8> = (0..64 * 48 * 3)
            .map(|at| (at / 3 % 64 * 3 + index * 2) as u8)
            .collect();
        recorder.push_frame(&frame).unwrap();
    }
    recorder.finish().unwrap();
    path
}

/// What the C2PA project's reader says of a file, if it trusts this authority.
pub(crate) fn report(film: &Path, root_pem: &str) -> Value {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let python = crates.parent().unwrap().join(".venv/bin/python");
    assert!(python.exists(), "./test installs c2pa-python");
    let anchors = film.with_extension("anchors.pem");
    std::fs::write(&anchors, root_pem).unwrap();
    let output = Command::new(python)
        .arg(crates.join("c2pa/tests/reader.py"))
        .args([film, &anchors])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}
